//! Which bytes travel together: user partitions on both sides, transport partitions between them.
//! A pure function of four numbers, which both sides compute.
//!
//! ```text
//!   sender's user partitions     |  0  |  1  |  2  |  3  |  4  |  5  |       S = 6
//!   transport partitions         |     0     |     1     |     2     |       T = 3
//!   receiver's user partitions   |    0   |    1   |    2   |    3   |       R = 4
//! ```
//!
//! Transport partition t of T carries the sender partitions floor(t*S/T) to floor((t+1)*S/T)-1, whole.
//! Receiver partition i of R needs the sender partitions floor(i*S/R) to ceil((i+1)*S/R)-1, and so the
//! transport partitions that these are in.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::types::MAX_PARTITIONS;

/// How the partitions of a channel relate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    sender: u32,
    receiver: u32,
    transport: u32,
    bytes: usize,
}

impl Plan {
    /// The plan for `bytes` bytes in `sender` and `receiver` user partitions, which travel in
    /// `transport` transport partitions.
    ///
    /// # Errors
    /// [`Error::BadPartitions`] when a count is 0 or above [`MAX_PARTITIONS`], when the bytes are no
    /// multiple of the users' counts, or when a transport partition would have no user partition.
    pub fn new(sender: u32, receiver: u32, transport: u32, bytes: usize) -> Result<Self> {
        check_count(sender, bytes)?;
        check_count(receiver, bytes)?;
        if transport == 0 || transport > sender {
            return Err(Error::BadPartitions {
                count: transport,
                bytes,
            });
        }
        Ok(Self {
            sender,
            receiver,
            transport,
            bytes,
        })
    }

    /// How many user partitions the sender has.
    #[must_use]
    pub const fn sender(&self) -> u32 {
        self.sender
    }

    /// How many user partitions the receiver has.
    #[must_use]
    pub const fn receiver(&self) -> u32 {
        self.receiver
    }

    /// How many transport partitions there are.
    #[must_use]
    pub const fn transport(&self) -> u32 {
        self.transport
    }

    /// Bytes of the whole.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The sender's partitions in transport partition `t`.
    #[must_use]
    pub fn senders_of(&self, t: u32) -> Range<u32> {
        floor(t, self.sender, self.transport)..floor(t + 1, self.sender, self.transport)
    }

    /// The transport partition that carries the sender's partition `s`: the last t that begins at or
    /// before s, floor(t*S/T) <= s.
    #[must_use]
    pub fn transport_of(&self, s: u32) -> u32 {
        let (s, sender) = (u64::from(s), u64::from(self.sender));
        (((s + 1) * u64::from(self.transport) - 1) / sender) as u32
    }

    /// The sender's partitions that the receiver's partition `r` needs.
    #[must_use]
    pub fn senders_for(&self, r: u32) -> Range<u32> {
        floor(r, self.sender, self.receiver)..ceil(r + 1, self.sender, self.receiver)
    }

    /// The transport partitions that the receiver's partition `r` needs.
    #[must_use]
    pub fn transports_for(&self, r: u32) -> Range<u32> {
        let senders = self.senders_for(r);
        self.transport_of(senders.start)..self.transport_of(senders.end - 1) + 1
    }

    /// Where transport partition `t` lies in the buffer.
    #[must_use]
    pub fn bytes_of(&self, t: u32) -> Range<usize> {
        let senders = self.senders_of(t);
        let each = self.bytes / self.sender as usize;
        senders.start as usize * each..senders.end as usize * each
    }

    /// Where each transport partition ends, in bytes.
    #[must_use]
    pub fn ends(&self) -> Vec<u64> {
        (0..self.transport)
            .map(|t| self.bytes_of(t).end as u64)
            .collect()
    }
}

/// Whether a buffer of `bytes` can have `count` partitions.
pub(super) fn check_count(count: u32, bytes: usize) -> Result<()> {
    let fits = (1..=MAX_PARTITIONS).contains(&count) && bytes.is_multiple_of(count as usize);
    fits.then_some(())
        .ok_or(Error::BadPartitions { count, bytes })
}

