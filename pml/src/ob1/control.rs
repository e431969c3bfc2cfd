//! Control packets: what peers say of operations that are under way.

use tagwire_base::{ContextId, TagSelector};
use tagwire_transport::{Payload, Ticket};
use zerocopy::{FromZeros, IntoBytes};

use super::core::{Chore, Core};
use super::credit::Window;
use super::header::{ControlHeader, Kind, PullBody};
use super::peer::{PeerIndex, PullWish};
use super::request::{Buffer, Phase};
use crate::slab::Handle;

impl Core {
    #[cold]
    pub(super) fn control(&mut self, from: PeerIndex, header: ControlHeader, payload: Payload<'_>) {
        match header.kind {
            Kind::Data => self.data(from, header, payload),
            Kind::Credit => {
                if let Some(peer) = self.peers.get_mut(from) {
                    peer.credit.add(Window::unpack(header.argument));
                    if !peer.queue.is_empty() {
                        self.flush_later(from);
                    }
                }
            }
            Kind::Pull => self.wish(from, header, payload),
            Kind::Peek => self.question(from, payload),
            Kind::PullTaken | Kind::PullReturned => self.pull_answered(from, header),
            Kind::Ticket => self.ticket(from, header, payload),
            Kind::ChannelOpened
            | Kind::ChannelLanded
            | Kind::ChannelEnded
            | Kind::ChannelClosed => self.channel_said(from, header),
            _ => self.answer_to_send(from, header, payload),
        }
    }

    /// Bytes of a rendezvous.
    fn data(&mut self, from: PeerIndex, header: ControlHeader, payload: Payload<'_>) {
        let Some(request) = self.requests.get_mut(header.handle) else {
            return self.broken(from, "bytes for a receive that is not there");
        };
        let fits = usize::try_from(header.argument)
            .ok()
            .and_then(|offset| offset.checked_add(payload.len()))
            .is_some_and(|end| end <= request.wanted);
        if request.phase != Phase::Fragments || request.peer != from || !fits {
            return self.broken(from, "bytes that no receive asked for");
        }
        if let Buffer::Recv(data) = &mut request.buffer {
            data.write(header.argument as usize, payload);
        }
        request.moved += payload.len();
        if request.moved >= request.wanted {
            self.finish(header.handle, None);
        }
    }

    /// The receiver of one of our sends has matched it.
    fn answer_to_send(&mut self, from: PeerIndex, header: ControlHeader, payload: Payload<'_>) {
        let Some(request) = self.requests.get_mut(header.handle) else {
            return self.broken(from, "an answer to a send that is not there");
        };
        if !request.is_send() || request.peer != from {
            return self.broken(from, "an answer to a send that went elsewhere");
        }
        match (header.kind, request.phase) {
            (Kind::Matched, Phase::AwaitMatch) => self.finish(header.handle, None),
            (Kind::Got, Phase::AwaitMatch) if request.reach.is_some() => {
                self.finish(header.handle, None);
            }
            (Kind::Fragments, Phase::AwaitMatch | Phase::Offered) => {
                let mut wanted = 0;
                if !payload.read_into(u64::as_mut_bytes(&mut wanted)) {
                    return self.broken(from, "a request for fragments that is cut short");
                }
                request.wanted = request
                    .wanted
                    .min(usize::try_from(wanted).unwrap_or(usize::MAX));
                request.moved = 0;
                request.remote = Handle::from_wire(header.argument);
                self.chores.push_back(if request.lent {
                    Chore::Withdraw(header.handle)
                } else {
                    Chore::Serve(header.handle)
                });
            }
            _ => self.broken(from, "an answer out of turn"),
        }
    }

    /// A receive of the peer waits for something that this rank may hold back.
    fn wish(&mut self, from: PeerIndex, header: ControlHeader, payload: Payload<'_>) {
        let mut body = PullBody::new_zeroed();
        if !payload.read_into(body.as_mut_bytes()) {
            return self.broken(from, "a pull that is cut short");
        }
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        // It stays also where nothing is held back now: that may change before the receive matches.
        peer.wish(PullWish {
            receive: header.handle,
            order: header.argument,
            tag: TagSelector::from_i32(body.tag),
            context: ContextId::new(body.context),
            tried: false,
        });
        self.flush_later(from);
    }

    /// Notes that sends to this peer may go on.
    pub(super) fn flush_later(&mut self, index: PeerIndex) {
        if let Some(peer) = self.peers.get_mut(index)
            && !peer.flush_noted
        {
            peer.flush_noted = true;
            self.chores.push_back(Chore::Flush(index));
        }
    }

    /// The sender of what was asked for in fragments offers it after all.
    fn ticket(&mut self, from: PeerIndex, header: ControlHeader, payload: Payload<'_>) {
        let mut ticket = [0; 2];
        let Some(request) = self.requests.get_mut(header.handle) else {
            return self.broken(from, "a ticket for a receive that is not there");
        };
        let expected =
            request.phase == Phase::Fragments && request.peer == from && request.moved == 0;
        if !expected || !payload.read_into(<[u64; 2]>::as_mut_bytes(&mut ticket)) {
            return self.broken(from, "a ticket that no receive asked for");
        }
        request.phase = Phase::ClaimPending;
        request.ticket = Ticket(ticket);
        self.chores.push_back(Chore::Claim(header.handle));
    }

    /// What became of the envelope that was sent in answer to a pull.
    fn pull_answered(&mut self, from: PeerIndex, header: ControlHeader) {
        let Some(peer) = self.peers.get_mut(from) else {
            return;
        };
        let Some((send, place)) = peer
            .pulled
            .take()
            .filter(|(send, _)| *send == header.handle)
        else {
            return self.broken(from, "an answer to a pull that is not there");
        };
        if header.kind == Kind::PullReturned {
            // What has been matched, or answered in any other way, cannot come back.
            let Some(request) = self.requests.get_mut(send).filter(|request| {
                request.phase == Phase::AwaitMatch && request.remote == Handle::NONE
            }) else {
                return self.broken(from, "a pulled envelope returned after its match");
            };
            request.phase = Phase::Queued;
            peer.queue.insert(place.min(peer.queue.len()), send);
        }
        peer.refresh_clear();
        self.flush_later(from);
    }
}
