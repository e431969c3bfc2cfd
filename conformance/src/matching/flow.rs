//! Bounds: what is kept of unexpected messages, and that nobody hangs on it.

use super::rig::{Checked, Rig, Sending, exact, from};
use super::{Factory, Wanted};
use crate::common::ensure;

fn flood(rig: &mut Rig, at: usize, to: usize, count: u64, len: usize) -> Checked<Vec<Sending>> {
    (0..count)
        .map(|seed| rig.send(at, to, seed, seed, len))
        .collect()
}

/// What a receiver keeps, and what its senders may take for done, is bounded; and all of it is
/// received in the end, the last first.
pub(super) fn floods_stay_within_bounds(factory: &Factory) -> Checked {
    const COUNT: u64 = 700;
    for len in [0, 8, 500, 3000] {
        let mut rig = Rig::open(factory, 2, Wanted::LITTLE)?;
        let sends = flood(&mut rig, 0, 1, COUNT, len)?;
        rig.settle()?;
        let levels = rig.transport(1).levels();
        let bytes = Wanted::LITTLE.unexpected_bytes + factory.claims.slack.bytes;
        let messages = Wanted::LITTLE.unexpected_messages + factory.claims.slack.messages;
        ensure(
            levels.unexpected_bytes <= bytes && levels.unexpected <= messages,
            || format!("{levels:?} where {bytes} bytes and {messages} messages are the bounds"),
        )?;
        let done = sends
            .iter()
            .filter(|sending| rig.is_sent(**sending))
            .count();
        ensure(done <= messages && done * len <= bytes, || {
            format!("{done} sends of {len} bytes ended where nobody received anything")
        })?;
        let last = COUNT - 1;
        let receiving = rig.post(1, exact(last), len)?;
        rig.got(&receiving, 0, last, last, len)?;
        for seed in 0..last {
            let receiving = rig.post(1, rig.wild(0), len)?;
            rig.got(&receiving, 0, seed, seed, len)?;
        }
        for sending in sends {
            rig.sent_well(sending)?;
        }
        rig.is_empty()?;
    }
    Ok(())
}

/// Receives that were posted before, during and after a flood reach the messages behind it.
pub(super) fn receives_reach_behind_a_flood(factory: &Factory) -> Checked {
    for directed in [false, true] {
        let mut rig = Rig::open(factory, 3, Wanted::LITTLE)?;
        let pattern = |bits| {
            if directed {
                from(0, exact(bits))
            } else {
                exact(bits)
            }
        };
        let before = rig.post(2, pattern(9001), 8)?;
        let mut sends = flood(&mut rig, 0, 2, 300, 8)?;
        let during = rig.post(2, pattern(9002), 8)?;
        sends.extend(flood(&mut rig, 1, 2, 300, 8)?);
        rig.settle()?;
        let after = rig.post(2, pattern(9003), 5000)?;
        for (bits, len) in [(9003, 5000), (9002, 8), (9001, 8), (9004, 8)] {
            sends.push(rig.send(0, 2, bits, bits, len)?);
        }
        rig.got(&before, 0, 9001, 9001, 8)?;
        rig.got(&during, 0, 9002, 9002, 8)?;
        rig.got(&after, 0, 9003, 9003, 5000)?;
        let seen = rig.see(2, pattern(9004), false)?;
        ensure(seen.envelope.bits == 9004, || {
            format!("a probe saw {seen:?}")
        })?;
        let claimed = rig.see(2, pattern(9004), true)?;
        let receiving = rig.receive(2, claimed, 8)?;
        rig.got(&receiving, 0, 9004, 9004, 8)?;
        for source in [1, 0] {
            for seed in 0..300 {
                let receiving = rig.post(2, from(source, rig.wild(0)), 8)?;
                rig.got(&receiving, source, seed, seed, 8)?;
            }
        }
        for sending in sends {
            rig.sent_well(sending)?;
        }
        rig.is_empty()?;
    }
    Ok(())
}

/// Of long messages nothing but the envelope is kept before they match.
pub(super) fn long_messages_cost_an_envelope(factory: &Factory) -> Checked {
    const LEN: usize = 1 << 20;
    let mut rig = Rig::plenty(factory, 2)?;
    let memory = rig.patterned(5, LEN);
    let mut sends = Vec::new();
    for bits in 0..100 {
        sends.push(rig.send_buffer(0, 1, bits, &memory.send_buffer(), false)?.0);
    }
    rig.settle()?;
    let levels = rig.transport(1).levels();
    ensure(levels.unexpected_bytes < LEN, || {
        format!("{levels:?} of 100 long messages that nobody received")
    })?;
    ensure(sends.iter().all(|sending| !rig.is_sent(*sending)), || {
        "a long send ended that nobody received".to_owned()
    })?;
    for bits in (0..100).rev() {
        let receiving = rig.post(1, exact(bits), LEN)?;
        rig.got(&receiving, 0, bits, 5, LEN)?;
    }
    for sending in sends {
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}

/// A receiver that is full slows nobody down but those who send to it.
pub(super) fn one_full_receiver_leaves_others_alone(factory: &Factory) -> Checked {
    let mut rig = Rig::open(factory, 3, Wanted::LITTLE)?;
    let sends = flood(&mut rig, 0, 1, 600, 100)?;
    rig.settle()?;
    for seed in 0..300 {
        let receiving = rig.post(2, exact(seed), 100)?;
        let sending = rig.send(0, 2, seed, seed, 100)?;
        rig.drive_only(&[0, 2], "a message beside a flood", |rig| {
            rig.is_received(&receiving)
        })?;
        rig.got(&receiving, 0, seed, seed, 100)?;
        rig.sent_well(sending)?;
    }
    for seed in 0..600 {
        let receiving = rig.post(1, exact(seed), 100)?;
        rig.got(&receiving, 0, seed, seed, 100)?;
    }
    for sending in sends {
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}

/// A sender that has filled its receiver up, and is held, holds up no other sender to it whose messages
/// are received.
pub(super) fn one_held_sender_leaves_others_alone(factory: &Factory) -> Checked {
    const FLOOD: u64 = 700;
    let mut rig = Rig::open(factory, 3, Wanted::LITTLE)?;
    let flood = flood(&mut rig, 1, 0, FLOOD, 100)?;
    rig.settle()?;
    for seed in 10_000..10_300 {
        let len = if seed % 10 == 0 { 5000 } else { 100 };
        let receiving = rig.post(0, exact(seed), len)?;
        let sending = rig.send(2, 0, seed, seed, len)?;
        rig.drive_only(&[0, 2], "a message beside one that is held", |rig| {
            rig.is_received(&receiving) && rig.is_sent(sending)
        })?;
        rig.got(&receiving, 2, seed, seed, len)?;
    }
    ensure(flood.iter().any(|sending| !rig.is_sent(*sending)), || {
        "nothing was held".to_owned()
    })?;
    for seed in 0..FLOOD {
        let receiving = rig.post(0, exact(seed), 100)?;
        rig.got(&receiving, 1, seed, seed, 100)?;
    }
    for sending in flood {
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}

pub(super) fn idle_progress_does_nothing(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.acquaint(0, 1)?;
    let waiting = rig.post(1, exact(2), 8)?;
    rig.settle()?;
    for _ in 0..100 {
        ensure(rig.round() == 0, || {
            "progress tells of things when nothing happens".to_owned()
        })?;
    }
    rig.send(0, 1, 2, 1, 8)?;
    rig.got(&waiting, 0, 2, 1, 8)?;
    rig.is_empty()
}
