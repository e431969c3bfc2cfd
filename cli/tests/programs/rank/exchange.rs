//! Messages of three kinds of length, in both directions at once, every byte checked.

use tagwire::{Result, Session};

use crate::{Outcome, say};

/// One for each way that a message can take: in the ring's slot, eager, rendezvous.
const LENGTHS: [usize; 3] = [8, 8 << 10, 1 << 20];
const ROUNDS: u64 = 20;

/// Every rank exchanges messages with every other.
pub fn run() -> Outcome {
    let session = Session::open()?;
    let me = session.rank();
    for round in 0..ROUNDS {
        for other in 0..session.size() {
            for (tag, len) in (0..).zip(LENGTHS) {
                if other != me {
                    exchange(&session, other, tag, len, round)?;
                }
            }
        }
    }
    session.close()?;
    say(me, "exchanged all");
    Ok(())
}

fn exchange(session: &Session, other: u32, tag: i32, len: usize, round: u64) -> Result<()> {
    let world = session.world();
    let mine = pattern(session.rank(), round, len);
    let mut theirs = vec![0u8; len];
    session.scope(|scope| {
        let receive = world.irecv(scope, &mut theirs, other, tag)?;
        let send = world.isend(scope, &mine, other, tag)?;
        let statuses = scope.wait_all([receive, send])?;
        assert_eq!(statuses[0].bytes(), len);
        Ok::<(), tagwire::Error>(())
    })?;
    let expected = pattern(other, round, len);
    assert!(theirs == expected, "{len} bytes of rank {other} are wrong");
    Ok(())
}

/// Bytes that differ by sender, round and place.
pub fn pattern(rank: u32, round: u64, len: usize) -> Vec<u8> {
    let seed = u64::from(rank) * 31 + round * 17 + 1;
    (0..len as u64)
        .map(|place| (place.wrapping_mul(0x9e37_79b9).wrapping_add(seed) >> 5) as u8)
        .collect()
}
