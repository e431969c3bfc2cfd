//! The jobs of a run over one transport: which ranks they have, and where those are.

use crate::args::BenchArgs;
use crate::binding::Placement;
use crate::concurrent::{self, Variant};
use crate::error::Result;
use crate::machines::Director;

/// One of the jobs over each transport: most tests have one, and those that compare processes with threads one for each unit.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub placement: Placement,
    pub variant: Option<Variant>,
}

impl Case {
    /// A job of a test without units.
    pub(crate) const fn plain(placement: Placement) -> Self {
        Self {
            placement,
            variant: None,
        }
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
pub(super) fn cases(args: &BenchArgs, other: Option<&Director>) -> Result<Vec<Case>> {
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
        return Ok(vec![Case::plain(placement)]);
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
            placement,
            variant: Some(variant),
        })
    };
    variants.into_iter().map(case).collect()
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
