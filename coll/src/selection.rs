//! Which algorithm an operation takes: by a table of group sizes and lengths, or as a setting says.

mod forced;
mod taken;

use std::fmt;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::bootstrap::groups;
use tagwire_base::config::{Config, Setting};
use tagwire_base::{Bootstrap, Rank};

use crate::algorithms::{ALGORITHMS, Algorithm, Collective, Group, Needs, first_of};
use crate::members::Members;
use crate::table::{Place, Table};

pub(crate) use taken::{Choosing, Lack};

const AUTO: &str = "auto";
const FIXED: &str = "fixed";

/// The settings of collectives.
pub const SETTINGS: &[Setting] = &[
    Setting::text(
        "coll",
        "coll-algorithm",
        "",
        "Which algorithms collectives take, in place of those of the table: OPERATION:ALGORITHM, several by commas, as in \
     allreduce:ring,broadcast:binomial. One that no group of the job can take is an error. Operations that it does not suit go by the table: \
     of operands that keep their order, of groups without the board or the hosts that it needs, and those by a board where they are \
     nonblocking or blocks differ; a profile shows by what",
    ),
    Setting::text(
        "coll",
        "coll-table",
        "",
        "The file of the table of algorithms, as 'tagwire tune coll' writes one; empty for the table in the tree",
    ),
    Setting::choice(
        "coll",
        "coll-reduction",
        AUTO,
        &[AUTO, FIXED],
        "fixed: reductions of floating-point numbers, and by users' operations, combine each element in one binary tree \
     over ranks, so that results have the same bits with any table, transport and number of hosts; auto: by any algorithm",
    ),
    Setting::flag(
        "coll",
        "coll-trial",
        true,
        "Groups that share memory try now and then which of an operation's algorithms by a board is the fastest for a length, and go by that, where coll-algorithm names none; off: by the one of the table",
    ),
    Setting::flag(
        "coll",
        "coll-check",
        false,
        "Ranks tell each other before each collective what they call; where that differs, it ends with an error that names both",
    ),
    Setting::bytes(
        "coll",
        "coll-board-memory",
        BOARD_MEMORY as u64,
        0..=1 << 40,
        "How much memory the boards of a rank keep, over all its groups: what is above it is given back by those that are idle, and \
     taken again when they are used; at most 2 MiB a board",
    ),
];

/// How much memory the boards of a rank keep.
const BOARD_MEMORY: usize = 64 << 20;

/// A message of a collective on one host is shorter, but for pieces of one. Eager over shared memory, and seldom the divisor of a
/// length: those need a message more.
pub(crate) const SEGMENT: usize = 8160;

/// What a rank publishes its choice under, and the first rank of its host.
const KEY: &str = "coll";
const HOST: &str = "coll-host";

/// Ranks have published before a fence: it is there, or the bootstrap is broken.
const TIMEOUT: Duration = Duration::from_secs(30);

/// From so many ranks and bytes on, this algorithm is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Choice {
    ranks: usize,
    bytes: usize,
    algorithm: &'static Algorithm,
    needs: Needs,
}

impl Choice {
    const fn new(algorithm: &'static Algorithm, ranks: usize, bytes: usize) -> Self {
        Self {
            ranks,
            bytes,
            algorithm,
            needs: algorithm.needs,
        }
    }

    #[inline]
    fn fits(&self, group: Group, bytes: usize) -> bool {
        group.size >= self.ranks && bytes >= self.bytes && self.needs.are_met_by(group)
    }
}

/// The choice of algorithms of a rank. All ranks of a job have to have the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    table: Table,
    forced: Vec<&'static Algorithm>,
    /// All ranks share memory.
    on_one_host: bool,
    /// Ranks of a host share memory.
    shares_memory: bool,
    /// The host of each rank of the job, where there are several.
    hosts: Option<Arc<[u32]>>,
    /// What groups take whose members share memory, in a job that does not.
    within_host: Option<Arc<Self>>,
    checks: bool,
    /// Algorithms by a board are tried.
    tries: bool,
    board_memory: usize,
    /// Each element is combined in the one tree, where another tree could give other bits.
    is_fixed: bool,
    /// What follows from the rest, by operation, for operands that keep their order (and their tree, where that is fixed) and
    /// for those that need not. The first one that fits counts.
    choices: [[Vec<Choice>; 2]; Collective::ALL.len()],
}

