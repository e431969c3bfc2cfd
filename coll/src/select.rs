//! Which algorithm an operation takes: by a table of group sizes and lengths, or as a setting says.

use std::fmt;
use std::time::Duration;

use tagwire_base::config::{Config, Setting};
use tagwire_base::{Bootstrap, Rank};

use crate::board::kind::Kind;

/// The settings of collectives.
pub const SETTINGS: &[Setting] = &[
    Setting::text(
        "coll",
        "coll-algorithm",
        "",
        "Which algorithms collectives take, in place of those of the table: OPERATION:ALGORITHM, several by commas, as in \
     allreduce:ring,broadcast:binomial; one that needs a commutative operation is left where it is not",
    ),
    Setting::flag(
        "coll",
        "coll-check",
        false,
        "Ranks tell each other before each collective what they call; where that differs, it ends with an error that names both",
    ),
];

/// An operation with several algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Collective {
    /// [`Team::allgather`](crate::Team::allgather). Its length is that of what is gathered.
    Allgather,
    /// [`Team::allreduce`](crate::Team::allreduce).
    Allreduce,
    /// [`Team::alltoall`](crate::Team::alltoall). Its length is that of a block.
    Alltoall,
    /// [`Team::broadcast`](crate::Team::broadcast).
    Broadcast,
    /// [`Team::gather`](crate::Team::gather). Its length is that of a block.
    Gather,
    /// [`Team::reduce`](crate::Team::reduce).
    Reduce,
    /// [`Team::reduce_scatter`](crate::Team::reduce_scatter). Its length is that of the input.
    ReduceScatter,
    /// [`Team::scatter`](crate::Team::scatter). Its length is that of a block.
    Scatter,
}

impl Collective {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::Allgather,
        Self::Allreduce,
        Self::Alltoall,
        Self::Broadcast,
        Self::Gather,
        Self::Reduce,
        Self::ReduceScatter,
        Self::Scatter,
    ];
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allgather => "allgather",
            Self::Allreduce => "allreduce",
            Self::Alltoall => "alltoall",
            Self::Broadcast => "broadcast",
            Self::Gather => "gather",
            Self::Reduce => "reduce",
            Self::ReduceScatter => "reduce-scatter",
            Self::Scatter => "scatter",
        })
    }
}

/// A way to do an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// What it does.
    pub collective: Collective,
    /// Its name in settings and reports.
    pub name: &'static str,
    /// It combines operands in another order than that of the members.
    pub needs_commutative: bool,
}

impl Algorithm {
    pub(crate) const fn any(collective: Collective, name: &'static str) -> Self {
        Self {
            collective,
            name,
            needs_commutative: false,
        }
    }

    pub(crate) const fn commutative(collective: Collective, name: &'static str) -> Self {
        Self {
            collective,
            name,
            needs_commutative: true,
        }
    }
}

pub(crate) const BINOMIAL: &str = "binomial";
pub(crate) const BRUCK: &str = "bruck";
pub(crate) const LINEAR: &str = "linear";
pub(crate) const PAIRWISE: &str = "pairwise";
pub(crate) const RECURSIVE_DOUBLING: &str = "recursive-doubling";
pub(crate) const REDUCE_SCATTERV: &str = "reduce-scatterv";
pub(crate) const RING: &str = "ring";
pub(crate) const SCATTER_GATHER: &str = "scatter-gather";
pub(crate) const SCATTER_RING: &str = "scatter-ring";

