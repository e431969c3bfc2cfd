//! Exchanges on a ring in virtual time: what leaves early, and what waits for the join.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::rc::Rc;
use std::time::Duration;

use tagwire_bench_sim::messaging::{Exchange, Leaves, run};
use tagwire_sim::presets::preset;
use tagwire_sim::{PerByte, SimOptions, Span};

const MS: u64 = 1_000_000;

/// The first thread of each rank comes 1 ms after the others.
fn exchange(bytes: usize, leaves: Leaves, parts: u32, is_remote: bool) -> Exchange {
    Exchange {
        ranks: 5,
        threads: 4,
        peers: 6,
        bytes,
        parts,
        leaves,
        is_remote,
        iterations: 3,
        arrivals: Rc::new(|_, _| [11, 10, 10, 10].map(Duration::from_millis).to_vec()),
    }
}

/// Returns what an iteration takes beyond the last arrival on the slowest rank, in nanoseconds: what messages of several threads and to
/// several peers lose on the machine is left out.
fn after(exchange: &Exchange) -> u64 {
    after_beside(exchange, PerByte::ZERO, PerByte::ZERO)
}

/// The same where bytes to several ranks at once lose so much: those of messages, and writes.
fn after_beside(exchange: &Exchange, of_messages: PerByte, of_writes: PerByte) -> u64 {
    let mut machine = preset("mutrino").unwrap().machine;
    (machine.handover, machine.wake) = (Span::ZERO, Span::ZERO);
    (machine.network.beside, machine.network.beside_put) = (of_messages, of_writes);
    let times = run(&SimOptions::of(machine), exchange).unwrap();
    assert_eq!(times.len(), exchange.ranks as usize);
    assert!(times.iter().all(|of| of.len() == 3));
    times.iter().map(|of| of[2]).max().unwrap() - 11 * MS
}

#[test]
fn early_pieces_leave_the_last_one_to_wait_for() {
    // 6 times 400 KB take 240 us at 10 GB/s; a quarter of that is left, where the rest has gone before.
    let bytes = 400_000;
    let serial = after(&exchange(bytes, Leaves::Serially, 1, false));
    let together = after(&exchange(bytes, Leaves::Together, 1, false));
    assert!((240_000..1_000_000).contains(&together), "{together}");
    assert!(serial >= together, "{serial} {together}");
    // Writes need nobody at their target; long messages do, which computes until the join.
    let early = after(&exchange(bytes, Leaves::Early, 4, true));
    assert!(early < together, "{early} {together}");
}

#[test]
fn bytes_to_several_peers_at_once_lose_what_the_machine_says() {
    // Four peers, to which 400 KB take 160 us at 10 GB/s; those behind the first take 10 times as long.
    let case = |leaves, parts, is_remote| {
        let exchange = exchange(400_000, leaves, parts, is_remote);
        Exchange {
            peers: 4,
            arrivals: Rc::new(|_, _| [11; 4].map(Duration::from_millis).to_vec()),
            ..exchange
        }
    };
    let (none, slow) = (PerByte::ZERO, PerByte::femtos(900_000));
    let lost = |exchange: &Exchange, of_messages, of_writes| {
        after_beside(exchange, of_messages, of_writes) - after(exchange)
    };
    let most = 4 * 400_000 * 9 / 10;
    let about = most * 6 / 10..=most;
    let together = case(Leaves::Together, 1, false);
    assert!(about.contains(&lost(&together, slow, none)));
    assert_eq!(lost(&together, none, slow), 0);
    let writes = case(Leaves::Early, 4, true);
    assert!(about.contains(&lost(&writes, none, slow)));
    assert_eq!(lost(&writes, slow, none), 0);
    // One peer after the other loses nothing.
    let serial = case(Leaves::Serially, 1, false);
    assert_eq!(lost(&serial, slow, slow), 0);
}

#[test]
fn many_short_pieces_cost_more_than_one() {
    let one = after(&exchange(256, Leaves::Together, 1, false));
    let many = after(&exchange(256, Leaves::Early, 4, false));
    // Each piece costs its receiver an overhead, 0.5 us.
    assert!((one..6 * one).contains(&many), "{one} {many}");
}

#[test]
fn windows_are_written_and_synchronised() {
    for (leaves, parts) in [(Leaves::Early, 2), (Leaves::Early, 4)] {
        let took = after(&exchange(4096, leaves, parts, true));
        // Six barriers of all ranks, and six flushes.
        assert!((6 * 5000..400_000).contains(&took), "{took}");
    }
}
