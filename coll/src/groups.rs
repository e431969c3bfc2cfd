//! Groups made of groups.

use tagwire_base::{ContextId, Rank};

use crate::allgather;
use crate::call::Call;
use crate::error::{Error, Result};
use crate::meeting::Meeting;
use crate::members::Members;
use crate::sides::Sides;
use crate::team::Team;
use crate::topic::Purpose;

/// What a rank without a free context gives in place of its id: the world's, which is never assigned.
pub(crate) const NONE: ContextId = ContextId::WORLD;

impl Team {
    /// Makes another group of the same members, with a context of its own (MPI-5.0, section 7.4.2).
    ///
    /// # Errors
    /// When a member fails or has no context left.
    pub fn duplicate(&self) -> Result<Self> {
        let ranks = self.members().ranks().collect();
        with_context(self, |own| {
            let ids = self.exchange_ids(Call::begin(self)?, own)?;
            Ok((ranks, ids))
        })
        .map(|(members, own)| self.derived_alike(members, own))
    }

    /// Makes a group of the members that give the same `color`, in the order of their keys, and of their numbers where keys
    /// are equal (MPI-5.0, section 7.4.2). Returns `None` to a member that gives no color.
    ///
    /// A group of two sides becomes others of two sides; a member gets `None` where none of the other side has its color.
    ///
    /// # Errors
    /// When a member fails or has no context left.
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        let first = self.sides().map_or(0, Sides::first);
        let (members, own) = Alike { color, key, first }.of(self)?;
        let of_first = |rank: &Rank| {
            let member = self.members().member(*rank);
            member.is_some_and(|member| member < first)
        };
        let of_first = self
            .sides()
            .map(|_| members.ranks().filter(of_first).count());
        let has_both = of_first.is_none_or(|count| count > 0 && count < members.len());
        if color.is_none() || !has_both {
            self.messenger().close_context(own)?;
            return Ok(None);
        }
        Ok(Some(match of_first {
            None => self.derived(members, own),
            Some(count) => self.derived_of_sides(members, own, count),
        }))
    }

    /// Makes one group of all members of both sides: first those of the side that does not say that it comes after the other, else
    /// of the first (MPI-5.0, section 7.6.2, `MPI_Intercomm_merge`).
    ///
    /// # Errors
    /// When a member fails or has no context left.
    pub fn merge(&self, is_after: bool) -> Result<Self> {
        let alike = Alike {
            color: Some(0),
            key: i32::from(is_after),
            first: 0,
        };
        let (members, own) = alike.of(self)?;
        Ok(self.derived(members, own))
    }

    /// Makes a group of `members` of this one, in that order. They alone call this (MPI-5.0, section 7.4.2,
    /// `MPI_Comm_create_group`).
    ///
    /// # Errors
    /// When this rank is not among them or one is named twice; when a member fails or has no context left.
    pub fn subset(&self, members: &[usize]) -> Result<Self> {
        let name = "";
        Subset { members, name }.of(self)
    }

    /// Returns a group of the same members, of the same sides.
    pub(crate) fn derived_alike(&self, members: Members, own: ContextId) -> Self {
        match self.sides() {
            None => self.derived(members, own),
            Some(sides) => self.derived_of_sides(members, own, sides.first()),
        }
    }

    /// Returns the id that each member has assigned.
    fn exchange_ids(&self, call: Call<'_>, own: ContextId) -> Result<Vec<ContextId>> {
        let mut all = vec![0; 2 * self.size()];
        let own = own.as_u16().to_ne_bytes();
        self.run(allgather::allgather(call, &own, &mut all)?)?;
        Ok(ids_of(&all))
    }
}

/// What a member gives to be among others that give the same color.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alike {
    pub(crate) color: Option<u32>,
    pub(crate) key: i32,
    /// How many members are of the first side: they come first.
    pub(crate) first: usize,
}

impl Alike {
    /// Bytes of a member's entry: whether it gives a color, the color, the key, and the id that it has assigned.
    pub(crate) const ENTRY: usize = 11;