const ALLGATHER_BRUCK: Algorithm = Algorithm::any(Collective::Allgather, BRUCK);
const ALLGATHER_RING: Algorithm = Algorithm::any(Collective::Allgather, RING);
const ALLREDUCE_DOUBLING: Algorithm = Algorithm::any(Collective::Allreduce, RECURSIVE_DOUBLING);
const ALLREDUCE_RING: Algorithm = Algorithm::commutative(Collective::Allreduce, RING);
const ALLTOALL_BRUCK: Algorithm = Algorithm::any(Collective::Alltoall, BRUCK);
const ALLTOALL_PAIRWISE: Algorithm = Algorithm::any(Collective::Alltoall, PAIRWISE);
const BROADCAST_BINOMIAL: Algorithm = Algorithm::any(Collective::Broadcast, BINOMIAL);
const BROADCAST_SCATTER: Algorithm = Algorithm::any(Collective::Broadcast, SCATTER_RING);
const GATHER_BINOMIAL: Algorithm = Algorithm::any(Collective::Gather, BINOMIAL);
const GATHER_LINEAR: Algorithm = Algorithm::any(Collective::Gather, LINEAR);
const REDUCE_BINOMIAL: Algorithm = Algorithm::any(Collective::Reduce, BINOMIAL);
const REDUCE_SCATTER_GATHER: Algorithm = Algorithm::commutative(Collective::Reduce, SCATTER_GATHER);
const REDUCE_SCATTER_SERIAL: Algorithm = Algorithm::any(Collective::ReduceScatter, REDUCE_SCATTERV);
const REDUCE_SCATTER_PAIRWISE: Algorithm =
    Algorithm::commutative(Collective::ReduceScatter, PAIRWISE);
const SCATTER_BINOMIAL: Algorithm = Algorithm::any(Collective::Scatter, BINOMIAL);
const SCATTER_LINEAR: Algorithm = Algorithm::any(Collective::Scatter, LINEAR);

/// All algorithms.
pub const ALGORITHMS: &[Algorithm] = &[
    ALLGATHER_BRUCK,
    ALLGATHER_RING,
    ALLREDUCE_DOUBLING,
    ALLREDUCE_RING,
    ALLTOALL_BRUCK,
    ALLTOALL_PAIRWISE,
    BROADCAST_BINOMIAL,
    BROADCAST_SCATTER,
    GATHER_BINOMIAL,
    GATHER_LINEAR,
    REDUCE_BINOMIAL,
    REDUCE_SCATTER_GATHER,
    REDUCE_SCATTER_SERIAL,
    REDUCE_SCATTER_PAIRWISE,
    SCATTER_BINOMIAL,
    SCATTER_LINEAR,
];

/// Whether what goes by a board is this operation.
const fn is_same(kind: Kind, what: Collective) -> bool {
    matches!(
        (kind, what),
        (Kind::Broadcast, Collective::Broadcast)
            | (Kind::Reduce, Collective::Reduce)
            | (Kind::Allreduce, Collective::Allreduce)
            | (Kind::Allgather, Collective::Allgather)
            | (Kind::Alltoall, Collective::Alltoall)
            | (Kind::Gather, Collective::Gather)
            | (Kind::Scatter, Collective::Scatter)
    )
}

/// A row of the table: from so many members and bytes on this algorithm is taken.
struct Row(Algorithm, usize, usize);

/// The last row that fits counts.
const TABLE: &[Row] = &[
    Row(ALLGATHER_RING, 1, 0),
    Row(ALLGATHER_BRUCK, 3, 0),
    Row(ALLGATHER_RING, 1, 32 << 10),
    Row(ALLREDUCE_DOUBLING, 1, 0),
    Row(ALLREDUCE_RING, 2, 32 << 10),
    Row(ALLTOALL_PAIRWISE, 1, 0),
    Row(ALLTOALL_BRUCK, 8, 0),
    Row(ALLTOALL_PAIRWISE, 8, 257),
    Row(BROADCAST_BINOMIAL, 1, 0),
    Row(BROADCAST_SCATTER, 4, 64 << 10),
    Row(GATHER_BINOMIAL, 1, 0),
    Row(GATHER_LINEAR, 1, 4 << 10),
    Row(REDUCE_BINOMIAL, 1, 0),
    Row(REDUCE_SCATTER_GATHER, 2, 64 << 10),
    Row(REDUCE_SCATTER_SERIAL, 1, 0),
    Row(REDUCE_SCATTER_PAIRWISE, 2, 8 << 10),
    Row(SCATTER_BINOMIAL, 1, 0),
    Row(SCATTER_LINEAR, 1, 4 << 10),
];

/// A message of a collective on one host is shorter, but for pieces of one. Eager over shared memory, and seldom the divisor of a
/// length: those need a message more.
const SEGMENT: usize = 8160;

