//! Which message meets which receive.

use super::Factory;
use super::rig::{Checked, Rig, exact, from};
use crate::common::ensure;

pub(super) fn posted_receives_get_every_length(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    for (seed, len) in factory.claims.lengths.clone().into_iter().enumerate() {
        let (seed, bits) = (seed as u64, seed as u64 + 10);
        let receiving = rig.post(1, exact(bits), len)?;
        let sending = rig.send(0, 1, bits, seed, len)?;
        rig.got(&receiving, 0, bits, seed, len)?;
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}

pub(super) fn unexpected_messages_keep_every_length(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let lengths = factory.claims.lengths.clone();
    let mut sends = Vec::new();
    for (seed, len) in lengths.iter().enumerate() {
        sends.push(rig.send(0, 1, seed as u64, seed as u64, *len)?);
    }
    rig.settle()?;
    for (seed, len) in lengths.iter().enumerate().rev() {
        let receiving = rig.post(1, exact(seed as u64), *len)?;
        rig.got(&receiving, 0, seed as u64, seed as u64, *len)?;
    }
    for sending in sends {
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}

/// Long and short ones of one sender under the same bits.
pub(super) fn messages_match_in_the_order_of_sending(factory: &Factory) -> Checked {
    const LENGTHS: [usize; 4] = [300_000, 0, 8, 2000];
    for posted_first in [false, true] {
        let mut rig = Rig::plenty(factory, 2)?;
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        for seed in 0..24 {
            if posted_first {
                receives.push(rig.post(1, exact(3), 300_000)?);
            } else {
                sends.push(rig.send(0, 1, 3, seed, LENGTHS[seed as usize % 4])?);
            }
        }
        if !posted_first {
            rig.settle()?;
        }
        for seed in 0..24 {
            if posted_first {
                sends.push(rig.send(0, 1, 3, seed, LENGTHS[seed as usize % 4])?);
            } else {
                receives.push(rig.post(1, exact(3), 300_000)?);
            }
        }
        for (seed, receiving) in receives.iter().enumerate() {
            rig.got(receiving, 0, 3, seed as u64, LENGTHS[seed % 4])?;
        }
        for sending in sends {
            rig.sent_well(sending)?;
        }
        rig.is_empty()?;
    }
    Ok(())
}

pub(super) fn the_earliest_receive_wins(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let any = rig.wild(0);
    let first = rig.post(1, any, 8)?;
    let second = rig.post(1, exact(5), 8)?;
    let third = rig.post(1, from(0, any), 8)?;
    let fourth = rig.post(1, from(0, exact(5)), 8)?;
    for seed in 0..3 {
        rig.send(0, 1, 5, seed, 8)?;
    }
    rig.got(&first, 0, 5, 0, 8)?;
    rig.got(&second, 0, 5, 1, 8)?;
    rig.got(&third, 0, 5, 2, 8)?;
    rig.settle()?;
    ensure(!rig.is_received(&fourth), || {
        "a receive took a message that another had".to_owned()
    })?;
    rig.send(0, 1, 6, 8, 8)?;
    rig.send(0, 1, 5, 9, 8)?;
    rig.got(&fourth, 0, 5, 9, 8)?;
    let last = rig.post(1, any, 8)?;
    rig.got(&last, 0, 6, 8, 8)?;
    rig.is_empty()
}

pub(super) fn the_earliest_message_is_taken(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    for (seed, bits) in [7, 8, 7, 9, 8].into_iter().enumerate() {
        rig.send(0, 1, bits, seed as u64, 8)?;
    }
    rig.settle()?;
    let any = rig.wild(0);
    for (pattern, bits, seed) in [
        (exact(8), 8, 1),
        (any, 7, 0),
        (exact(9), 9, 3),
        (any, 7, 2),
        (exact(8), 8, 4),
    ] {
        let receiving = rig.post(1, pattern, 8)?;
        rig.got(&receiving, 0, bits, seed, 8)?;
    }
    rig.is_empty()
}

/// What is not ignored is compared: all the other bits.
pub(super) fn only_ignored_bits_are_ignored(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let wild = rig.wild(0);
    let compared = rig.limits().bits & !wild.ignore;
    for place in 0..64 {
        let bit = 1_u64 << place;
        if compared & bit == 0 {
            continue;
        }
        let receiving = rig.post(1, wild, 8)?;
        let other = rig.send(0, 1, bit, 1, 8)?;
        rig.sent_well(other)?;
        rig.settle()?;
        ensure(!rig.is_received(&receiving), || {
            format!("bit {place} was ignored though nobody asked for it")
        })?;
        rig.send(0, 1, 0, 2, 8)?;
        rig.got(&receiving, 0, 0, 2, 8)?;
        let receiving = rig.post(1, rig.wild(bit), 8)?;
        rig.got(&receiving, 0, bit, 1, 8)?;
    }
    for place in 0..64 {
        let bit = 1_u64 << place;
        if wild.ignore & bit != 0 {
            let receiving = rig.post(1, wild, 8)?;
            rig.send(0, 1, bit, 3, 8)?;
            rig.got(&receiving, 0, bit, 3, 8)?;
        }
    }
    rig.is_empty()
}

pub(super) fn sources_are_told_apart(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    let from_two = rig.post(0, from(2, exact(4)), 8)?;
    let from_one = rig.post(0, from(1, exact(4)), 8)?;
    rig.send(1, 0, 4, 1, 8)?;
    rig.got(&from_one, 1, 4, 1, 8)?;
    ensure(!rig.is_received(&from_two), || {
        "a message of rank 1 went to a receive from rank 2".to_owned()
    })?;
    rig.send(2, 0, 4, 2, 8)?;
    rig.got(&from_two, 2, 4, 2, 8)?;
    for source in [1, 2, 1] {
        rig.send(source, 0, 4, source as u64, 8)?;
    }
    rig.settle()?;
    let receiving = rig.post(0, from(2, rig.wild(0)), 8)?;
    rig.got(&receiving, 2, 4, 2, 8)?;
    for _ in 0..2 {
        let receiving = rig.post(0, exact(4), 8)?;
        rig.got(&receiving, 1, 4, 1, 8)?;
    }
    rig.is_empty()
}

/// Each sender's messages come in its order, whoever else sends.
pub(super) fn any_source_takes_from_all(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    let mut receives = Vec::new();
    for round in 0..40_u64 {
        for source in 1..3 {
            if round % 3 == 0 {
                receives.push(rig.post(0, exact(1), 8)?);
            }
            rig.send(source, 0, 1, round * 4 + source as u64, 8)?;
        }
    }
    while receives.len() < 80 {
        receives.push(rig.post(0, exact(1), 8)?);
    }
    let mut rounds = [0_u64; 3];
    for receiving in receives {
        let tagwire_transport::matching::ReceiveEnd::Matched(envelope, _) = rig.end(&receiving)?
        else {
            return Err("a receive was cancelled though nobody asked".to_owned());
        };
        let source = envelope.source.index();
        let seed = rounds[source] * 4 + source as u64;
        rounds[source] += 1;
        rig.got(&receiving, source, 1, seed, 8)?;
    }
    rig.is_empty()
}

pub(super) fn a_rank_reaches_itself(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 1)?;
    for (seed, len) in factory.claims.lengths.clone().into_iter().enumerate() {
        let seed = seed as u64;
        let receiving = rig.post(0, from(0, exact(seed)), len)?;
        let sending = rig.send(0, 0, seed, seed, len)?;
        rig.got(&receiving, 0, seed, seed, len)?;
        rig.sent_well(sending)?;
        let sending = rig.send_as(0, 0, seed, seed, len, true)?;
        rig.settle()?;
        ensure(!rig.is_sent(sending), || {
            "a synchronous send to itself ended before its match".to_owned()
        })?;
        let receiving = rig.post(0, rig.wild(0), len)?;
        rig.got(&receiving, 0, seed, seed, len)?;
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}