impl Default for Selection {
    /// Returns the choice of the table in the tree.
    fn default() -> Self {
        let empty = Self {
            table: Table::default(),
            forced: Vec::new(),
            on_one_host: false,
            shares_memory: false,
            hosts: None,
            within_host: None,
            checks: false,
            tries: true,
            board_memory: BOARD_MEMORY,
            is_fixed: false,
            choices: Default::default(),
        };
        empty.resolved()
    }
}

impl Selection {
    /// Returns what the settings say.
    ///
    /// # Errors
    /// When one names what there is not, or the table is none.
    pub fn from_config(config: &Config) -> tagwire_base::Result<Self> {
        let selection = Self::parse(config.text("coll-algorithm"))?;
        let selection = match config.text("coll-table") {
            "" => selection,
            path => selection.with_table(Table::read(path)?),
        };
        let is_fixed = config.choice("coll-reduction") == FIXED;
        let board_memory = config.bytes("coll-board-memory");
        Ok(selection
            .fixed(is_fixed)
            .checking(config.flag("coll-check"))
            .trying(config.flag("coll-trial"))
            .with_board_memory(board_memory))
    }

    /// Returns what `text` says: OPERATION:ALGORITHM, several by commas.
    ///
    /// # Errors
    /// As [`from_config`](Self::from_config).
    pub fn parse(text: &str) -> tagwire_base::Result<Self> {
        let parts = text.split(',').map(str::trim);
        let forced = parts.filter(|part| !part.is_empty()).map(|part| {
            let all = || ALGORITHMS.iter();
            let found = all().find(|algorithm| algorithm.to_string() == part);
            found.ok_or_else(|| tagwire_base::Error::BadSetting {
                name: "coll-algorithm".to_owned(),
                value: part.to_owned(),
                expected: format!("of {}", join(all())),
            })
        });
        let forced = forced.collect::<tagwire_base::Result<_>>()?;
        let selection = Self {
            forced,
            ..Self::default()
        };
        Ok(selection.resolved())
    }

    /// Returns what the settings say to the ranks of a job.
    ///
    /// # Errors
    /// As [`from_config`](Self::from_config).
    pub fn of_job(config: &Config, bootstrap: &dyn Bootstrap) -> tagwire_base::Result<Self> {
        let is_local = bootstrap.locality().local_size == bootstrap.size();
        let is_shared = Self::shares_memory_by(config, is_local);
        let mut selection = Self::from_config(config)?.on_one_host(is_shared && is_local);
        selection.shares_memory = is_shared;
        Ok(selection)
    }

    /// Returns the same with another table.
    #[must_use]
    pub fn with_table(mut self, table: Table) -> Self {
        self.table = table;
        self.resolved()
    }

    /// Returns the same for a job whose ranks all share memory, or do not.
    #[must_use]
    pub fn on_one_host(mut self, on_one_host: bool) -> Self {
        self.on_one_host = on_one_host;
        self.shares_memory = on_one_host;
        self.resolved()
    }

    /// Returns the same for a job with these hosts, one for each rank: those of a host have the same number, and share memory
    /// or do not.
    #[must_use]
    pub fn with_hosts(mut self, hosts: &[u32], shares_memory: bool) -> Self {
        let is_one = hosts.windows(2).all(|pair| pair[0] == pair[1]);
        self.on_one_host = is_one && shares_memory;
        self.shares_memory = shares_memory;
        self.hosts = (!is_one).then(|| hosts.into());
        self.resolved()
    }

    /// Returns the host of each rank of the job, where there are several.
    pub(crate) fn hosts(&self) -> Option<&[u32]> {
        self.hosts.as_deref()
    }

    /// Whether ranks of a host share memory.
    pub(crate) const fn shares_memory(&self) -> bool {
        self.shares_memory
    }