/// What a rank publishes its choice under.
const KEY: &str = "coll";

/// Rank 0 has published its choice before a fence: it is there, or the bootstrap is broken.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The choice of algorithms of a rank. All ranks of a job have to have the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    forced: Vec<Algorithm>,
    /// All ranks share memory.
    on_one_host: bool,
    checks: bool,
}

impl Selection {
    /// Returns what the setting `coll-algorithm` says.
    ///
    /// # Errors
    /// When it names what there is not.
    pub fn from_config(config: &Config) -> tagwire_base::Result<Self> {
        let selection = Self::parse(config.text("coll-algorithm"))?;
        Ok(selection.checking(config.flag("coll-check")))
    }

    /// Returns what `text` says: OPERATION:ALGORITHM, several by commas.
    ///
    /// # Errors
    /// As [`from_config`](Self::from_config).
    pub fn parse(text: &str) -> tagwire_base::Result<Self> {
        let parts = text.split(',').map(str::trim);
        let forced = parts.filter(|part| !part.is_empty()).map(|part| {
            let all = || ALGORITHMS.iter();
            let name =
                |algorithm: &Algorithm| format!("{}:{}", algorithm.collective, algorithm.name);
            let found = all().find(|algorithm| name(algorithm) == part).copied();
            found.ok_or_else(|| tagwire_base::Error::BadSetting {
                name: "coll-algorithm".to_owned(),
                value: part.to_owned(),
                expected: format!("of {}", all().map(name).collect::<Vec<_>>().join(", ")),
            })
        });
        let forced = forced.collect::<tagwire_base::Result<_>>()?;
        Ok(Self {
            forced,
            on_one_host: false,
            checks: false,
        })
    }

    /// Returns what the setting says to the ranks of a job.
    ///
    /// # Errors
    /// As [`from_config`](Self::from_config).
    pub fn of_job(config: &Config, bootstrap: &dyn Bootstrap) -> tagwire_base::Result<Self> {
        let first = config.stack("transport").first();
        let is_shared = first.is_some_and(|part| matches!(part.name, "auto" | "shm"));
        let is_local = bootstrap.locality().local_size == bootstrap.size();
        Ok(Self::from_config(config)?.on_one_host(is_shared && is_local))
    }

    /// Returns the same for a job whose ranks all share memory, or do not.
    #[must_use]
    pub const fn on_one_host(mut self, on_one_host: bool) -> Self {
        self.on_one_host = on_one_host;
        self
    }

    /// Returns the same with each operation checked, or not.
    #[must_use]
    pub const fn checking(mut self, checks: bool) -> Self {
        self.checks = checks;
        self
    }

    /// Whether members tell each other what they call.
    pub(crate) const fn checks(&self) -> bool {
        self.checks
    }

    /// Whether operations of this kind go by a board where the group has one: not where a setting names their algorithm, nor where
    /// members tell each other what they call.
    pub(crate) fn may_take_board(&self, what: Kind) -> bool {
        !self.checks && !self.forced.iter().any(|it| is_same(what, it.collective))
    }

    /// Returns the length of messages at most. Through the rings of shared memory both ranks copy at once, and short
    /// messages need no handshake: 64 KiB each way take 5 us in pieces, and 9 us by a rendezvous.
    pub(crate) const fn segment(&self) -> usize {
        match self.on_one_host {
            true => SEGMENT,
            false => usize::MAX,
        }
    }

    /// Publishes the choice of this rank, before the fence of opening.
    ///
    /// # Errors
    /// When the bootstrap breaks.
    pub fn publish(&self, bootstrap: &mut dyn Bootstrap) -> tagwire_base::Result<()> {
        bootstrap.put(KEY, self.published().as_bytes())
    }

    fn published(&self) -> String {
        let check = if self.checks { " with coll-check" } else { "" };
        let pieces = if self.on_one_host { " in pieces" } else { "" };
        format!("{self}{check}{pieces}")
    }

