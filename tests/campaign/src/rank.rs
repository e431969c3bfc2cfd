//! A rank of a trial, as a process.

use crate::events::{Word, say};
use crate::programs;
use crate::stage::{RankOptions, Stage, Trouble};

fn descriptors() -> i64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as i64)
}

/// Runs a rank to its end. Returns whether all was as it must be.
///
/// # Errors
/// When the options are wrong.
pub fn run(options: RankOptions) -> Result<bool, String> {
    let rank = std::env::var("TAGWIRE_RANK").map_err(|_| "a rank is started by a launcher")?;
    let me = rank.parse().map_err(|why| format!("TAGWIRE_RANK: {why}"))?;
    let program = programs::ALL
        .iter()
        .find(|program| program.name() == options.program);
    let program = program.ok_or_else(|| format!("no program '{}'", options.program))?;
    say(me, &Word::Process(std::process::id() as i32));
    let before = descriptors();
    let stage = Stage::new(options, me);
    let ended = program.run(&stage);
    match &ended {
        Ok(()) => stage.say(&Word::Done(descriptors() - before)),
        Err(Trouble::Unopened(why)) => stage.say(&Word::Unopened(why.clone())),
        Err(Trouble::Wrong(why)) => stage.say(&Word::Wrong(why.clone())),
    }
    Ok(ended.is_ok())
}
