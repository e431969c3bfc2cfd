//! The cases of a simulated command on a machine, each by the part of the simulator that has its rounds.

use std::rc::Rc;

use clap::Parser;
use tagwire_bench::{
    PatternCarrier, PatternEdge, PatternStep, ProfiledRank, Reduced, Row, Simulated,
    SimulatedCallers, SimulatedCase, SimulatedExchange, SimulatedNeighbours, SimulatedPair,
    SimulatedPattern, SimulatedProfile, SimulatedReduction, Timed,
};
use tagwire_bench_sim::apps;
use tagwire_bench_sim::callers::{self, Callers};
use tagwire_bench_sim::messaging::{self, Exchange};
use tagwire_bench_sim::motif::{self, Motif};
use tagwire_bench_sim::neighbours::{self, Neighbours};
use tagwire_bench_sim::partitioned::{self, Case, Stamps};
use tagwire_bench_sim::reduction::{self, Reduction};
use tagwire_bench_sim::{Pml, RankProfile, SimArgs, pairs};
use tagwire_pml::Policy;
use tagwire_sim::SimOptions;

use crate::failure::Failure;

/// The words of a run of `tagwire sim`.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct SimWords {
    #[command(flatten)]
    sim: SimArgs,
}

/// Returns the name of a layer in rows.
const fn name_of(pml: Pml) -> &'static str {
    match pml {
        Pml::Cm => "cm",
        _ => OB1,
    }
}

/// The layer of all that is not said to be of another.
const OB1: &str = "ob1";

/// A simulated machine, and what its rows call it.
pub struct Place<'a> {
    pub options: &'a SimOptions,
    pub transport: &'a str,
}

impl Place<'_> {
    /// Returns the rows of all cases of a command.
    pub fn rows(&self, command: &Simulated) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for case in command.cases() {
            let timed =
                timed(partitioned::run(self.options, &partitions(&case)?).map_err(Failure::run)?);
            rows.push(case.row(self.transport, OB1, &timed));
        }
        rows.extend(self.by_size(
            &command.exchanges().map_err(Failure::run)?,
            |one| one.size,
            |one| messaging::run(self.options, &like(one)).map_err(Failure::run),
            SimulatedExchange::rows,
        )?);
        rows.extend(self.by_size(
            &command.patterns().map_err(Failure::run)?,
            |one| one.size,
            |one| motif::run(self.options, &motif(one)?).map_err(Failure::run),
            SimulatedPattern::rows,
        )?);
        rows.extend(self.by_size(
            &command.reductions().map_err(Failure::run)?,
            |one| one.size,
            |one| reduction::run(self.options, &reduction(one)).map_err(Failure::run),
            SimulatedReduction::rows,
        )?);
        for pair in command.pairs() {
            rows.push(self.pair(&pair)?);
        }
        for case in command.neighbours() {
            rows.push(self.neighbours(&case)?);
        }
        for case in command.callers().map_err(Failure::run)? {
            rows.push(self.callers(&case)?);
        }
        Ok(rows)
    }

    /// Returns the row of a skeleton of an application, by the words behind `tagwire sim`.
    pub fn app(&self, words: &[String]) -> Result<Row, Failure> {
        let parsed = SimWords::try_parse_from(words).map_err(Failure::run)?;
        let args = parsed.sim;
        let unknown = || Failure::run(format!("'{}' is no skeleton", args.program));
        let (app, case) = args.app().ok_or_else(unknown)?;
        let profile = apps::run(self.options, args.pml, app, case).map_err(Failure::run)?;
        let of = |rank: &RankProfile| ProfiledRank {
            run: rank.run,
            library: rank.library(),
            short: rank.short(),
            long: rank.long,
            dropped: rank.dropped,
            dropped_share: rank.dropped_share(),
        };
        let routines = profile.routines().into_iter();
        let simulated = SimulatedProfile {
            name: app.name.to_owned(),
            pml: name_of(args.pml).to_owned(),
            steps: case.steps.into(),
            ranks: profile.ranks.iter().map(of).collect(),
            routines: routines
                .map(|(name, part)| (name.to_owned(), part))
                .collect(),
        };
        Ok(simulated.row(self.transport))
    }

    /// Returns the rows of all series, size by size, each with its times.
    fn by_size<T: Clone, N>(
        &self,
        all: &[T],
        size: impl Fn(&T) -> usize,
        run: impl Fn(&T) -> Result<Vec<N>, Failure>,
        rows: impl Fn(&str, &str, &[(T, Vec<N>)]) -> Vec<Row>,
    ) -> Result<Vec<Row>, Failure> {
        let mut found = Vec::new();
        for of_size in all.chunk_by(|one, other| size(one) == size(other)) {
            let timed = of_size.iter().map(|one| Ok((one.clone(), run(one)?)));
            let timed: Vec<_> = timed.collect::<Result<_, Failure>>()?;
            found.extend(rows(self.transport, OB1, &timed));
        }
        Ok(found)
    }

    fn pair(&self, pair: &SimulatedPair) -> Result<Row, Failure> {
        let pml = match &*pair.pml {
            "cm" => Pml::Cm,
            _ => Pml::Ob1,
        };
        let count = u32::try_from(pair.iterations).map_err(Failure::usage)?;
        let times = match pair.window {
            None => pairs::round_trips(self.options, pml, pair.size, count),
            Some(_) => pairs::windows(self.options, pml, pair.size, count),
        };
        Ok(pair.row(self.transport, &times.map_err(Failure::run)?))
    }

    fn neighbours(&self, case: &SimulatedNeighbours) -> Result<Row, Failure> {
        let of = Neighbours {
            ranks: case.ranks,
            bytes: case.size,
            compute: case.compute,
            helper: match case.helper {
                tagwire_bench::Helper::Blocked => neighbours::Helper::Blocked,
                tagwire_bench::Helper::Library => neighbours::Helper::Library,
                _ => neighbours::Helper::Nobody,
            },
            iterations: case.iterations,
        };
        let times = neighbours::run(self.options, of).map_err(Failure::run)?;
        Ok(case.row(self.transport, OB1, &times))
    }

    fn callers(&self, case: &SimulatedCallers) -> Result<Row, Failure> {
        let of = Callers {
            nodes: case.nodes,
            callers: case.callers,
            are_threads: case.are_threads,
            bytes: case.size,
            iterations: case.iterations,
        };
        let times = callers::run(self.options, of).map_err(Failure::run)?;
        Ok(case.row(self.transport, OB1, &times))
    }
}

