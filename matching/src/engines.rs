//! Published engines, for comparison: each is an [`Arrangement`] of entries in a file of its own.
//!
//! What all engines do alike (slots, handles, capacity, counters, the order of visits) is in [`arranged`].

mod arranged;
mod binned;
pub(crate) mod chunks;
pub(crate) mod contexts;
pub(crate) mod flajslik;
pub(crate) mod ucx;

use arranged::{Arranged, Arrangement, Found};
