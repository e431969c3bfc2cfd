//! One rank of a simulated network as a transport: its peers, and messages to them.

use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_transport::capability::{Capabilities, Limits, Ordering, Preference, WaitObject};
use tagwire_transport::error::{Error, Result};
use tagwire_transport::message::{AmHeader, EndpointId, Lane, Upcalls};
use tagwire_transport::wait::Waiter;
use tagwire_transport::{Body, ByteTransport, Class, Post, Transport};

use crate::flight::{Cargo, Flight, Message};
use crate::machine::Machine;
use crate::member::Status;
use crate::network::NAME;
use crate::place::Place;
use crate::progress::Told;
use crate::shared::{Shared, SimWaiter};
use crate::state::{State, Work};

/// One rank's access to a [`SimNetwork`](crate::SimNetwork).
#[derive(Debug)]
pub struct SimTransport {
    pub(crate) shared: Arc<Shared>,
    pub(crate) rank: Rank,
    pub(crate) place: Place,
    /// Collected under the lock, told without it.
    pub(crate) told: Vec<Told>,
    /// Dropping the object is a goodbye.
    leaving: bool,
}

/// A peer that can be sent to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reached {
    pub(crate) place: Place,
    pub(crate) peer: Place,
}

impl SimTransport {
    pub(crate) const fn new(shared: Arc<Shared>, (rank, place): (Rank, Place)) -> Self {
        Self {
            shared,
            rank,
            place,
            told: Vec::new(),
            leaving: false,
        }
    }

    /// Returns the peer at `endpoint`, unless it or this rank is gone.
    pub(crate) fn reach(&self, state: &mut State, endpoint: EndpointId) -> Option<Reached> {
        let own = state.member(self.place);
        if own.status != Status::Open {
            return None;
        }
        let peer = own.open_link(endpoint)?.peer;
        let has_left = state.member(peer).status == Status::Left;
        (!has_left).then_some(Reached {
            place: self.place,
            peer,
        })
    }

    /// Network and rank; peers of another network are not understood.
    fn address_of(&self, rank: Rank) -> Vec<u8> {
        let network = Arc::as_ptr(&self.shared).addr() as u64;
        let mut blob = NAME.as_bytes().to_vec();
        blob.extend(network.to_le_bytes());
        blob.extend(rank.as_u32().to_le_bytes());
        blob
    }

    /// Sends a message of `len` bytes, which `copy` copies.
    fn enqueue(
        &mut self,
        to: EndpointId,
        (class, header): (Class, AmHeader),
        len: usize,
        copy: impl FnOnce() -> Vec<u8>,
    ) -> Post {
        if len > self.shared.options.max_send {
            return Post::Unsupported;
        }
        self.shared.with(|state| {
            let Some(Reached { place, peer }) = self.reach(state, to) else {
                return Post::Gone;
            };
            let options = &state.options;
            let room = match class {
                Class::Data => options.slots - options.control_slots,
                Class::Control => options.slots,
            };
            let link = &mut state.members[place.index()].links[to.index()];
            let back = link.back;
            if link.untaken as usize >= room {
                link.is_starved = true;
                return Post::Busy;
            }
            let bytes = copy();
            state.members[place.index()].count_message(&mut state.counts.messages);
            state.counts.bytes += len as u64;
            let at = state.work(place, peer, Work::Send { copied: len });
            // A reader that gave us up takes nothing any more: what we send is lost, as it is when a
            // reader has died and we do not know yet.
            if state.member(peer).open_link(back).is_none() {
                return Post::Posted;
            }
            state.members[place.index()].links[to.index()].untaken += 1;
            state.carry(
                at,
                Flight {
                    from: place,
                    to: peer,
                    link: to,
                    is_fenced: false,
                    cargo: Cargo::Message(Message { header, bytes }),
                },
            );
            Post::Posted
        })
    }
}