    /// Returns the members that give the same color, in the order of their keys, with a context for them.
    fn of(self, team: &Team) -> Result<(Members, ContextId)> {
        with_context(team, |own| {
            let entry = self.entry(own);
            let mut all = vec![0; Self::ENTRY * team.size()];
            match team.sides() {
                None => team.allgather(&entry, &mut all)?,
                // Of all: an operation of two sides goes from one to the other.
                Some(_) => {
                    let call = Call::begin(team)?;
                    team.run(allgather::allgather(call, &entry, &mut all)?)?;
                }
            }
            Ok(self.members(team, &entry, &all))
        })
    }

    /// Returns the members whose entries have the same color as `entry`, in the order of their keys, with the ids that they have
    /// assigned.
    pub(crate) fn members(
        self,
        team: &Team,
        entry: &[u8; Self::ENTRY],
        all: &[u8],
    ) -> (Vec<Rank>, Vec<ContextId>) {
        let entries = all.as_chunks::<{ Self::ENTRY }>().0.iter().enumerate();
        let mut alike: Vec<_> = entries
            .filter(|(_, other)| other[..5] == entry[..5])
            .map(|(member, other)| {
                let [_, _, _, _, _, a, b, c, d, e, f] = *other;
                let key = i32::from_ne_bytes([a, b, c, d]);
                (key, member, ContextId::new(u16::from_ne_bytes([e, f])))
            })
            .collect();
        alike.sort_by_key(|(key, member, _)| (*member >= self.first, *key, *member));
        let ranks = alike.iter().filter_map(|it| team.members().rank(it.1));
        (ranks.collect(), alike.iter().map(|it| it.2).collect())
    }

    pub(crate) fn entry(self, own: ContextId) -> [u8; Self::ENTRY] {
        let mut entry = [0; Self::ENTRY];
        entry[0] = u8::from(self.color.is_some());
        entry[1..5].copy_from_slice(&self.color.unwrap_or(0).to_ne_bytes());
        entry[5..9].copy_from_slice(&self.key.to_ne_bytes());
        entry[9..].copy_from_slice(&own.as_u16().to_ne_bytes());
        entry
    }
}

/// A group to be made of members of another.
#[derive(Debug, Clone, Copy)]
pub struct Subset<'a> {
    /// Its members, by their numbers in the other group, in their order.
    pub members: &'a [usize],
    /// Tells apart several that threads of the same members make at once.
    pub name: &'a str,
}

impl Subset<'_> {
    /// Makes the group, as [`Team::subset`].
    ///
    /// # Errors
    /// As there.
    pub fn of(self, team: &Team) -> Result<Team> {
        let Self { members, name } = self;
        let ranks: Vec<Rank> = members
            .iter()
            .map(|member| team.peer(*member).map(|(rank, _)| rank))
            .collect::<Result<_>>()?;
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let has_me = members.contains(&team.me());
        if !has_me || sorted.len() != members.len() {
            return Err(Error::Argument(
                "the members of a subset are named once each, this rank among them".to_owned(),
            ));
        }
        let topic = (Purpose::Subset, name);
        let meeting = Meeting::of(team, topic, members, std::iter::empty())?;
        let (members, own) = with_context(team, |own| {
            let own = own.as_u16().to_ne_bytes();
            let ids = team.run(meeting.allgather(&own))?;
            Ok((ranks, ids_of(&ids)))
        })?;
        Ok(team.derived(members, own))
    }
}

/// Opens a context for a group whose members' ranks and ids `make` returns; frees it where that fails.
pub(crate) fn with_context(
    team: &Team,
    make: impl FnOnce(ContextId) -> Result<(Vec<Rank>, Vec<ContextId>)>,
) -> Result<(Members, ContextId)> {
    // The others hear that there is none, who would wait for this rank.
    let opened = team.messenger().open_context();
    let own = opened.as_ref().copied().unwrap_or(NONE);
    let made = make(own).and_then(|(ranks, ids)| match ids.contains(&NONE) {
        true => Err(tagwire_pml::Error::NoContext.into()),
        false => Ok(Members::new(ranks, ids)),
    });
    opened?;
    match made {
        Ok(members) => Ok((members, own)),
        Err(error) => {
            if own != NONE {
                team.messenger().close_context(own)?;
            }
            Err(error)
        }
    }
}

/// Returns the ids that members have assigned.
pub(crate) fn ids_of(bytes: &[u8]) -> Vec<ContextId> {
    let ids = bytes.as_chunks::<2>().0.iter();
    ids.map(|id| ContextId::new(u16::from_ne_bytes(*id)))
        .collect()
}
