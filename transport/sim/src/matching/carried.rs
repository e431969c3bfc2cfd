//! How the messages of a matching network travel by a [`SimNetwork`]: what is due there once the match lists are unlocked, and what lands.
//!
//! ```text
//!     send ---- envelope (and bytes of a short message) ----> lands: queued, or matched by the NIC
//!               <---- fetch, of a long one that has matched ----
//!               ---- its bytes ------------------------------> received
//!     sent <--- acknowledgement ----------------------------
//! ```

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_base::Rank;
use tagwire_transport::matching::ReceiveEnd;
use tagwire_transport::message::Outcome;

use super::lists::Message;
use super::state::{End, MatchState};
use crate::due::{Carried, Due, Load};
use crate::member::Status;
use crate::network::SimNetwork;

/// What travels.
#[derive(Debug)]
pub(super) enum Matched {
    /// A message, to a place in its receiver's list of channels.
    Message(usize, Message),
    /// Asks for the bytes of a long message by the number of its transfer.
    Fetch(u64),
    /// Has so many of them.
    Bytes(u64, usize),
    /// The receiver has them.
    Done(u64),
}

impl Matched {
    /// Returns its name in pictures.
    const fn name(&self) -> &'static str {
        match self {
            Self::Message(..) => "message",
            Self::Fetch(_) => "fetch",
            Self::Bytes(..) => "bytes",
            Self::Done(_) => "done",
        }
    }

    /// Returns it as the network carries it, where long messages travel `whole`.
    fn load(self, whole: bool) -> Load {
        let (len, copied) = match &self {
            Self::Message(_, message) => (message.travelling(whole), message.kept()),
            Self::Bytes(_, len) => (*len, 0),
            Self::Fetch(_) | Self::Done(_) => (0, 0),
        };
        Load {
            len,
            copied,
            is_sent: matches!(self, Self::Message(..)),
            name: self.name(),
            what: Box::new(self),
        }
    }
}

/// The match lists of all ranks, under their lock.
pub(super) struct Lists(Mutex<MatchState>);

impl fmt::Debug for Lists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lists").finish_non_exhaustive()
    }
}

impl Lists {
    pub(super) const fn new(state: MatchState) -> Self {
        Self(Mutex::new(state))
    }

    fn lock(&self) -> MutexGuard<'_, MatchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks them. What was done is carried out by `carrier` once they are unlocked.
    pub(super) fn locked<'a>(self: &'a Arc<Self>, carrier: Option<&'a SimNetwork>) -> Locked<'a> {
        Locked {
            guard: Some(self.lock()),
            lists: self,
            carrier,
        }
    }
}

impl Carried for Lists {
    fn landed(&self, from: Rank, to: Rank, load: Load) -> Vec<Due> {
        let mut state = self.lock();
        state.end_load(from, to);
        // No other loads are there.
        if let Ok(what) = load.what.downcast::<Matched>() {
            match *what {
                Matched::Message(place, message) => state.landed(from, to, place, message),
                Matched::Fetch(number) => {
                    if let Some(len) = state.fetched(number) {
                        state.carry(to, from, Matched::Bytes(number, len));
                    }
                }
                Matched::Bytes(number, _) => {
                    if state.moved(number) {
                        state.carry(to, from, Matched::Done(number));
                    }
                }
                Matched::Done(number) => state.acknowledged(number),
            }
        }
        std::mem::take(&mut state.due)
    }

    fn ended(&self, rank: Rank, has_left: bool) -> Vec<Due> {
        let mut state = self.lock();
        let status = match has_left {
            true => Status::Left,
            false => Status::Failed,
        };
        state.end(rank, status);
        std::mem::take(&mut state.due)
    }

    fn found(&self, rank: Rank) {
        self.lock().found.insert(rank);
    }

    fn due(&self) -> Vec<Due> {
        std::mem::take(&mut self.lock().due)
    }
}

/// The match lists, locked.
pub(super) struct Locked<'a> {
    guard: Option<MutexGuard<'a, MatchState>>,
    lists: &'a Arc<Lists>,
    carrier: Option<&'a SimNetwork>,
}

impl Deref for Locked<'_> {
    type Target = MatchState;

    fn deref(&self) -> &MatchState {
        self.guard.as_ref().expect("it is locked until the drop")
    }
}

impl DerefMut for Locked<'_> {
    fn deref_mut(&mut self) -> &mut MatchState {
        self.guard.as_mut().expect("it is locked until the drop")
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let due = self
            .guard
            .take()
            .map(|mut guard| std::mem::take(&mut guard.due));
        if let (Some(due), Some(carrier)) = (due, self.carrier)
            && !due.is_empty()
        {
            let lists: Arc<dyn Carried> = Arc::<Lists>::clone(self.lists);
            carrier.shared.with(|state| state.do_due(&lists, due));
        }
    }
}

impl MatchState {
    /// Has the network carry something.
    pub(super) fn carry(&mut self, from: Rank, to: Rank, what: Matched) {
        let load = what.load(self.drops);
        *self.loads.entry((from, to)).or_default() += 1;
        self.due.push(Due::Carry { from, to, load });
    }

    /// A load is there. Where it was the last of a rank that has ended, its peer finds out.
    fn end_load(&mut self, from: Rank, to: Rank) {
        if let Some(count) = self.loads.get_mut(&(from, to)) {
            *count -= 1;
            if *count == 0 {
                self.loads.remove(&(from, to));
            }
        }
        if self.status(from) != Status::Open {
            self.wake(to);
        }
    }

