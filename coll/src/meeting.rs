//! A meeting that this rank takes part in.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tagwire_base::{ContextId, Rank, SourceSelector};
use tagwire_pml::{RequestId, SendMode};
use tagwire_transport::{Pack, SendBuffer};

use crate::deaths::Deaths;
use crate::error::{Error, Result};
use crate::meetings::TAG;
use crate::members::Members;
use crate::team::Team;
use crate::topic::{Purpose, Topic};

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
        team.meetings
            .forget_dead(team.messenger(), team.members())?;
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
        let Self { team, topic, .. } = self;
        let place = (&**team.messenger(), team.context());
        let (taken, others) = {
            let mut arrivals = team.meetings.lock();
            let others = arrivals.receive(place, SourceSelector::ANY, topic)?;
            match arrivals.take(topic, source) {
                None => {
                    // That is an error where nothing can come from there any more.
                    let more = arrivals.receive(place, SourceSelector::exact(source), topic)?;
                    (arrivals.take(topic, source), others || more)
                }
                taken => (taken, others),
            }
        };
        if others {
            // Of threads that wait for them.
            team.messenger().notify();
        }
        if taken.is_none() {
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

struct Outgoing(Arc<[u8]>);

impl Pack for Outgoing {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.0[offset..offset + out.len()]);
    }
}
