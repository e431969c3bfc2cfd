//! The middlewares by name.

use super::channels::Channels;
use super::exchange::{Edges, Exchange};
use super::messages::{Calls, Posted};
use super::remote::{Flags, Remote};
use crate::error::{Error, Result};
use crate::port::partitioned::PartitionedPort;
use crate::port::window::Windows;

/// Which middleware moves the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Middleware {
    /// Blocking sends and receives.
    Calls,
    /// Messages into posted receives.
    Posted,
    /// Partitioned operations with a policy.
    Partitioned(String),
    /// Writes into the receivers' memory.
    Remote(Flags),
}

impl Middleware {
    /// Sets up the edges of this rank. All ranks do so, with the same middleware.
    pub(crate) fn open<'p, P: PartitionedPort>(
        &self,
        port: &'p P,
        windows: Option<&'p dyn Windows>,
        edges: Edges,
    ) -> Result<Box<dyn Exchange + 'p>> {
        Ok(match self {
            Self::Calls => Box::new(Calls::new(port, edges)),
            Self::Posted => Box::new(Posted::new(port, edges)),
            Self::Partitioned(policy) => Box::new(Channels::open(port, &edges, policy)?),
            Self::Remote(flags) => {
                let missing = || Error::Usage("remote access was not opened".to_owned());
                let windows = windows.ok_or_else(missing)?;
                Box::new(Remote::open(port, windows, edges, *flags)?)
            }
        })
    }
}
