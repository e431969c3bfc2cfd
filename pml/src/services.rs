//! The services of a rank: what it does for its peers beside messages, by the one-sided access of its transport and by
//! packets of its own.
//!
//! ```text
//!                    Layer
//!                   /     \
//!   point-to-point         Services     both layers have the same ones
//!                         /   |
//!                  Channels  Rma        a folder, and a line of `services!`
//! ```
//!
//! What arrives finds its service here: a packet by its kind, the end of an operation by its token, a notice by asking.

use std::time::Duration;

use tagwire_base::Clock;
use tagwire_transport::{Outcome, Payload, Token};

#[cfg(feature = "partitioned")]
use crate::channels::Channels;
use crate::packet::ControlHeader;
use crate::peers::{Living, PeerIndex};
use crate::rma::Rma;
use crate::service::{Out, Service, Tokens, Wire, Wrong};
use crate::types::Failure;

/// Declares the services: a line for each, with the feature that brings it where that is one.
macro_rules! services {
    ($($(#[$gate:meta])? $name:ident: $service:ty,)*) => {
        /// The services of a rank.
        pub struct Services {
            $($(#[$gate])? pub $name: $service,)*
        }

        impl Services {
            /// Services of a rank with this clock, none of which has anything to do.
            pub(crate) fn new(clock: &Clock) -> Self {
                let mut number = 0..;
                let mut tokens = || Tokens::of_service(number.next().unwrap_or_default());
                Self {
                    $($(#[$gate])? $name: <$service as Service>::new(clock, tokens()),)*
                }
            }

            /// Returns all, by the numbers in their tokens.
            fn all(&self) -> [&dyn Service; [$($(#[$gate])? stringify!($name)),*].len()] {
                [$($(#[$gate])? &self.$name),*]
            }

            fn all_mut(&mut self) -> [&mut dyn Service; [$($(#[$gate])? stringify!($name)),*].len()] {
                [$($(#[$gate])? &mut self.$name),*]
            }
        }
    };
}

services! {
    #[cfg(feature = "partitioned")]
    channels: Channels,
    rma: Rma,
}

impl Services {
    /// Whether one of them has something to be done.
    #[inline]
    pub(crate) fn are_called(&self) -> bool {
        self.all().iter().any(|service| service.is_called())
    }

    /// Has those that were called do what there is. Returns how many things were done.
    #[cold]
    #[inline(never)]
    pub(crate) fn drive(&mut self, wire: &mut Wire<'_>) -> usize {
        let called = self.all_mut().into_iter().filter(|one| one.is_called());
        called.map(|service| service.drive(wire)).sum()
    }

    /// Looks at memory that peers write. Returns how many things have come.
    pub(crate) fn look(&self) -> usize {
        self.all().iter().map(|service| service.look()).sum()
    }

    /// Takes a packet. `None` where it is no service's.
    #[cold]
    pub(crate) fn packet(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
        out: &mut dyn Out,
    ) -> Option<Result<(), Wrong>> {
        let mut all = self.all_mut().into_iter();
        let service = all.find(|service| service.kinds().contains(&header.kind))?;
        Some(service.packet(from, header, payload, out))
    }

    /// An operation of a service has ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn complete(&mut self, token: Token, outcome: Outcome, out: &mut dyn Out) {
        let (number, operation) = Tokens::read(token);
        if let Some(service) = self.all_mut().into_iter().nth(number) {
            service.complete(operation, outcome, out);
        }
    }

    /// A peer has written to memory of this rank.
    ///
    /// # Errors
    /// Which peer did what wrong.
    #[cold]
    #[inline(never)]
    pub(crate) fn notice(&self, immediate: u64) -> Result<(), (PeerIndex, Wrong)> {
        for service in self.all() {
            if service.notice(immediate)? {
                return Ok(());
            }
        }
        // Of memory that was taken back meanwhile.
        tracing::debug!(immediate, "a write into memory of no service");
        Ok(())
    }

    /// A peer is gone. What it has written before counts.
    pub(crate) fn lose(&mut self, peer: PeerIndex, failure: Failure) {
        self.look();
        for service in self.all_mut() {
            service.lose(peer, failure);
        }
    }

    /// Returns how long the rank may sleep.
    pub(crate) fn longest_sleep(&self, peers: &dyn Living) -> Duration {
        let sleeps = self.all().map(|service| service.longest_sleep(peers));
        sleeps.into_iter().min().unwrap_or(Duration::MAX)
    }

    /// Returns how much is to be done before the rank may close.
    pub(crate) fn unfinished(&self) -> usize {
        self.all().iter().map(|service| service.unfinished()).sum()
    }

    /// Returns the kinds of the packets of all.
    #[cfg(test)]
    pub(crate) fn kinds(&self) -> impl Iterator<Item = crate::packet::Kind> {
        let kinds = self.all().map(|service| service.kinds());
        kinds.into_iter().flatten().copied()
    }
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Services({} unfinished)", self.unfinished())
    }
}