    /// Returns what a group takes that is made of one with `whole`.
    pub(crate) fn of_group(whole: &Arc<Self>, members: &Members) -> Arc<Self> {
        let (Some(hosts), Some(within)) = (&whole.hosts, &whole.within_host) else {
            return Arc::clone(whole);
        };
        let mut of_members = members.ranks().map(|rank| hosts.get(rank.index()));
        let first = of_members.next();
        let is_one = of_members.all(|host| Some(host) == first);
        Arc::clone(if is_one { within } else { whole })
    }

    /// Returns the same with each operation checked, or not.
    #[must_use]
    pub fn checking(mut self, checks: bool) -> Self {
        self.checks = checks;
        self.resolved()
    }

    /// Returns the same with algorithms by a board tried, or not.
    #[must_use]
    pub fn trying(mut self, tries: bool) -> Self {
        self.tries = tries;
        self.resolved()
    }

    /// Whether the algorithms of an operation by a board are tried: no setting names one.
    #[inline]
    pub(crate) fn tries(&self, what: Collective) -> bool {
        self.tries && self.forced.iter().all(|it| it.collective != what)
    }

    /// Returns the algorithms by a board of an operation whose fastest one groups find by trial, for lengths from
    /// [`TRIED_FROM`](crate::TRIED_FROM) on; none where there are no others, or a setting decides.
    #[must_use]
    pub fn tried(&self, what: Collective) -> Vec<&'static Algorithm> {
        let own = |it: &&Algorithm| it.collective == what && it.needs == Needs::Board;
        let all: Vec<_> = ALGORITHMS.iter().filter(own).collect();
        match self.tries(what) && all.len() > 1 {
            true => all,
            false => Vec::new(),
        }
    }

    /// Returns the same with one tree for reductions whose bits depend on it, or with any.
    #[must_use]
    pub fn fixed(mut self, is_fixed: bool) -> Self {
        self.is_fixed = is_fixed;
        self.resolved()
    }

    /// Returns the same for a rank whose boards keep so much memory. Ranks may differ.
    #[must_use]
    pub fn with_board_memory(mut self, bytes: usize) -> Self {
        self.board_memory = bytes;
        if let Some(within) = &mut self.within_host {
            Arc::make_mut(within).board_memory = bytes;
        }
        self
    }

    /// Returns how much memory the boards of a rank keep.
    pub(crate) const fn board_memory(&self) -> usize {
        self.board_memory
    }

    /// Works out the choices, so that none is left to a call but for size and length.
    fn resolved(mut self) -> Self {
        self.within_host = None;
        if self.hosts.is_some() && self.shares_memory {
            let mut within = self.clone();
            within.hosts = None;
            self.within_host = Some(Arc::new(within.on_one_host(true)));
        }
        let place = match self.on_one_host {
            true => Place::Host,
            false => Place::Hosts,
        };
        for (number, what) in Collective::ALL.iter().enumerate() {
            for may_reorder in [false, true] {
                let needs_tree = self.is_fixed && what.reduces();
                let keeps = |it: &Algorithm| match needs_tree {
                    true => it.follows_tree,
                    false => !it.needs_commutative,
                };
                let fits = |it: &Algorithm| it.collective == *what && (may_reorder || keeps(it));
                let forced = self.forced.iter().find(|it| fits(it));
                let forced = forced.map(|it| Choice::new(it, 0, 0));
                let rows = self.table.rows().iter().rev().filter(|row| {
                    fits(row.algorithm) && row.place.is_none_or(|wanted| wanted == place)
                });
                let rows = rows.map(|row| Choice::new(row.algorithm, row.ranks, row.bytes));
                // A group without what the forced one needs goes by the table.
                let chosen = forced.into_iter().chain(rows).collect();
                self.choices[number][usize::from(may_reorder)] = chosen;
            }
        }
        self
    }

    /// Returns the table.
    #[must_use]
    pub const fn table(&self) -> &Table {
        &self.table
    }

    /// Returns whether reductions whose bits depend on it combine each element in the one tree.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Whether members tell each other what they call.
    pub(crate) const fn checks(&self) -> bool {
        self.checks
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
        let host = bootstrap.locality().first_local.to_string();
        bootstrap.put(HOST, host.as_bytes())?;
        bootstrap.put(KEY, self.published().as_bytes())
    }

    /// A line for each setting: its name, what has to be equal, and how it is told.
    fn published(&self) -> String {
        let (table, digest) = (&self.table, format!("{:016x}", self.table.digest()));
        let name = table.name().escape_debug();
        let pieces = match (self.on_one_host, self.shares_memory) {
            (true, _) => "the memory of one host",
            (false, true) => "several hosts with shared memory each",
            (false, false) => "a network between all",
        };
        let reduction = if self.is_fixed { FIXED } else { AUTO };
        let [check, trial] = [self.checks, self.tries].map(|it| if it { "on" } else { "off" });
        format!(
            "coll-algorithm\t{self}\t{self}\n\
             coll-table\t{digest}\t{name} (digest {digest})\n\
             coll-reduction\t{reduction}\t{reduction}\n\
             coll-check\t{check}\t{check}\n\
             coll-trial\t{trial}\t{trial}\n\
             transport\t{pieces}\t{pieces}"
        )
    }

    /// Checks that rank 0 has the same choice, after the fence of opening. Returns it with the hosts of the job's ranks. Every
    /// rank calls it.
    ///
    /// # Errors
    /// With both choices where they differ; when the bootstrap breaks.
    pub fn agree(self, bootstrap: &mut dyn Bootstrap) -> tagwire_base::Result<Self> {
        self.check(bootstrap)?;
        if bootstrap.locality().local_size == bootstrap.size() {
            return Ok(self);
        }
        let hosts = groups(bootstrap, HOST, TIMEOUT)?;
        let shares_memory = self.shares_memory;
        Ok(self.with_hosts(&hosts, shares_memory))
    }

    fn check(&self, bootstrap: &mut dyn Bootstrap) -> tagwire_base::Result<()> {
        let theirs = bootstrap.get(Rank::new(0), KEY, TIMEOUT)?;
        let (own, theirs) = (self.published(), String::from_utf8_lossy(&theirs));
        let mut lines = own.lines().zip(theirs.lines().chain(iter::repeat("")));
        let equal = |line: &str| {
            line.split('\t')
                .take(2)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let Some((own, theirs)) = lines.find(|(own, theirs)| equal(own) != equal(theirs)) else {
            return Ok(());
        };
        let part = |line: &str, number| line.split('\t').nth(number).unwrap_or("?").to_owned();
        Err(tagwire_base::Error::BadSetting {
            name: part(own, 0),
            value: part(own, 2),
            expected: format!("rank 0 has '{}', which holds for the job", part(theirs, 2)),
        })
    }

    /// Returns the algorithm for an operation of a group, or of so many members, on so many bytes, where they share no board. A reduction
    /// `may_reorder` its operands where that leaves its result as it is.
    #[must_use]
    pub fn choose(
        &self,
        what: Collective,
        group: impl Into<Group>,
        bytes: usize,
        may_reorder: bool,
    ) -> &'static Algorithm {
        let (group, mut choices) = (group.into(), self.choices(what, may_reorder));
        let choice = choices.find(|it| it.needs != Needs::Board && it.fits(group, bytes));
        choice.map_or_else(|| first_of(what), |choice| choice.algorithm)
    }

    /// Returns the algorithm by which the operation goes where the members share a board, if that is one by a board.
    #[inline]
    #[must_use]
    pub fn on_board(
        &self,
        what: Collective,
        size: usize,
        bytes: usize,
        may_reorder: bool,
    ) -> Option<&'static Algorithm> {
        let mut choices = self.choices(what, may_reorder);
        let choice = choices.find(|it| it.fits(size.into(), bytes));
        let choice = choice.filter(|choice| choice.needs == Needs::Board);
        choice.map(|choice| choice.algorithm)
    }

    #[inline]
    fn choices(&self, what: Collective, may_reorder: bool) -> impl Iterator<Item = &Choice> {
        self.choices[what as usize][usize::from(may_reorder)].iter()
    }

    /// Returns the algorithms for an operation among `size` members, each with the length from which it is taken: for sums of
    /// floating-point numbers, where it is a reduction. Members share a board where the job is on one host, and have levels
    /// where it is not.
    #[must_use]
    pub fn ranges(&self, what: Collective, size: usize) -> Vec<(usize, &'static str)> {
        let mut group = Group::from(size);
        group.has_levels = !self.on_one_host && size > 2;
        self.ranges_of(what, group, self.on_one_host, !self.is_fixed)
    }

    /// Returns the same of a group that has a board or none.
    fn ranges_of(
        &self,
        what: Collective,
        group: Group,
        has_board: bool,
        may_reorder: bool,
    ) -> Vec<(usize, &'static str)> {
        let choices = self.choices(what, may_reorder);
        let mut starts: Vec<_> = choices.map(|choice| choice.bytes).collect();
        starts.sort_unstable();
        let on_board = |from| self.on_board(what, group.size, from, may_reorder);
        let taken = |from| {
            let by_board = on_board(from).filter(|_| has_board);
            let taken = by_board.unwrap_or_else(|| self.choose(what, group, from, may_reorder));
            taken.name
        };
        let chosen = starts.into_iter().map(|from| (from, taken(from)));
        let mut ranges: Vec<_> = chosen.collect();
        ranges.dedup_by_key(|(_, name)| *name);
        ranges
    }
}

