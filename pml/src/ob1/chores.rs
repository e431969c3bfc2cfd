//! What upcalls left to be done with the transport.

use tagwire_transport::{Class, Post, Token};

use super::Ob1;
use super::core::{Chore, Core};
use super::peer::PeerIndex;
use super::rail::LANE;
use super::request::{Buffer, Phase};
use crate::contact::Reach;
use crate::slab::Handle;
use crate::types::Failure;

impl Ob1 {
    /// Does each chore once; what finds the transport busy stays for the next time. Answers how
    /// many things happened.
    pub(super) fn run_chores(&mut self) -> usize {
        let mut events = 0;
        for _ in 0..self.core.chores.len() {
            let Some(chore) = self.core.chores.pop_front() else {
                break;
            };
            events += match chore {
                Chore::Control {
                    peer,
                    header,
                    body,
                    len,
                } => {
                    let sent = self.send_control(peer, header, &body[..usize::from(len)]);
                    if !sent {
                        self.core.chores.push_back(Chore::Control {
                            peer,
                            header,
                            body,
                            len,
                        });
                    }
                    usize::from(sent)
                }
                Chore::Claim(handle) => self.claim_transfer(handle),
                Chore::Read(handle) => self.read(handle),
                Chore::Conclude(handle) => self.conclude(handle),
                Chore::Withdraw(handle) => self.withdraw(handle),
                Chore::Age(peer) => self.core.age_shown(peer),
                Chore::Serve(handle) => self.serve(handle),
                Chore::Push(handle) => self.push(handle),
                Chore::Flush(peer) => {
                    if let Some(peer) = self.core.peers.get_mut(peer) {
                        peer.flush_noted = false;
                    }
                    self.flush(peer)
                }
            };
        }
        events
    }

    /// Answers whether the packet is off the list.
    fn send_control(
        &mut self,
        index: PeerIndex,
        header: tagwire_transport::AmHeader,
        body: &[u8],
    ) -> bool {
        match self.reach(index) {
            Reach::Now => {}
            Reach::Later => return false,
            Reach::Never => return true,
        }
        let Some(peer) = self.core.peers.get(index) else {
            return true;
        };
        match self
            .rail
            .send(LANE, peer.endpoint, Class::Control, header, body)
        {
            Post::Busy => false,
            // Where the peer is gone the transport will say how.
            Post::Posted | Post::Gone | Post::Unsupported => true,
        }
    }

    /// Joins the cooperative transfer that a receive matched.
    fn claim_transfer(&mut self, handle: Handle) -> usize {
        let Self { rail, core, .. } = self;
        let Core {
            requests,
            peers,
            chores,
            ..
        } = core;
        let Some(request) = requests.get_mut(handle) else {
            return 0;
        };
        if request.phase != Phase::ClaimPending {
            return 0;
        }
        let Some(peer) = peers.get(request.peer) else {
            return 0;
        };
        let Buffer::Recv(data) = &request.buffer else {
            return 0;
        };
        match rail.claim(
            LANE,
            peer.endpoint,
            request.ticket,
            data,
            Token(handle.to_wire()),
        ) {
            Post::Posted => {
                request.phase = Phase::Claimed;
                request.lent = true;
                1
            }
            Post::Busy => {
                chores.push_back(Chore::Claim(handle));
                0
            }
            Post::Unsupported => {
                core.ask_for_fragments(handle);
                1
            }
            Post::Gone => {
                let failure = peer.failure().unwrap_or(Failure::PeerFailed(peer.rank));
                core.finish(handle, Some(failure));
                1
            }
        }
    }

    fn withdraw(&mut self, handle: Handle) -> usize {
        if let Some(request) = self.core.requests.get(handle)
            && request.phase == Phase::Offered
            && let Some(peer) = self.core.peers.get(request.peer)
        {
            self.rail.withdraw(peer.endpoint, request.ticket);
        }
        1
    }
}
