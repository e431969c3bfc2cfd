//! Ranks that have nothing to do with a death, and go on.

use std::time::{Duration, Instant};

use tagwire::{Result, Session};

use crate::say;

/// Tells a bystander to reply with [`ECHO`] and go on.
pub const ASK: i32 = 20;
/// The reply.
pub const ECHO: i32 = 21;
/// Tells a bystander to end.
pub const STOP: i32 = 22;
const PING: i32 = 23;
const SMALL: usize = 1;
const LARGE: usize = 128 << 10;

/// Exchanges small and large messages with rank `other` until rank 0 says [`STOP`] to the lower
/// of both. Every element is checked.
pub fn go_on(session: &Session, other: u32) -> Result<()> {
    let leads = session.rank() < other;
    let world = session.world();
    let (mut rounds, mut longest) = (0u64, Duration::ZERO);
    let mut buffer = vec![0u64; LARGE];
    loop {
        let start = Instant::now();
        let len = if rounds.is_multiple_of(64) {
            LARGE
        } else {
            SMALL
        };
        let stop = leads && world.probe(0, STOP)?.is_some();
        if leads {
            let message = vec![if stop { u64::MAX } else { rounds }; len];
            world.send(&message, other, PING)?;
            world.recv(&mut buffer[..len], other, PING)?;
            assert_eq!(buffer[..len], message);
        } else {
            world.recv(&mut buffer[..len], other, PING)?;
            world.send(&buffer[..len], other, PING)?;
        }
        if stop || (!leads && buffer[0] == u64::MAX) {
            break;
        }
        if let Some(message) = world.claim(0, ASK)? {
            world.recv_claimed(&mut [0u64], message)?;
            world.send(&[rounds], 0, ECHO)?;
        }
        longest = longest.max(start.elapsed());
        rounds += 1;
    }
    say(
        session.rank(),
        format!("went on for {rounds} rounds, the longest {longest:?}"),
    );
    Ok(())
}