    /// Checks that rank 0 has the same choice, after the fence of opening.
    ///
    /// # Errors
    /// With both choices where they differ; when the bootstrap breaks.
    pub fn check(&self, bootstrap: &mut dyn Bootstrap) -> tagwire_base::Result<()> {
        let theirs = bootstrap.get(Rank::new(0), KEY, TIMEOUT)?;
        let (own, theirs) = (self.published(), String::from_utf8_lossy(&theirs));
        if own == theirs {
            return Ok(());
        }
        Err(tagwire_base::Error::BadSetting {
            name: "coll-algorithm, coll-check".to_owned(),
            value: own,
            expected: format!("what rank 0 has, '{theirs}'"),
        })
    }

    /// Returns the algorithm for an operation among `size` members on so many bytes.
    #[must_use]
    pub fn choose(
        &self,
        what: Collective,
        size: usize,
        bytes: usize,
        commutes: bool,
    ) -> &'static str {
        let fits = |algorithm: &Algorithm| {
            algorithm.collective == what && (commutes || !algorithm.needs_commutative)
        };
        let forced = self.forced.iter().find(|algorithm| fits(algorithm));
        let by_table = || {
            let mut rows = TABLE.iter().rev();
            let row =
                rows.find(|Row(it, ranks, least)| fits(it) && size >= *ranks && bytes >= *least);
            row.map(|Row(algorithm, ..)| algorithm)
        };
        forced
            .or_else(by_table)
            .map_or("", |algorithm| algorithm.name)
    }
}

/// As the setting is written.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, one) in self.forced.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}:{}", one.collective, one.name)?;
        }
        Ok(())
    }
}

impl Selection {
    /// Returns the algorithms for an operation among `size` members, each with the length from which it is taken. Reductions are
    /// taken to commute.
    #[must_use]
    pub fn ranges(&self, what: Collective, size: usize) -> Vec<(usize, &'static str)> {
        let fits = |Row(it, ranks, _): &&Row| it.collective == what && size >= *ranks;
        let rows = TABLE.iter().filter(fits);
        let mut starts: Vec<_> = rows.map(|Row(.., least)| *least).collect();
        starts.sort_unstable();
        let chosen = starts
            .into_iter()
            .map(|from| (from, self.choose(what, size, from, true)));
        let mut ranges: Vec<_> = chosen.collect();
        ranges.dedup_by_key(|(_, name)| *name);
        ranges
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::bootstrap::LocalJob;

    use super::*;

    #[test]
    fn every_row_names_an_algorithm() {
        for Row(algorithm, ..) in TABLE {
            assert!(ALGORITHMS.contains(algorithm), "{algorithm:?}");
        }
    }

    #[test]
    fn the_table_looks_at_size_and_length() {
        let table = Selection::default();
        let allreduce =
            |size, bytes, commutes| table.choose(Collective::Allreduce, size, bytes, commutes);
        assert_eq!(allreduce(2, 8, true), "recursive-doubling");
        assert_eq!(allreduce(2, 1 << 20, true), "ring");
        assert_eq!(allreduce(2, 1 << 20, false), "recursive-doubling");
    }

    #[test]
    fn ranks_with_different_choices_are_told_apart() {
        let job = LocalJob::new(2).unwrap();
        let [mut first, mut second] = [0, 1].map(|rank| job.member(Rank::new(rank)));
        let ring = Selection::parse("allreduce:ring").unwrap();
        Selection::default().publish(&mut first).unwrap();
        ring.publish(&mut second).unwrap();
        assert!(Selection::default().check(&mut second).is_ok());
        let error = ring.check(&mut second).unwrap_err().to_string();
        assert!(
            error.contains("rank 0") && error.contains("allreduce:ring"),
            "{error}"
        );
    }

    #[test]
    fn a_setting_forces_one() {
        let forced = Selection::parse("allreduce:ring, broadcast:binomial").unwrap();
        assert_eq!(forced.choose(Collective::Allreduce, 2, 8, true), "ring");
        let ordered = forced.choose(Collective::Allreduce, 2, 8, false);
        assert_eq!(ordered, "recursive-doubling");
        assert_eq!(forced.to_string(), "allreduce:ring,broadcast:binomial");
        let error = Selection::parse("allreduce:rang").unwrap_err().to_string();
        assert!(error.contains("allreduce:ring"), "{error}");
    }
}