fn like(exchange: &SimulatedExchange) -> Exchange {
    let arrivals = exchange.clone();
    Exchange {
        ranks: exchange.ranks,
        threads: exchange.threads,
        peers: exchange.peers,
        bytes: exchange.size,
        parts: exchange.parts,
        leaves: match exchange.leaves {
            tagwire_bench::Leaves::Serially => messaging::Leaves::Serially,
            tagwire_bench::Leaves::Together => messaging::Leaves::Together,
            _ => messaging::Leaves::Early,
        },
        is_remote: exchange.is_remote,
        iterations: exchange.iterations,
        arrivals: Rc::new(move |iteration, rank| arrivals.arrivals(iteration, rank)),
    }
}

fn reduction(case: &SimulatedReduction) -> Reduction {
    Reduction {
        ranks: case.ranks,
        group: case.group,
        bytes: case.size,
        way: match case.way {
            Reduced::Multilane => reduction::Way::Multilane,
            Reduced::Direct => reduction::Way::Partitioned { direct: true },
            Reduced::Deferred => reduction::Way::Partitioned { direct: false },
            _ => reduction::Way::Native,
        },
        copied: case.copied.clone().into(),
        iterations: case.iterations,
    }
}

fn motif(pattern: &SimulatedPattern) -> Result<Motif, Failure> {
    let scripts = (0..pattern.ranks).map(|rank| script(pattern, rank));
    let scripts: Vec<motif::Script> = scripts.collect::<Result<_, _>>()?;
    Ok(Motif {
        ranks: pattern.ranks,
        threads: pattern.threads,
        script: Rc::new(move |rank| scripts[rank as usize].clone()),
    })
}

fn script(pattern: &SimulatedPattern, rank: u32) -> Result<motif::Script, Failure> {
    let script = pattern.script(rank);
    let edges = |all: &[PatternEdge]| {
        let edge = |edge: &PatternEdge| motif::Edge {
            peer: edge.peer,
            number: edge.number,
            parts: edge.parts,
            len: edge.len,
        };
        all.iter().map(edge).collect()
    };
    let exchanges = script.exchanges.iter().map(|of| {
        Ok(motif::Edges {
            carrier: carrier(&of.carrier)?,
            outs: edges(&of.outs),
            ins: edges(&of.ins),
        })
    });
    let steps = |all: &[PatternStep]| all.iter().map(step).collect::<Result<Vec<_>, Failure>>();
    let regions = script.regions.iter().map(|region| {
        let threads = region.threads.iter().map(|all| steps(all));
        Ok(motif::Region {
            before: steps(&region.before)?,
            threads: threads.collect::<Result<_, Failure>>()?,
            after: steps(&region.after)?,
        })
    });
    Ok(motif::Script {
        exchanges: exchanges.collect::<Result<_, Failure>>()?,
        regions: regions.collect::<Result<_, Failure>>()?,
    })
}

fn carrier(of: &PatternCarrier) -> Result<motif::Carrier, Failure> {
    Ok(match of {
        PatternCarrier::Calls => motif::Carrier::Calls,
        PatternCarrier::Posted => motif::Carrier::Posted,
        PatternCarrier::Partitioned(policy) => {
            let policy = policy.parse::<Policy>().map_err(Failure::usage)?;
            motif::Carrier::Partitioned(policy)
        }
        other => return Err(Failure::run(format!("{other:?} is not simulated"))),
    })
}

fn step(of: &PatternStep) -> Result<motif::Step, Failure> {
    Ok(match *of {
        PatternStep::Start(exchange) => motif::Step::Start(exchange),
        PatternStep::Ready {
            exchange,
            edge,
            part,
        } => motif::Step::Ready {
            exchange,
            edge,
            part,
        },
        PatternStep::Arrive {
            exchange,
            edge,
            part,
        } => motif::Step::Arrive {
            exchange,
            edge,
            part,
        },
        PatternStep::Finish(exchange) => motif::Step::Finish(exchange),
        PatternStep::Compute(time) => motif::Step::Compute(time),
        other => return Err(Failure::run(format!("{other:?} is not simulated"))),
    })
}

fn partitions(case: &SimulatedCase) -> Result<Case, Failure> {
    let delays = case.clone();
    Ok(Case {
        bytes: case.size,
        partitions: case.partitions,
        policy: case.policy.parse::<Policy>().map_err(Failure::usage)?,
        rounds: u32::try_from(case.rounds).map_err(Failure::usage)?,
        delays: Rc::new(move |round, thread| delays.delay(round, thread)),
    })
}

fn timed(stamps: Stamps) -> Timed {
    let messages = stamps.messages.iter();
    let partitions = stamps.partitions.iter();
    Timed {
        messages: messages.map(|one| [one.fork_join, one.message]).collect(),
        partitions: partitions
            .map(|round| {
                let stamps = round.iter().map(|one| [one.called, one.ready, one.arrived]);
                stamps.collect()
            })
            .collect(),
        last: stamps.last,
        way: stamps.way,
    }
}
