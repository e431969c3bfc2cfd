//! The transports of a mixture, in the order in which they are tried.

use tagwire_transport::shm::Shm;
use tagwire_transport::{ByteTransport, Capabilities, byte};

/// One or more transports. The first is in a place of its own: it is used with every look.
pub(super) struct Rails {
    pub first: First,
    /// The first reaches other hosts.
    pub is_first_remote: bool,
    pub others: Vec<Other>,
}

/// The first transport. Shared memory is known by its type: its sends and deliveries are in line.
pub(super) enum First {
    Shm(Box<Shm>),
    Any(Box<dyn ByteTransport>),
}

/// A transport after the first.
pub(super) struct Other {
    pub transport: Box<dyn ByteTransport>,
    /// It reaches other hosts.
    pub is_remote: bool,
}

impl Rails {
    /// Returns `None` where there are none.
    pub fn new(rails: Vec<Box<dyn ByteTransport>>) -> Option<Self> {
        let is_remote =
            |rail: &dyn ByteTransport| rail.capabilities().contains(Capabilities::REMOTE);
        let mut rails = rails.into_iter();
        let first = rails.next()?;
        let other = |transport: Box<dyn ByteTransport>| Other {
            is_remote: is_remote(&*transport),
            transport,
        };
        Some(Self {
            is_first_remote: is_remote(&*first),
            first: First::new(first),
            others: rails.map(other).collect(),
        })
    }

    pub fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns each with whether it reaches other hosts.
    pub fn iter(&self) -> impl Iterator<Item = (&dyn ByteTransport, bool)> {
        let others = self.others.iter();
        let others = others.map(|other| (&*other.transport, other.is_remote));
        std::iter::once((self.first.as_dyn(), self.is_first_remote)).chain(others)
    }

    /// As [`iter`](Self::iter).
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&mut dyn ByteTransport, bool)> {
        let others = self.others.iter_mut();
        let others = others.map(|other| (&mut *other.transport, other.is_remote));
        std::iter::once((self.first.as_dyn_mut(), self.is_first_remote)).chain(others)
    }

    pub fn get(&self, number: usize) -> Option<&dyn ByteTransport> {
        match number.checked_sub(1) {
            None => Some(self.first.as_dyn()),
            Some(index) => Some(&*self.others.get(index)?.transport),
        }
    }

    /// Returns the rail with this number, and whether it reaches other hosts.
    pub fn get_mut(&mut self, number: usize) -> Option<(&mut dyn ByteTransport, bool)> {
        match number.checked_sub(1) {
            None => Some((self.first.as_dyn_mut(), self.is_first_remote)),
            Some(index) => {
                let other = self.others.get_mut(index)?;
                Some((&mut *other.transport, other.is_remote))
            }
        }
    }
}

impl First {
    fn new(transport: Box<dyn ByteTransport>) -> Self {
        byte::downcast(transport).map_or_else(Self::Any, Self::Shm)
    }

    fn as_dyn(&self) -> &dyn ByteTransport {
        match self {
            Self::Shm(shm) => &**shm,
            Self::Any(transport) => &**transport,
        }
    }

    fn as_dyn_mut(&mut self) -> &mut dyn ByteTransport {
        match self {
            Self::Shm(shm) => &mut **shm,
            Self::Any(transport) => &mut **transport,
        }
    }
}
