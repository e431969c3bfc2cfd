//! Ranks whose clock jumps, as that of a process does which was stopped, or of a machine that was.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use tagwire::Session;
use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{ManualClock, Rank};

/// One for each way that a message can take over shared memory.
const LENGTHS: [usize; 3] = [8, 8 << 10, 1 << 20];
const ROUNDS: u8 = 60;
const DAY: Duration = Duration::from_secs(86_400);
/// So often both clocks jump in a round, though it take long: each jump is a time-out for data reliability, which gives a peer up after hundreds of
/// them without a reply, and on a busy machine a rank may not run for as many.
const JUMPS: u32 = 100;

/// Exchanges messages of all lengths with the other rank of two.
fn exchange(session: &Session, round: u8) {
    let (world, other) = (session.world(), 1 - session.rank());
    for (tag, len) in (0..).zip(LENGTHS) {
        let mine = vec![round; len];
        let mut theirs = vec![0u8; len];
        session
            .scope(|scope| {
                let receive = world.irecv(scope, &mut theirs, other, tag)?;
                let send = world.isend(scope, &mine, other, tag)?;
                scope.wait_all([receive, send])
            })
            .unwrap();
        assert_eq!(theirs, mine);
    }
    world.barrier().unwrap();
}

/// A jump is no peer's failure, and no message is lost by it: what has no deadline waits for as long as it takes.
#[test]
fn ranks_go_on_though_their_clocks_jump() {
    for layer in ["ob1", "cm", "dr"] {
        let job = LocalJob::new(2).unwrap();
        // The clocks of two hosts have nothing to do with each other.
        let hands = [0, 1].map(|_| ManualClock::default());
        let (over, stands) = (AtomicBool::new(false), AtomicBool::new(false));
        let rounds = AtomicU32::new(0);
        std::thread::scope(|scope| {
            let ranks = [0, 1].map(|rank| {
                let member = job.member(Rank::new(rank));
                let member = member.with_clock(hands[rank as usize].clock());
                let (over, stands, rounds) = (&over, &stands, &rounds);
                scope.spawn(move || {
                    let builder = Session::builder().setting("pml", layer);
                    let session = builder.open_with(Box::new(member)).unwrap();
                    for round in 0..ROUNDS {
                        exchange(&session, round);
                        rounds.fetch_add(1, SeqCst);
                    }
                    over.store(true, SeqCst);
                    // Closing has a deadline, and ends at it.
                    while !stands.load(SeqCst) {
                        session.progress().unwrap();
                    }
                    assert_eq!(session.failed().unwrap(), []);
                    session.close().unwrap();
                })
            });
            let (mut days, mut jumps, mut seen) = (0, 0, 0);
            while !over.load(SeqCst) && !ranks.iter().any(|rank| rank.is_finished()) {
                if std::mem::replace(&mut seen, rounds.load(SeqCst)) != seen {
                    jumps = 0;
                }
                if jumps < JUMPS {
                    jumps += 1;
                    days = (days * 7 + 3) % 1000;
                    hands[days as usize % 2].advance(DAY * days);
                }
                std::thread::sleep(Duration::from_micros(500));
            }
            stands.store(true, SeqCst);
            ranks.into_iter().for_each(|rank| rank.join().unwrap());
        });
    }
}
