//! Patterns in virtual time, beside what LogGP predicts.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::rc::Rc;
use std::time::Duration;

use tagwire_bench_sim::motif::{Carrier, Edge, Edges, Motif, Region, Script, Step, run};
use tagwire_pml::Policy;
use tagwire_sim::presets::preset;
use tagwire_sim::{Machine, SimOptions};

const MS: u64 = 1_000_000;

fn niagara() -> Machine {
    preset("niagara").unwrap().machine
}

/// Rank 0 computes and sends parts, one a thread, to rank 1, which waits for each in a thread.
fn parts(carrier: Carrier, threads: u32, len: usize) -> u64 {
    let script = move |rank| {
        let edge = Edge {
            peer: 1 - rank,
            number: 3,
            parts: threads,
            len,
        };
        let (outs, ins) = match rank {
            0 => (vec![edge], Vec::new()),
            _ => (Vec::new(), vec![edge]),
        };
        let thread = |part| match rank {
            0 => vec![
                Step::Compute(Duration::from_nanos(MS)),
                Step::Ready {
                    exchange: 0,
                    edge: 0,
                    part,
                },
            ],
            _ => vec![Step::Arrive {
                exchange: 0,
                edge: 0,
                part,
            }],
        };
        let region = Region {
            before: vec![Step::Start(0)],
            threads: (0..threads).map(thread).collect(),
            after: vec![Step::Finish(0)],
        };
        Script {
            exchanges: vec![Edges { carrier, outs, ins }],
            regions: vec![region; 4],
        }
    };
    let motif = Motif {
        ranks: 2,
        threads,
        script: Rc::new(script),
    };
    let took = run(&SimOptions::of(niagara()), &motif).unwrap();
    assert_eq!(took.len(), 2);
    took[1]
}

#[test]
fn parts_leave_when_their_threads_have_computed() {
    for carrier in [
        Carrier::Calls,
        Carrier::Posted,
        Carrier::Partitioned(Policy::Each),
        Carrier::Partitioned(Policy::Messages(4)),
    ] {
        // 1 MiB takes 87 us, in parts or not; each region computes for a millisecond before.
        let took = parts(carrier, 4, 256 << 10);
        let (least, most) = (4 * (MS + 86_000), 4 * (MS + 130_000));
        assert!((least..most).contains(&took), "{carrier:?}: {took}");
    }
}

#[test]
fn more_threads_than_cores_take_turns() {
    let machine = Machine {
        cores: 2,
        ..niagara()
    };
    let script = |rank| {
        let threads = match rank {
            0 => vec![vec![Step::Compute(Duration::from_nanos(MS))]; 4],
            _ => vec![Vec::new(); 4],
        };
        Script {
            exchanges: Vec::new(),
            regions: vec![Region {
                threads,
                ..Region::default()
            }],
        }
    };
    let motif = Motif {
        ranks: 2,
        threads: 4,
        script: Rc::new(script),
    };
    let took = run(&SimOptions::of(machine), &motif).unwrap();
    assert!((2 * MS..2 * MS + 20_000).contains(&took[0]), "{took:?}");
}

#[test]
fn scripts_that_do_not_fit_are_told() {
    // Rank 1 waits for what nobody sends.
    let script = |rank| {
        let edge = Edge {
            peer: 1 - rank,
            number: 0,
            parts: 1,
            len: 8,
        };
        let steps = match rank {
            0 => Vec::new(),
            _ => vec![Step::Arrive {
                exchange: 0,
                edge: 0,
                part: 0,
            }],
        };
        Script {
            exchanges: vec![Edges {
                carrier: Carrier::Calls,
                outs: Vec::new(),
                ins: vec![edge],
            }],
            regions: vec![Region {
                threads: vec![steps],
                ..Region::default()
            }],
        }
    };
    let motif = Motif {
        ranks: 2,
        threads: 1,
        script: Rc::new(script),
    };
    let error = run(&SimOptions::of(niagara()), &motif).unwrap_err();
    assert!(
        error.to_string().contains("wait for what never comes"),
        "{error}"
    );
}
