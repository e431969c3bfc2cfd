//! Runs ob1 against its transport: whatever is pending, and the sends that wait for their turn.

use tagwire_transport::{Post, RemoteAccess};
use zerocopy::IntoBytes;

use super::config::Ob1Options;
use super::core::Core;
use super::header::RendezvousBody;
use super::link::Link;
use super::peer::PeerIndex;
use super::pending::Operation;
use super::protocol::{Launch, Turn};
use super::protocols::State;
use super::rail::Rail;
use crate::contacts::{self, IN_VAIN, Reach};
use crate::lane::Lane;
use crate::slab::Handle;
use crate::types::SendMode;

/// How far a queued send came.
enum Turned {
    /// Its turn is over.
    Over,
    /// The transport has no room just now. Some of its packets may have found some.
    Busy { moved: bool },
    /// It may not go: no credit.
    Held,
    /// The peer is gone; the transport will say how, and that ends whatever waits for it.
    Lost,
}

/// The transport of a rank, and how it finds its peers.
pub(super) struct Driver {
    pub rail: Rail,
    pub options: Ob1Options,
    /// The longest piece of one get or put; 0 where the transport has neither.
    piece: usize,
}

impl Driver {
    pub(super) const fn new(rail: Rail, options: Ob1Options, piece: usize) -> Self {
        Self {
            rail,
            options,
            piece,
        }
    }

    /// Sends what waits for others, and drives the services that were called. Returns how many things happened.
    #[cold]
    pub(super) fn run_extras(&mut self, core: &mut Core) -> usize {
        let Core {
            coalescing, lane, ..
        } = core;
        let batches = coalescing.flush_all(&mut *self.rail, &mut lane.peers);
        let rail = Some(&mut *self.rail as &mut dyn RemoteAccess);
        batches + lane.drive_services(rail)
    }

    /// Looks at memory that peers write, does what is pending, and sends the packets of services. Returns how many things happened.
    #[inline(never)]
    pub(super) fn run_rest(&mut self, core: &mut Core) -> usize {
        let events = core.lane.look_at_memory() + self.run_pending(core);
        match core.lane.packets.is_empty() {
            true => events,
            false => events + contacts::send_packets(&mut self.contacts(core)),
        }
    }

    /// Does each pending operation once, or up to [`IN_VAIN`] after each other that did nothing; what finds the transport busy
    /// stays for the next time, behind the others. Where something happened, another operation is the first next time: else one that
    /// takes all the room that it finds leaves none to those behind it, as sends that wait for credit to what a receive has asked for.
    /// Returns how many things happened.
    pub(super) fn run_pending(&mut self, core: &mut Core) -> usize {
        let (mut events, mut in_vain) = (0, 0);
        for _ in 0..core.pending.len() {
            if in_vain == IN_VAIN {
                break;
            }
            let Some(operation) = core.pending.pop() else {
                break;
            };
            let happened = match operation {
                Operation::Control(control) => {
                    let sent = contacts::send(&mut self.contacts(core), &control);
                    if !sent {
                        core.pending.push(Operation::Control(control));
                    }
                    usize::from(sent)
                }
                Operation::Advance(request) => self.advance(core, request),
                Operation::Age(peer) => core.held().age_shown(peer),
                Operation::Settle(peer, receive) => self.settle(core, peer, receive),
                Operation::Fill(send, target) => self.fill(core, send, &target),
                Operation::Flush(index) => {
                    if let Some(peer) = core.lane.peers.get_mut(index) {
                        peer.flush_noted = false;
                    }
                    self.flush(core, index)
                }
            };
            events += happened;
            in_vain = if happened == 0 { in_vain + 1 } else { 0 };
        }
        if events > 0 {
            core.pending.take_turns();
        }
        events
    }

    /// Lets the protocol of a request go on. Returns how many things happened.
    fn advance(&mut self, core: &mut Core, handle: Handle) -> usize {
        let Core {
            requests,
            lane: Lane { peers, .. },
            pending,
            ..
        } = core;
        // It may have ended since.
        let Some(request) = requests.get_mut(handle) else {
            return 0;
        };
        let Some(peer) = peers.get_mut(request.common.peer) else {
            return 0;
        };
        let mut link = Link::new(&mut *self.rail, peer, handle, self.piece);
        let before = pending.len();
        let mut turn = Turn { handle, pending };
        let step = request
            .state
            .advance(&mut request.common, &mut link, &mut turn);
        // What it has left to be sent is done by the next call: nobody is to sleep before.
        let left = pending.len() - before;
        let events = link.posted() + left + usize::from(step.is_progress());
        core.apply(handle, step);
        events
    }

