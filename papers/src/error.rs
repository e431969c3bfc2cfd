//! What can go wrong.

use std::path::PathBuf;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such item, and no such paper.
    #[error("there is no figure or table '{0}'; 'tagwire reproduce list' has them all")]
    NoItem(String),
    /// There are no words for the page of a paper.
    #[error("there is no page for '{0}': its words are missing in papers/data/pages.toml")]
    NoPage(String),
    /// A file is no outcome.
    #[error("{file}: it has no outcome of 'tagwire reproduce': {what}")]
    NoOutcome {
        /// The file.
        file: String,
        /// What is wrong with it.
        what: String,
    },
    /// Results have no profile of which a share follows.
    #[error("{0}")]
    NoShare(&'static str),
    /// A stored outcome cannot be read.
    #[error("{}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A page lacks the end of a table.
    #[error("'{0}' has no '{1}' behind it")]
    NoMark(String, String),
}

/// The result of a call that can go wrong.
pub type Result<T, E = Error> = std::result::Result<T, E>;
