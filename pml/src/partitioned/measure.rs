//! What a transport partition costs here, measured over the way from this rank to itself.
//!
//! The rank sends partitioned rounds to itself and takes the fastest of each kind. One thread does the work
//! of both ends there, which two ranks do side by side: half of the time is what a partition costs.

use std::sync::Arc;
// The machine's own clock, not the rank's: what is measured is this machine.
use std::time::{Duration, Instant};

use tagwire_base::{ContextId, Tag};

use super::held::Held;
use super::policy::{Costs, Policy};
use super::recv::PartitionedRecv;
use super::send::PartitionedSend;
use crate::error::Result;
use crate::messenger::Messenger;

/// The tag of these rounds, which no user has.
const TAG: Tag = Tag::internal((1 << 30) - 1);

/// Partitions of a round that reports what one more costs.
const MANY: u32 = 17;

/// Bytes of a round that reports what they cost.
const LONG: usize = 1 << 20;

/// Bytes of a partition that costs as good as nothing for its bytes.
const SHORT: usize = 64;

/// Rounds of each kind; the first ones make contact and fault pages in.
const ROUNDS: u32 = 12;

/// After how long it is given up: a policy must not make a program wait.
const LONGEST: Duration = Duration::from_millis(200);

/// Measures; `None` where a rank cannot send to itself like this, or not now.
pub(super) fn measure(messenger: &Arc<Messenger>) -> Option<Costs> {
    let deadline = Instant::now() + LONGEST;
    let fastest = |partitions, bytes| {
        let ended = rounds(messenger, partitions, bytes, deadline);
        ended
            .inspect_err(|error| tracing::debug!("a rank's rounds with itself: {error}"))
            .ok()
    };
    let many = MANY as usize * SHORT;
    let (one, all) = (fastest(1, many)?, fastest(MANY, many)?);
    let long = fastest(1, LONG)?;
    let each = all.saturating_sub(one) / (MANY - 1) / 2;
    let bytes = long.saturating_sub(one) / 2;
    let costs = Costs {
        overhead: (each.as_nanos() as u64).max(1),
        gap: (bytes.as_nanos() as u64 * 1000 / (LONG - many) as u64).max(1),
    };
    tracing::info!(
        overhead_ns = costs.overhead,
        gap_ps = costs.gap,
        "what transport partitions cost here"
    );
    Some(costs)
}

/// The fastest of some rounds of `bytes` in so many partitions, all ready at once.
#[allow(unsafe_code, reason = "memory is taken back that the rounds were lent")]
fn rounds(
    messenger: &Arc<Messenger>,
    partitions: u32,
    bytes: usize,
    deadline: Instant,
) -> Result<Duration> {
    let own = messenger.rank();
    let zeroes = || vec![0u8; bytes].into_boxed_slice();
    let (data, from) = Held::for_sends(zeroes());
    let (room, to) = Held::for_receives(zeroes());
    let world = ContextId::WORLD;
    let recv = PartitionedRecv::init(messenger, &to, 1, own, TAG, world)?;
    let send = PartitionedSend::init(messenger, &from, partitions, own, TAG, world, Policy::Each)?;
    let mut fastest = Duration::MAX;
    let mut round = || -> Result<()> {
        for _ in 0..ROUNDS {
            let left = deadline.saturating_duration_since(Instant::now());
            let start = Instant::now();
            recv.start()?;
            send.start()?;
            for partition in 0..partitions {
                send.ready(partition)?;
            }
            recv.wait(Some(left))?;
            send.wait(Some(left))?;
            fastest = fastest.min(start.elapsed());
        }
        Ok(())
    };
    let ended = round();
    drop((from, to));
    // Where somebody may be at the memory, or the other end was not made, it stays.
    if recv.is_settled() & send.is_settled() {
        // SAFETY: both ends are settled, and start no more rounds.
        drop(unsafe { (data.reclaim(), room.reclaim()) });
    }
    ended.map(|()| fastest)
}
