//! Coming and going.

use tagwire_base::Rank;

use super::Factory;
use super::rig::{Checked, Rig, Word, exact, from};
use crate::common::ensure;
use tagwire_transport::matching::Sent;
use tagwire_transport::message::Outcome;

pub(super) fn limits_are_consistent(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 1)?;
    let limits = *rig.limits();
    ensure(limits.ignorable & !limits.bits == 0, || {
        "bits may be ignored that may not be set".to_owned()
    })?;
    ensure(limits.lanes >= 1 && limits.max_posted >= 1, || {
        format!("{limits:?} leaves no room for anything")
    })?;
    ensure(!rig.transport(0).name().is_empty(), || {
        "it has no name".to_owned()
    })
}

pub(super) fn connects_to_the_same_endpoint(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let first = rig.connect(0, 1)?;
    rig.acquaint(0, 1)?;
    let address = rig.transport(1).address();
    let again = rig.transport(0).connect(Rank::new(1), &address);
    ensure(again.as_ref().is_ok_and(|again| *again == first), || {
        format!("connecting again answered {again:?} where {first:?} was right")
    })
}

pub(super) fn bad_addresses_are_refused(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let mut cut = rig.transport(1).address();
    cut.pop();
    for address in [Vec::new(), vec![0xff; 200], cut] {
        let refused = rig.transport(0).connect(Rank::new(1), &address);
        ensure(refused.is_err(), || {
            format!("{} bytes were taken for an address", address.len())
        })?;
    }
    rig.acquaint(0, 1)
}

pub(super) fn peers_are_greeted_once(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    for sender in 1..3 {
        for seed in 0..3 {
            rig.send(sender, 0, 2, seed, 8)?;
        }
    }
    rig.settle()?;
    for sender in 1..3_u32 {
        let ups: Vec<_> = rig
            .log(0)
            .words
            .iter()
            .filter(|word| matches!(word, Word::Up(_, rank) if rank.as_u32() == sender))
            .copied()
            .collect();
        let [Word::Up(endpoint, _)] = ups[..] else {
            return Err(format!("rank {sender} was greeted like this: {ups:?}"));
        };
        // And can be replied to by that.
        let known = rig.connect(0, sender as usize)?;
        ensure(known == endpoint, || {
            format!("rank {sender} is {endpoint:?} and {known:?}")
        })?;
        let receiving = rig.post(sender as usize, exact(4), 8)?;
        rig.send(0, sender as usize, 4, 1, 8)?;
        rig.got(&receiving, 0, 4, 1, 8)?;
    }
    Ok(())
}

/// What was sent before a goodbye is received after it; nobody hears of it twice.
pub(super) fn goodbyes_come_after_the_last_message(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    rig.acquaint(0, 1)?;
    let waiting = rig.post(0, from(1, exact(77)), 8)?;
    for seed in 0..30 {
        let sending = rig.send(1, 0, 5, seed, 8)?;
        rig.sent_well(sending)?;
    }
    let endpoint = rig.connect(0, 1)?;
    rig.close(1)?;
    rig.drive("a goodbye", |rig| rig.count(0, Word::Left(endpoint)) == 1)?;
    for seed in 0..30 {
        let receiving = rig.post(0, from(1, exact(5)), 8)?;
        rig.got(&receiving, 1, 5, seed, 8)?;
    }
    let memory = rig.patterned(1, 8);
    let (_, sent) = rig.send_buffer(0, 1, 5, &memory.send_buffer(), false)?;
    ensure(sent == Sent::Gone, || {
        format!("a send to a rank that left was answered {sent:?}")
    })?;
    rig.settle()?;
    ensure(!rig.is_received(&waiting), || {
        "a receive from a rank that left ended by itself".to_owned()
    })?;
    ensure(rig.cancel(&waiting)?, || {
        "a receive from a rank that left cannot be cancelled".to_owned()
    })?;
    ensure(
        rig.count(0, Word::Left(endpoint)) == 1 && rig.count(0, Word::Failed(endpoint)) == 0,
        || "a goodbye was told twice, or taken for a failure".to_owned(),
    )?;
    rig.acquaint(0, 2)?;
    rig.is_empty()
}

/// Who leaves while something is sent to it: the send ends, after the goodbye was told.
pub(super) fn goodbyes_end_what_is_under_way(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.acquaint(0, 1)?;
    let long = rig.send(0, 1, 5, 1, 300_000)?;
    let synchronous = rig.send_as(0, 1, 6, 1, 8, true)?;
    rig.settle()?;
    let endpoint = rig.connect(0, 1)?;
    rig.close(1)?;
    for sending in [long, synchronous] {
        let outcome = rig.outcome(sending)?;
        ensure(outcome == Outcome::PeerFailed, || {
            format!("a send to a rank that left ended with {outcome:?}")
        })?;
        ensure(rig.count(0, Word::Left(endpoint)) == 1, || {
            "a send failed before its peer's goodbye was told".to_owned()
        })?;
    }
    rig.is_empty()
}

pub(super) fn dumps_name_messages_and_peers(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let sends = [rig.send(0, 1, 50, 1, 8)?, rig.send(0, 1, 51, 2, 200_000)?];
    rig.see(1, exact(51), false)?;
    rig.settle()?;
    let mut seen = Vec::new();
    rig.transport(1)
        .visit_unexpected(&mut |envelope| seen.push((envelope.bits, envelope.length)));
    seen.sort_unstable();
    ensure(seen == [(50, 8), (51, 200_000)], || {
        format!("the unexpected messages are {seen:?}")
    })?;
    let mut text = String::new();
    rig.transport(1).describe(&mut text);
    ensure(!text.is_empty(), || {
        "there is nothing to say of a peer".to_owned()
    })?;
    for (bits, len, seed) in [(51, 200_000, 2), (50, 8, 1)] {
        let receiving = rig.post(1, exact(bits), len)?;
        rig.got(&receiving, 0, bits, seed, len)?;
    }
    for sending in sends {
        rig.sent_well(sending)?;
    }
    rig.is_empty()
}
