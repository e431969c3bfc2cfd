//! Meetings of some members of a group, in messages that are of none of its collectives: those who are left after a failure can meet.
//!
//! All have one tag, and say what they are about ([`Topic`]). A member takes those about its own meeting, and keeps the others
//! for meetings that other threads hold, or that are to come. So what is left of a meeting that a death has ended is taken by no
//! later one: of its members one is dead. Where the dead one is no member ([`Purpose::Bridge`]) it is known how many messages
//! are [left to come](Meeting::leave).

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Messenger, RequestId, SendMode};
use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

use crate::deaths::Deaths;
use crate::error::{Error, Result};
use crate::members::Members;
use crate::team::Team;
use crate::topic::{Purpose, Topic};

/// The tag of meetings: the first one that is of no collective.
const TAG: Tag = Tag::internal(Tag::COLLECTIVES);

/// What has arrived in a group's context for meetings of its members.
#[derive(Debug, Default)]
pub(crate) struct Meetings(Mutex<Arrivals>);

/// Messages of meetings that no member has taken.
#[derive(Debug, Default)]
struct Arrivals {
    /// In the order of their arrival.
    messages: Vec<Message>,
    /// Messages that will be taken by nobody, wherever they are: about what, by whom, how many.
    left: Vec<(Topic, Rank, usize)>,
}

#[derive(Debug)]
struct Message {
    source: Rank,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// It is being received into this memory.
    Coming(RequestId, Arc<Mutex<Vec<u8>>>),
    Here(Topic, Vec<u8>),
}

/// A meeting that this rank takes part in.
#[derive(Debug)]
pub(crate) struct Meeting<'t> {
    team: &'t Team,
    topic: Topic,
    members: Vec<(Rank, ContextId)>,
    me: usize,
    deaths: Deaths,
}

impl<'t> Meeting<'t> {
    /// Returns that of some members of `team`, by their numbers in it. It ends where one of them fails, or one of `needed`.
    ///
    /// # Errors
    /// When there is no such member, or this rank is none of them.
    pub(crate) fn of(
        team: &'t Team,
        (purpose, name): (Purpose, &str),
        members: &[usize],
        needed: impl Iterator<Item = Rank>,
    ) -> Result<Self> {
        let me = members.iter().position(|member| *member == team.me());
        let me = me.ok_or_else(|| Error::Argument("a rank meets without itself".to_owned()))?;
        let topic = Topic::new(purpose, members, name);
        let members = members.iter().map(|member| team.peer(*member));
        let members: Vec<_> = members.collect::<Result<_>>()?;
        let ranks: Vec<_> = members.iter().map(|at| at.0).chain(needed).collect();
        // Nothing is sent by these.
        let contexts = vec![ContextId::WORLD; ranks.len()];
        let deaths = Deaths::among(team.messenger(), &Members::new(ranks, contexts));
        team.meetings.forget_dead(team)?;
        Ok(Self {
            team,
            topic,
            members,
            me,
            deaths,
        })
    }

    /// Returns this rank's number among the members.
    pub(crate) const fn me(&self) -> usize {
        self.me
    }

    /// Sends `data` to a member. Returns once it is the layer's.
    pub(crate) async fn send(&self, data: &[u8], to: usize) -> Result<()> {
        let (rank, context) = self.members[to];
        let messenger = self.team.messenger();
        let message: Arc<[u8]> = self.topic.with(data).into();
        let start = |mode| {
            let data = SendBuffer::packed(Box::new(Outgoing(Arc::clone(&message))));
            messenger.isend(data, rank, TAG, context, mode)
        };
        if start(SendMode::Buffered).is_ok() {
            return Ok(());
        }
        // The layer has no memory for it now, or says why it cannot be sent.
        let request = start(SendMode::Standard)?;
        if request == RequestId::COMPLETE {
            return Ok(());
        }
        poll_fn(|_| match messenger.take(request) {
            Ok(Some(status)) => Poll::Ready(status.ok().map(drop).map_err(Error::Failed)),
            Ok(None) => self.deaths.check().map_or_else(ready, |()| Poll::Pending),
            Err(error) => ready(error),
        })
        .await
    }

    /// Returns what a member has sent.
    pub(crate) async fn recv(&self, from: usize) -> Result<Vec<u8>> {
        let source = self.members[from].0;
        poll_fn(|_| match self.look(source) {
            Ok(Some(data)) => Poll::Ready(Ok(data)),
            Ok(None) => Poll::Pending,
            Err(error) => ready(error),
        })
        .await
    }

