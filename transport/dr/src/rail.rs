//! The transport inside.

use std::ops::{Deref, DerefMut};

use tagwire_transport::shm::Shm;
use tagwire_transport::{AmHeader, ByteTransport, Class, EndpointId, Lane, Post, Upcalls, byte};

/// The one lane that there is.
pub(crate) const LANE: Lane = Lane(0);

/// A transport. Shared memory is known by its type: its sends and deliveries are in line.
pub(crate) enum Rail {
    Shm(Box<Shm>),
    Any(Box<dyn ByteTransport>),
}

impl From<Box<dyn ByteTransport>> for Rail {
    fn from(transport: Box<dyn ByteTransport>) -> Self {
        byte::downcast(transport).map_or_else(Self::Any, Self::Shm)
    }
}

impl Rail {
    /// As [`ByteTransport::send`].
    #[inline]
    pub(crate) fn post(
        &mut self,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        match self {
            Self::Shm(shm) => shm.send_in_line(to, class, header, data),
            Self::Any(transport) => transport.send(LANE, to, class, header, data),
        }
    }

    /// As [`ByteTransport::progress`], with `burst` messages of each peer at most where it can be told so.
    #[inline]
    pub(crate) fn progress_in_line(&mut self, burst: usize, upcalls: &mut impl Upcalls) -> usize {
        match self {
            Self::Shm(shm) => shm.progress_with(burst, upcalls),
            Self::Any(transport) => transport.progress(LANE, upcalls),
        }
    }
}

impl Deref for Rail {
    type Target = dyn ByteTransport;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shm(shm) => &**shm,
            Self::Any(transport) => &**transport,
        }
    }
}

impl DerefMut for Rail {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Shm(shm) => &mut **shm,
            Self::Any(transport) => &mut **transport,
        }
    }
}
