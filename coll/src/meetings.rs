//! Meetings of some members of a group, in messages that are of none of its collectives: those who are left after a failure can meet.
//!
//! All have one tag, and say what they are about ([`Topic`]). A member takes those about its own meeting, and keeps the others
//! for meetings that other threads hold, or that are to come. So what is left of a meeting that a death has ended is taken by no
//! later one: of its members one is dead. Where the dead one is no member it is known how many messages
//! are [left to come](Arrivals::leave).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Messenger, RequestId};
use tagwire_transport::{RecvBuffer, Unpack};

use crate::error::Result;
use crate::members::Members;
use crate::topic::Topic;

/// The tag of meetings: the first one that is of no collective.
pub(crate) const TAG: Tag = Tag::internal(Tag::COLLECTIVES);

/// What has arrived in a group's context for meetings of its members.
#[derive(Debug, Default)]
pub(crate) struct Meetings(Mutex<Arrivals>);

/// Messages of meetings that no member has taken.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
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

impl Meetings {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Arrivals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops what is about meetings of members that have failed: there will be none.
    pub(crate) fn forget_dead(&self, messenger: &Messenger, members: &Members) -> Result<()> {
        if messenger.failures() == 0 {
            return Ok(());
        }
        let failed = messenger.failed()?.into_iter();
        let failed: Vec<_> = failed.filter_map(|rank| members.member(rank)).collect();
        self.lock().forget(&failed);
        Ok(())
    }
}

impl Arrivals {
    /// Receives what has arrived. Returns whether there is anything about something else than `topic`.
    ///
    /// # Errors
    /// When one rank is asked for that is gone.
    pub(crate) fn receive(
        &mut self,
        (messenger, context): (&Messenger, ContextId),
        from: SourceSelector,
        topic: &Topic,
    ) -> Result<bool> {
        let tag = TagSelector::exact(TAG);
        // Without progress, as this is called in it.
        while let Some((message, status)) = messenger.claim_arrived(from, tag, context)? {
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
    pub(crate) fn take(&mut self, topic: &Topic, source: Rank) -> Option<Vec<u8>> {
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

    /// Leaves so many messages of a rank to nobody.
    pub(crate) fn leave(&mut self, topic: &Topic, source: Rank, count: usize) {
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
    use crate::topic::Purpose;

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
