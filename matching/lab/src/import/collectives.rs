//! Collectives of imported traces as messages, in the internal tags that a library's own messages have.
//!
//! Tools note that a rank called one and not what the library sent for it. Here that is what MPI libraries do for short
//! messages; which algorithm it was is in no trace, and the origin of the rows says which was taken.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use tagwire_base::{ContextId, Rank, Tag};
use tagwire_matching::Pattern;

use crate::traffic::{Outgoing, Request, Script};

/// What becomes of collectives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Collectives {
    /// They are counted.
    #[default]
    Drop,
    /// They are messages.
    Expand,
}

/// A kind of collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Barrier,
    Bcast,
    Reduce,
    Allreduce,
    Allgather,
    Alltoall,
}

/// A collective that a rank called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Collective {
    pub(super) kind: Kind,
    pub(super) root: u32,
    pub(super) context: u16,
    /// Of the whole buffer; of a rank's block where all have one (allgather, alltoall).
    pub(super) bytes: u64,
    /// Whether its communicator has all ranks, by their numbers in the job.
    pub(super) is_of_all: bool,
}

/// The same in the script of its rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed {
    /// Steps of the script that come before it.
    pub(super) before: usize,
    pub(super) at: u64,
    pub(super) line: usize,
    pub(super) what: Collective,
}

/// How often each kind was made messages of, and how often it was left out.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) expanded: BTreeMap<Kind, u64>,
    pub(super) left_out: BTreeMap<Kind, u64>,
}

impl Kind {
    /// Returns the kind of a call, where it is one that becomes messages.
    pub(crate) fn of(call: &str) -> Option<Self> {
        ALL.into_iter().find(|kind| kind.call() == call)
    }

    /// Returns its name in MPI.
    pub(crate) const fn call(self) -> &'static str {
        match self {
            Self::Barrier => "MPI_Barrier",
            Self::Bcast => "MPI_Bcast",
            Self::Reduce => "MPI_Reduce",
            Self::Allreduce => "MPI_Allreduce",
            Self::Allgather => "MPI_Allgather",
            Self::Alltoall => "MPI_Alltoall",
        }
    }

    /// Returns what is taken for its algorithm.
    pub(crate) const fn algorithm(self) -> &'static str {
        match self {
            Self::Barrier => "dissemination",
            Self::Bcast | Self::Reduce => "binomial tree",
            Self::Allreduce => "recursive doubling",
            Self::Allgather => "ring",
            Self::Alltoall => "pairwise exchange",
        }
    }

    /// The tag of its messages: one for each kind, as in MPICH and Open MPI.
    const fn tag(self) -> Tag {
        Tag::internal(self as u32)
    }
}

const ALL: [Kind; 6] = [
    Kind::Barrier,
    Kind::Bcast,
    Kind::Reduce,
    Kind::Allreduce,
    Kind::Allgather,
    Kind::Alltoall,
];

/// Puts the messages of collectives into the scripts of all ranks. Those of communicators that have not all ranks are left out.
///
/// # Errors
/// What is wrong with collectives that ranks do not call alike.
pub(super) fn expand(scripts: &mut [Script], called: &[Vec<Placed>]) -> Result<Counts, String> {
    let all = || called.iter().flatten().map(|placed| &placed.what);
    let of_some: BTreeSet<u16> = all()
        .filter(|what| !what.is_of_all)
        .map(|what| what.context)
        .collect();
    let is_taken = |what: &Collective| !of_some.contains(&what.context);
    // What a file that was cut does not have, ranks wait for at its end.
    if !scripts.iter().any(Script::is_cut) {
        are_alike(called, is_taken)?;
    }
    let mut counts = Counts::default();
    for what in all() {
        let counted = match is_taken(what) {
            true => &mut counts.expanded,
            false => &mut counts.left_out,
        };
        *counted.entry(what.kind).or_default() += 1;
    }
    let ranks = scripts.len() as u32;
    for ((rank, script), called) in (0..).zip(scripts).zip(called) {
        let taken = called.iter().filter(|placed| is_taken(&placed.what));
        let places = taken.map(|placed| (placed.before, placed.at, placed));
        *script = std::mem::take(script).with_before(places, |script, placed| {
            script.at_line(placed.line);
            Caller {
                script,
                rank,
                ranks,
                what: &placed.what,
            }
            .call();
        });
    }
    Ok(counts)
}

