//! The part of a byte transport's contract that reaches a peer's memory: registration, put, get, atomics.

use crate::data::{RecvBuffer, SendBuffer};
use crate::error::{Error, Result};
use crate::message::{EndpointId, Lane, Token};
use crate::post::Post;
use crate::transport::Transport;

/// A peer's registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteMemory<'a> {
    /// Where, in the peer's terms.
    pub address: u64,
    /// The peer's key for it: opaque, of the transport's own length.
    pub key: &'a [u8],
}

/// The key of a registration, to be given to peers; and the handle to end it with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationHandle {
    /// Names the registration on this side.
    pub id: u64,
    /// What a peer needs to reach the memory.
    pub key: Vec<u8>,
}

/// One-sided access to memory that peers have registered. A transport without it, or without one of its
/// operations, leaves the defaults; its [capabilities](Transport::capabilities) report what it has.
pub trait RemoteAccess: Transport {
    /// Writes `data` into a peer's memory. With `immediate`, the peer is told it by
    /// [`Upcalls::notice`](crate::Upcalls::notice) once the bytes are visible there, which is the only order there is between
    /// a notice and anything else; such a put has at least one byte (width: [`Limits::immediate_width`](crate::Limits::immediate_width); of wider values the upper bytes
    /// are lost).
    fn put(
        &mut self,
        lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        let _ = (lane, to, data, target, immediate, token);
        Post::Unsupported
    }

    /// Reads a peer's memory into `data`.
    fn get(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let _ = (lane, from, data, source, token);
        Post::Unsupported
    }

    /// Completes `token` once everything put to `to` before is visible there (remote
    /// completion).
    fn flush(&mut self, lane: Lane, to: EndpointId, token: Token) -> Post {
        let _ = (lane, to, token);
        Post::Unsupported
    }

    /// Orders: what is put to `to` after this becomes visible after what was put before.
    fn fence(&mut self, lane: Lane, to: EndpointId) -> Post {
        let _ = (lane, to);
        Post::Unsupported
    }

    /// Adds `operand` to the 64-bit word at `target`; completes with the old value as
    /// [`Outcome::Done`](crate::Outcome::Done).
    fn fetch_add(
        &mut self,
        lane: Lane,
        to: EndpointId,
        target: RemoteMemory<'_>,
        operand: u64,
        token: Token,
    ) -> Post {
        let _ = (lane, to, target, operand, token);
        Post::Unsupported
    }

    /// Makes memory reachable for peers until [`deregister`](RemoteAccess::deregister), for as long as which it is
    /// lent.
    ///
    /// # Errors
    /// When the memory cannot be registered.
    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let _ = data;
        Err(Error::Unsupported {
            transport: self.name(),
            what: "memory registration",
        })
    }

    /// Makes memory readable for peers, as the source of their [gets](RemoteAccess::get), until
    /// [`deregister`](RemoteAccess::deregister), for as long as which it is lent. Nobody writes to it meanwhile.
    ///
    /// # Errors
    /// When the memory cannot be registered.
    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let _ = data;
        Err(Error::Unsupported {
            transport: self.name(),
            what: "memory registration",
        })
    }

    /// Ends a registration. No peer may use its key any more.
    fn deregister(&mut self, handle: RegistrationHandle) {
        let _ = handle;
    }
}
