//! The jobs of a run over one transport: which ranks they have, and where those are.

use crate::Host;
use crate::args::{BenchArgs, List};
use crate::binding::Placement;
use crate::concurrent::{self, Variant};
use crate::error::{Error, Result};
use crate::machines::Director;
use crate::position::Position;
use crate::record::Row;
use crate::spread::Spread;

/// One of the jobs over each transport: most tests have one, and those that compare processes with threads one for each unit.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub placement: Placement,
    pub variant: Option<Variant>,
    /// The command with what this job has of its lists of engines and lengths of queues.
    pub own: Option<Box<BenchArgs>>,
    /// What its rows have of them.
    pub queue: Queue,
}

/// What a job's rows have of lists of engines and lengths of queues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Queue {
    /// Where there are several, and over our own transports alone.
    pub engine: Option<String>,
    pub posted: Option<u32>,
    pub unexpected: Option<u32>,
    pub wild: Option<u32>,
    pub position: Option<Position>,
    pub spread: Option<Spread>,
}

impl Queue {
    /// Of a row of a run whose jobs differ by them, or not, and by engines, or not.
    pub(super) fn of_row(row: &Row, has_queues: bool, has_engines: bool) -> Self {
        let engine = row.series.engine.clone();
        match has_queues {
            false => Self::default(),
            true => Self {
                engine: engine.filter(|_| has_engines && !row.is_foreign()),
                posted: row.series.posted,
                unexpected: row.series.unexpected,
                wild: row.series.wild,
                position: row.series.position,
                spread: row.series.spread,
            },
        }
    }

    /// The same of a job over a library that is not ours, which has an engine of its own.
    pub(super) fn of_foreign(&self) -> Self {
        Self {
            engine: None,
            ..self.clone()
        }
    }
}

impl Case {
    /// A job of a test without units.
    pub(crate) fn plain(placement: Placement) -> Self {
        Self {
            placement,
            variant: None,
            own: None,
            queue: Queue::default(),
        }
    }

    /// The command of the job, which is part of the whole one.
    pub(super) fn args<'a>(&'a self, whole: &'a BenchArgs) -> &'a BenchArgs {
        self.own.as_deref().unwrap_or(whole)
    }

    pub(super) fn is_oversubscribed(&self) -> bool {
        let callers = self.variant.as_ref().map_or(0, |it| it.shape.callers);
        callers as usize > self.placement.cores
    }

    /// What the plan of the job is made of, beside the command.
    pub(super) fn variant(&self) -> Option<(&Variant, usize)> {
        let variant = self.variant.as_ref()?;
        Some((variant, self.placement.cores))
    }
}

/// The cases of a test, in the order of the command; at least one. Of a run between two machines they are placed with the
/// ranks that are here.
pub(super) fn cases(args: &BenchArgs, host: &Host, other: Option<&Director>) -> Result<Vec<Case>> {
    let bind = args.bind.as_deref();
    let place = |ranks, threads| match other {
        Some(other) => Placement::new(other.bind(bind), other.own(ranks), threads),
        None => Placement::new(bind, ranks, threads),
    };
    let variants = concurrent::variants(args)?;
    if variants.is_empty() {
        let threads = match other {
            Some(_) => args.threads.unwrap_or(1),
            None => args.thread_count(),
        };
        let placement = place(args.rank_count(), threads)?;
        return by_queue(args, host, &placement);
    }
    let case = |variant: Variant| {
        let threads = match variant.unit.is_threads() {
            true => variant.unit.count,
            false => 1,
        };
        let nodes = &variant.shape.nodes;
        let placement = match other {
            Some(_) => place(nodes.len() as u32, threads)?,
            None => Placement::of_nodes(bind, nodes)?,
        };
        Ok(Case {
            variant: Some(variant),
            ..Case::plain(placement)
        })
    };
    variants.into_iter().map(case).collect()
}

/// A case for each engine and length of a queue, where there are several.
fn by_queue(args: &BenchArgs, host: &Host, placement: &Placement) -> Result<Vec<Case>> {
    let all = args.by_queue();
    if all.len() == 1 {
        return Ok(vec![Case::plain(placement.clone())]);
    }
    let case = |own: BenchArgs| {
        // An engine that there is not is told before anything starts.
        let engine = host.configured(&own)?.config.named("engine").to_string();
        Ok(Case {
            queue: Queue {
                engine: args.has_engines().then_some(engine),
                posted: own.posted.as_ref().map(List::only),
                unexpected: own.unexpected.as_ref().map(List::only),
                wild: own.wild.as_ref().map(List::only),
                position: own.position.as_ref().map(List::only),
                spread: own.spread.as_ref().map(List::only),
            },
            own: Some(Box::new(own)),
            ..Case::plain(placement.clone())
        })
    };
    let all = all.into_iter().map(case).collect::<Result<Vec<Case>>>()?;
    // Names with parameters may be two of one engine.
    let twice = |place: &usize| {
        all[..*place]
            .iter()
            .any(|one| one.queue == all[*place].queue)
    };
    match (0..all.len()).find(twice).map(|place| &all[place].queue) {
        Some(Queue {
            engine: Some(engine),
            ..
        }) => Err(Error::Usage(format!("engine '{engine}' is given twice"))),
        _ => Ok(all),
    }
}

/// Where the ranks of all cases run.
pub(super) fn binding(cases: &[Case]) -> String {
    let text = |case: &Case| case.placement.text.clone();
    let first = text(&cases[0]);
    if cases.iter().all(|case| text(case) == first) {
        return first;
    }
    let named = cases.iter().filter_map(|case| {
        let variant = case.variant.as_ref()?;
        Some(format!("{} {}", variant.unit, text(case)))
    });
    let mut named: Vec<String> = named.collect();
    named.dedup();
    named.join("; ")
}
