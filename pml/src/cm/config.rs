//! The settings of cm.

/// How cm works.
#[derive(Debug, Clone)]
pub struct CmOptions {
    /// Budget for buffered sends that wait, in bytes.
    pub buffer_limit: usize,
}

impl Default for CmOptions {
    fn default() -> Self {
        Self {
            buffer_limit: 64 << 20,
        }
    }
}
