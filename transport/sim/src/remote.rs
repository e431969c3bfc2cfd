//! One rank of a simulated network: access to its peers' memory, and transfers that both sides move.

use std::sync::Arc;

use tagwire_transport::data::{RecvBuffer, SendBuffer};
use tagwire_transport::error::{Error, Result};
use tagwire_transport::message::{EndpointId, Lane, Outcome, Token};
use tagwire_transport::{
    CooperativeTransfers, Offer, Post, RegistrationHandle, RemoteAccess, RemoteMemory, Ticket,
};

use crate::flight::{Cargo, Flight, OperationId, Spot};
use crate::member::Operation;
use crate::memory::{Exposed, Writable};
use crate::network::NAME;
use crate::place::Place;
use crate::rank::{Reached, SimTransport};
use crate::state::{State, Work};
use crate::transfer::Transfer;

impl SimTransport {
    /// Returns the key of memory with a number.
    fn handle(&self, id: u64) -> RegistrationHandle {
        let mut key = id.to_le_bytes().to_vec();
        key.resize(self.shared.options.key, 0);
        RegistrationHandle { id, key }
    }

    /// Returns where a peer's memory is.
    fn spot(&self, memory: RemoteMemory<'_>) -> Spot {
        let is_whole = memory.key.len() == self.shared.options.key;
        let number = memory.key.first_chunk().filter(|_| is_whole);
        Spot {
            key: number.map(|number| u64::from_le_bytes(*number)),
            address: memory.address,
        }
    }

    /// Starts an operation that ends when the peer's NIC answers what `cargo` makes of its name.
    fn operate(
        &mut self,
        (to, token): (EndpointId, Token),
        target: Option<Writable>,
        cargo: impl FnOnce(&mut State, OperationId) -> Cargo,
    ) -> Post {
        let shared = Arc::clone(&self.shared);
        shared.with(|state| {
            let Some(Reached { place, peer }) = self.reach(state, to) else {
                return Post::Gone;
            };
            let member = state.member(place);
            if member.completions.len() + member.operations.len() >= shared.options.puts {
                return Post::Busy;
            }
            let id = state.operation();
            state.member(place).operations.push(Operation {
                id,
                token,
                link: to,
                target,
            });
            let cargo = cargo(state, id);
            let at = state.work(place, peer, Work::Send { copied: 0 });
            let link = &mut state.member(place).links[to.index()];
            let was_fenced = std::mem::take(&mut link.is_fenced);
            let is_fenced = was_fenced || matches!(cargo, Cargo::Flush(_));
            state.carry(
                at,
                Flight {
                    from: place,
                    to: peer,
                    link: to,
                    is_fenced,
                    cargo,
                },
            );
            Post::Posted
        })
    }
}

impl RemoteAccess for SimTransport {
    fn get(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let Some(target) = data.region().filter(|_| self.shared.options.get) else {
            return Post::Unsupported;
        };
        let (spot, len) = (self.spot(source), target.len());
        let fill = Some(Writable(target));
        self.operate((from, token), fill, |_, operation| Cargo::Get {
            spot,
            len,
            operation,
        })
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
        let options = &self.shared.options;
        if !options.put || immediate.is_some() && !options.notices {
            return Post::Unsupported;
        }
        let spot = self.spot(target);
        self.operate((to, token), None, |_, operation| {
            // Asked for once: what packs a message may return something else the next time.
            let mut bytes = vec![0; data.len()];
            let count = data.copy_out(0, &mut bytes);
            bytes.truncate(count);
            Cargo::Put {
                spot,
                bytes,
                immediate,
                operation,
            }
        })
    }

    fn flush(&mut self, _lane: Lane, to: EndpointId, token: Token) -> Post {
        if !self.shared.options.put {
            return Post::Unsupported;
        }
        self.operate((to, token), None, |state, operation| {
            state.puts.flushes += 1;
            Cargo::Flush(operation)
        })
    }

    fn fence(&mut self, _lane: Lane, to: EndpointId) -> Post {
        if !self.shared.options.put {
            return Post::Unsupported;
        }
        self.shared.with(|state| {
            let Some(Reached { place, .. }) = self.reach(state, to) else {
                return Post::Gone;
            };
            state.member(place).links[to.index()].is_fenced = true;
            Post::Posted
        })
    }

    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let target = data.region().filter(|_| self.shared.options.put);
        let target = target.ok_or(Error::Unsupported {
            transport: NAME,
            what: "writes to this memory by peers",
        })?;
        let id = self.shared.with(|state| {
            let id = state.next_exposed;
            state.next_exposed += 1;
            let writable = &mut state.member(self.place).writable;
            writable.insert(id, Writable(target));
            id
        });
        Ok(self.handle(id))
    }

    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let source = data.region().filter(|_| self.shared.options.get);
        let source = source.ok_or(Error::Unsupported {
            transport: NAME,
            what: "reading of this memory by peers",
        })?;
        let id = self.shared.with(|state| {
            let id = state.next_exposed;
            state.next_exposed += 1;
            let exposed = &mut state.member(self.place).exposed;
            exposed.insert(id, Exposed(source));
            id
        });
        Ok(self.handle(id))
    }

    fn deregister(&mut self, handle: RegistrationHandle) {
        self.shared.with(|state| {
            let member = state.member(self.place);
            member.exposed.remove(&handle.id);
            member.writable.remove(&handle.id);
        });
    }
}

impl CooperativeTransfers for SimTransport {
    fn offer(&mut self, _lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        let Some(source) = data.region().filter(|_| self.shared.options.cooperative) else {
            return Offer::Unsupported;
        };
        self.shared.with(|state| {
            let Some(Reached { place, peer }) = self.reach(state, to) else {
                return Offer::Unsupported;
            };
            let of_pair =
                |transfer: &&Transfer<Place>| transfer.offerer == place && transfer.claimer == peer;
            let open = state.transfers.values().filter(of_pair).count();
            if open >= state.options.max_offers {
                return Offer::Busy;
            }
            let id = state.next_transfer;
            state.next_transfer += 1;
            let transfer = Transfer::new(place, peer, source, token);
            state.transfers.insert(id, transfer);
            Offer::Open(Ticket([id, !id]))
        })
    }

    fn claim(
        &mut self,
        _lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        let Some(target) = data.region().filter(|_| self.shared.options.cooperative) else {
            return Post::Unsupported;
        };
        self.shared.with(|state| {
            let Some(Reached { place, peer }) = self.reach(state, from) else {
                return Post::Gone;
            };
            let [id, check] = ticket.0;
            let joined = state.transfers.get_mut(&id).filter(|transfer| {
                check == !id && transfer.offerer == peer && transfer.claimer == place
            });
            let Some(transfer) = joined else {
                return Post::Unsupported;
            };
            if transfer.is_halted() {
                return Post::Gone;
            }
            if !transfer.join(target, token) {
                return Post::Unsupported;
            }
            state.signal(peer);
            state.signal(place);
            Post::Posted
        })
    }

    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        self.shared.with(|state| {
            let own = self.place;
            let Some(link) = state.member(own).links.get(to.index()) else {
                return;
            };
            let (peer, id) = (link.peer, ticket.0[0]);
            let is_ours = state.transfers.get(&id).is_some_and(|transfer| {
                transfer.offerer == own && transfer.claimer == peer && !transfer.is_claimed()
            });
            if is_ours && let Some(mut transfer) = state.transfers.remove(&id) {
                for token in transfer.take_tokens(own) {
                    state.complete(own, token, Outcome::Withdrawn);
                }
            }
        });
    }
}
