//! One rank of the jobs that the multi-process tests start: `test_rank SCENARIO [ARGUMENTS]`.
//!
//! Every rank says first which process it is, and later, in lines that begin with its number,
//! what happened to it. The tests read these lines, and kill.

#![allow(
    clippy::unwrap_used,
    reason = "part of a test: a rank that panics fails"
)]

use std::error::Error;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use tagwire::{Result, Session};

mod bystander;
mod collective_death;
mod death;
mod descriptor;
mod exchange;
mod flood;
mod groups;
mod panics;
mod partitioned;
mod restarts;
mod shortage;
mod threads;
mod waiting;

/// What a scenario ends with.
type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, arguments)) = arguments.split_first() else {
        eprintln!("test_rank: which scenario?");
        return ExitCode::from(1);
    };
    // By the word of whichever launcher it is.
    let names = [
        "TAGWIRE_RANK",
        "PMIX_RANK",
        "PMI_RANK",
        "RANK",
        "SLURM_PROCID",
    ];
    let rank = names.iter().find_map(|name| std::env::var(name).ok());
    let rank = rank.unwrap_or_else(|| "0".to_owned());
    say(&rank, format!("is process {}", std::process::id()));
    let outcome = match name.as_str() {
        "death-collective" => collective_death::run(arguments),
        "death-posted" => death::posted(),
        "death-silent" => death::silent(),
        "death-unborn" => death::unborn(),
        "death-transfer" => death::transfer(),
        "death-asleep" => death::asleep(),
        "death-anywhere" => death::anywhere(),
        "death-busy" => death::busy(),
        "death-panic" => death::panic(),
        "death-tested" => death::tested(),
        "death-served" => death::served(),
        "descriptor" => descriptor::run(),
        "exchange" => exchange::run(),
        "flood" => flood::run(arguments),
        "groups" => groups::run(),
        "groups-sums" => groups::sums(),
        "groups-many" => groups::many(arguments),
        "many-requests" => flood::requests(),
        "partitioned" => partitioned::exchange(arguments),
        "partitioned-death" => partitioned::death(arguments),
        "hang" => waiting::hang(),
        "abort" => death::abort(),
        "exit" => death::exit(),
        "restarts" => restarts::run(arguments),
        "turns" => waiting::turns(),
        "wait-for-file" => waiting::for_file(arguments),
        "shortage" => shortage::descriptors(),
        "late" => shortage::late(arguments),
        "fork" => shortage::fork(),
        "threads" => threads::multiple(),
        "wrong-thread" => threads::wrong(),
        "scopes" => threads::scopes(),
        "panic-unmatched" => panics::unmatched(),
        "panic-in-a-reduction" => panics::in_a_reduction(),
        "panic-in-recv" => panics::in_recv(),
        "panic-at-scopes-end" => panics::at_scopes_end(),
        other => Err(format!("no scenario '{other}'").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In one write: a launcher that ends may pass on the first of several.
            let line = format!("rank {rank}: test_rank: {error}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// One line, in one write, so that lines of several ranks do not mix.
fn say(rank: impl Display, text: impl Display) {
    let line = format!("{rank} {text}\n");
    let mut out = std::io::stdout().lock();
    out.write_all(line.as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Does nothing, outside of the library, until killed.
fn sleep_until_killed() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

/// Every rank has been in contact with every other when this returns.
fn meet(session: &Session) -> Result<()> {
    const MEET: i32 = 1_000_000;
    let world = session.world();
    for other in (0..session.size()).filter(|other| *other != session.rank()) {
        world
            .isend_owned(vec![session.rank()], other, MEET)?
            .wait()?;
    }
    for other in (0..session.size()).filter(|other| *other != session.rank()) {
        let mut theirs = [u32::MAX];
        world.recv(&mut theirs, other, MEET)?;
        assert_eq!(theirs, [other]);
    }
    Ok(())
}
