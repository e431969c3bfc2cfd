//! The lengths of what members give each other, of operations in which each knows only some of them.

use crate::team::Team;

/// What a member gives to each member, and expects of each, in bytes.
#[derive(Debug, Clone)]
pub struct Counts {
    pub(crate) gives: Vec<u64>,
    pub(crate) expects: Vec<u64>,
}

/// Nothing crosses between two members. Each knows that of the other.
pub(crate) const NOTHING: u64 = u64::MAX;

impl Counts {
    /// Returns those of a member that gives `own` bytes to all, and gets `lengths`.
    pub(crate) fn to_all(own: usize, lengths: &[usize]) -> Self {
        Self {
            gives: vec![own as u64; lengths.len()],
            expects: in_bytes(lengths),
        }
    }

    /// Returns those of a member that gives `own` bytes to the root, which alone has `lengths`.
    pub(crate) fn to_root(team: &Team, root: usize, own: usize, lengths: &[usize]) -> Self {
        let mut gives = vec![NOTHING; team.size()];
        gives[root] = own as u64;
        let expects = match team.me() == root {
            true => in_bytes(lengths),
            false => vec![NOTHING; team.size()],
        };
        Self { gives, expects }
    }

    /// Returns those of a member that gets `own` bytes of the root, which alone has `lengths`.
    pub(crate) fn from_root(team: &Team, root: usize, own: usize, lengths: &[usize]) -> Self {
        let turned = Self::to_root(team, root, own, lengths);
        Self {
            gives: turned.expects,
            expects: turned.gives,
        }
    }

    /// Returns those of a member that gives one length to each and gets one of each.
    pub(crate) fn exchange(to: &[usize], from: &[usize]) -> Self {
        Self {
            gives: in_bytes(to),
            expects: in_bytes(from),
        }
    }
}

fn in_bytes(lengths: &[usize]) -> Vec<u64> {
    lengths.iter().map(|length| *length as u64).collect()
}
