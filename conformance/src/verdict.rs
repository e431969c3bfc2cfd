//! How a check ends.

/// How a check went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// What is checked does it.
    Passed,
    /// It does not, and this is what was seen.
    Failed(String),
    /// It does not claim to, for this reason.
    NotApplicable(String),
}