impl Transport for SimTransport {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let options = &self.shared.options;
        let mut all = Capabilities::WAKE
            | Capabilities::RELIABLE
            | Capabilities::LOCAL
            | Capabilities::LOOPBACK;
        all.set(Capabilities::ORDERED, options.keeps_order());
        all.set(Capabilities::COOPERATIVE, options.cooperative);
        all.set(Capabilities::GET, options.get);
        all.set(Capabilities::PUT, options.put);
        all.set(Capabilities::NOTICE, options.put && options.notices);
        all.set(Capabilities::REMOTE, options.remote);
        all.set(Capabilities::FAILURE_DETECTION, options.detect_failures);
        all
    }

    fn address(&self) -> Vec<u8> {
        self.address_of(self.rank)
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        if address != self.address_of(peer) {
            return Err(Error::BadAddress {
                transport: NAME,
                peer,
                reason: format!("{} bytes that name another network or rank", address.len()),
            });
        }
        let own = self.place;
        let endpoint = self.shared.with(|state| {
            let there = state.find(peer)?;
            if let Some(known) = state.member(own).by_peer.get(&there) {
                return Some(*known);
            }
            if state.member(there).status != Status::Open {
                return None;
            }
            let endpoint = state.link(own, there);
            // Where messages take time, the first of them is the contact.
            if state.machine().is_none() {
                let back = state.member(own).links[endpoint.index()].back;
                state.greet(there, back);
            }
            Some(endpoint)
        });
        endpoint.ok_or_else(|| Error::Unreachable {
            transport: NAME,
            peer,
            reason: "it is not there".to_owned(),
        })
    }

    fn leave(&mut self) {
        self.leaving = true;
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        Arc::new(SimWaiter {
            shared: Arc::clone(&self.shared),
            place: self.place,
        })
    }

    fn describe(&self, out: &mut dyn Write) {
        self.shared.with(|state| {
            let own = &state.members[self.place.index()];
            for link in &own.links {
                let peer = &state.members[link.peer.index()];
                let open = state.transfers.values().filter(|transfer| {
                    transfer.involves(self.place) && transfer.involves(link.peer)
                });
                // The sink's own failure has nowhere else to be reported.
                let _ = writeln!(
                    out,
                    "{NAME}: rank {}: {} untaken there, {} untaken here, {} transfers{}",
                    link.rank,
                    link.untaken,
                    peer.links[link.back.index()].untaken,
                    open.count(),
                    if link.is_closed { ", closed" } else { "" },
                );
            }
        });
    }
}

impl ByteTransport for SimTransport {
    fn limits(&self) -> Limits {
        let options = &self.shared.options;
        let mut limits = Limits::copying(options.max_send.min(40), options.max_send);
        if options.cooperative {
            limits.max_offers = options.max_offers;
        }
        if options.get || options.put {
            limits.max_remote_access = u64::MAX;
        }
        if options.put && options.notices {
            limits.immediate_width = 8;
        }
        if options.put && options.ordered_puts {
            limits.ordering = Ordering::WriteAfterWrite;
        }
        limits.memory_per_peer = options.slots * options.max_send;
        limits.wait_object = WaitObject::Futex;
        limits
    }

    fn preference(&self, to: EndpointId) -> Preference {
        let _ = to;
        let options = &self.shared.options;
        let network = Preference {
            coalesce: false,
            ..Preference::NETWORK
        };
        match options.machine.filter(|_| options.remote) {
            Some(Machine { eager: 0, .. }) => network,
            Some(Machine { eager, .. }) => Preference {
                eager: eager as usize,
                ..network
            },
            None => Preference::SHARED_MEMORY,
        }
    }

    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.enqueue(to, (class, header), data.len(), || data.to_vec())
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        self.enqueue(to, (Class::Data, header), body.len(), || body.to_vec())
    }

    fn progress(&mut self, _lane: Lane, upcalls: &mut dyn Upcalls) -> usize {
        self.make_progress(upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        if self.shared.options.detect_failures {
            self.find_failures(upcalls);
        }
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        self.hear_of_failure(rank, upcalls);
    }
}

impl Drop for SimTransport {
    fn drop(&mut self) {
        let status = match self.leaving {
            true => Status::Left,
            false => Status::Failed,
        };
        self.shared.with(|state| state.end(self.place, status));
    }
}