/// As the setting `coll-algorithm` is written.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&join(self.forced.iter().copied()))
    }
}

fn join<'a>(algorithms: impl Iterator<Item = &'a Algorithm>) -> String {
    let names: Vec<_> = algorithms.map(ToString::to_string).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use tagwire_base::bootstrap::LocalJob;

    use super::*;

    #[test]
    fn the_table_looks_at_size_and_length() {
        let table = Selection::default();
        let allreduce = |size, bytes, commutes| {
            table
                .choose(Collective::Allreduce, size, bytes, commutes)
                .name
        };
        assert_eq!(allreduce(2, 8, true), "recursive-doubling");
        assert_eq!(allreduce(2, 1 << 20, true), "ring");
        assert_eq!(allreduce(2, 1 << 20, false), "recursive-doubling");
    }

    #[test]
    fn groups_with_levels_take_two_level_algorithms() {
        let selection = Selection::default().with_hosts(&[0, 0, 1, 1], true);
        let allreduce = |selection: &Selection, group| {
            [8, 1 << 20].map(|bytes| {
                selection
                    .choose(Collective::Allreduce, group, bytes, true)
                    .name
            })
        };
        let group = Group::from(4);
        let flat = ["recursive-doubling", "ring"];
        assert_eq!(allreduce(&selection, group), flat);
        assert_eq!(
            allreduce(&selection, group.with_levels()),
            ["two-level", "multi-lane"]
        );
        let fixed = selection.fixed(true);
        let ordered = |bytes| {
            let (what, group) = (Collective::Allreduce, group.with_levels());
            fixed.choose(what, group, bytes, false).name
        };
        assert_eq!(
            [8, 1 << 20].map(ordered),
            ["recursive-doubling", "rabenseifner"]
        );
    }

    #[test]
    fn groups_within_a_host_choose_as_on_one() {
        let whole = Arc::new(Selection::default().with_hosts(&[0, 0, 1, 1], true));
        let members = |ranks: [u32; 2]| {
            let ranks = ranks.map(Rank::new).to_vec();
            Members::new(ranks, vec![tagwire_base::ContextId::WORLD; 2])
        };
        let within = Selection::of_group(&whole, &members([2, 3]));
        assert_eq!(within.segment(), SEGMENT);
        assert!(within.hosts().is_none());
        let across = Selection::of_group(&whole, &members([1, 2]));
        assert!(Arc::ptr_eq(&across, &whole));
        let apart = Arc::new(Selection::default().with_hosts(&[0, 0, 1, 1], false));
        assert_eq!(
            Selection::of_group(&apart, &members([2, 3])).segment(),
            usize::MAX
        );
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
        let parts = ["coll-algorithm", "rank 0 has ''", "allreduce:ring"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }

    #[test]
    fn fixed_takes_what_follows_the_tree() {
        let fixed = Selection::parse("reduce:scatter-gather")
            .unwrap()
            .fixed(true);
        let reduce = |may_reorder| {
            fixed
                .choose(Collective::Reduce, 4, 1 << 20, may_reorder)
                .name
        };
        assert_eq!(
            (reduce(false), reduce(true)),
            ("binomial", "scatter-gather")
        );
        assert_eq!(
            fixed.ranges(Collective::Allreduce, 4),
            [(0, "recursive-doubling"), (32 << 10, "rabenseifner")]
        );
        let (bcast, auto) = (Collective::Broadcast, Selection::default());
        assert_eq!(fixed.ranges(bcast, 4), auto.ranges(bcast, 4));
        let job = LocalJob::new(2).unwrap();
        let [mut first, mut second] = [0, 1].map(|rank| job.member(Rank::new(rank)));
        auto.publish(&mut first).unwrap();
        let error = auto.fixed(true).check(&mut second).unwrap_err().to_string();
        let parts = ["coll-reduction", "'fixed'", "rank 0 has 'auto'"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }

    /// Paths may differ where rows do not.
    #[test]
    fn ranks_with_different_tables_are_told_apart() {
        let files = [0, 1, 2].map(|_| tempfile::NamedTempFile::new().unwrap());
        let row = |algorithm| format!("rows = [{{operation='reduce', algorithm='{algorithm}'}}]");
        let texts = ["scatter-gather", "binomial", "scatter-gather"].map(row);
        let [first, other, same] = std::array::from_fn(|number| {
            let path: &std::path::Path = files[number].path();
            std::fs::write(path, &texts[number]).unwrap();
            let table = Table::read(path.to_str().unwrap()).unwrap();
            Selection::default().with_table(table)
        });
        let job = LocalJob::new(2).unwrap();
        let [mut rank_0, mut rank_1] = [0, 1].map(|rank| job.member(Rank::new(rank)));
        first.publish(&mut rank_0).unwrap();
        assert!(same.check(&mut rank_1).is_ok());
        let error = other.check(&mut rank_1).unwrap_err().to_string();
        for table in [first.table(), other.table()] {
            let digest = format!("{:016x}", table.digest());
            assert!(error.contains(table.name()), "{error}");
            assert!(error.contains(&digest), "{error}");
        }
        assert_eq!(
            first.choose(Collective::Reduce, 2, 8, true).name,
            "scatter-gather"
        );
        assert_eq!(
            first.choose(Collective::Reduce, 2, 8, false).name,
            "binomial"
        );
    }

    #[test]
    fn rows_for_a_place_count_there_alone() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let row = "rows = [{operation='gather', algorithm='linear', ranks=3, place='host'}]";
        std::fs::write(file.path(), row).unwrap();
        let table = Table::read(file.path().to_str().unwrap()).unwrap();
        let selection = Selection::default().with_table(table);
        let gather = |it: &Selection, size| it.choose(Collective::Gather, size, 8, true).name;
        assert_eq!(gather(&selection, 4), "binomial");
        let selection = selection.on_one_host(true);
        assert_eq!(
            (gather(&selection, 2), gather(&selection, 4)),
            ("binomial", "linear")
        );
        assert_eq!(selection.ranges(Collective::Gather, 4), [(0, "linear")]);
    }

    /// An operation's number is its place in the list of all.
    #[test]
    fn operations_are_in_the_order_of_their_list() {
        for (number, what) in Collective::ALL.iter().enumerate() {
            assert_eq!(*what as usize, number);
        }
    }

    #[test]
    fn a_setting_forces_one() {
        let forced = Selection::parse("allreduce:ring, broadcast:binomial").unwrap();
        assert_eq!(
            forced.choose(Collective::Allreduce, 2, 8, true).name,
            "ring"
        );
        let ordered = forced.choose(Collective::Allreduce, 2, 8, false).name;
        assert_eq!(ordered, "recursive-doubling");
        assert_eq!(forced.to_string(), "allreduce:ring,broadcast:binomial");
        let levels = Selection::parse("allreduce:two-level").unwrap();
        assert_eq!(
            levels.choose(Collective::Allreduce, 4, 1 << 20, true).name,
            "ring"
        );
        let error = Selection::parse("allreduce:rang").unwrap_err().to_string();
        assert!(error.contains("allreduce:ring"), "{error}");
    }
}
