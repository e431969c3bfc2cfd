//! A member of a window that dies: the calls of the others that wait for it end, with an error that names it.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::channel;
use std::time::Duration;

use common::sites::{ASLEEP, FAR, NEAR, Site};
use common::windows::{ALL, EXCLUSIVE, Ints, Made, SHARED, window};
use common::{WORLD, ignore, result};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_shim::abi::{Comm, Errhandler, Group, Info, Win};
use tagwire_shim::call::communicators::comm_set_errhandler;
use tagwire_shim::call::windows::{creation, synchronization};
use tagwire_shim::call::{groups, p2p};
use tagwire_shim::error::Class;
use tagwire_shim::{Process, Result};

/// How many ranks there are, and which dies.
const SIZE: u32 = 3;
const VICTIM: u32 = 1;

/// What the victim has done when it dies, and what the others call then.
struct Scenario {
    what: &'static str,
    before: fn(&Ints, Group) -> Result,
    call: fn(&Ints, Group, i32) -> Result,
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        what: "fence",
        before: |_, _| Ok(()),
        call: |window, _, _| window.fence(),
    },
    Scenario {
        what: "a lock that it holds",
        before: |window, _| window.lock(EXCLUSIVE, 0),
        call: |window, _, _| window.lock(SHARED, 0),
    },
    Scenario {
        what: "a lock that it shares",
        before: |window, _| window.lock(SHARED, 2),
        call: |window, _, _| window.lock(EXCLUSIVE, 2),
    },
    Scenario {
        what: "the locks of all",
        before: |window, _| window.lock(EXCLUSIVE, 2),
        call: |window, _, _| window.lock_all(),
    },
    Scenario {
        what: "its own lock",
        before: |window, _| window.lock(EXCLUSIVE, VICTIM as i32),
        call: |window, _, _| window.lock(EXCLUSIVE, VICTIM as i32),
    },
    Scenario {
        what: "start",
        before: |_, _| Ok(()),
        call: |window, all, _| window.start(all),
    },
    Scenario {
        what: "wait",
        before: |window, all| window.post(all),
        call: |window, all, _| {
            window.post(all)?;
            window.start(all)?;
            window.complete()?;
            window.wait()
        },
    },
    Scenario {
        what: "test",
        before: |_, _| Ok(()),
        call: |window, all, _| {
            window.post(all)?;
            loop {
                let mut flag = 0;
                synchronization::win_test(&window.process, window.win, result(&mut flag))?;
                assert_eq!(flag, 0);
            }
        },
    },
    Scenario {
        what: "flushes, which wait for nobody",
        before: |_, _| Ok(()),
        call: |window, _, _| {
            window.lock_all()?;
            let lost = loop {
                if let Err(lost) = window.flush(0) {
                    break lost;
                }
            };
            drop(window.unlock_all());
            Err(lost)
        },
    },
    Scenario {
        what: "locks of all that are shared, and wait for nobody",
        before: |_, _| Ok(()),
        call: |window, _, _| loop {
            window.lock_all()?;
            window.unlock_all()?;
        },
    },
    Scenario {
        what: "requests that have ended at once",
        before: |_, _| Ok(()),
        call: |window, _, me| {
            window.lock_all()?;
            let lost = loop {
                if let Err(lost) = window.get_and_wait(me, 0) {
                    break lost;
                }
            };
            drop(window.unlock_all());
            Err(lost)
        },
    },
    Scenario {
        what: "free",
        before: |_, _| Ok(()),
        call: |window, _, _| {
            let mut win = window.win;
            let freed = creation::win_free(&window.process, result(&mut win));
            assert_eq!(win, Win::NULL, "it is freed all the same");
            freed
        },
    },
    Scenario {
        what: "another window",
        before: |_, _| Ok(()),
        call: |window, _, _| {
            let mut win = Win::NULL;
            let (process, info) = (&window.process, Info::NULL);
            creation::win_create_dynamic(process, info, WORLD, result(&mut win))
        },
    },
];

