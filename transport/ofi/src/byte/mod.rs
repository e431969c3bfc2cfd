//! The byte transport: active messages, put and get.

mod remote;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_base::bootstrap::Bootstrap;
use tagwire_libfabric_sys::bindings::FI_SEND;
use tagwire_transport::{
    AmHeader, Arrival, Body, ByteTransport, Capabilities, Class, CooperativeTransfers, EndpointId,
    Lane, Limits, Ordering, Outcome, PeerEvent, Post, Preference, RecvBuffer, Registration,
    RegistrationHandle, RemoteAccess, RemoteMemory, Result, SendBuffer, Token, Transport, Upcalls,
    WaitObject, Waiter,
};

use crate::NAME;
use crate::config::{Notices, OfiOptions};
use crate::engine::{Engine, MAX_SEND, MAX_WIRE, Sink};
use crate::fabric::order;
use crate::open::{Use, open_info};
use remote::Exposed;

/// One rank's access to a provider.
#[derive(Debug)]
pub struct Ofi {
    /// Before the engine, so that registrations end before their domain.
    exposed: Exposed,
    pub(crate) engine: Engine,
    /// Writes to one peer become visible in their order: that was tested.
    ordered: bool,
}

impl Ofi {
    /// Opens the provider that `options` name.
    ///
    /// # Errors
    /// When there is no such library or provider, or it cannot do what is needed.
    pub fn open(options: &OfiOptions, bootstrap: &dyn Bootstrap) -> Result<Self> {
        Self::open_for(options, bootstrap, Use::Bytes)
    }

    /// As [`Ofi::open`], for a transport that matches too.
    pub(crate) fn open_for(
        options: &OfiOptions,
        bootstrap: &dyn Bootstrap,
        wanted: Use,
    ) -> Result<Self> {
        let info = open_info(options, bootstrap.size(), wanted)?;
        let engine = Engine::open(info, options, bootstrap)?;
        // Where each write can tell its target of itself, nobody needs to know.
        let needed = engine.has_remote_access()
            && engine.immediate_width() < size_of::<u32>()
            && options.notices != Notices::Messages;
        Ok(Self {
            ordered: needed && order::keeps(engine.peers.net.info()),
            exposed: Exposed::default(),
            engine,
        })
    }

    /// The provider's name, as libfabric spells it.
    #[must_use]
    pub fn provider(&self) -> String {
        self.engine.peers.net.provider().name()
    }

    /// The library's version.
    #[must_use]
    pub fn library_version(&self) -> (u32, u32) {
        self.engine.peers.net.library().version()
    }
}

impl Transport for Ofi {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::ORDERED | Capabilities::RELIABLE | Capabilities::LOCAL;
        let provider = self.engine.peers.net.provider();
        all.set(Capabilities::REMOTE, provider.name() != "shm");
        all.set(Capabilities::ZERO_COPY, provider.regions_per_send() >= 2);
        all.set(Capabilities::WAKE, self.engine.waiter().sees_arrivals());
        all.set(Capabilities::THREADS, self.engine.has_threads());
        let remote = Capabilities::PUT | Capabilities::GET;
        all.set(remote, self.engine.has_remote_access());
        all.set(Capabilities::NOTICE, self.engine.immediate_width() > 0);
        all
    }

    fn address(&self) -> Vec<u8> {
        self.engine.peers.address()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        self.engine.peers.connect(peer, address)
    }

    fn leave(&mut self) {
        self.engine.leave();
    }

    fn has_left(&self) -> bool {
        self.engine.has_left()
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::clone(self.engine.waiter()) as Arc<dyn Waiter>
    }

    fn describe(&self, out: &mut dyn Write) {
        self.engine.peers.describe(out);
    }
}

impl RemoteAccess for Ofi {
    fn put(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        self.put_buffer(to, data, target, immediate, token)
    }

    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        self.get_buffer(from, data, source, token)
    }

    fn flush(&mut self, _lane: Lane, to: EndpointId, token: Token) -> Post {
        self.flush_link(to, token)
    }

    fn fence(&mut self, _lane: Lane, to: EndpointId) -> Post {
        self.fence_link(to)
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        self.make_writable(data)
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        self.make_readable(data)
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        self.exposed.end(handle.id);
    }
}

impl CooperativeTransfers for Ofi {}

impl ByteTransport for Ofi {
    fn limits(&self) -> Limits {
        let provider = self.engine.peers.net.provider();
        let has = |capability| self.capabilities().contains(capability);
        let mut limits = Limits::copying(
            provider.inject_size().saturating_sub(crate::wire::HEADER),
            MAX_SEND,
        );
        limits.max_inline = limits.max_inline.min(crate::engine::MAX_INLINE);
        if has(Capabilities::ZERO_COPY) {
            limits.max_zero_copy = self.engine.peers.max_lent();
        }
        if has(Capabilities::PUT) {
            limits.max_remote_access = provider.max_message() as u64;
            limits.registration = if provider.registers_locally() {
                Registration::LocalAndRemote
            } else {
                Registration::Remote
            };
        }
        limits.immediate_width = self.engine.immediate_width();
        if self.ordered {
            limits.ordering = Ordering::WriteAfterWrite;
        }
        if has(Capabilities::WAKE) {
            limits.wait_object = WaitObject::Descriptor;
        }
        limits.memory_per_peer = self.engine.peers.window() as usize * MAX_WIRE;
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
        self.engine.peers.post(to, class, header, data)
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        let fill = |room: &mut [u8]| body.copy_out(0, room);
        self.engine
            .peers
            .post_filled(to, Class::Data, header, body.len(), fill)
    }

    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    fn send_zero_copy(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        let most = self.engine.peers.max_lent();
        let whole = data.region().filter(|region| region.len() <= most);
        let (Some(region), true) = (whole, self.capabilities().contains(Capabilities::ZERO_COPY))
        else {
            return Post::Unsupported;
        };
        // SAFETY: the buffer is lent until the token completes; the registration goes with the operation, before
        // that.
        unsafe {
            let memory = (region.as_ptr(), region.len());
            let Ok(registered) = self
                .engine
                .peers
                .register_locally(memory.0, memory.1, FI_SEND)
            else {
                return Post::Busy;
            };
            self.engine
                .peers
                .post_zero_copy(to, header, region, registered, token)
        }
    }

    #[inline]
    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.engine.progress(&mut Above(upcalls))
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.engine.progress(&mut Above(upcalls));
    }

    fn peer_failed(&mut self, rank: Rank, _upcalls: &mut dyn Upcalls) {
        self.engine.peer_failed(rank);
    }
}

/// The layer above, as the engine sees it.
struct Above<'a>(&'a mut dyn Upcalls);

impl Sink for Above<'_> {
    #[inline]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.0.deliver(arrival)
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.0.complete(token, outcome);
    }

    fn peer(&mut self, event: PeerEvent) {
        self.0.peer(event);
    }

    fn notice(&mut self, immediate: u64) {
        self.0.notice(immediate);
    }
}