/// floor(i * of / parts)
fn floor(i: u32, of: u32, parts: u32) -> u32 {
    (u64::from(i) * u64::from(of) / u64::from(parts)) as u32
}

/// ceil(i * of / parts)
fn ceil(i: u32, of: u32, parts: u32) -> u32 {
    (u64::from(i) * u64::from(of)).div_ceil(u64::from(parts)) as u32
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    /// Bytes that every pair of counts divides.
    fn bytes(sender: u32, receiver: u32) -> usize {
        3 * sender as usize * receiver as usize
    }

    fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
        a.start < b.end && b.start < a.end
    }

    #[test]
    fn transport_partitions_cover_everything_once() {
        for sender in 1..=64 {
            for transport in 1..=sender {
                let plan = Plan::new(sender, 1, transport, bytes(sender, 1)).unwrap();
                let (mut at, mut user) = (0, 0);
                for t in 0..transport {
                    let (range, senders) = (plan.bytes_of(t), plan.senders_of(t));
                    assert_eq!((range.start, senders.start), (at, user), "{plan:?} {t}");
                    assert!(!senders.is_empty(), "{plan:?} {t}");
                    for s in senders.clone() {
                        assert_eq!(plan.transport_of(s), t, "{plan:?} {s}");
                    }
                    (at, user) = (range.end, senders.end);
                }
                assert_eq!((at, user), (plan.bytes(), sender), "{plan:?}");
                assert_eq!(*plan.ends().last().unwrap(), plan.bytes() as u64);
            }
        }
    }

    /// The rule against the bytes themselves: a receiver partition needs exactly the sender
    /// partitions that overlap it, no fewer (it would arrive early) and no more (late).
    #[test]
    fn a_receiver_partition_needs_what_overlaps_it() {
        for sender in 1..=64u32 {
            for receiver in 1..=64u32 {
                let plan = Plan::new(sender, receiver, sender, bytes(sender, receiver)).unwrap();
                let (mine, yours) = (
                    plan.bytes() / sender as usize,
                    plan.bytes() / receiver as usize,
                );
                for r in 0..receiver {
                    let wanted = r as usize * yours..(r as usize + 1) * yours;
                    for s in 0..sender {
                        let carried = s as usize * mine..(s as usize + 1) * mine;
                        let needed = plan.senders_for(r).contains(&s);
                        assert_eq!(needed, overlap(&wanted, &carried), "{plan:?} {r} {s}");
                    }
                }
            }
        }
    }

    /// The same through transport partitions, for all counts of these.
    #[test]
    fn arrivals_are_neither_early_nor_late() {
        for sender in 1..=64u32 {
            for receiver in 1..=64u32 {
                for transport in [1, 2, 3, sender / 2, sender - 1, sender] {
                    let Ok(plan) = Plan::new(sender, receiver, transport, bytes(sender, receiver))
                    else {
                        continue;
                    };
                    let yours = plan.bytes() / receiver as usize;
                    for r in 0..receiver {
                        let wanted = r as usize * yours..(r as usize + 1) * yours;
                        for t in 0..transport {
                            let needed = plan.transports_for(r).contains(&t);
                            let carries = overlap(&wanted, &plan.bytes_of(t));
                            assert_eq!(needed, carries, "{plan:?} {r} {t}");
                        }
                    }
                }
            }
        }
    }

    /// The smallest case that the formula reviewed elsewhere gets wrong.
    #[test]
    fn two_against_three() {
        let plan = Plan::new(2, 3, 2, 6).unwrap();
        let needs: Vec<_> = (0..3).map(|r| plan.senders_for(r)).collect();
        assert_eq!(needs, [0..1, 0..2, 1..2]);
    }

    #[test]
    fn impossible_counts_are_refused() {
        for (sender, receiver, transport, bytes) in [
            (0, 1, 1, 8),
            (1, 0, 1, 8),
            (3, 1, 1, 8),
            (1, 3, 1, 8),
            (4, 4, 0, 8),
            (4, 4, 5, 8),
            (MAX_PARTITIONS + 1, 1, 1, 0),
        ] {
            assert!(Plan::new(sender, receiver, transport, bytes).is_err());
        }
        assert!(Plan::new(4, 2, 3, 0).is_ok());
    }
}
