//! Remote access: registrations, put, get, flush.
//!
//! ```text
//!  key of a registration:
//!  0   0xa7
//!  1   base    u64   where the memory starts, in its owner's terms
//!  9   length  u64
//! 17   key     u64   the provider's
//! ```
//!
//! The one who accesses checks the range against the key it was given, since not every provider
//! does; the provider checks the key.

use std::collections::HashMap;

use tagwire_base::Error as BaseError;
use tagwire_libfabric_sys::bindings::{FI_READ, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_WRITE};
use tagwire_transport::{
    EndpointId, Error, Outcome, Post, RecvBuffer, RegistrationHandle, RemoteMemory, Result,
    SendBuffer, Token,
};

use super::Ofi;
use crate::NAME;
use crate::engine::{Access, Op};
use crate::error::Failure;
use crate::fabric::{Peer, Registered, Remote, Took, order};
use crate::link::Flush;

/// The first byte of every key.
const MAGIC: u8 = 0xa7;

/// Length of a key.
const KEY: usize = 25;

/// Memory that peers may reach.
#[derive(Debug, Default)]
pub(super) struct Exposed {
    registrations: HashMap<u64, Registered>,
    next: u64,
}

impl Exposed {
    pub(super) fn end(&mut self, id: u64) {
        self.registrations.remove(&id);
    }
}

/// What a key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    base: u64,
    len: u64,
    key: u64,
}

impl Range {
    fn encode(self) -> Vec<u8> {
        let mut out = vec![MAGIC];
        for word in [self.base, self.len, self.key] {
            out.extend(word.to_le_bytes());
        }
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; KEY] = bytes.try_into().ok()?;
        let word = |place: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[1 + 8 * place..9 + 8 * place]);
            u64::from_le_bytes(word)
        };
        (bytes[0] == MAGIC).then(|| Self {
            base: word(0),
            len: word(1),
            key: word(2),
        })
    }

    /// How far `address` lies from the start, when `len` bytes from there on are inside.
    fn offset(&self, address: u64, len: u64) -> Option<u64> {
        let offset = address.checked_sub(self.base)?;
        (offset <= self.len && len <= self.len - offset).then_some(offset)
    }
}

impl Ofi {
    pub(super) fn make_writable(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let region = data
            .region()
            .map(|region| (region.as_ptr().cast_const(), region.len()));
        self.expose_region(region, FI_REMOTE_READ | FI_REMOTE_WRITE)
    }

    pub(super) fn make_readable(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let region = data.region().map(|region| (region.as_ptr(), region.len()));
        self.expose_region(region, FI_REMOTE_READ)
    }