    fn look(&self, source: Rank) -> Result<Option<Vec<u8>>> {
        let messenger = self.team.messenger();
        let (taken, others) = {
            let mut arrivals = self.team.meetings.lock();
            let others = arrivals.receive(self.team, &self.topic)?;
            (arrivals.take(&self.topic, source), others)
        };
        if others {
            // Of threads that wait for them.
            messenger.notify();
        }
        if taken.is_none() {
            messenger.receive_can_happen(SourceSelector::exact(source))?;
            self.deaths.check()?;
        }
        Ok(taken)
    }

    /// Returns what all members give, in their order; each gives as many bytes as this one.
    pub(crate) async fn allgather(&self, own: &[u8]) -> Result<Vec<u8>> {
        let (size, len) = (self.members.len(), own.len());
        // From this one on, around the end. The distances of steps are different members (Bruck and others, 1997).
        let mut all = own.to_vec();
        let mut step = 1;
        while step < size {
            let count = step.min(size - step);
            let from = (self.me + step) % size;
            let to = (self.me + size - step) % size;
            self.send(&all[..count * len], to).await?;
            let coming = self.recv(from).await?;
            if coming.len() != count * len {
                return Err(Error::Length {
                    source_rank: self.members[from].0,
                    sent: coming.len(),
                    expected: count * len,
                });
            }
            all.extend(coming);
            step *= 2;
        }
        all.rotate_right(self.me * len);
        Ok(all)
    }

    /// Leaves `count` messages of a member to nobody: they have not come, or were not taken.
    pub(crate) fn leave(&self, member: usize, count: usize) {
        let mut arrivals = self.team.meetings.lock();
        arrivals.leave(&self.topic, self.members[member].0, count);
    }
}

fn ready<T>(error: impl Into<Error>) -> Poll<Result<T>> {
    Poll::Ready(Err(error.into()))
}

impl Meetings {
    fn lock(&self) -> MutexGuard<'_, Arrivals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what is about meetings of members that have failed: there will be none.
    fn forget_dead(&self, team: &Team) -> Result<()> {
        let messenger = team.messenger();
        if messenger.failures() == 0 {
            return Ok(());
        }
        let failed = messenger.failed()?.into_iter();
        let failed: Vec<_> = failed
            .filter_map(|rank| team.members().member(rank))
            .collect();
        self.lock().forget(&failed);
        Ok(())
    }
}

impl Arrivals {
    /// Receives what has arrived. Returns whether there is anything about something else than `topic`.
    fn receive(&mut self, team: &Team, topic: &Topic) -> Result<bool> {
        let messenger = team.messenger();
        let (from, tag) = (SourceSelector::ANY, TagSelector::exact(TAG));
        // Without progress, as this is called in it.
        while let Some((message, status)) = messenger.claim_arrived(from, tag, team.context())? {
            let memory = Arc::default();
            let room = Incoming(Arc::clone(&memory), status.length);
            let room = RecvBuffer::unpacked(Box::new(room));
            let request = messenger.irecv_claimed(room, message)?;
            self.messages.push(Message {
                source: status.source,
                content: Content::Coming(request, memory),
            });
        }
        self.settle(messenger, topic)
    }

    /// Looks at what is being received. Returns whether anything that is here now is about something else than `topic`.
    fn settle(&mut self, messenger: &Messenger, topic: &Topic) -> Result<bool> {
        let (mut place, mut others) = (0, false);
        while place < self.messages.len() {
            let message = &mut self.messages[place];
            place += 1;
            let Content::Coming(request, memory) = &message.content else {
                continue;
            };
            let Some(status) = messenger.take(*request)? else {
                continue;
            };
            let whole = std::mem::take(&mut *memory.lock().unwrap_or_else(PoisonError::into_inner));
            // One that was cut off is of a rank that has failed.
            let told = status.ok().is_ok().then(|| Topic::of(&whole)).flatten();
            match told {
                Some((about, data)) if !self.is_left(&about, status.source) => {
                    others |= about != *topic;
                    self.messages[place - 1].content = Content::Here(about, data);
                }
                _ => {
                    place -= 1;
                    self.messages.remove(place);
                }
            }
        }
        Ok(others)
    }

    /// Takes the first message about `topic` of a rank.
    fn take(&mut self, topic: &Topic, source: Rank) -> Option<Vec<u8>> {
        let place = self
            .messages
            .iter()
            .position(|one| one.source == source && one.may_be_about(topic))?;
        if let Content::Coming(..) = self.messages[place].content {
            // It may be that one.
            return None;
        }
        match self.messages.remove(place).content {
            Content::Here(_, data) => Some(data),
            Content::Coming(..) => None,
        }
    }

    fn leave(&mut self, topic: &Topic, source: Rank, count: usize) {
        let here = (0..count).take_while(|_| self.take(topic, source).is_some());
        let count = count - here.count();
        if count > 0 {
            self.left.push((topic.clone(), source, count));
        }
    }

