//! Who moves the bytes while the other one computes.

use super::Factory;
use super::rig::{Checked, Rig, exact};
use crate::common::{ensure, pattern};

/// Lengths that are brought one way or the other: with the message, and from where they lie.
const LENGTHS: [usize; 4] = [2048, 5000, 100_000, 1 << 20];

/// A receive is posted, and its rank computes: the sender matches, moves all bytes and is done. The
/// receiver is told when it comes back.
pub(super) fn a_sender_alone_delivers(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.acquaint(0, 1)?;
    for synchronous in [false, true] {
        for len in LENGTHS {
            let seed = len as u64;
            let receiving = rig.post(1, exact(seed), len)?;
            let sending = rig.send_as(0, 1, seed, seed, len, synchronous)?;
            let bytes = pattern(seed, len);
            let what = format!("the sender alone delivers {len} bytes");
            rig.drive_only(&[0], &what, |rig| {
                rig.is_sent(sending) && receiving.memory.bytes() == bytes
            })?;
            ensure(!rig.is_received(&receiving), || {
                "a rank was told of a message outside its calls".to_owned()
            })?;
            rig.drive_only(&[1], "a message that is there", |rig| {
                rig.is_received(&receiving)
            })?;
            rig.got(&receiving, 0, seed, seed, len)?;
            rig.sent_well(sending)?;
            rig.settle()?;
        }
    }
    rig.is_empty()
}
