//! The bytes of messages, as UCX takes them.
#![allow(unsafe_code)]

use std::ptr;

/// Bytes that a message is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) start: *const u8,
    pub(crate) len: usize,
}

impl Piece {
    /// No bytes.
    pub(crate) const NONE: Self = Self {
        start: ptr::null(),
        len: 0,
    };
}

// SAFETY: who names bytes promises that they stay, whichever thread drives the worker.
unsafe impl Send for Piece {}
