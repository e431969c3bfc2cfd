//! Which algorithms collectives take.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_base::config::parse::format_bytes;
use tagwire_coll::{Collective, Selection};

use super::page::Page;

/// For groups of so many ranks.
const RANKS: [usize; 3] = [2, 4, 64];

/// The algorithms of an operation in a group.
#[derive(Debug, Serialize)]
pub struct CollectiveReport {
    pub operation: String,
    pub ranks: usize,
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
pub fn gather(config: &Config) -> Vec<CollectiveReport> {
    // A wrong setting is refused by name where ranks are opened.
    let selection = Selection::from_config(config).unwrap_or_default();
    let of = |operation: Collective, ranks| CollectiveReport {
        operation: operation.to_string(),
        ranks,
        algorithms: selection
            .ranges(operation, ranks)
            .into_iter()
            .map(|(from_bytes, name)| AlgorithmReport { from_bytes, name })
            .collect(),
    };
    let all = Collective::ALL.iter();
    all.flat_map(|operation| RANKS.map(|ranks| of(*operation, ranks)))
        .collect()
}

/// A line for each operation and group.
pub fn render(page: &mut Page, all: &[CollectiveReport]) {
    page.section("Collectives");
    for one in all {
        let ranges = one
            .algorithms
            .iter()
            .map(|algorithm| match algorithm.from_bytes {
                0 => algorithm.name.to_owned(),
                bytes => format!("{} from {} on", algorithm.name, format_bytes(bytes as u64)),
            });
        let ranges = ranges.collect::<Vec<_>>().join(", ");
        page.line(&format!(
            "  {}, {} ranks: {ranges}",
            one.operation, one.ranks
        ));
    }
}
