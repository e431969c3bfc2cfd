//! The settings of cm.

use crate::contact::OpenTimeout;

/// How cm works.
#[derive(Debug, Clone)]
pub struct CmOptions {
    /// Budget for buffered sends that wait, in bytes.
    pub buffer_limit: usize,
    /// How long a rank that opens waits for the others.
    pub open_timeout: OpenTimeout,
}

impl Default for CmOptions {
    fn default() -> Self {
        Self {
            buffer_limit: 64 << 20,
            open_timeout: OpenTimeout::Auto,
        }
    }
}
