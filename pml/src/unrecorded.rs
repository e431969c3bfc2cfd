//! Stands in place of recording where it is left out: nobody can ask for it.

use std::convert::Infallible;

use tagwire_base::Clock;
use tagwire_base::config::Config;
use tagwire_matching::{AnyEngine, Capacity, EngineName};

use crate::error::Result;

/// What is called directly beside the engines of the table: nothing.
pub(crate) type Direct = Infallible;

/// Where and how a rank's matching is recorded: never.
#[derive(Debug, Clone, Copy)]
pub enum Recording {}

impl Recording {
    /// Returns nothing.
    #[must_use]
    pub const fn from_config(_: &Config) -> Option<Self> {
        None
    }

    pub(crate) fn open(
        &self,
        _: &EngineName,
        _: Capacity,
        _: (u32, u32),
        _: Clock,
    ) -> Result<AnyEngine<Direct>> {
        match *self {}
    }
}
