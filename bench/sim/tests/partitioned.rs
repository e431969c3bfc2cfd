//! Rounds of partitioned operations in virtual time, beside what LogGP predicts.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::rc::Rc;
use std::time::Duration;

use tagwire_bench_sim::partitioned::{Case, Stamps, run};
use tagwire_pml::Policy;
use tagwire_sim::presets::preset;
use tagwire_sim::{Machine, SimOptions, Span};

const MS: u64 = 1_000_000;

fn niagara() -> Machine {
    preset("niagara").unwrap().machine
}

/// Rounds whose first thread computes for `late` more than the 10 ms of the others.
fn rounds(machine: Machine, bytes: usize, partitions: u32, policy: Policy, late: u64) -> Stamps {
    let case = Case {
        bytes,
        partitions,
        policy,
        rounds: 3,
        delays: Rc::new(move |_, thread| {
            Duration::from_nanos(10 * MS + if thread == 0 { late } else { 0 })
        }),
    };
    run(&SimOptions::of(machine), &case).unwrap()
}

#[test]
fn a_late_partition_finds_the_others_gone() {
    for policy in [Policy::Each, Policy::Messages(4)] {
        // 1 MiB is through in 87 us, a quarter of it in 22 us; the late thread comes 400 us later.
        let stamps = rounds(niagara(), 1 << 20, 4, policy, 400_000);
        assert_eq!(stamps.messages.len(), 3);
        for single in &stamps.messages {
            assert_eq!(single.fork_join, 10 * MS + 400_000);
            assert!((87_000..120_000).contains(&single.message), "{single:?}");
        }
        for round in &stamps.partitions {
            let [late, others @ ..] = &round[..] else {
                panic!("four partitions");
            };
            assert_eq!(late.called, 10 * MS + 400_000);
            let gone = others.iter().map(|one| one.arrived).max().unwrap();
            assert!(gone < late.called, "{policy:?}: {round:?}");
            let last = late.arrived - late.called;
            assert!((21_000..40_000).contains(&last), "{policy:?}: {round:?}");
        }
        assert!(stamps.last.iter().all(|ns| (21_000..40_000).contains(ns)));
        assert!(!stamps.way.is_empty());
    }
}

/// A library above sends and receives has no other way to acknowledge.
#[test]
fn messages_are_acknowledged_by_messages() {
    let took = |policy| {
        let round = rounds(niagara(), 8, 1, policy, 0).partitions[2][0];
        round.arrived - round.ready
    };
    let Machine { network, .. } = niagara();
    let nanos = |span: Span| span.as_picos() / 1000;
    let (send, recv) = (nanos(network.send), nanos(network.recv));
    // The bytes of both take less than 2 ns.
    let way = 2 * nanos(network.latency) + send;
    let by_messages = took(Policy::Messages(u32::MAX)) - way;
    assert!((2 * recv..2 * recv + 2).contains(&by_messages));
    // Writes cost their receivers nothing.
    assert!((0..2).contains(&(took(Policy::Each) - way)));
}

#[test]
fn threads_that_are_ready_at_once_are_in_the_library_one_after_the_other() {
    let took = |partitions| {
        let stamps = rounds(niagara(), 1024, partitions, Policy::Each, 0);
        let round = &stamps.partitions[2];
        let first = round.iter().map(|one| one.called).min().unwrap();
        round.iter().map(|one| one.arrived).max().unwrap() - first
    };
    // Each costs an overhead and a handover, of which the next socket's is greater.
    let [one, sixteen, more] = [1, 16, 32].map(took);
    assert!(sixteen - one >= 14 * 500, "{one} {sixteen}");
    assert!(more - sixteen >= 16 * 2600, "{sixteen} {more}");
}

#[test]
fn more_threads_than_cores_take_turns() {
    let machine = Machine {
        cores: 2,
        ..niagara()
    };
    let stamps = rounds(machine, 1024, 4, Policy::Each, 0);
    for single in &stamps.messages {
        assert_eq!(single.fork_join, 20 * MS);
    }
}

#[test]
fn the_same_rounds_come_again() {
    let once = || rounds(niagara(), 65_536, 8, Policy::Default, 1000);
    assert_eq!(once(), once());
}