    /// Registers the memory of a buffer, which its maker lends until the registration ends.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    fn expose_region(
        &mut self,
        region: Option<(*const u8, usize)>,
        access: u64,
    ) -> Result<RegistrationHandle> {
        let Some((start, len)) = region.filter(|_| self.engine.has_remote_access()) else {
            return Err(Error::Unsupported {
                transport: NAME,
                what: "registration of this memory with this provider",
            });
        };
        let net = &mut self.engine.peers.net;
        // SAFETY: the callers have the buffer; see `RemoteAccess::register`.
        let registered = unsafe { net.register(start, len, access) }.map_err(|code| {
            let reason = net.library().describe(code);
            let name = net.provider().name();
            BaseError::from(Failure::new(&name, "registering memory", &reason))
        })?;
        let range = Range {
            base: start.addr() as u64,
            len: len as u64,
            key: registered.key(),
        };
        let id = self.exposed.next;
        self.exposed.next += 1;
        self.exposed.registrations.insert(id, registered);
        Ok(RegistrationHandle {
            id,
            key: range.encode(),
        })
    }

    /// Where to reach `len` bytes of a peer's memory, in the provider's terms.
    fn locate(&self, memory: RemoteMemory<'_>, len: usize) -> Option<Remote> {
        let range = Range::decode(memory.key)?;
        let offset = range.offset(memory.address, len as u64)?;
        let by_address = self.engine.peers.net.provider().names_by_address();
        Some(Remote {
            address: if by_address { memory.address } else { offset },
            key: range.key,
        })
    }

    /// The peer to be accessed. It has to be greeted first, so that it knows who this is.
    fn accessible(&mut self, to: EndpointId) -> std::result::Result<Peer, Post> {
        let link = self.engine.peers.links.get(to).filter(|link| !link.closed);
        link.and_then(|link| link.peer).ok_or(Post::Gone)
    }

    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    pub(super) fn put_buffer(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        let Some(data) = data.region() else {
            return Post::Unsupported;
        };
        // ofi_rxm follows the descriptor of the bytes where it wants one, also of none.
        if immediate.is_some() && (self.engine.immediate_width() == 0 || data.is_empty()) {
            return Post::Unsupported;
        }
        let post = self.access(
            to,
            (data.as_ptr(), data.len()),
            target,
            token,
            |net, peer, registered, remote, op| {
                // SAFETY: the buffer is lent until the token completes, which it does after the operation.
                unsafe { net.write(peer, data, registered, remote, immediate, op) }
            },
        );
        if immediate.is_some() && post == Post::Posted {
            self.engine.peers.links[to].undelivered = true;
        }
        post
    }

    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    pub(super) fn get_buffer(
        &mut self,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let Some(data) = data.region() else {
            return Post::Unsupported;
        };
        let memory = (data.as_ptr().cast_const(), data.len());
        self.access(
            from,
            memory,
            source,
            token,
            |net, peer, registered, remote, op| {
                // SAFETY: as for `put_buffer`.
                unsafe { net.fetch(peer, data, registered, remote, op) }
            },
        )
    }

    /// Starts an access of a buffer at `start`, which is lent until `token` completes.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    fn access(
        &mut self,
        peer: EndpointId,
        (start, len): (*const u8, usize),
        memory: RemoteMemory<'_>,
        token: Token,
        post: impl FnOnce(
            &mut crate::fabric::Net,
            Peer,
            Option<&Registered>,
            Remote,
            crate::fabric::OpId,
        ) -> Took,
    ) -> Post {
        if !self.engine.has_remote_access() {
            return Post::Unsupported;
        }
        let address = match self.accessible(peer) {
            Ok(address) => address,
            Err(post) => return post,
        };
        let Some(remote) = self.locate(memory, len) else {
            return Post::Unsupported;
        };
        if len == 0 {
            self.engine.peers.tell_later(token, Outcome::Done(0));
            return Post::Posted;
        }
        let rights = FI_READ | FI_WRITE;
        // SAFETY: the two callers have the buffer of the access that this is; the registration goes with the
        // operation, before the token completes.
        let Ok(registered) = (unsafe { self.engine.peers.register_locally(start, len, rights) })
        else {
            return Post::Busy;
        };
        let op = self.engine.peers.ops.insert(Op::Access(Access {
            link: peer,
            token,
            len: len as u64,
            registered: None,
        }));
        let took = post(
            &mut self.engine.peers.net,
            address,
            registered.as_ref(),
            remote,
            op,
        );
        match took {
            Took::Yes => {
                self.engine.peers.ops.keep(op, registered);
                let link = &mut self.engine.peers.links[peer];
                link.accessing += 1;
                link.written += 1;
                link.unflushed = true;
                Post::Posted
            }
            Took::Busy => {
                self.engine.peers.ops.free(op);
                Post::Busy
            }
            Took::Failed(code) => {
                self.engine.peers.ops.free(op);
                tracing::debug!(
                    error = self.engine.peers.net.library().describe(code),
                    "ofi: no access"
                );
                Post::Unsupported
            }
        }
    }

    pub(super) fn flush_link(&mut self, to: EndpointId, token: Token) -> Post {
        if !self.engine.has_remote_access() {
            return Post::Unsupported;
        }
        if let Err(post) = self.accessible(to) {
            return post;
        }
        if self.engine.peers.links[to].unflushed {
            if self.engine.peers.delivers.is_none() {
                let kept = order::kept(self.engine.peers.net.info());
                self.engine.peers.delivers = Some(kept.delivery);
            }
            self.engine.peers.ask_flush(to, Some(token));
        } else {
            self.engine.peers.tell_later(token, Outcome::Done(0));
        }
        Post::Posted
    }

    /// Where writes are not known to keep their order, what comes after a fence waits for a flush.
    pub(super) fn fence_link(&mut self, to: EndpointId) -> Post {
        if !self.engine.has_remote_access() {
            return Post::Unsupported;
        }
        if let Err(post) = self.accessible(to) {
            return post;
        }
        let link = &self.engine.peers.links[to];
        if !link.unflushed || self.ordered {
            return Post::Posted;
        }
        if !link
            .flushes
            .iter()
            .any(|flush: &Flush| flush.token.is_none())
        {
            self.engine.peers.ask_flush(to, None);
        }
        Post::Busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_taken_whole_and_ranges_checked() {
        let range = Range {
            base: 1000,
            len: 100,
            key: 7,
        };
        let key = range.encode();
        assert_eq!(Range::decode(&key), Some(range));
        assert_eq!(Range::decode(&key[..KEY - 1]), None);
        assert_eq!(range.offset(1000, 100), Some(0));
        assert_eq!(range.offset(1100, 0), Some(100));
        for (address, len) in [(999, 1), (1100, 1), (1050, 51), (u64::MAX, 2)] {
            assert_eq!(range.offset(address, len), None, "{len} at {address}");
        }
    }
}
