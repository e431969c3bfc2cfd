#![doc = include_str!("../README.md")]

mod choice;
mod compare;
mod error;
mod item;
mod judgement;
mod outcome;
mod page;
mod parts;
mod predicate;
mod projection;
mod published;
mod rows;
mod table;
mod turn;
mod units;

pub use error::{Error, Result};
pub use item::{Claim, Item, Needs, Run, all, find};
pub use judgement::{Judgement, Verdict};
pub use outcome::{Judged, Outcome, SCHEMA};
pub use page::page;
pub use projection::{PROJECTED, SHARES, projected, share_of_profile};
pub use published::{Published, PublishedPoint, published};
pub use rows::Rows;
pub use table::fill;