/// Whether all ranks call the same collectives in each context, in the same order and with the same roots.
fn are_alike(called: &[Vec<Placed>], is_taken: impl Fn(&Collective) -> bool) -> Result<(), String> {
    let of_rank = |rank: usize, context: u16| {
        let own = called[rank].iter().map(|placed| &placed.what);
        let own = own.filter(move |what| what.context == context);
        own.map(|what| (what.kind, what.root)).collect::<Vec<_>>()
    };
    let taken = called.iter().flatten().map(|placed| &placed.what);
    let contexts: BTreeSet<u16> = taken
        .filter(|what| is_taken(what))
        .map(|what| what.context)
        .collect();
    for context in contexts {
        let first = of_rank(0, context);
        for rank in 1..called.len() {
            let other = of_rank(rank, context);
            let count = first.len().max(other.len());
            let differs = (0..count).find(|place| first.get(*place) != other.get(*place));
            if let Some(place) = differs {
                let told = |own: &[(Kind, u32)]| match own.get(place) {
                    Some((kind, root)) => format!("{} of root {root}", kind.call()),
                    None => "none".to_owned(),
                };
                return Err(format!(
                    "collective {} of communicator {context} is {} of rank 0, and {} of rank {rank}",
                    place + 1,
                    told(&first),
                    told(&other)
                ));
            }
        }
    }
    Ok(())
}

/// A rank in a collective.
struct Caller<'a> {
    script: &'a mut Script,
    rank: u32,
    ranks: u32,
    what: &'a Collective,
}

