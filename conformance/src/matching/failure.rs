//! Peers that die.

use super::Factory;
use super::rig::{Checked, Rig, Sending, Word, exact, from};
use crate::common::{at_length, ensure};
use tagwire_transport::capability::Capabilities;
use tagwire_transport::matching::{ReceiveEnd, Sent};
use tagwire_transport::message::Outcome;

/// Rank 1 is in contact with rank 0, and dies; rank 0 is told.
fn bury(rig: &mut Rig) -> Checked {
    let endpoint = rig.connect(0, 1)?;
    rig.kill(1);
    rig.tell_failed(0, 1);
    rig.drive("a failure", |rig| rig.count(0, Word::Failed(endpoint)) > 0)?;
    rig.settle()
}

fn has_failed(rig: &mut Rig, sending: Sending) -> Checked {
    let outcome = rig.outcome(sending)?;
    ensure(outcome == Outcome::PeerFailed, || {
        format!("a send to the dead ended with {outcome:?}")
    })
}

pub(super) fn failures_are_told_once(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    rig.acquaint(0, 1)?;
    let endpoint = rig.connect(0, 1)?;
    bury(&mut rig)?;
    rig.tell_failed(0, 1);
    rig.settle()?;
    let told = rig.count(0, Word::Failed(endpoint));
    ensure(told == 1, || format!("a failure was told {told} times"))?;
    let memory = rig.patterned(1, 8);
    let (_, sent) = rig.send_buffer(0, 1, 5, &memory.send_buffer(), false)?;
    ensure(sent == Sent::Gone, || {
        format!("a send to the dead was answered {sent:?}")
    })?;
    rig.acquaint(0, 2)?;
    rig.is_empty()
}

pub(super) fn deaths_are_found(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    rig.acquaint(0, 1)?;
    let endpoint = rig.connect(0, 1)?;
    let sending = rig.send(0, 1, 5, 1, 300_000)?;
    rig.kill(1);
    rig.drive("the news of a death", |rig| {
        rig.count(0, Word::Failed(endpoint)) == 1
    })?;
    has_failed(&mut rig, sending)?;
    rig.acquaint(0, 2)
}

/// Short messages of the dead are received, the rest is forgotten; receives that wait for more
/// stay until they are cancelled.
pub(super) fn last_words_are_received(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    rig.acquaint(0, 1)?;
    for seed in 0..20 {
        let sending = rig.send(1, 0, 5, seed, 8)?;
        rig.sent_well(sending)?;
    }
    let _ = rig.send(1, 0, 6, 1, 300_000)?;
    let waiting = rig.post(0, from(1, exact(8)), 8)?;
    let any = rig.post(0, exact(9), 8)?;
    bury(&mut rig)?;
    for seed in 0..20 {
        let receiving = rig.post(0, from(1, exact(5)), 8)?;
        rig.got(&receiving, 1, 5, seed, 8)?;
    }
    let nothing = rig.probe(0, rig.wild(0), false)?;
    ensure(nothing.is_none(), || {
        format!("a message whose bytes are gone is still there: {nothing:?}")
    })?;
    ensure(!rig.is_received(&waiting) && !rig.is_received(&any), || {
        "a receive that waited for the dead ended by itself".to_owned()
    })?;
    ensure(rig.cancel(&waiting)?, || {
        "a receive from the dead cannot be cancelled".to_owned()
    })?;
    rig.send(2, 0, 9, 3, 8)?;
    rig.got(&any, 2, 9, 3, 8)?;
    rig.is_empty()
}

pub(super) fn sends_to_the_dead_end(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    rig.acquaint(0, 1)?;
    let endpoint = rig.connect(0, 1)?;
    let mut sends = vec![rig.send(0, 1, 5, 1, 300_000)?];
    for seed in 0..5 {
        sends.push(rig.send_as(0, 1, 6, seed, 8, true)?);
    }
    rig.settle()?;
    rig.kill(1);
    for sending in &sends {
        ensure(
            !rig.is_sent(*sending) || rig.count(0, Word::Failed(endpoint)) > 0,
            || "a send failed before the death was told".to_owned(),
        )?;
    }
    rig.tell_failed(0, 1);
    for sending in sends {
        has_failed(&mut rig, sending)?;
    }
    rig.acquaint(0, 2)?;
    rig.is_empty()
}

/// One side dies at every moment of a long message's transfer. Over networks, whose jobs take long to
/// open, at every third one, unless [`at_length`].
pub(super) fn deaths_cut_messages_off(factory: &Factory) -> Checked {
    const LEN: usize = 300_000;
    for sender_dies in [true, false] {
        let mut next = 0;
        while next < 10 {
            let turns = next;
            let mut rig = Rig::plenty(factory, 3)?;
            let capabilities = rig.transport(0).capabilities();
            let sparse = capabilities.contains(Capabilities::REMOTE) && !at_length();
            next += if sparse { 3 } else { 1 };
            rig.acquaint(0, 1)?;
            let (sender, receiver) = if sender_dies { (1, 0) } else { (0, 1) };
            let receiving = rig.post(receiver, from(sender, exact(5)), LEN)?;
            let sending = rig.send(sender, receiver, 5, 7, LEN)?;
            for turn in 0..turns {
                rig.progress((turn + usize::from(sender_dies)) % 2);
            }
            bury(&mut rig)?;
            // What has matched cannot be taken back, and ends once the transport has let go of its buffer.
            if sender_dies && (rig.is_received(&receiving) || !rig.cancel(&receiving)?) {
                match rig.end(&receiving)? {
                    ReceiveEnd::Matched(_, Outcome::Done(_)) => {
                        rig.got(&receiving, 1, 5, 7, LEN)?;
                    }
                    ReceiveEnd::Matched(_, Outcome::PeerFailed) => {}
                    other => return Err(format!("a receive from the dead ended with {other:?}")),
                }
            } else if !sender_dies {
                match rig.outcome(sending)? {
                    Outcome::Done(_) | Outcome::PeerFailed => {}
                    other => return Err(format!("a send to the dead ended with {other:?}")),
                }
            }
            rig.acquaint(0, 2)?;
            rig.is_empty()?;
        }
    }
    Ok(())
}

/// What was claimed of the dead is received, or ends.
pub(super) fn claims_of_the_dead_end(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.acquaint(0, 1)?;
    rig.send(1, 0, 5, 1, 8)?;
    let _ = rig.send(1, 0, 6, 2, 300_000)?;
    let short = rig.see(0, exact(5), true)?;
    let long = rig.see(0, exact(6), true)?;
    bury(&mut rig)?;
    let receiving = rig.receive(0, short, 8)?;
    rig.got(&receiving, 1, 5, 1, 8)?;
    let receiving = rig.receive(0, long, 300_000)?;
    match rig.end(&receiving)? {
        ReceiveEnd::Matched(_, Outcome::Done(_)) => rig.got(&receiving, 1, 6, 2, 300_000)?,
        ReceiveEnd::Matched(_, Outcome::PeerFailed) => {}
        other => {
            return Err(format!(
                "a claimed message of the dead ended with {other:?}"
            ));
        }
    }
    rig.is_empty()
}

/// Ranks that nobody talked to may die too.
pub(super) fn strangers_may_die(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 3)?;
    let waiting = rig.post(0, from(1, exact(5)), 8)?;
    rig.kill(1);
    rig.tell_failed(0, 1);
    rig.settle()?;
    rig.acquaint(0, 2)?;
    ensure(rig.cancel(&waiting)?, || {
        "a receive from a dead stranger cannot be cancelled".to_owned()
    })?;
    rig.is_empty()
}
