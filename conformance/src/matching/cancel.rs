//! Taking receives back.

use super::Factory;
use super::rig::{Checked, Rig, exact};
use crate::common::{at_length, ensure};
use tagwire_transport::capability::Capabilities;
use tagwire_transport::matching::ReceiveEnd;

pub(super) fn cancelled_receives_take_nothing(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.acquaint(0, 1)?;
    // First, last, and in the middle of the list.
    let receives: Vec<_> = (0..9)
        .map(|number| rig.post(1, exact(number % 3), 8))
        .collect::<Checked<_>>()?;
    for place in [0, 4, 8] {
        ensure(rig.cancel(&receives[place])?, || {
            "a cancel of a waiting receive came too late".to_owned()
        })?;
    }
    for (place, receiving) in receives.iter().enumerate() {
        let bits = place as u64 % 3;
        if [0, 4, 8].contains(&place) {
            continue;
        }
        rig.send(0, 1, bits, place as u64, 8)?;
        rig.got(receiving, 0, bits, place as u64, 8)?;
    }
    for place in [0, 4, 8] {
        let end = rig.end(&receives[place])?;
        ensure(end == ReceiveEnd::Cancelled, || {
            format!("a cancelled receive ended with {end:?}")
        })?;
        ensure(receives[place].memory.bytes() == [0; 8], || {
            "a cancelled receive was written to".to_owned()
        })?;
    }
    rig.is_empty()
}

/// A cancel after so many turns of a message's way: the receive ends once, one way or the other,
/// and a message that it did not take is there for the next. Over networks, whose jobs take long to
/// open, each length has every third turn, and each turn every third length, unless [`at_length`].
pub(super) fn cancels_race_with_messages(factory: &Factory) -> Checked {
    let capabilities = Rig::plenty(factory, 2)?.transport(0).capabilities();
    let sparse = capabilities.contains(Capabilities::REMOTE) && !at_length();
    let stride = if sparse { 3 } else { 1 };
    for (place, len) in factory.claims.lengths.clone().into_iter().enumerate() {
        for turns in (place % stride..12).step_by(stride) {
            let mut rig = Rig::plenty(factory, 2)?;
            rig.acquaint(0, 1)?;
            let receiving = rig.post(1, exact(2), len)?;
            let sending = rig.send_as(0, 1, 2, 7, len, turns % 2 == 0)?;
            for turn in 0..turns {
                rig.progress(turn % 2);
            }
            let cancelled = rig.cancel(&receiving)?;
            if cancelled {
                ensure(rig.end(&receiving)? == ReceiveEnd::Cancelled, || {
                    "a receive was cancelled and went on".to_owned()
                })?;
                let next = rig.post(1, exact(2), len)?;
                rig.got(&next, 0, 2, 7, len)?;
            } else {
                rig.got(&receiving, 0, 2, 7, len)?;
            }
            rig.sent_well(sending)?;
            rig.is_empty()?;
        }
    }
    Ok(())
}
