//! What a session shares with its operations.

use std::sync::Arc;
use std::time::Duration;

use tagwire_pml::Messenger;

use crate::orphans::Orphans;

/// What operations need of the session that they are of.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) messenger: Arc<Messenger>,
    pub(crate) orphans: Orphans,
    pub(crate) close_timeout: Duration,
}
