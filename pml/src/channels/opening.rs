//! Channels by the transport where it has its own, and by this service elsewhere.

use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::{Buffering, OpenChannel, RecvBuffer, SendBuffer, SendChannel};

use crate::error::{Error, Result};
use crate::layer::Layer;

/// The first byte of a channel's key: who has opened it.
const BY_TRANSPORT: u8 = 0;
const BY_SERVICE: u8 = 1;

impl Layer {
    /// Opens the receiving end of a partitioned channel from `from`; see
    /// [`Channels::open_channel`](tagwire_transport::Channels::open_channel).
    ///
    /// # Errors
    /// When the rank does not exist or cannot be reached.
    pub(crate) fn open_channel(
        &mut self,
        from: Rank,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Result<Option<OpenChannel>> {
        let terms = self.terms(from)?;
        let transport = self.transport();
        let own = transport
            .channels(terms.endpoint)
            .and_then(|(channels, from)| channels.open_channel(from, data, ends, buffering));
        let (by, opened) = match own {
            Some(opened) => (BY_TRANSPORT, Some(opened)),
            None => {
                let (services, wire) = self.services();
                let channels = &mut services.channels;
                let written = |rail| channels.open(rail, &terms, data, ends, buffering);
                (BY_SERVICE, wire.rail.and_then(written))
            }
        };
        Ok(opened.map(|mut opened| {
            opened.key.insert(0, by);
            opened
        }))
    }

    /// Joins the channel that `to` opened; see
    /// [`Channels::join_channel`](tagwire_transport::Channels::join_channel).
    ///
    /// # Errors
    /// When the key is not understood or the channel cannot be reached.
    pub(crate) fn join_channel(
        &mut self,
        to: Rank,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        const UNKNOWN: Error = Error::BadRound("was answered with a key of no known kind");
        let terms = self.terms(to)?;
        match key.split_first() {
            Some((&BY_TRANSPORT, key)) => {
                let transport = self.transport();
                let name = transport.name();
                let own = transport.channels(terms.endpoint);
                let (channels, to) = own.ok_or(tagwire_transport::Error::Unsupported {
                    transport: name,
                    what: "partitioned channels",
                })?;
                Ok(channels.join_channel(to, data, ends, key)?)
            }
            Some((&BY_SERVICE, key)) => {
                let (services, wire) = self.services();
                let rail = wire.rail.ok_or(UNKNOWN)?;
                services.channels.join(rail, &terms, data, ends, key)
            }
            _ => Err(UNKNOWN),
        }
    }
}
