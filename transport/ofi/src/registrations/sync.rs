//! What the table of ranges is made with; a model of it has loom's, and fewer of each.

pub(super) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
pub(super) use std::thread::yield_now;

/// How many discarded ranges are told apart.
pub(super) const DISCARDED: usize = 64;

/// How often an owner looks again while the reader is at work.
pub(super) const LOOKS: usize = 256;
