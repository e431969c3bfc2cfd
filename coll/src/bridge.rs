//! Groups of two sides, made of two groups that have nothing in common but a way between their leaders.
//!
//! ```text
//!     each side       all tell each other their ranks, and the ids that they have assigned to the new context
//!     the leaders     exchange what they know, in a group that both are members of
//!     each side       the leader tells the others
//! ```
//!
//! Where a member fails, or an argument of a leader is wrong, all members of both sides hear of it.

use tagwire_base::{ContextId, Rank};
use tagwire_pml::Failure;

use crate::call::Call;
use crate::error::{Error, Result};
use crate::groups::with_context;
use crate::meeting::Meeting;
use crate::team::Team;
use crate::topic::Purpose;
use crate::{allgather, broadcast};

/// A group of two sides to be made, as seen by one (MPI-5.0, section 7.6.2, `MPI_Intercomm_create`).
#[derive(Debug, Clone, Copy)]
pub struct Bridge<'a> {
    /// The leader, by its number in the group of its side.
    pub leader: usize,
    /// Its way to the other leader; `None` where it has none: its call fails, as that of all others.
    pub to: Option<Leader<'a>>,
}

/// How a leader reaches that of the other side.
#[derive(Debug, Clone, Copy)]
pub struct Leader<'a> {
    /// A group that both are members of.
    pub peer: &'a Team,
    /// The other leader's number there.
    pub number: usize,
    /// Those of `peer` whose failure ends the call: all who may be in either group.
    pub members: &'a [usize],
    /// Tells apart several that the same leaders make at once.
    pub name: &'a str,
}

impl Bridge<'_> {
    /// Makes the group. All members of `side` call this, and those of the other.
    ///
    /// # Errors
    /// When there is no such leader, the two groups have a member in common, a member fails or has no context left.
    pub fn of(self, side: &Team) -> Result<Team> {
        if self.leader >= side.size() {
            return Err(Error::Argument(format!(
                "there is no rank {} in a group of {}",
                self.leader,
                side.size()
            )));
        }
        let mut first = 0;
        let (members, own) = with_context(side, |own| {
            let (local, remote) = side.run(async {
                match Call::begin(side) {
                    Ok(call) => self.meet(call, side, own).await,
                    Err(error) => Err(self.refuse(side, error).await),
                }
            })?;
            let has_both = |one: &&Entry| remote.iter().any(|other| other.rank == one.rank);
            if let Some(both) = local.iter().find(has_both) {
                return Err(Error::Argument(format!(
                    "{} is in both groups of an intercommunicator",
                    both.rank
                )));
            }
            // The same on both sides: no rank is in both.
            let is_first = local[0].rank < remote[0].rank;
            let (one, other) = if is_first {
                (local, remote)
            } else {
                (remote, local)
            };
            first = one.len();
            let all = || one.iter().chain(&other);
            Ok((
                all().map(|it| it.rank).collect(),
                all().map(|it| it.context).collect(),
            ))
        })?;
        Ok(side.derived_of_sides(members, own, first))
    }

    /// Tells the other side that this one cannot begin. Returns why.
    async fn refuse(self, side: &Team, error: Error) -> Error {
        match self.to.filter(|_| side.me() == self.leader) {
            Some(to) => to
                .exchange(side, Err(error))
                .await
                .err()
                .unwrap_or(Error::Broken),
            None => error,
        }
    }

    /// Returns the members of this side and of the other.
    async fn meet(
        self,
        call: Call<'_>,
        side: &Team,
        own: ContextId,
    ) -> Result<(Vec<Entry>, Vec<Entry>)> {
        let entry = Entry {
            rank: side.messenger().rank(),
            context: own,
        };
        let mut all = vec![0; LEN * side.size()];
        let told = allgather::allgather(call, &entry.to_bytes(), &mut all)?.await;
        if call.me() != self.leader {
            told?;
            return Ok((Entry::list(&all), self.hear(call, side).await?));
        }
        let found = match self.to {
            Some(to) => to.exchange(side, told.map(|()| &*all)).await,
            None => Err(Error::Argument(
                "the leader has no way to the other".to_owned(),
            )),
        };
        let remote = self.tell(call, found).await?;
        Ok((Entry::list(&all), Entry::list(&remote)))
    }

    /// Tells this side what the leader has found out. Returns that.
    async fn tell(self, call: Call<'_>, found: Result<Vec<u8>>) -> Result<Vec<u8>> {
        let mut head = Head::of(&found).to_bytes();
        let told = broadcast::binomial(call, &mut head, self.leader).await;
        let mut remote = found?;
        told?;
        broadcast::binomial(call, &mut remote, self.leader).await?;
        Ok(remote)
    }

    /// Returns what the leader of this side has found out.
    async fn hear(self, call: Call<'_>, side: &Team) -> Result<Vec<Entry>> {
        let mut head = [0; Head::LEN];
        broadcast::binomial(call, &mut head, self.leader).await?;
        let mut remote = vec![0; Head::from_bytes(head).bytes(side)?];
        broadcast::binomial(call, &mut remote, self.leader).await?;
        Ok(Entry::list(&remote))
    }
}

