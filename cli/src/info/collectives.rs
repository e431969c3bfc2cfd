//! Which algorithms collectives take.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_base::config::parse::format_bytes;
use tagwire_coll::{Collective, Place, Selection};

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
    /// Why the settings are refused.
    pub error: Option<String>,
    pub operations: Vec<CollectiveReport>,
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
        error: None,
        operations,
    }
}

/// The table, and a line for each operation and group.
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
