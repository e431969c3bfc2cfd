//! The object that a rank owns, and its verbs.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_base::bootstrap::Bootstrap;
use tagwire_transport::{
    AmHeader, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId, Lane,
    Limits, Post, Preference, ReadRegion, RecvBuffer, Registration, RegistrationHandle,
    RemoteAccess, RemoteMemory, Result, SendBuffer, Token, Transport, Upcalls, Waiter,
};
use tagwire_ucx_sys::{UCP_FEATURE_AM, UCP_FEATURE_TAG};
use zerocopy::IntoBytes;

use super::remote::MAX_REMOTE;
use crate::NAME;
use crate::config::UcxOptions;
use crate::core::Core;
use crate::link::Flush;
use crate::operations::Purpose;
use crate::piece::Piece;
use crate::wire::{DATA_MESSAGES, Prefix};
use crate::worker::Endpoint;

/// Largest payload of a message.
const MAX_SEND: usize = 64 * 1024;

/// Largest payload that a message is expected to carry without a cost of its own.
const MAX_INLINE: usize = 64;

/// Bytes of messages to one peer that may be under way: UCX itself has no bound.
const DATA_BYTES: usize = 1 << 20;

/// How much further control messages may go.
const CONTROL_MESSAGES: usize = DATA_MESSAGES + 64;
const CONTROL_BYTES: usize = DATA_BYTES + (1 << 20);

/// UCX as a byte transport.
pub struct Ucx {
    pub(crate) core: Core,
}

impl Ucx {
    /// Opens the library, a context and a worker.
    ///
    /// # Errors
    /// When the library cannot be loaded, or has no transport that was asked for.
    pub fn open(options: UcxOptions, bootstrap: &dyn Bootstrap) -> Result<Self> {
        let features = u64::from(UCP_FEATURE_AM | UCP_FEATURE_TAG);
        Ok(Self {
            core: Core::open(options, bootstrap, features)?,
        })
    }

    fn prefix(&self, header: AmHeader) -> Prefix {
        Prefix {
            session: self.core.session().into(),
            header: header.0.map(Into::into),
        }
    }

    /// The way to a peer that has room for a message of `class`.
    #[inline]
    pub(super) fn way(&self, to: EndpointId, class: Class) -> Result<Endpoint, Post> {
        let link = self.core.links.get(to.index()).ok_or(Post::Gone)?;
        let endpoint = link.endpoint.ok_or_else(|| self.core.absences.no_way(to))?;
        if !link.established {
            return Err(Post::Busy);
        }
        let (messages, bytes) = match class {
            Class::Data => (DATA_MESSAGES, DATA_BYTES),
            Class::Control => (CONTROL_MESSAGES, CONTROL_BYTES),
        };
        if link.under_way >= messages || link.bytes_under_way >= bytes {
            return Err(Post::Busy);
        }
        Ok(endpoint)
    }

    /// Sends what the caller lent for `purpose`, a message or a write, under a header that is
    /// copied.
    pub(super) fn send_lent(
        &mut self,
        (to, endpoint): (EndpointId, Endpoint),
        purpose: Purpose,
        header: &[u8],
        region: ReadRegion,
    ) -> Post {
        let core = &mut self.core;
        let index = core.operations.take(&core.shared, purpose, Some(to.0));
        core.operations.get_mut(index).fill(header, 0, |_| {});
        let operation = core.operations.get(index);
        let (header, mark) = (operation.piece(), &operation.mark);
        let bytes = Piece {
            start: region.as_ptr(),
            len: region.len(),
        };
        // SAFETY: links hold open endpoints; the operation keeps its header until it is given
        // back, which is after its mark ended, and the region is lent until its token completes,
        // which it does after that.
        let started = unsafe {
            match purpose {
                Purpose::Write(..) => core.worker.send_write(endpoint, header, bytes, mark),
                _ => core.worker.send_message(endpoint, header, bytes, mark),
            }
        };
        if core.begin_lent(to, index, started) {
            Post::Posted
        } else {
            Post::Gone
        }
    }
}

impl fmt::Debug for Ucx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ucx(rank {})", self.core.rank)
    }
}

impl Transport for Ucx {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        self.core.capabilities()
            | Capabilities::ZERO_COPY
            | Capabilities::GET
            | Capabilities::PUT
            | Capabilities::NOTICE
    }

    fn address(&self) -> Vec<u8> {
        self.core.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        self.core.connect(peer, address)
    }

    fn leave(&mut self) {
        self.core.leave();
    }

    fn has_left(&self) -> bool {
        self.core.has_left()
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(&self.core.waiter) as Arc<dyn Waiter>
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        self.core.describe(out);
    }
}