    /// Returns whether all that a peer has sent, its NIC too, is here and was taken.
    pub(super) fn is_quiet(&self, own: Rank, peer: Rank) -> bool {
        self.untaken(own, peer) == 0 && !self.loads.contains_key(&(peer, own))
    }

    /// Returns how many messages of a peer a rank has not taken.
    fn untaken(&self, own: Rank, peer: Rank) -> usize {
        let member = self.members.get(&own);
        member
            .and_then(|member| Some(member.inbound[member.find_channel(peer)?].untaken()))
            .unwrap_or_default()
    }

    /// Returns whether there is more to be taken out of a queue, for which a rank comes again where nobody polls.
    pub(super) fn has_more(&self, own: Rank, place: usize) -> bool {
        let queue = |rank| Some(&self.members.get(&rank)?.inbound.get(place)?.queue);
        self.is_carried && queue(own).is_some_and(|queue| !queue.is_empty())
    }

    /// A rank takes a message out of its queue.
    pub(super) fn receive(&mut self, own: Rank, message: &Message) {
        if self.is_carried && !self.helping {
            self.note_receive(own, message);
        }
    }

    /// A rank takes a message that its NIC has kept for it.
    pub(super) fn receive_late(&mut self, own: Rank, message: &Message) {
        if self.is_carried && self.helping {
            self.note_receive(own, message);
        }
    }

    /// A rank hears that its NIC has received something.
    pub(super) fn hear(&mut self, own: Rank, end: &End) {
        if let End::Received(_, ReceiveEnd::Matched(envelope, _)) = end
            && self.is_carried
            && self.helping
        {
            self.due.push(Due::Receive {
                own,
                from: envelope.source,
                copied: 0,
            });
        }
    }

    fn note_receive(&mut self, own: Rank, message: &Message) {
        self.due.push(Due::Receive {
            own,
            from: message.envelope.source,
            copied: message.kept(),
        });
    }

    /// A message is at its receiver, who may have ended.
    pub(super) fn bring(&mut self, to: Rank, place: usize, mut message: Message) {
        let helping = self.helping;
        let Some(member) = self.members.get_mut(&to) else {
            return;
        };
        let (is_open, channel) = (member.status == Status::Open, &mut member.inbound[place]);
        let helps = helping && channel.queue.is_empty() && !channel.closed && is_open;
        if !helps {
            channel.queue.push_back(message);
            return self.wake(to);
        }
        let starved = std::mem::take(&mut channel.starved);
        let from = message.envelope.source;
        self.wake(to);
        self.note_taken(&mut message);
        self.arrive(to, message, self.drops);
        if starved {
            self.wake(from);
        }
    }

    /// A message has travelled.
    fn landed(&mut self, from: Rank, to: Rank, place: usize, message: Message) {
        let is_lost = message.is_lent_by(from) && self.status(from) != Status::Open;
        let Some(member) = self.members.get_mut(&to) else {
            return;
        };
        member.inbound[place].flying -= 1;
        if is_lost {
            // Its bytes were its sender's.
            member.lists.refund(&message);
            return self.wake(to);
        }
        let is_taken = member.status == Status::Open && !member.inbound[place].closed;
        match (is_taken, message.notice) {
            (false, Some(token)) if self.has_given_up(from, to) => {
                if let Some(member) = self.members.get_mut(&to) {
                    member.lists.refund(&message);
                }
                self.end_operation(from, End::Sent(token, Outcome::PeerFailed));
            }
            _ => self.bring(to, place, message),
        }
    }

    /// Returns whether `own` was told of the end of `peer`.
    fn has_given_up(&self, own: Rank, peer: Rank) -> bool {
        self.members.get(&own).is_some_and(|member| {
            let place = member.find_channel(peer);
            place.is_some_and(|place| member.inbound[place].closed)
        })
    }

    /// The bytes of a long message have been asked for. Returns how many travel.
    fn fetched(&self, number: u64) -> Option<usize> {
        let moving = self.moving.get(&number)?;
        moving
            .transfer
            .total()
            .filter(|_| !moving.transfer.is_halted())
    }

    /// They are there.
    pub(super) fn moved(&mut self, number: u64) -> bool {
        let Some(moving) = self.moving.get_mut(&number) else {
            return false;
        };
        match self.hollow {
            true => moving.transfer.pass_over(),
            false => {
                moving.transfer.advance(usize::MAX);
            }
        }
        let Some(total) = moving.transfer.finished() else {
            return false;
        };
        let (own, envelope) = (moving.transfer.claimer, moving.envelope);
        let token = moving.transfer.take_claim_token();
        if let Some(token) = token {
            let end = ReceiveEnd::Matched(envelope, Outcome::Done(total as u64));
            self.end_operation(own, End::Received(token, end));
        }
        true
    }

    /// Their sender hears of it.
    fn acknowledged(&mut self, number: u64) {
        if let Some(mut moving) = self.moving.remove(&number)
            && let Some(token) = moving.transfer.take_offer_token()
        {
            let total = moving.transfer.total().unwrap_or_default();
            let end = End::Sent(token, Outcome::Done(total as u64));
            self.end_operation(moving.transfer.offerer, end);
        }
    }
}
