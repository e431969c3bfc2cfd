//! The quick way of one process against the long way of another. The test program runs itself again as the ranks of a job: threads
//! of one process would not show whether the barrier reaches others.

use std::hint::spin_loop;
use std::sync::Arc;
use std::time::Duration;

use tagwire_launch::{Binding, Job, JobSpec, detect};

use super::*;
use crate::abi::Comm;
use crate::object::window::Flavor;
use crate::object::window::make::{Wanted, make};
use crate::process::Process;

/// Meetings of a quick way with the first long way of a window.
const ROUNDS: u64 = 4000;

/// Windows whose notes are stored just before: a store waits for those before it, each of which takes a line from the other process.
const OTHERS: usize = 8;

/// Looks of one who is on its way for the other: longer than a store may wait for its line.
const LOOKS: u32 = 500;

/// Who is on which way, and which round each has begun: words of the first member's block that this window has no use for.
const QUICK: Word = Word::Posts(0);
const LONG: Word = Word::Posts(1);
const BEGUN: [Word; 2] = [Word::Dones(0), Word::Dones(1)];

fn window(process: &Process) -> Window {
    let wanted = Wanted {
        flavor: Flavor::Allocate,
        bytes: 64,
        unit: 1,
        base: None,
        has_gaps: false,
        alignment: 8,
    };
    let world = process.comm(Comm::WORLD).unwrap();
    make(process, &world, Ok(wanted)).unwrap()(0)
}

#[test]
#[ignore = "a rank of a job, which the other test starts"]
fn goes_its_way() {
    let found = detect::detect().unwrap();
    let process = Arc::new(Process::open(found.bootstrap, &[]).unwrap());
    let others: Vec<Window> = (0..OTHERS).map(|_| window(&process)).collect();
    let window = window(&process);
    let (me, messenger) = (window.me(), window.messenger());
    let to = &window.members()[0];
    let get = |word| to.block.get(messenger, word).unwrap();
    let set = |word, value| to.block.set(messenger, word, value).unwrap();
    let mut quick_ways = 0;
    for round in 1..=ROUNDS {
        if me == 1 {
            // As if nobody had been on the long way yet.
            set(Word::Long, long::UNTAKEN);
        }
        // The notes are in both processors' caches, so that a store of one has to wait.
        for other in &others {
            let block = &other.members()[0].block;
            block.get(messenger, Word::Quick(0)).unwrap();
        }
        set(BEGUN[me], round);
        let mut looks = 0_u32;
        while get(BEGUN[1 - me]) < round {
            looks += 1;
            match looks % 1024 {
                0 => std::thread::yield_now(),
                _ => spin_loop(),
            }
        }
        // So is this word, as it is in a loop of quick ways.
        get(Word::Long);
        // Either is a little earlier, by turns.
        let late = match me {
            0 => round % 16,
            _ => (round / 16) % 32,
        };
        (0..late).for_each(|_| spin_loop());
        match me {
            0 => {
                for other in &others {
                    drop(other.quick_way(&other.members()[0]));
                }
                if let Some(way) = window.quick_way(to) {
                    set(QUICK, 1);
                    for _ in 0..LOOKS {
                        assert_eq!(get(LONG), 0, "round {round}: the long way has not waited");
                    }
                    set(QUICK, 0);
                    drop(way);
                    quick_ways += 1;
                }
            }
            _ => window
                .long_way(0, || {
                    set(LONG, 1);
                    for _ in 0..LOOKS {
                        assert_eq!(get(QUICK), 0, "round {round}: the quick way has not looked");
                    }
                    set(LONG, 0);
                    Ok(())
                })
                .unwrap(),
        }
    }
    window.barrier().unwrap();
    // Of windows on which the long way was always first this says nothing.
    assert!(me == 1 || quick_ways > 0, "no quick way was first");
    drop((window, others));
    process.finalize().unwrap();
}

#[test]
fn the_quick_way_of_one_process_excludes_the_first_long_way_of_another() {
    let mut spec = JobSpec::new(2, std::env::current_exe().unwrap());
    let part = concat!(module_path!(), "::goes_its_way");
    let part = part.split_once("::").unwrap().1;
    let args = ["--exact", part, "--ignored", "--nocapture"];
    spec.args = args.map(Into::into).to_vec();
    spec.timeout = Some(Duration::from_secs(120));
    spec.quiet = true;
    // One that yields may be moved to the processor of the other.
    spec.binding = Binding::Core;
    let report = Job::start(spec).unwrap().wait().unwrap();
    assert_eq!(report.exit_status, 0);
}
