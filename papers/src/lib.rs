#![doc = include_str!("../README.md")]

mod answer;
mod choice;
mod compare;
mod drawn;
mod effects;
mod error;

mod item;
mod judgement;
mod known;
mod on;
mod outcome;
mod page;
mod parts;
mod places;
mod plan;
mod plot;
mod predicate;
mod program;
mod projection;
mod published;
mod reference;
mod rows;
mod run;
mod run_times;
mod shape;
mod simulation;
mod stored;
mod table;
mod turn;
mod units;
mod words;

pub use error::{Error, Result};
pub use item::{Claim, Item, Needs, all, find};
pub use judgement::{Judgement, Verdict};
pub use outcome::{Judged, Outcome, SCHEMA};
pub use page::{Drawn, Page, page};
pub use plan::plan;
pub use plot::{Line, Plot};
pub use projection::{PROJECTED, add_share, projected, share_of_profile, shares};
pub use published::{Published, PublishedPoint, published};
pub use rows::Rows;
pub use run::Run;
pub use simulation::{ARRIVALS, SimulatedRun, Simulation};
pub use stored::{QUIET_PCT, Ran, disturbed, job_of};
pub use table::fill;
