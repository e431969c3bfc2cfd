//! The transport under ob1.

use std::ops::{Deref, DerefMut};

use tagwire_dr::Dr;
use tagwire_rails::Mixed;
use tagwire_transport::shm::Shm;
use tagwire_transport::{AmHeader, ByteTransport, Class, EndpointId, Post, Upcalls, byte};

use crate::peers::LANE;

/// A transport. Shared memory, where an indirect call is a tenth of a message's time, is known by its type, alone,
/// beside a network and under data reliability: its sends, and the deliveries from its rings, are in line.
///
/// Shared memory alone is a choice of its own, with a tag of its own: one among all is a jump through a table.
#[repr(u32)]
pub(super) enum Rail {
    Shm(Box<Shm>),
    Other(Other),
}

/// The transports beside shared memory alone.
#[repr(u32)]
pub(super) enum Other {
    Mixed(Box<Mixed>),
    Dr(Box<Dr>),
    Any(Box<dyn ByteTransport>),
}

impl From<Box<dyn ByteTransport>> for Rail {
    fn from(transport: Box<dyn ByteTransport>) -> Self {
        let dr = |transport| byte::downcast(transport).map_or_else(Other::Any, Other::Dr);
        let mixed = |transport| byte::downcast(transport).map_or_else(dr, Other::Mixed);
        let other = |transport| Self::Other(mixed(transport));
        byte::downcast(transport).map_or_else(other, Self::Shm)
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
            Self::Other(other) => send_by_other(other, to, class, header, data),
        }
    }

    /// Whether progress would find nothing, where that is known without a call.
    #[inline(always)]
    pub(super) fn has_nothing(&self) -> bool {
        matches!(self, Self::Shm(shm) if shm.has_nothing())
    }

    /// As [`ByteTransport::progress`], with the deliveries in line where the transport is known, and no more than `burst` from each
    /// peer where it can be told so.
    #[inline(always)]
    pub(super) fn progress_in_line(&mut self, burst: usize, upcalls: &mut impl Upcalls) -> usize {
        match self {
            Self::Shm(shm) => progress_of_shm(shm, burst, upcalls),
            Self::Other(other) => progress_of_other(other, burst, upcalls),
        }
    }
}

impl Rail {
    /// Delivers the messages that are here: for a call that needs to know of them, and is to return soon.
    pub(super) fn take_messages(&mut self, upcalls: &mut impl Upcalls) -> usize {
        match self {
            // Not in line: progress alone has its deliveries in line.
            Self::Shm(shm) => shm.take_arrivals(Shm::BURST, upcalls as &mut dyn Upcalls),
            Self::Other(other) => progress_of_other(other, Shm::BURST, upcalls),
        }
    }
}

/// Out of line: beside it in one function the sends of shared memory alone lose a tenth.
#[inline(never)]
fn send_by_other(
    other: &mut Other,
    to: EndpointId,
    class: Class,
    header: AmHeader,
    data: &[u8],
) -> Post {
    let transport: &mut dyn ByteTransport = match other {
        Other::Mixed(mixed) => match mixed.by_shared_memory(to) {
            Some((shm, to)) => return shm.send_in_line(to, class, header, data),
            None => &mut **mixed,
        },
        Other::Dr(dr) => &mut **dr,
        Other::Any(transport) => &mut **transport,
    };
    transport.send(LANE, to, class, header, data)
}

/// Once, for all who call it.
#[inline(never)]
fn progress_of_shm(shm: &mut Shm, burst: usize, upcalls: &mut impl Upcalls) -> usize {
    shm.progress_with(burst, upcalls)
}

/// The same.
#[inline(never)]
fn progress_of_other(other: &mut Other, burst: usize, upcalls: &mut impl Upcalls) -> usize {
    match other {
        Other::Mixed(mixed) => mixed.progress_in_line(LANE, burst, upcalls),
        Other::Dr(dr) => dr.progress_with(burst, upcalls),
        Other::Any(transport) => transport.progress(LANE, upcalls),
    }
}

impl Deref for Rail {
    type Target = dyn ByteTransport;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shm(shm) => &**shm,
            Self::Other(Other::Mixed(mixed)) => &**mixed,
            Self::Other(Other::Dr(dr)) => &**dr,
            Self::Other(Other::Any(transport)) => &**transport,
        }
    }
}

impl DerefMut for Rail {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Shm(shm) => &mut **shm,
            Self::Other(Other::Mixed(mixed)) => &mut **mixed,
            Self::Other(Other::Dr(dr)) => &mut **dr,
            Self::Other(Other::Any(transport)) => &mut **transport,
        }
    }
}
