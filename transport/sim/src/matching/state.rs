//! What the ranks of a matching network share, under one lock.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use tagwire_base::Rank;

use super::carried::Matched;
use super::lists::{Content, Lists, Message, Receive};
use crate::due::Due;
use crate::member::Status;
use crate::picture::{Noted, Trace};
use crate::time::{Moment, Span};
use crate::transfer::Transfer;
use tagwire_transport::EpochWaiter;
use tagwire_transport::data::RecvBuffer;
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::matching::{Found, MatchEnvelope, ReceiveEnd};
use tagwire_transport::message::{Outcome, Payload, Token};
use tagwire_transport::wait::Waiter as _;

/// What one rank has sent to another and was not taken yet.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) from: Rank,
    pub(super) queue: VecDeque<Message>,
    /// The receiver takes no more from this peer.
    pub(super) closed: bool,
    /// The sender was told `Busy` and hears of room.
    pub(super) starved: bool,
    /// Messages that are under way in the network that carries them.
    pub(super) flying: usize,
}

impl Channel {
    /// Returns how many messages the receiver has not taken.
    pub(super) fn untaken(&self) -> usize {
        self.queue.len() + self.flying
    }
}

/// The end of an operation, to be told.
#[derive(Debug)]
pub(super) enum End {
    Sent(Token, Outcome),
    Received(Token, ReceiveEnd),
    Probed(Token, Option<Found>),
}

/// One rank, as the others see it.
#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) status: Status,
    /// In the order of first contact; never removed, so that positions stay.
    pub(super) inbound: Vec<Channel>,
    by_sender: HashMap<Rank, usize>,
    pub(super) lists: Lists,
    /// Long messages that came before their receive, whose bytes were fetched.
    pub(super) fetched: u64,
    /// For the rank's next progress.
    pub(super) ends: VecDeque<End>,
    /// Sends whose message a peer has dropped that gave this rank up: they end once this rank
    /// gives the peer up in turn.
    orphans: Vec<(Rank, Token)>,
    /// Receives of claimed messages whose sender is gone, until that is told.
    pub(super) doomed: Vec<(Token, MatchEnvelope)>,
    pub(super) waiter: Arc<EpochWaiter>,
}

impl Member {
    pub(super) fn channel(&mut self, from: Rank) -> usize {
        *self.by_sender.entry(from).or_insert_with(|| {
            self.inbound.push(Channel {
                from,
                queue: VecDeque::new(),
                closed: false,
                starved: false,
                flying: 0,
            });
            self.inbound.len() - 1
        })
    }

    /// The place of the channel for what `from` sends, when there was contact.
    pub(super) fn find_channel(&self, from: Rank) -> Option<usize> {
        self.by_sender.get(&from).copied()
    }

    /// Takes the notices of all messages of `source` that are here: it will hear no more of them.
    fn take_notices(&mut self, source: Rank) -> Vec<Token> {
        let mut notices = Vec::new();
        if let Some(place) = self.find_channel(source) {
            for message in self.inbound[place].queue.drain(..) {
                self.lists.refund(&message);
                notices.extend(message.notice);
            }
        }
        notices.extend(self.lists.forget_lent_by(source));
        notices
    }
}

/// A long message on its way from the sender's memory to the receiver's.
#[derive(Debug)]
pub(super) struct Moving {
    pub(super) transfer: Transfer<Rank>,
    pub(super) envelope: MatchEnvelope,
}

/// The whole network.
#[derive(Debug, Default)]
pub(super) struct MatchState {
    pub(super) members: HashMap<Rank, Member>,
    /// Another network carries the messages, and does what is due when this is unlocked.
    pub(super) is_carried: bool,
    pub(super) due: Vec<Due>,
    /// How many loads are under way from one rank to another.
    pub(super) loads: HashMap<(Rank, Rank), usize>,
    /// Ranks whose death is found.
    pub(super) found: HashSet<Rank>,
    /// Senders match, or the NICs of receivers do.
    pub(super) helping: bool,
    /// These are NICs, and long messages come whole.
    pub(super) drops: bool,
    /// Bytes of long messages are not copied.
    pub(super) hollow: bool,
    /// By number; the order makes progress deterministic.
    pub(super) moving: BTreeMap<u64, Moving>,
    next_moving: u64,
    random: Option<SplitMix64>,
    /// What takes note of messages, where no other network does, and of how many of their steps it has.
    trace: Option<(Trace, u64)>,
}

impl MatchState {
    /// Returns the state of a network whose schedule `seed` names, and of whose messages `trace` takes note.
    pub(super) fn scheduled(seed: Option<u64>, trace: Option<Trace>) -> Self {
        if let Some(trace) = &trace {
            trace.begin();
        }
        Self {
            random: seed.map(SplitMix64::new),
            trace: trace.map(|trace| (trace, 0)),
            ..Self::default()
        }
    }