impl Leader<'_> {
    /// Tells the other leader of this side, or what has failed there. Returns what that one tells.
    async fn exchange(self, side: &Team, told: Result<&[u8]>) -> Result<Vec<u8>> {
        let peer = self.peer;
        if self.number == peer.me() {
            return Err(Error::Argument(
                "a process leads both groups of an intercommunicator".to_owned(),
            ));
        }
        let mut pair = [peer.me(), self.number];
        pair.sort_unstable();
        let known = self.members.iter();
        let known = known.filter_map(|member| peer.members().rank(*member));
        let needed = known.chain(side.members().ranks());
        let meeting = Meeting::of(peer, (Purpose::Bridge, self.name), &pair, needed)?;
        let other = 1 - meeting.me();
        let mut talk = Talk {
            meeting,
            other,
            sent: 0,
            taken: 0,
        };
        let end = talk.exchange(peer, told).await;
        if let Err(error) = &end {
            talk.break_off(error).await;
        }
        end
    }
}

/// What two leaders say to each other. Both send the same number of messages however it ends, so that those of a meeting that
/// failed can be told from those of the next.
struct Talk<'t> {
    meeting: Meeting<'t>,
    other: usize,
    sent: usize,
    taken: usize,
}

impl Talk<'_> {
    /// Messages of each: whether its side is ready, and then, since both are, who is there.
    const MESSAGES: usize = 2;

    async fn exchange(&mut self, peer: &Team, told: Result<&[u8]>) -> Result<Vec<u8>> {
        let own = told?;
        let head = Head::Follow(own.len() as u32).to_bytes();
        self.send(&head).await?;
        self.take().await?.0.bytes(peer)?;
        self.send(&[&head, own].concat()).await?;
        let (head, entries) = self.take().await?;
        match head.bytes(peer)? == entries.len() {
            true => Ok(entries),
            false => Err(could_not_take_part()),
        }
    }

    /// Says the rest, which the other waits for: that this side has failed. Nobody takes what that one still says.
    async fn break_off(&mut self, error: &Error) {
        let head = Head::of_failure(error).to_bytes();
        while self.sent < Self::MESSAGES {
            // Whether that one hears of it or is gone as well: this side has failed.
            let _ = self.send(&head).await;
        }
        self.meeting.leave(self.other, Self::MESSAGES - self.taken);
    }

    async fn send(&mut self, message: &[u8]) -> Result<()> {
        self.sent += 1;
        self.meeting.send(message, self.other).await
    }

    async fn take(&mut self) -> Result<(Head, Vec<u8>)> {
        let mut message = self.meeting.recv(self.other).await?;
        self.taken += 1;
        let head = message.first_chunk().copied();
        let head = head.ok_or_else(could_not_take_part)?;
        message.drain(..Head::LEN);
        Ok((Head::from_bytes(head), message))
    }
}

/// A member of a side: its rank, and the id that it has assigned to the new context.
#[derive(Debug, Clone, Copy)]
struct Entry {
    rank: Rank,
    context: ContextId,
}

/// Bytes of an entry.
const LEN: usize = 6;

impl Entry {
    fn to_bytes(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..4].copy_from_slice(&self.rank.as_u32().to_ne_bytes());
        bytes[4..].copy_from_slice(&self.context.as_u16().to_ne_bytes());
        bytes
    }

    fn list(bytes: &[u8]) -> Vec<Self> {
        let entries = bytes.as_chunks::<LEN>().0.iter();
        let entry = |[a, b, c, d, e, f]: [u8; LEN]| Self {
            rank: Rank::new(u32::from_ne_bytes([a, b, c, d])),
            context: ContextId::new(u16::from_ne_bytes([e, f])),
        };
        entries.map(|bytes| entry(*bytes)).collect()
    }
}

/// What comes first: how many bytes of entries follow, or why none do.
#[derive(Debug, Clone, Copy)]
enum Head {
    Follow(u32),
    Dead(Rank),
    Failed,
}

impl Head {
    const LEN: usize = 8;

    fn of(told: &Result<impl AsRef<[u8]>>) -> Self {
        match told {
            Ok(bytes) => Self::Follow(bytes.as_ref().len() as u32),
            Err(error) => Self::of_failure(error),
        }
    }

    const fn of_failure(error: &Error) -> Self {
        match error {
            Error::Failed(Failure::PeerFailed(rank)) => Self::Dead(*rank),
            _ => Self::Failed,
        }
    }

    fn to_bytes(self) -> [u8; Self::LEN] {
        let (kind, value) = match self {
            Self::Follow(bytes) => (0_u32, bytes),
            Self::Dead(rank) => (1, rank.as_u32()),
            Self::Failed => (2, 0),
        };
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&kind.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        bytes
    }

    fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, e, f, g, h] = bytes;
        let (kind, value) = ([a, b, c, d], u32::from_ne_bytes([e, f, g, h]));
        match u32::from_ne_bytes(kind) {
            0 => Self::Follow(value),
            1 => Self::Dead(Rank::new(value)),
            _ => Self::Failed,
        }
    }

    /// Returns how many bytes follow: those of entries of ranks of the job that `team` is of.
    fn bytes(self, team: &Team) -> Result<usize> {
        let most = team.messenger().size() as usize * LEN;
        match self {
            Self::Follow(bytes) if (LEN..=most).contains(&(bytes as usize)) => Ok(bytes as usize),
            Self::Dead(rank) => Err(Error::Failed(Failure::PeerFailed(rank))),
            _ => Err(could_not_take_part()),
        }
    }
}

#[cold]
fn could_not_take_part() -> Error {
    Error::Argument("a leader of an intercommunicator could not take part".to_owned())
}
