//! A group on several hosts, as two levels: members of a host meet in its memory, and one of each host, its leader, crosses the
//! network.
//!
//! ```text
//!     host 0          host 1            allreduce: up to the leaders, among them, down
//!     0 <-- 1         2 <-- 3
//!     0 <-----------> 2
//!     0 --> 1         2 --> 3
//! ```
//!
//! Messages have the tag of the whole operation: two members meet on one level, where their messages keep their order. On a level an
//! operation goes by the algorithm that is chosen there.

use std::ops::Range;

use crate::members::Members;

/// Some members of a group, as a group of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Among<'t> {
    /// Their numbers in the whole group.
    pub(crate) members: &'t [usize],
    /// This member's place among them.
    pub(crate) me: usize,
    /// They share memory.
    pub(crate) is_host: bool,
}

/// The hosts of a group.
#[derive(Debug)]
pub(crate) struct Levels {
    /// The members by host: hosts in the order of their first members, the members of one in their order.
    by_host: Vec<usize>,
    /// Where in `by_host` those of each host are.
    hosts: Vec<Range<usize>>,
    /// The first member of each host.
    leaders: Vec<usize>,
    /// The members that have this member's place on their hosts, where all hosts have as many.
    lane: Option<Vec<usize>>,
    /// The host of each member.
    host_of: Vec<usize>,
    me: usize,
    shares_memory: bool,
}

impl Levels {
    /// Returns the levels of a group, where `hosts` has the host of each rank of the job; `None` where there is one level: one
    /// host, or one member on each.
    pub(crate) fn of(
        members: &Members,
        me: usize,
        hosts: &[u32],
        shares_memory: bool,
    ) -> Option<Self> {
        let host = |rank: tagwire_base::Rank| hosts.get(rank.index()).copied();
        let of_members: Vec<u32> = members.ranks().map(host).collect::<Option<_>>()?;
        let mut known: Vec<u32> = Vec::new();
        let number = |host: &u32| match known.iter().position(|other| other == host) {
            Some(number) => number,
            None => {
                known.push(*host);
                known.len() - 1
            }
        };
        let host_of: Vec<usize> = of_members.iter().map(number).collect();
        let count = known.len();
        if count == 1 || count == members.len() {
            return None;
        }
        let mut by_host = Vec::with_capacity(members.len());
        let hosts: Vec<Range<usize>> = (0..count)
            .map(|host| {
                let start = by_host.len();
                by_host.extend((0..members.len()).filter(|member| host_of[*member] == host));
                start..by_host.len()
            })
            .collect();
        let leaders = hosts.iter().map(|range| by_host[range.start]).collect();
        let mut levels = Self {
            by_host,
            hosts,
            leaders,
            lane: None,
            host_of,
            me,
            shares_memory,
        };
        let place = levels.place(me);
        let each = levels.hosts[0].len();
        if levels.hosts.iter().all(|range| range.len() == each) {
            let members = levels.hosts.iter();
            levels.lane = Some(
                members
                    .map(|range| levels.by_host[range.start + place])
                    .collect(),
            );
        }
        Some(levels)
    }

    /// Returns the members on this member's host.
    pub(crate) fn host(&self) -> Among<'_> {
        Among {
            members: self.members_of(self.own_host()),
            me: self.place(self.me),
            is_host: self.shares_memory,
        }
    }

    /// Returns the first member of each host, where this is one of them.
    pub(crate) fn leaders(&self) -> Option<Among<'_>> {
        let host = self.own_host();
        (self.leaders[host] == self.me).then_some(Among {
            members: &self.leaders,
            me: host,
            is_host: false,
        })
    }

    /// Returns the members with this one's place on their hosts; `None` where some host has fewer.
    pub(crate) fn lane(&self) -> Option<Among<'_>> {
        self.lane.as_ref().map(|members| Among {
            members,
            me: self.own_host(),
            is_host: false,
        })
    }

    /// Returns the number of this member's host.
    pub(crate) fn own_host(&self) -> usize {
        self.host_of[self.me]
    }

    /// Returns the number of a member's host.
    pub(crate) fn host_of(&self, member: usize) -> usize {
        self.host_of[member]
    }

    /// Returns how many members each host has.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.hosts.iter().map(ExactSizeIterator::len)
    }

    /// Returns a member's place on its host.
    pub(crate) fn place(&self, member: usize) -> usize {
        let on_host = self.members_of(self.host_of[member]);
        on_host.partition_point(|other| *other < member)
    }

    /// Returns the members by host.
    pub(crate) fn by_host(&self) -> &[usize] {
        &self.by_host
    }

    fn members_of(&self, host: usize) -> &[usize] {
        &self.by_host[self.hosts[host].clone()]
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::{ContextId, Rank};

    use super::*;

    fn levels(ranks: &[u32], me: usize, hosts: &[u32]) -> Option<Levels> {
        let ranks: Vec<_> = ranks.iter().copied().map(Rank::new).collect();
        let contexts = vec![ContextId::WORLD; ranks.len()];
        Levels::of(&Members::new(ranks, contexts), me, hosts, true)
    }

    #[test]
    fn members_are_grouped_by_host() {
        // Ranks 4, 1, 0, 3, 2 of hosts 7, 5, 7, 5, 7.
        let levels = levels(&[4, 1, 0, 3, 2], 3, &[7, 5, 7, 5, 7]).unwrap();
        assert_eq!(levels.by_host(), [0, 2, 4, 1, 3]);
        assert_eq!(levels.sizes().collect::<Vec<_>>(), [3, 2]);
        assert_eq!((levels.host().members, levels.host().me), (&[1, 3][..], 1));
        assert!(levels.leaders().is_none() && levels.lane().is_none());
        assert_eq!((levels.own_host(), levels.host_of(4)), (1, 0));
        assert_eq!((levels.place(4), levels.place(1)), (2, 0));
    }

    #[test]
    fn equal_hosts_have_lanes() {
        let levels = levels(&[0, 1, 2, 3], 2, &[0, 0, 2, 2]).unwrap();
        assert_eq!(levels.leaders().unwrap().members, [0, 2]);
        assert_eq!(levels.leaders().unwrap().me, 1);
        assert_eq!(levels.lane().unwrap().members, [0, 2]);
    }

    #[test]
    fn one_host_or_one_member_on_each_is_one_level() {
        assert!(levels(&[0, 1], 0, &[3, 3]).is_none());
        assert!(levels(&[0, 2], 0, &[0, 0, 1]).is_none());
        assert!(levels(&[0, 1, 2], 0, &[0, 0, 1]).is_some());
    }
}
