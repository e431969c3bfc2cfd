//! Windows between processes: what threads of one process, as the other tests have for ranks, cannot show. The test program runs
//! itself again as the ranks of a job.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::Duration;

use common::windows::{Made, window};
use common::{INT, SUM, WORLD, barrier, data, one_sided, result};
use tagwire_launch::{Binding, Job, JobSpec};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype, Errhandler};
use tagwire_shim::call::communicators::comm_set_errhandler;
use tagwire_shim::call::datatypes;
use tagwire_shim::raw::Twin;

/// What the ranks do.
const PART: &str = "WINDOW_PROCESSES_PART";

/// Runs a part on two ranks.
fn run(part: &str) {
    let mut spec = JobSpec::new(2, std::env::current_exe().unwrap());
    let args = ["--exact", "plays_its_part", "--ignored", "--nocapture"];
    spec.args = args.map(Into::into).to_vec();
    spec.env.push((PART.into(), part.into()));
    spec.timeout = Some(Duration::from_secs(120));
    spec.quiet = true;
    // One that yields may be moved to the processor of the other.
    spec.binding = Binding::Core;
    let report = Job::start(spec).unwrap().wait().unwrap();
    assert_eq!(report.exit_status, 0, "{part}");
}

#[test]
#[ignore = "a rank of a job, which the other tests start"]
fn plays_its_part() {
    let found = tagwire_launch::detect::detect().unwrap();
    let process = Arc::new(Process::open(found.bootstrap, &[]).unwrap());
    for comm in [WORLD, Comm::SELF] {
        comm_set_errhandler(&process, comm, Errhandler::RETURN).unwrap();
    }
    let rank = process_rank(&process);
    match std::env::var(PART).unwrap().as_str() {
        "one value against many" => one_value_against_many(&process, rank),
        other => panic!("there is no part {other}"),
    }
    process.finalize().unwrap();
}

fn process_rank(process: &Process) -> i32 {
    let mut rank = 0;
    tagwire_shim::call::communicators::comm_rank(process, WORLD, result(&mut rank)).unwrap();
    rank
}

/// Windows that are made. In each somebody goes the long way for the first time once: that time has the barrier on all processors.
const ROUNDS: usize = 40;

/// Values that one accumulate changes: every other one, so that they are copied out, changed, and written back.
const MANY: usize = 512;

/// Accumulates of many values in each window.
const CHANGES: i32 = 3;

/// Where the second rank says that it has done.
const DONE: i64 = 2 * MANY as i64;

/// The first rank adds to single values all the time, by instructions, which it notes by plain stores. The second one changes all of
/// them in a copy that it writes back: what is added meanwhile would be lost.
fn one_value_against_many(process: &Arc<Process>, rank: i32) {
    let apart = every_other(process);
    let ones = vec![1_i32; MANY];
    for round in 0..ROUNDS {
        let (window, owner) = (
            window(process, Made::Allocated, 2 * MANY + 1),
            (round % 2) as i32,
        );
        window.lock_all().unwrap();
        barrier(process);
        let mut added = vec![0_i32; MANY];
        if rank == 0 {
            let (mut done, mut next) = (0, 0);
            while done == 0 {
                for _ in 0..64 {
                    let at = next % MANY;
                    let mut old = 0;
                    window.fetch_add(&mut old, owner, 2 * at as i64).unwrap();
                    added[at] += 1;
                    // Some values more often than others.
                    next += 1 + usize::from(next.is_multiple_of(3)) * (MANY - 1);
                }
                let last = std::slice::from_mut(&mut done);
                window.get(last, owner, DONE).unwrap();
                window.flush(owner).unwrap();
            }
        } else {
            // Another moment of the first rank's loop in each round.
            (0..(round * 37) % 1009).for_each(|_| spin_loop());
            for _ in 0..CHANGES {
                let place = window.elements(owner, 0, 1, apart);
                let origin = data(&ones).of(MANY as i64, INT);
                one_sided::accumulate(process, origin, place, SUM, window.win).unwrap();
            }
            window.flush(owner).unwrap();
            window.put(&[1], owner, DONE).unwrap();
        }
        window.unlock_all().unwrap();
        barrier(process);
        if rank == 0 {
            let mut found = vec![0; 2 * MANY];
            window.lock_all().unwrap();
            window.get(&mut found, owner, 0).unwrap();
            window.unlock_all().unwrap();
            let found: Vec<i32> = found.iter().step_by(2).copied().collect();
            let wanted: Vec<i32> = added.iter().map(|added| added + CHANGES).collect();
            assert_eq!(found, wanted, "round {round}");
        }
        window.free().unwrap();
    }
}

/// Returns the datatype of as many `int`s, of which every other one counts.
fn every_other(process: &Process) -> Datatype {
    let mut made = Datatype(0);
    let (count, into) = (MANY as i64, result(&mut made));
    datatypes::type_vector(process, Twin::Int, count, 1, 2, INT, into).unwrap();
    datatypes::type_commit(process, result(&mut made)).unwrap();
    made
}

#[test]
fn single_values_of_one_process_are_not_lost_in_the_long_way_of_another() {
    run("one value against many");
}
