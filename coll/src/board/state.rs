//! The board of a group.

use std::sync::atomic::AtomicU32;
use std::sync::{Mutex, OnceLock};

use tagwire_transport::Board;

/// The board of a group, once it has one.
#[derive(Debug, Default)]
pub(crate) struct TeamBoard {
    pub(super) board: OnceLock<Option<Mutex<Board>>>,
    /// Operations that would have taken it. All members count the same ones.
    pub(super) calls: AtomicU32,
}
