//! Tagwire's reports: what `tagwire report` makes of the results of `tagwire bench`.

pub mod circumstances;
pub mod draw;
pub mod error;
pub mod escape;
pub mod format;
pub mod judge;
pub mod metric;
pub mod model;
pub mod naming;
pub mod number;
pub mod page;
pub mod read;
pub mod report;
pub mod table;
pub mod words;

pub use error::{Error, Result};
pub use format::{Format, Written};
pub use model::Selection;
pub use report::Report;