impl RemoteAccess for Ucx {
    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        self.ask(from, data, source, token)
    }

    fn put(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        match immediate {
            Some(immediate) => self.write(to, data, target, immediate, token),
            None => self.offer_put(to, data, target, token),
        }
    }

    fn flush(&mut self, _lane: Lane, to: EndpointId, token: Token) -> Post {
        if self
            .core
            .links
            .get(to.index())
            .is_none_or(|link| link.closed)
        {
            return Post::Gone;
        }
        let (puts, writes) = (self.puts(to), self.ask_for_writes(to));
        self.core.flushes.push(Flush {
            token,
            to,
            puts,
            writes,
        });
        Post::Posted
    }

    fn fence(&mut self, _lane: Lane, to: EndpointId) -> Post {
        let Some(link) = self.core.links.get(to.index()) else {
            return Post::Gone;
        };
        if link.flushed < link.written && !link.closed {
            self.ask_for_writes(to);
            return Post::Busy;
        }
        match self.puts(to).is_empty() {
            true => Post::Posted,
            false => Post::Busy,
        }
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        self.reach(
            data.region()
                .map(|region| (region.as_ptr().cast_const(), region.len())),
            true,
        )
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        self.reach(
            data.region().map(|region| (region.as_ptr(), region.len())),
            false,
        )
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        self.forget(&handle);
    }
}

impl CooperativeTransfers for Ucx {}

impl ByteTransport for Ucx {
    fn limits(&self) -> Limits {
        let mut limits = Limits::copying(MAX_INLINE, MAX_SEND);
        limits.max_zero_copy = MAX_SEND;
        limits.max_remote_access = MAX_REMOTE;
        limits.immediate_width = size_of::<u64>();
        limits.registration = Registration::Remote;
        limits.memory_per_peer = CONTROL_BYTES;
        limits.wait_object = self.core.wait_object();
        limits
    }

    fn preference(&self, _to: EndpointId) -> Preference {
        Preference::NETWORK
    }

    #[inline]
    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        if data.len() > MAX_SEND {
            return Post::Unsupported;
        }
        let endpoint = match self.way(to, class) {
            Ok(endpoint) => endpoint,
            Err(post) => return post,
        };
        if data.len() <= MAX_INLINE {
            let prefix = self.prefix(header);
            let worker = &self.core.worker;
            // SAFETY: links hold open endpoints.
            let is_sent = unsafe { worker.send_at_once(endpoint, prefix.as_bytes(), data) };
            if is_sent {
                return Post::Posted;
            }
        }
        let prefix = self.prefix(header);
        let fill = |room: &mut [u8]| room.copy_from_slice(data);
        self.core
            .send_copied((to, endpoint), prefix.as_bytes(), data.len(), fill)
    }

    fn send_from(&mut self, lane: Lane, to: EndpointId, header: AmHeader, body: &Body<'_>) -> Post {
        let len = body.len();
        if let Some(bytes) = body.bytes() {
            return self.send(lane, to, Class::Data, header, bytes);
        }
        if len <= MAX_INLINE {
            let mut bytes = [0; MAX_INLINE];
            body.copy_out(0, &mut bytes[..len]);
            return self.send(lane, to, Class::Data, header, &bytes[..len]);
        }
        if len > MAX_SEND {
            return Post::Unsupported;
        }
        match self.way(to, Class::Data) {
            Ok(endpoint) => {
                let prefix = self.prefix(header);
                let fill = |room: &mut [u8]| body.copy_out(0, room);
                self.core
                    .send_copied((to, endpoint), prefix.as_bytes(), len, fill)
            }
            Err(post) => post,
        }
    }

    fn send_zero_copy(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        let Some(region) = data.region().filter(|region| region.len() <= MAX_SEND) else {
            return Post::Unsupported;
        };
        let endpoint = match self.way(to, Class::Data) {
            Ok(endpoint) => endpoint,
            Err(post) => return post,
        };
        let prefix = self.prefix(header);
        let purpose = Purpose::Lent(token, region.len() as u64);
        self.send_lent((to, endpoint), purpose, prefix.as_bytes(), region)
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.advance(upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.core.end_overdue();
        self.advance(upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, _upcalls: &mut dyn Upcalls) {
        self.core.peer_failed(rank);
    }
}
