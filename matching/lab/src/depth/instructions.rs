//! Instructions of a match: the difference of a run with few matches and one with many.

use tagwire_matching::EngineName;

use super::axes::word;
use super::scenario::Scenario;
use crate::error::Result;
use crate::valgrind::{instructions, option};

/// Returns the instructions of a match, the loop around it included: the difference of two runs, by the difference of their
/// matches. Both fill their queue alike.
pub(super) fn per_match(engine: &EngineName, scenario: &Scenario) -> Result<f64> {
    let few = run(engine, scenario, FEW)?;
    let many = run(engine, scenario, MOST)?;
    Ok(many.saturating_sub(few) as f64 / f64::from(MOST - FEW))
}

/// The instructions of so many matches, and of what comes before them.
fn run(engine: &EngineName, scenario: &Scenario, matches: u32) -> Result<u64> {
    instructions([
        "depth".to_owned(),
        option("engine", engine),
        option("queue", word(scenario.queue)),
        option("ahead", scenario.ahead),
        option("behind", scenario.behind),
        option("wild", scenario.wild),
        option("wild-kind", word(scenario.kind)),
        option("wild-at", word(scenario.wild_at)),
        option("keys", word(scenario.keys)),
        option("layout", word(scenario.layout)),
        option("age", scenario.age),
        option("seed", scenario.seed),
        option("only-matches", matches),
    ])
}

/// Matches of the two runs.
const FEW: u32 = 4;
pub(super) const MOST: u32 = 36;