    /// Sends what waits for `index`, as far as credits and the transport allow. Returns how many things happened.
    pub(super) fn flush(&mut self, core: &mut Core, index: PeerIndex) -> usize {
        match contacts::reach(&mut self.contacts(core), index) {
            Reach::Now => {}
            Reach::Later => {
                core.flush_later(index);
                return 0;
            }
            Reach::Never => return 0,
        }
        let Core {
            coalescing, lane, ..
        } = core;
        if !coalescing.flush(&mut *self.rail, &mut lane.peers, index) {
            core.flush_later(index);
            return 0;
        }
        let mut sent = 0;
        while let Some(peer) = core.lane.peers.get(index)
            && peer.pulled.is_none()
            && let Some(&front) = peer.queue.front()
        {
            match self.launch(core, index, front) {
                Turned::Over => {
                    sent += 1;
                    if let Some(peer) = core.lane.peers.get_mut(index)
                        && peer.queue.front() == Some(&front)
                    {
                        peer.queue.pop_front();
                    }
                }
                Turned::Busy { moved } => {
                    sent += usize::from(moved);
                    core.flush_later(index);
                    break;
                }
                Turned::Held => {
                    self.send_asked_for(core, index);
                    break;
                }
                Turned::Lost => break,
            }
        }
        if let Some(peer) = core.lane.peers.get_mut(index) {
            peer.refresh_clear();
        }
        sent
    }

    /// Sends the send at the front of its peer's queue.
    fn launch(&mut self, core: &mut Core, index: PeerIndex, handle: Handle) -> Turned {
        let Core {
            requests,
            lane: Lane { peers, .. },
            counters,
            ..
        } = core;
        let (Some(peer), Some(request)) = (peers.get_mut(index), requests.get_mut(handle)) else {
            return Turned::Over;
        };
        let (common, credit) = (&mut request.common, peer.credit);
        // It may have ended before its turn.
        if !request.state.is_active() {
            return Turned::Over;
        }
        let begun = !matches!(request.state, State::Queued);
        if !begun && credit.envelopes <= 0 {
            return Turned::Held;
        }
        let mut ticket = None;
        if !begun {
            let (tag, context) = (common.status.tag, common.context);
            let (target, eager) = (peer.exposures.target(tag, context), peer.path.terms.eager);
            ticket = target.and_then(|target| target.for_message(common.wanted, eager));
            common.target = target.map(|target| target.number);
        }
        let (mut number, mut is_ahead) = (0, false);
        loop {
            let fills = ticket.take();
            if let Some(ticket) = fills {
                request.state = State::fill(ticket);
            } else if !begun {
                let synchronous = common.mode == SendMode::Synchronous;
                let has_credit = credit.bytes >= common.wanted as i64;
                // More than a packet is copied once where the receiver gets at it, and not twice.
                let stays = common.wanted > peer.path.terms.at_once
                    && self.rail.maps(peer.endpoint, common.send_buffer());
                let has_credit = has_credit && !stays;
                let (path, wanted) = (&peer.path, common.wanted);
                if number == 0 {
                    is_ahead = !synchronous
                        && has_credit
                        && wanted > path.terms.eager
                        && self.rail.goes_ahead(peer.endpoint, common.send_buffer());
                }
                let length = if is_ahead { path.terms.eager } else { wanted };
                let protocols = path.choose(length, synchronous, has_credit);
                let Some(protocol) = protocols.get(number) else {
                    debug_assert!(false, "the last protocol takes every message");
                    return Turned::Lost;
                };
                request.state = State::new(*protocol);
                number += 1;
            }
            let mut link = Link::new(&mut *self.rail, peer, handle, self.piece);
            let launch = request.state.launch(common, &mut link);
            match launch {
                Launch::Declined if fills.is_some() => {
                    peer.exposures.drop_targets();
                    common.target = None;
                    continue;
                }
                Launch::Out | Launch::Complete | Launch::Begun { .. } if !begun => {
                    if let Some(number) = common.target {
                        peer.exposures.take_target(number);
                    }
                }
                _ => {}
            }
            return match launch {
                Launch::Out => {
                    counters.sent_long += u64::from(request.state.is_rendezvous());
                    Turned::Over
                }
                Launch::Complete => {
                    core.finish(handle, None);
                    Turned::Over
                }
                Launch::Busy => {
                    if !begun {
                        request.state = State::Queued;
                    }
                    Turned::Busy { moved: false }
                }
                Launch::Begun { moved } => Turned::Busy { moved },
                Launch::Declined if !begun => continue,
                Launch::Declined | Launch::Lost => Turned::Lost,
            };
        }
    }

    /// While envelopes are held back: sends one that the peer has asked for, without credit.
    fn send_asked_for(&mut self, core: &mut Core, index: PeerIndex) {
        let Some(asked) = core.held().asked_for(index) else {
            return;
        };
        let Some(peer) = core.lane.peers.get_mut(index) else {
            return;
        };
        peer.exposures.drop_targets();
        let handle = peer.queue.get(asked.place).copied();
        let Some((handle, request)) =
            handle.and_then(|handle| Some((handle, core.requests.get(handle)?)))
        else {
            debug_assert!(false, "what was asked for is in the queue");
            return;
        };
        let common = &request.common;
        let mut body = RendezvousBody::new(common.wanted, handle, RendezvousBody::NO_WORDS);
        body.receiver = asked.receive;
        let mut link = Link::new(&mut *self.rail, peer, handle, self.piece);
        let posted = link.send_asked_for(asked.kind(), common, body.as_bytes());
        let sent = posted == Post::Posted;
        core.held().settle(index, &asked, sent);
    }
}
