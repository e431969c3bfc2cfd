//! What the ranks of a memory network share, under one lock.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use tagwire_base::Rank;

use super::transfer::{Exposed, Transfer, Writable};
use tagwire_transport::EpochWaiter;
use tagwire_transport::message::{AmHeader, Outcome, Token};
use tagwire_transport::wait::Waiter as _;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) header: AmHeader,
    pub(super) bytes: Vec<u8>,
}

/// How a rank is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Status {
    #[default]
    Open,
    Left,
    Failed,
}

/// What one rank has sent to another and was not taken yet.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) from: Rank,
    pub(super) queue: VecDeque<Message>,
    /// The receiver reads no more from this peer.
    pub(super) closed: bool,
    /// The sender was told `Busy` and hears of room.
    pub(super) starved: bool,
}

/// One rank, as the others see it.
#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) status: Status,
    /// In the order of first contact; never removed, so that positions stay.
    pub(super) inbound: Vec<Channel>,
    by_sender: HashMap<Rank, usize>,
    /// Of operations that ended, for the rank's next progress.
    pub(super) completions: VecDeque<(Token, Outcome)>,
    /// Of puts that came, likewise.
    pub(super) notices: VecDeque<u64>,
    pub(super) waiter: Arc<EpochWaiter>,
}

impl Member {
    /// The place of the channel for what `from` sends; makes it on first contact.
    fn channel(&mut self, from: Rank) -> usize {
        *self.by_sender.entry(from).or_insert_with(|| {
            self.inbound.push(Channel {
                from,
                queue: VecDeque::new(),
                closed: false,
                starved: false,
            });
            self.inbound.len() - 1
        })
    }

    /// The place of the channel for what `from` sends, when there was contact.
    pub(super) fn find_channel(&self, from: Rank) -> Option<usize> {
        self.by_sender.get(&from).copied()
    }
}

/// What ranks have written into each other's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Puts {
    /// How many puts there were that reached memory.
    pub count: usize,
    /// Their bytes.
    pub bytes: usize,
    /// How often ranks have asked when all is there.
    pub flushes: usize,
}

/// The whole network.
#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) members: HashMap<Rank, Member>,
    /// Cooperative transfers by number; the order makes progress deterministic.
    pub(super) transfers: BTreeMap<u64, Transfer>,
    pub(super) next_transfer: u64,
    /// Memory that peers may read, by number.
    pub(super) exposed: HashMap<u64, Exposed>,
    /// Memory that peers may write, by number.
    pub(super) writable: HashMap<u64, Writable>,
    pub(super) next_exposed: u64,
    pub(super) puts: Puts,
}

impl State {
    /// `from` gets in contact with `to`: the channel's place, unless `to` is not there.
    pub(super) fn open_channel(&mut self, from: Rank, to: Rank) -> Option<usize> {
        let member = self.members.get_mut(&to)?;
        if member.status != Status::Open {
            return None;
        }
        let place = member.channel(from);
        member.waiter.wake();
        Some(place)
    }

    pub(super) fn status(&self, rank: Rank) -> Status {
        self.members
            .get(&rank)
            .map_or(Status::Open, |member| member.status)
    }

    pub(super) fn wake(&self, rank: Rank) {
        if let Some(member) = self.members.get(&rank) {
            member.waiter.wake();
        }
    }

    /// Returns how many operations of `rank` have ended that it has not heard of.
    pub(super) fn unreported(&self, rank: Rank) -> usize {
        let member = self.members.get(&rank);
        member.map_or(0, |member| member.completions.len())
    }

    /// Queues the end of an operation of `rank`.
    pub(super) fn complete(&mut self, rank: Rank, token: Token, outcome: Outcome) {
        if let Some(member) = self.members.get_mut(&rank) {
            member.completions.push_back((token, outcome));
            member.waiter.wake();
        }
    }

    /// Tells `rank` of a put.
    pub(super) fn notify(&mut self, rank: Rank, immediate: u64) {
        if let Some(member) = self.members.get_mut(&rank) {
            member.notices.push_back(immediate);
            member.waiter.wake();
        }
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
        for channel in &mut member.inbound {
            channel.queue.clear();
        }
        for transfer in self.transfers.values_mut() {
            if transfer.involves(rank) {
                transfer.halt();
                // Nobody will ask for these any more.
                transfer.take_tokens(rank).for_each(drop);
            }
        }
        self.exposed.retain(|_, memory| memory.owner != rank);
        self.writable.retain(|_, memory| memory.owner != rank);
        // Whoever sleeps looks again: a departure concerns everyone in contact.
        for member in self.members.values() {
            member.waiter.wake();
        }
    }

    /// Ends what is under way between `own` and `peer`: the operations of `own` complete with
    /// [`Outcome::PeerFailed`]; those of `peer` do once it finds out in turn.
    pub(super) fn sever(&mut self, own: Rank, peer: Rank) {
        let mut ended = Vec::new();
        self.transfers.retain(|_, transfer| {
            if !(transfer.involves(own) && transfer.involves(peer)) {
                return true;
            }
            transfer.halt();
            ended.extend(transfer.take_tokens(own));
            transfer.has_tokens()
        });
        for token in ended {
            self.complete(own, token, Outcome::PeerFailed);
        }
    }
}