    /// Takes note of a message that is sent, where that is wanted.
    pub(super) fn note(&mut self, from: Rank, to: Rank, bytes: usize) -> Option<Noted> {
        let at = self.step()?;
        let (trace, _) = self.trace.as_ref()?;
        Some(trace.sent((from, to), ("message", bytes), at))
    }

    /// Takes note of its being taken.
    pub(super) fn note_taken(&mut self, message: &mut Message) {
        if let Some(noted) = message.noted.take()
            && let Some(at) = self.step()
        {
            Noted::land(Some(noted), at);
        }
    }

    /// Returns the moment of the next step of a picture.
    fn step(&mut self) -> Option<Moment> {
        let (_, steps) = self.trace.as_mut()?;
        *steps += 1;
        Some(Moment::default() + Span::nanos(*steps))
    }

    /// Returns how many of `most` things a call of progress does now: all without a schedule, in half of the cases none with one.
    pub(super) fn share(&mut self, most: usize) -> usize {
        match &mut self.random {
            None => most,
            Some(random) => match random.chance(50) {
                true => 0,
                false => random.below(most as u64 + 1) as usize,
            },
        }
    }

    /// `from` gets in contact with `to`: the channel's place, unless `to` is not there.
    pub(super) fn open_channel(&mut self, from: Rank, to: Rank) -> Option<usize> {
        let member = self.members.get_mut(&to)?;
        if member.status != Status::Open {
            return None;
        }
        let place = member.channel(from);
        self.wake(to);
        Some(place)
    }

    pub(super) fn status(&self, rank: Rank) -> Status {
        self.members
            .get(&rank)
            .map_or(Status::Open, |member| member.status)
    }

    pub(super) fn wake(&mut self, rank: Rank) {
        if self.is_carried {
            self.due.push(Due::Wake(rank));
        } else if let Some(member) = self.members.get(&rank) {
            member.waiter.wake();
        }
    }

    /// Queues the end of an operation of `rank`.
    pub(super) fn end_operation(&mut self, rank: Rank, end: End) {
        if let Some(member) = self.members.get_mut(&rank)
            && member.status == Status::Open
        {
            member.ends.push_back(end);
            self.wake(rank);
        }
    }

    /// A message has come to `to`, `whole` or not: it takes a posted receive, or waits for one.
    pub(super) fn arrive(&mut self, to: Rank, message: Message, whole: bool) {
        let Some(member) = self.members.get_mut(&to) else {
            return;
        };
        match member.lists.take_receive(&message.envelope) {
            Some(receive) => {
                let token = receive.token;
                member.lists.refund(&message);
                if let Some(end) = self.bring_together(to, receive, message, whole) {
                    self.end_operation(to, End::Received(token, end));
                }
            }
            None => member.lists.unexpected.push_back(message),
        }
    }

    /// `receive` of `own` takes `message`, both out of the lists. Returns the end, where that is
    /// all; else the bytes will be moved, or are with a message that comes `whole`.
    pub(super) fn bring_together(
        &mut self,
        own: Rank,
        receive: Receive,
        message: Message,
        whole: bool,
    ) -> Option<ReceiveEnd> {
        let Receive { target, token, .. } = receive;
        let envelope = message.envelope;
        match message.content {
            Content::Kept(bytes) => {
                let count = bytes.len().min(target.len());
                // SAFETY: the receive is out of the lists and has not ended: its buffer is lent.
                unsafe { RecvBuffer::of(target) }.write(0, Payload::from_slice(&bytes));
                Some(ReceiveEnd::Matched(envelope, Outcome::Done(count as u64)))
            }
            Content::Lent(source) => {
                let notice = message.notice.unwrap_or(Token(0));
                let mut transfer = Transfer::new(envelope.source, own, source, notice);
                transfer.join(target, token);
                self.next_moving += 1;
                let number = self.next_moving;
                self.moving.insert(number, Moving { transfer, envelope });
                if whole {
                    if self.moved(number) {
                        self.carry(own, envelope.source, Matched::Done(number));
                    }
                    return None;
                }
                if self.is_carried {
                    self.carry(own, envelope.source, Matched::Fetch(number));
                    return None;
                }
                self.wake(envelope.source);
                self.wake(own);
                None
            }
            Content::Lost if self.is_told(own, envelope.source) => {
                Some(ReceiveEnd::Matched(envelope, Outcome::PeerFailed))
            }
            Content::Lost => {
                if let Some(member) = self.members.get_mut(&own) {
                    member.doomed.push((token, envelope));
                }
                None
            }
        }
    }

    /// Whether `own` takes no more from `peer`.
    fn is_told(&self, own: Rank, peer: Rank) -> bool {
        self.members.get(&own).is_some_and(|member| {
            member
                .find_channel(peer)
                .is_none_or(|place| member.inbound[place].closed)
        })
    }