    /// Whether a message is left to nobody, which is one less then.
    fn is_left(&mut self, topic: &Topic, source: Rank) -> bool {
        let mut left = self.left.iter_mut();
        let place = left.position(|(about, by, _)| about == topic && *by == source);
        let Some(place) = place else {
            return false;
        };
        self.left[place].2 -= 1;
        if self.left[place].2 == 0 {
            self.left.remove(place);
        }
        true
    }

    /// Drops what is about meetings of these members.
    fn forget(&mut self, members: &[usize]) {
        let lives = |topic: &Topic| !members.iter().any(|member| topic.has(*member));
        self.left.retain(|(topic, ..)| lives(topic));
        self.messages.retain(|message| match &message.content {
            Content::Coming(..) => true,
            Content::Here(topic, _) => lives(topic),
        });
    }
}

impl Message {
    fn may_be_about(&self, topic: &Topic) -> bool {
        match &self.content {
            Content::Coming(..) => true,
            Content::Here(about, _) => about == topic,
        }
    }
}

struct Outgoing(Arc<[u8]>);

impl Pack for Outgoing {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.0[offset..offset + out.len()]);
    }
}

/// The memory of a message of so many bytes.
struct Incoming(Arc<Mutex<Vec<u8>>>, usize);

impl Unpack for Incoming {
    fn capacity(&self) -> usize {
        self.1
    }

    fn unpack(&self, offset: usize, bytes: &[u8]) {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.resize(self.1, 0);
        if let Some(room) = memory.get_mut(offset..offset + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(members: &[usize], name: &str) -> Topic {
        Topic::new(Purpose::Subset, members, name)
    }

    fn arrived(messages: &[(&Topic, u32, u8)]) -> Arrivals {
        let messages = messages.iter().map(|(topic, source, data)| Message {
            source: Rank::new(*source),
            content: Content::Here((*topic).clone(), vec![*data]),
        });
        Arrivals {
            messages: messages.collect(),
            left: Vec::new(),
        }
    }

    #[test]
    fn each_takes_what_is_about_its_own_in_order() {
        let (one, two) = (topic(&[0, 1], "one"), topic(&[0, 1], "two"));
        let mut arrivals = arrived(&[(&one, 1, 1), (&two, 1, 2), (&one, 1, 3), (&two, 2, 4)]);
        let (first, second) = (Rank::new(1), Rank::new(2));
        assert_eq!(arrivals.take(&two, first), Some(vec![2]));
        assert_eq!(arrivals.take(&two, first), None);
        assert_eq!(arrivals.take(&one, second), None);
        assert_eq!(arrivals.take(&one, first), Some(vec![1]));
        assert_eq!(arrivals.take(&one, first), Some(vec![3]));
        assert_eq!(arrivals.take(&two, second), Some(vec![4]));
        assert!(arrivals.messages.is_empty());
    }

    /// What one that failed has not taken is none of the next one's, whether it is here or comes later.
    #[test]
    fn what_is_left_is_taken_by_nobody() {
        let (one, two) = (topic(&[0, 1], "one"), topic(&[0, 1], "two"));
        let (first, second) = (Rank::new(1), Rank::new(2));
        let mut arrivals = arrived(&[(&two, 1, 1), (&one, 1, 2)]);
        arrivals.leave(&one, first, 3);
        assert_eq!(arrivals.take(&one, first), None);
        assert_eq!(arrivals.take(&two, first), Some(vec![1]));
        let left = [(&two, first), (&one, second), (&one, first), (&one, first)];
        let left = left.map(|(topic, source)| arrivals.is_left(topic, source));
        assert_eq!(left, [false, false, true, true]);
        assert!(!arrivals.is_left(&one, first));
        assert!(arrivals.left.is_empty());
        arrivals.leave(&one, first, 0);
        assert!(arrivals.left.is_empty());
    }

    #[test]
    fn meetings_of_the_dead_are_forgotten() {
        let (one, two) = (topic(&[0, 1, 4], "one"), topic(&[0, 2], "two"));
        let mut arrivals = arrived(&[(&one, 1, 1), (&two, 2, 2)]);
        arrivals.leave(&one, Rank::new(4), 1);
        arrivals.leave(&two, Rank::new(5), 1);
        arrivals.forget(&[3, 4]);
        assert_eq!((arrivals.messages.len(), arrivals.left.len()), (1, 1));
        assert_eq!(arrivals.take(&two, Rank::new(2)), Some(vec![2]));
        assert!(arrivals.is_left(&two, Rank::new(5)));
    }
}
