//! Which algorithms collectives take.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_base::config::parse::format_bytes;
use tagwire_coll::{Algorithm, Collective, Place, Selection, TRIED_FROM};

use super::page::Page;

/// For groups of so many ranks.
const RANKS: [usize; 3] = [2, 4, 64];

/// The table, and what is taken by it and by the settings.
#[derive(Debug, Serialize)]
pub struct CollectivesReport {
    /// The file of the table, or that it is the one in the tree.
    pub table: String,
    /// Differs where rows do.
    pub digest: Option<String>,
    /// Whether reductions of floating-point numbers combine in one tree, by any algorithm.
    pub is_fixed: bool,
    /// The operations whose fastest algorithm groups on one host find by trial.
    pub tried: Vec<TriedReport>,
    /// The algorithms that the setting names.
    pub named: Vec<NamedReport>,
    /// Why the settings are refused.
    pub error: Option<String>,
    pub operations: Vec<CollectiveReport>,
}

/// An operation whose fastest algorithm is found by trial.
#[derive(Debug, Serialize)]
pub struct TriedReport {
    pub operation: String,
    /// For lengths from here on.
    pub from_bytes: usize,
    pub algorithms: Vec<TriedAlgorithm>,
}

/// One of those that are tried.
#[derive(Debug, Serialize)]
pub struct TriedAlgorithm {
    pub name: &'static str,
    /// Why it cannot be taken here.
    pub why_not: Option<String>,
}

/// An algorithm that the setting names.
#[derive(Debug, Serialize)]
pub struct NamedReport {
    pub operation: String,
    pub algorithm: &'static str,
    /// Why no group of a job on one host can take it, which then is an error.
    pub why_not_on_one_host: Option<String>,
    /// Why none of a job on several hosts can, which have two ranks each.
    pub why_not_on_several: Option<String>,
}

/// The algorithms of an operation in a group.
#[derive(Debug, Serialize)]
pub struct CollectiveReport {
    pub operation: String,
    pub ranks: usize,
    /// Where the ranks are; none where that makes no difference.
    pub place: Option<&'static str>,
    /// By length, the shortest first.
    pub algorithms: Vec<AlgorithmReport>,
}

/// An algorithm and the length from which it is taken.
#[derive(Debug, Serialize)]
pub struct AlgorithmReport {
    pub from_bytes: usize,
    pub name: &'static str,
}

/// What the table and the setting say.
pub fn gather(config: &Config) -> CollectivesReport {
    let selection = match Selection::from_config(config) {
        Ok(selection) => selection,
        Err(error) => {
            return CollectivesReport {
                table: config.text("coll-table").to_owned(),
                digest: None,
                is_fixed: false,
                tried: Vec::new(),
                named: Vec::new(),
                error: Some(error.to_string()),
                operations: Vec::new(),
            };
        }
    };
    let places = Place::ALL.map(|place| {
        let on_one_host = place == Place::Host;
        (place, selection.clone().on_one_host(on_one_host))
    });
    let mut operations = Vec::new();
    for operation in Collective::ALL {
        for ranks in RANKS {
            let found = places
                .each_ref()
                .map(|(place, it)| (place.name(), it.ranges(*operation, ranks)));
            let [(_, host), (_, hosts)] = &found;
            let differs = host != hosts;
            let kept = if differs { 2 } else { 1 };
            let reports = found.into_iter().take(kept).map(|(place, ranges)| {
                let ranges = ranges.into_iter();
                CollectiveReport {
                    operation: operation.to_string(),
                    ranks,
                    place: differs.then_some(place),
                    algorithms: ranges
                        .map(|(from_bytes, name)| AlgorithmReport { from_bytes, name })
                        .collect(),
                }
            });
            operations.extend(reports);
        }
    }
    CollectivesReport {
        table: selection.table().name().to_owned(),
        digest: Some(format!("{:016x}", selection.table().digest())),
        is_fixed: selection.is_fixed(),
        tried: tried(&selection, config),
        named: named(&selection, config),
        error: None,
        operations,
    }
}

