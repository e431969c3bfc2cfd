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
    let (mut word, mut bytes) = (seed, Vec::with_capacity(len + size_of::<u64>()));
    // By words: these programs are built unoptimised.
    while bytes.len() < len {
        word = word
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(2 * seed + 1);
        bytes.extend_from_slice(&word.to_be_bytes());
    }
    bytes.truncate(len);
    bytes
}
