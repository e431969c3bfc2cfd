//! The transport under ob1.

use std::any::Any;
use std::ops::{Deref, DerefMut};

use tagwire_transport::shm::Shm;
use tagwire_transport::{AmHeader, ByteTransport, Class, EndpointId, Post, Upcalls};

use super::link::LANE;

/// A transport. Shared memory, where an indirect call is a tenth of a message's way, is known by its type:
/// its sends, and the deliveries from its rings, are in line.
pub(super) enum Rail {
    Shm(Box<Shm>),
    Any(Box<dyn ByteTransport>),
}

impl From<Box<dyn ByteTransport>> for Rail {
    fn from(transport: Box<dyn ByteTransport>) -> Self {
        if !(&*transport as &dyn Any).is::<Shm>() {
            return Self::Any(transport);
        }
        let shm = (transport as Box<dyn Any>).downcast();
        Self::Shm(shm.expect("it is: it was just asked"))
    }
}

impl Rail {
    /// As [`ByteTransport::send`], in line where the transport is known.
    #[inline(always)]
    pub(super) fn send_in_line(
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

    /// As [`ByteTransport::progress`], with the deliveries in line where the transport is known.
    #[inline(always)]
    pub(super) fn progress_in_line(&mut self, upcalls: &mut impl Upcalls) -> usize {
        match self {
            Self::Shm(shm) => progress_of_shm(shm, upcalls),
            Self::Any(transport) => transport.progress(LANE, upcalls),
        }
    }
}

/// Once, for all who call it.
#[inline(never)]
fn progress_of_shm(shm: &mut Shm, upcalls: &mut impl Upcalls) -> usize {
    shm.progress_with(upcalls)
}

impl Deref for Rail {
    type Target = dyn ByteTransport;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shm(shm) => &**shm,
            Self::Any(transport) => &**transport,
        }
    }
}

impl DerefMut for Rail {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Shm(shm) => &mut **shm,
            Self::Any(transport) => &mut **transport,
        }
    }
}