/// The operations that are tried, where boards are to be had.
fn tried(selection: &Selection, config: &Config) -> Vec<TriedReport> {
    let shares = Selection::shares_memory_by(config, true);
    let on_one_host = selection.clone().on_one_host(shares);
    let report = |what: &Collective| {
        let algorithms = selection.tried(*what).into_iter();
        let algorithms = algorithms.map(|it| TriedAlgorithm {
            name: it.name,
            why_not: on_one_host.why_not(it, config),
        });
        let algorithms: Vec<_> = algorithms.collect();
        let is_tried = algorithms.iter().filter(|it| it.why_not.is_none()).count() > 1;
        is_tried.then(|| TriedReport {
            operation: what.to_string(),
            from_bytes: TRIED_FROM,
            algorithms,
        })
    };
    Collective::ALL.iter().filter_map(report).collect()
}

/// The algorithms that the setting names, and where they would be refused.
fn named(selection: &Selection, config: &Config) -> Vec<NamedReport> {
    let shares = |is_local| Selection::shares_memory_by(config, is_local);
    let on_one_host = selection.clone().on_one_host(shares(true));
    let on_several = selection.clone().with_hosts(&[0, 0, 1, 1], shares(false));
    let report = |it: &'static Algorithm| NamedReport {
        operation: it.collective.to_string(),
        algorithm: it.name,
        why_not_on_one_host: on_one_host.why_not(it, config),
        why_not_on_several: on_several.why_not(it, config),
    };
    selection.forced().map(report).collect()
}

/// The table, what is tried and what is named, and a line for each operation and group.
pub fn render(page: &mut Page, report: &CollectivesReport) {
    page.section("Collectives");
    if let Some(error) = &report.error {
        page.line(&format!("  refused: {error}"));
        return;
    }
    let digest = report.digest.as_deref().unwrap_or_default();
    page.line(&format!("  table: {} (digest {digest})", report.table));
    if report.is_fixed {
        page.line("  reductions: fixed; those of integers may take other algorithms");
    }
    render_tried(page, &report.tried);
    for one in &report.named {
        let NamedReport {
            operation,
            algorithm,
            ..
        } = one;
        page.line(&format!("  {operation}: {algorithm} (coll-algorithm)"));
        for (place, why_not) in [
            ("one host", &one.why_not_on_one_host),
            ("several hosts", &one.why_not_on_several),
        ] {
            if let Some(reason) = why_not {
                page.line(&format!("    - refused by jobs on {place}: {reason}"));
            }
        }
    }
    for one in &report.operations {
        let ranges = one
            .algorithms
            .iter()
            .map(|algorithm| match algorithm.from_bytes {
                0 => algorithm.name.to_owned(),
                bytes => format!("{} from {} on", algorithm.name, format_bytes(bytes as u64)),
            });
        let ranges = ranges.collect::<Vec<_>>().join(", ");
        let place = match one.place {
            Some("host") => ", one host",
            Some(_) => ", several hosts",
            None => "",
        };
        page.line(&format!(
            "  {}, {} ranks{place}: {ranges}",
            one.operation, one.ranks
        ));
    }
}

/// A line for all operations that are tried, and one for what cannot be taken here.
fn render_tried(page: &mut Page, tried: &[TriedReport]) {
    let Some(first) = tried.first() else {
        return;
    };
    let operations = tried.iter().map(|one| {
        let usable = one.algorithms.iter().filter(|it| it.why_not.is_none());
        let names: Vec<&str> = usable.map(|it| it.name).collect();
        format!("{} ({})", one.operation, names.join(", "))
    });
    let operations = operations.collect::<Vec<_>>().join(", ");
    page.line(&format!(
        "  found by trial on one host, from {} on: {operations}; coll-algorithm fixes one",
        format_bytes(first.from_bytes as u64)
    ));
    let all = tried.iter().flat_map(|one| &one.algorithms);
    let mut told: Vec<&str> = Vec::new();
    for one in all {
        if let Some(reason) = one.why_not.as_ref().filter(|_| !told.contains(&one.name)) {
            told.push(one.name);
            page.line(&format!("    - not by {}: {reason}", one.name));
        }
    }
}
