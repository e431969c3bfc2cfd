//! Tagwire's reports: what `tagwire report` makes of the results of `tagwire bench` and `tagwire match`.

pub mod build;
pub mod circumstances;
pub mod draw;
pub mod error;
pub mod escape;
pub mod format;
mod join;
pub mod judge;
mod matching;
pub mod metric;
pub mod model;
pub mod number;
pub mod page;
mod phrase;
mod published;
pub mod read;
pub mod report;
pub mod table;
pub mod words;

pub use build::Selection;
pub use error::{Error, Result};
pub use format::{Format, Written};
pub use published::Published;
pub use report::Report;
pub use tagwire_bench::naming;
