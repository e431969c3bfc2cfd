//! Lengths, buffers, modes, and what is refused.

use super::Factory;
use super::rig::{Checked, Rig, exact};
use crate::common::ensure;
use crate::memory::Backwards;
use tagwire_transport::data::SendBuffer;
use tagwire_transport::matching::{MatchPattern, Posted, Refusal, Sent};

/// What is too long is cut, says how long it was, and hurts nobody else.
pub(super) fn short_receives_get_what_fits(factory: &Factory) -> Checked {
    for posted_first in [true, false] {
        let mut rig = Rig::plenty(factory, 2)?;
        for (seed, len) in factory.claims.lengths.clone().into_iter().enumerate() {
            for room in [0, len / 2, len.saturating_sub(1)] {
                if room >= len {
                    continue;
                }
                let seed = seed as u64;
                let early = if posted_first {
                    Some(rig.post(1, exact(2), room)?)
                } else {
                    None
                };
                let sending = rig.send(0, 1, 2, seed, len)?;
                rig.send(0, 1, 2, seed + 1, 8)?;
                let receiving = match early {
                    Some(receiving) => receiving,
                    None => {
                        rig.settle()?;
                        rig.post(1, exact(2), room)?
                    }
                };
                rig.got(&receiving, 0, 2, seed, len)?;
                rig.sent_well(sending)?;
                let next = rig.post(1, exact(2), 8)?;
                rig.got(&next, 0, 2, seed + 1, 8)?;
            }
        }
        rig.is_empty()?;
    }
    Ok(())
}

pub(super) fn long_receives_keep_the_rest(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    for (seed, len) in factory.claims.lengths.clone().into_iter().enumerate() {
        let receiving = rig.post(1, exact(2), len + 100)?;
        rig.send(0, 1, 2, seed as u64, len)?;
        rig.got(&receiving, 0, 2, seed as u64, len)?;
    }
    rig.is_empty()
}

/// A synchronous send ends with the match, and not before.
pub(super) fn synchronous_sends_end_with_the_match(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    for (seed, len) in factory.claims.lengths.clone().into_iter().enumerate() {
        let seed = seed as u64;
        let sending = rig.send_as(0, 1, 2, seed, len, true)?;
        rig.settle()?;
        ensure(!rig.is_sent(sending), || {
            format!("a synchronous send of {len} bytes ended before its match")
        })?;
        let found = rig.see(1, exact(2), false)?;
        ensure(found.envelope.length == len as u64, || {
            format!("a probe saw {found:?} where {len} bytes were sent")
        })?;
        rig.settle()?;
        ensure(!rig.is_sent(sending), || {
            "a probe ended a synchronous send".to_owned()
        })?;
        let receiving = rig.post(1, exact(2), len)?;
        rig.got(&receiving, 0, 2, seed, len)?;
        rig.sent_well(sending)?;
        let receiving = rig.post(1, exact(3), len)?;
        let sending = rig.send_as(0, 1, 3, seed, len, true)?;
        rig.got(&receiving, 0, 3, seed, len)?;
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}

/// Buffers of several pieces are sent as what they mean, or refused with nothing sent.
pub(super) fn odd_shapes_are_sent_or_refused(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    for len in [8, 40, 1000, 30_000] {
        let memory = rig.patterned(1, len);
        let mut backwards = memory.bytes();
        backwards.reverse();
        let shapes = [
            memory.gathered(&[3, 0, len / 2]),
            SendBuffer::packed(Box::new(Backwards(backwards))),
        ];
        for shape in shapes {
            let receiving = rig.post(1, exact(2), len)?;
            let (sending, answer) = rig.send_buffer(0, 1, 2, &shape, false)?;
            match answer {
                Sent::Refused(Refusal::Shape) => {
                    rig.settle()?;
                    ensure(!rig.is_received(&receiving), || {
                        "what was refused was received".to_owned()
                    })?;
                    rig.send(0, 1, 2, 1, len)?;
                }
                Sent::Done | Sent::Open => rig.sent_well(sending)?,
                other => return Err(format!("an odd shape was answered {other:?}")),
            }
            rig.got(&receiving, 0, 2, 1, len)?;
        }
        let (whole, token) = (rig.zeroed(len + 5), rig.token());
        let scattered = whole.scattered(5);
        match rig.post_buffer(1, exact(3), &scattered, token)? {
            Posted::Refused(Refusal::Shape) => {}
            Posted::Open => {
                rig.send(0, 1, 3, 1, len)?;
                rig.drive("a scattered receive", |rig| {
                    rig.log(1).received.contains_key(&token)
                })?;
            }
            other => return Err(format!("a scattered receive was answered {other:?}")),
        }
    }
    rig.is_empty()
}

/// Bits that are not the user's, and what no receive may ignore: refused, and nothing else.
pub(super) fn foreign_bits_are_refused(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let limits = *rig.limits();
    rig.acquaint(0, 1)?;
    let (memory, token) = (rig.zeroed(8), rig.token());
    for place in 0..64 {
        let bit = 1_u64 << place;
        if limits.bits & bit == 0 {
            let (_, sent) = rig.send_buffer(0, 1, bit, &memory.send_buffer(), false)?;
            ensure(sent == Sent::Refused(Refusal::ReservedBits), || {
                format!("a send under reserved bit {place} was answered {sent:?}")
            })?;
            let posted = rig.post_buffer(1, exact(bit), &memory.recv_buffer(), token)?;
            ensure(posted == Posted::Refused(Refusal::ReservedBits), || {
                format!("a receive of reserved bit {place} was answered {posted:?}")
            })?;
        } else if limits.ignorable & bit == 0 {
            let pattern = MatchPattern {
                ignore: bit,
                ..exact(0)
            };
            let posted = rig.post_buffer(1, pattern, &memory.recv_buffer(), token)?;
            ensure(posted == Posted::Refused(Refusal::Ignore), || {
                format!("a receive that ignores bit {place} was answered {posted:?}")
            })?;
        }
    }
    rig.acquaint(0, 1)?;
    rig.is_empty()
}