    /// Copies a chunk of each long message that `own` sends or receives. Returns how many.
    pub(super) fn move_chunks(&mut self, own: Rank, chunk: usize) -> usize {
        let (mut copied, mut finished) = (0, Vec::new());
        // The NICs move them.
        if self.is_carried {
            return 0;
        }
        for (number, moving) in &mut self.moving {
            if moving.transfer.involves(own) {
                copied += usize::from(moving.transfer.advance(chunk) > 0);
                finished.extend(moving.transfer.finished().map(|total| (*number, total)));
            }
        }
        for (number, total) in finished {
            if let Some(Moving {
                mut transfer,
                envelope,
            }) = self.moving.remove(&number)
            {
                let done = Outcome::Done(total as u64);
                if let Some(token) = transfer.take_offer_token() {
                    self.end_operation(transfer.offerer, End::Sent(token, done));
                }
                if let Some(token) = transfer.take_claim_token() {
                    let end = ReceiveEnd::Matched(envelope, done);
                    self.end_operation(transfer.claimer, End::Received(token, end));
                }
            }
        }
        copied
    }

    /// `rank` ends, in good order or not. Nobody touches its buffers after this.
    pub(super) fn end(&mut self, rank: Rank, status: Status) {
        let Some(member) = self.members.get_mut(&rank) else {
            return;
        };
        if member.status != Status::Open {
            return;
        }
        member.status = status;
        member.lists.posted.clear();
        member.ends.clear();
        for moving in self.moving.values_mut() {
            if moving.transfer.involves(rank) {
                moving.transfer.halt();
                // Nobody will ask for these any more.
                moving.transfer.take_tokens(rank).for_each(drop);
            }
        }
        for member in self.members.values_mut() {
            if let Some(place) = member.find_channel(rank) {
                let (lists, queue) = (&mut member.lists, &mut member.inbound[place].queue);
                queue.retain(|message| {
                    let lent = message.is_lent_by(rank);
                    if lent {
                        lists.refund(message);
                    }
                    !lent
                });
            }
            member.lists.forget_lent_by(rank);
            // Whoever sleeps looks again: a departure concerns everyone in contact.
            if !self.is_carried {
                member.waiter.wake();
            }
        }
        if self.is_carried {
            self.wake_contacts(rank);
        }
    }

    fn wake_contacts(&mut self, rank: Rank) {
        let there = self.members.iter();
        let there = there.filter(|(_, member)| member.find_channel(rank).is_some());
        let mut contacts: Vec<_> = there.map(|(peer, _)| *peer).collect();
        if let Some(member) = self.members.get(&rank) {
            contacts.extend(member.inbound.iter().map(|channel| channel.from));
        }
        contacts.sort_unstable();
        contacts.dedup();
        for peer in contacts {
            self.wake(peer);
        }
    }

    /// Ends what is under way between `own` and `peer`, once `own` has been told: its operations
    /// end with [`Outcome::PeerFailed`]; those of `peer` do once it finds out in turn.
    pub(super) fn sever(&mut self, own: Rank, peer: Rank) {
        let mut ends = Vec::new();
        self.moving.retain(|_, Moving { transfer, envelope }| {
            if !(transfer.involves(own) && transfer.involves(peer)) {
                return true;
            }
            transfer.halt();
            let claim_is_own = transfer.claimer == own;
            ends.extend(transfer.take_tokens(own).map(|token| {
                if claim_is_own {
                    let end = ReceiveEnd::Matched(*envelope, Outcome::PeerFailed);
                    End::Received(token, end)
                } else {
                    End::Sent(token, Outcome::PeerFailed)
                }
            }));
            transfer.has_tokens()
        });
        if let Some(member) = self.members.get_mut(&peer) {
            let notices = member.take_notices(own);
            ends.extend(
                notices
                    .into_iter()
                    .map(|token| End::Sent(token, Outcome::PeerFailed)),
            );
        }
        let mut orphans = Vec::new();
        if let Some(member) = self.members.get_mut(&own) {
            orphans = member.take_notices(peer);
            let (ours, others) = std::mem::take(&mut member.orphans)
                .into_iter()
                .partition(|(rank, _)| *rank == peer);
            member.orphans = others;
            let ours: Vec<(Rank, Token)> = ours;
            ends.extend(
                ours.into_iter()
                    .map(|(_, token)| End::Sent(token, Outcome::PeerFailed)),
            );
            let (ours, others) = std::mem::take(&mut member.doomed)
                .into_iter()
                .partition(|(_, envelope)| envelope.source == peer);
            member.doomed = others;
            let ours: Vec<(Token, MatchEnvelope)> = ours;
            ends.extend(ours.into_iter().map(|(token, envelope)| {
                End::Received(token, ReceiveEnd::Matched(envelope, Outcome::PeerFailed))
            }));
        }
        if let Some(member) = self.members.get_mut(&peer) {
            member
                .orphans
                .extend(orphans.into_iter().map(|token| (own, token)));
        }
        for end in ends {
            self.end_operation(own, end);
        }
    }
}