fn group(process: &Process) -> Group {
    let mut all = Group::NULL;
    groups::comm_group(process, WORLD, result(&mut all)).unwrap();
    all
}

/// Makes progress until so many have come here. A barrier of theirs may end with the death of the first to leave it.
fn meet(process: &Arc<Process>, here: &AtomicU32, all: u32) {
    here.fetch_add(1, SeqCst);
    while here.load(SeqCst) < all {
        let flag = result(&mut 0);
        let _ = p2p::iprobe(process, 0, 0, Comm::SELF, flag, ignore());
        std::thread::yield_now();
    }
}

/// Runs a scenario on a window, on threads that are not joined: that of the victim is there for ever.
fn run(scenario: &'static Scenario, made: Made, site: Site) {
    let job = LocalJob::new(SIZE).unwrap();
    let (sender, ends) = channel();
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    for number in 0..SIZE {
        let (job, sender, counts) = (job.clone(), sender.clone(), Arc::clone(&counts));
        std::thread::spawn(move || {
            let process = site.open(&job, SIZE, number).unwrap();
            let (window, all) = (window(&process, made, 4), group(&process));
            let [come, gone] = &*counts;
            if number == VICTIM {
                (scenario.before)(&window, all).unwrap();
                meet(&process, come, SIZE);
                job.declare_failed(Rank::new(VICTIM));
                loop {
                    std::thread::park();
                }
            }
            meet(&process, come, SIZE);
            let ended = (scenario.call)(&window, all, number as i32);
            // Windows have the handler that returns; that of `MPI_COMM_SELF` ends the process.
            let fatal = Errhandler::ARE_FATAL;
            comm_set_errhandler(&process, Comm::SELF, fatal).unwrap();
            if let Err(error) = &ended {
                process.raise(error, scenario.what);
            }
            let mut win = window.win;
            if scenario.what != "free" {
                // No epoch is open that would be in its way.
                let freed = creation::win_free(&process, result(&mut win));
                let freed = freed.expect_err("a member is dead");
                process.raise(&freed, "the free after it");
            }
            let is_freed = win == Win::NULL || scenario.what == "free";
            let _ = sender.send((ended, is_freed));
            // Between hosts the other may still need this one's progress.
            meet(&process, gone, SIZE - 1);
            // Its process is left as it is.
            std::mem::forget(window);
        });
    }
    for _ in 1..SIZE {
        let ended = ends.recv_timeout(Duration::from_secs(60));
        let what = format!("{}, {made:?}, {site:?}", scenario.what);
        let (ended, is_freed) = ended.unwrap_or_else(|_| panic!("{what}: somebody hangs"));
        assert!(is_freed, "{what}");
        let error = ended.expect_err(&what);
        assert_eq!(error.code(), Class::ProcAborted as i32, "{what}: {error:?}");
        let names_it = error.text().contains(&format!("rank {VICTIM}"));
        assert!(names_it, "{what}: {error:?}");
    }
}

#[test]
fn calls_that_wait_for_a_member_end_when_it_dies() {
    for scenario in SCENARIOS {
        for made in ALL {
            run(scenario, made, NEAR);
        }
    }
}

/// The same where waits sleep.
#[test]
fn sleepers_hear_of_a_death() {
    for scenario in SCENARIOS {
        run(scenario, Made::Allocated, ASLEEP);
    }
}

/// The same between hosts: the victim is on another one than the others.
#[test]
fn a_death_on_another_host_ends_the_calls_of_the_others() {
    let test = "a_death_on_another_host_ends_the_calls_of_the_others";
    for site in FAR.into_iter().filter(|site| site.is_there(test)) {
        for (scenario, made) in SCENARIOS.iter().zip(site.kinds().iter().cycle()) {
            run(scenario, *made, site);
        }
    }
}