impl Caller<'_> {
    fn call(&mut self) {
        match self.what.kind {
            Kind::Barrier => self.barrier(),
            Kind::Bcast => self.broadcast(),
            Kind::Reduce => self.reduce(),
            Kind::Allreduce => self.allreduce(),
            Kind::Allgather => (1..self.ranks).for_each(|_| self.shift(1)),
            Kind::Alltoall => (1..self.ranks).for_each(|distance| self.shift(distance)),
        }
    }

    /// Each hears of twice as many in each step.
    fn barrier(&mut self) {
        let mut distance = 1;
        while distance < self.ranks {
            self.shift(distance);
            distance *= 2;
        }
    }

    fn broadcast(&mut self) {
        let own = self.behind_root();
        // The lowest bit of a rank's distance from the root is that of its parent, and children have lower ones.
        let mut bit = 1;
        while bit < self.ranks && own & bit == 0 {
            bit *= 2;
        }
        if own != 0 {
            self.receive(self.at(own - bit));
        }
        while bit > 1 {
            bit /= 2;
            if own + bit < self.ranks {
                self.send(self.at(own + bit));
            }
        }
    }

    fn reduce(&mut self) {
        let own = self.behind_root();
        let mut bit = 1;
        while bit < self.ranks && own & bit == 0 {
            if own + bit < self.ranks {
                self.receive(self.at(own + bit));
            }
            bit *= 2;
        }
        if own != 0 {
            self.send(self.at(own - bit));
        }
    }

    /// Ranks beyond the largest power of two give their part to a neighbour before, and have the result from it.
    fn allreduce(&mut self) {
        let (rank, power) = (self.rank, 1 << self.ranks.ilog2());
        let rest = self.ranks - power;
        let is_paired = rank < 2 * rest;
        if is_paired && rank % 2 == 0 {
            self.send(rank + 1);
            self.receive(rank + 1);
            return;
        }
        if is_paired {
            self.receive(rank - 1);
        }
        let own = if is_paired { rank / 2 } else { rank - rest };
        let mut bit = 1;
        while bit < power {
            let partner = match own ^ bit {
                partner if partner < rest => 2 * partner + 1,
                partner => partner + rest,
            };
            self.exchange(partner, partner);
            bit *= 2;
        }
        if is_paired {
            self.send(rank - 1);
        }
    }

    /// A message to the rank so far behind, and one from that before.
    fn shift(&mut self, distance: u32) {
        let (rank, ranks) = (self.rank, self.ranks);
        self.exchange((rank + distance) % ranks, (rank + ranks - distance) % ranks);
    }

    fn exchange(&mut self, to: u32, from: u32) {
        let requests = vec![self.post(from), self.start(to)];
        self.script.wait(requests);
    }

    fn send(&mut self, to: u32) {
        let request = self.start(to);
        self.script.wait(vec![request]);
    }

    fn receive(&mut self, from: u32) {
        let request = self.post(from);
        self.script.wait(vec![request]);
    }

    fn post(&mut self, from: u32) -> Request {
        self.script.post(Pattern {
            source: Rank::new(from).into(),
            tag: self.what.kind.tag().into(),
            context: ContextId::new(self.what.context),
        })
    }

    fn start(&mut self, to: u32) -> Request {
        self.script.send(Outgoing {
            to,
            tag: self.what.kind.tag().as_i32(),
            context: self.what.context,
            bytes: self.what.bytes,
            synchronous: false,
        })
    }

    /// How far the rank is behind the root.
    const fn behind_root(&self) -> u32 {
        (self.rank + self.ranks - self.what.root) % self.ranks
    }

    /// The rank that is so far behind the root.
    const fn at(&self, behind: u32) -> u32 {
        (behind + self.what.root) % self.ranks
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::stats::{Groups, Key, count, merge};
    use crate::traffic::Model;

    fn placed(kind: Kind, root: u32, context: u16, is_of_all: bool) -> Placed {
        Placed {
            before: 0,
            at: 5,
            line: 3,
            what: Collective {
                kind,
                root,
                context,
                bytes: 64,
                is_of_all,
            },
        }
    }

    /// So many messages have they, of so many ranks.
    fn messages(kind: Kind, ranks: u32) -> u32 {
        let log = ranks.ilog2();
        let power = 1 << log;
        match kind {
            Kind::Barrier => ranks * ranks.next_power_of_two().ilog2(),
            Kind::Bcast | Kind::Reduce => ranks - 1,
            Kind::Allreduce => 2 * (ranks - power) + power * log,
            Kind::Allgather | Kind::Alltoall => ranks * (ranks - 1),
        }
    }

    #[test]
    fn collectives_have_the_messages_of_their_algorithms_and_come_to_their_end() {
        for kind in ALL {
            assert_eq!(Kind::of(kind.call()), Some(kind));
            for ranks in 1..=9 {
                for root in [0, ranks - 1, ranks / 2] {
                    let mut scripts = vec![Script::new(); ranks as usize];
                    let called = vec![vec![placed(kind, root, 0, true)]; ranks as usize];
                    let counts = expand(&mut scripts, &called).unwrap();
                    assert_eq!(counts.expanded, [(kind, u64::from(ranks))].into());
                    for model in ["causal", "posted", "shuffled", "random", "sendtime"] {
                        let model: Model = model.parse().unwrap();
                        let mut sum = Groups::new();
                        for trace in model.traces(&scripts, "test").unwrap() {
                            merge(&mut sum, &count(&trace).unwrap());
                        }
                        let own = sum.entry(Key::INTERNAL).or_default().summary();
                        let wanted = u64::from(messages(kind, ranks));
                        let case = format!("{kind:?} of {ranks} from {root}: {model}");
                        assert_eq!((own.posts, own.arrivals), (wanted, wanted), "{case}");
                        if wanted > 0 {
                            assert_eq!(own.bytes.max, 64, "{case}");
                        }
                        assert!(!sum.contains_key(&Key::PROGRAM) || sum[&Key::PROGRAM].posts == 0);
                    }
                }
            }
        }
    }

    /// A communicator that not all ranks have is nobody's; others are expanded beside it, each before its step.
    #[test]
    fn collectives_of_some_ranks_are_left_out_and_those_that_differ_are_refused() {
        let mut scripts = vec![Script::new(); 2];
        for script in &mut scripts {
            script.compute(1);
            script.compute(2);
        }
        let mut behind = placed(Kind::Bcast, 1, 0, true);
        behind.before = 1;
        let called = vec![
            vec![behind.clone(), placed(Kind::Barrier, 0, 7, true)],
            vec![behind, placed(Kind::Barrier, 0, 7, false)],
        ];
        let counts = expand(&mut scripts, &called).unwrap();
        assert_eq!(counts.expanded, [(Kind::Bcast, 2)].into());
        assert_eq!(counts.left_out, [(Kind::Barrier, 2)].into());
        let steps: Vec<(usize, Option<u64>, u32)> = scripts
            .iter()
            .flat_map(|script| script.steps().iter().enumerate())
            .map(|(place, step)| (place, step.at, step.line))
            .collect();
        let own = [(0, None, 0), (1, Some(5), 3), (2, Some(5), 3), (3, None, 0)];
        assert_eq!(steps, [own, own].concat());
        let other = vec![vec![placed(Kind::Bcast, 1, 0, true)], Vec::new()];
        let told = expand(&mut scripts, &other).unwrap_err();
        assert_eq!(
            told,
            "collective 1 of communicator 0 is MPI_Bcast of root 1 of rank 0, and none of rank 1"
        );
        // A file that was cut may lack them.
        scripts[1].cut();
        assert!(expand(&mut scripts, &other).is_ok());
    }
}
