//! Checks of failures: what involves the dead ends, everything else goes on.

use super::Factory;
use super::log::Entry;
use super::messages::LAST_MESSAGE;
use super::rig::{Rig, header};
use crate::common::{LANE, ensure};
use tagwire_transport::data::SendBuffer;
use tagwire_transport::message::{EndpointId, Outcome, Token};
use tagwire_transport::{Class, Offer, Post, Ticket};

fn failed(endpoint: EndpointId) -> impl Fn(&Entry) -> bool {
    move |entry| matches!(entry, Entry::Failed(of) if *of == endpoint)
}

fn has_failed(entry: &Entry) -> bool {
    matches!(entry, Entry::Failed(_))
}

/// A failure that the bootstrap reports is passed on once, and the peer is gone.
pub(super) fn failure_is_told_once(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 2)?;
    let (to, _) = rig.contact(0, 1)?;
    rig.kill(1);
    rig.tell_failed(0, 1);
    rig.tell_failed(0, 1);
    rig.drive("a failure", |rig| rig.count(0, failed(to)) > 0)?;
    rig.tell_failed(0, 1);
    rig.settle()?;
    let told = rig.count(0, failed(to));
    ensure(told == 1, || format!("a failure was told {told} times"))?;
    let post = rig.post(0, to, Class::Data, LAST_MESSAGE, b"");
    ensure(post == Post::Gone, || {
        format!("a send to a failed rank: {post:?}")
    })
}

/// What a rank sent before it failed is delivered before the failure is told.
pub(super) fn last_words_are_delivered(factory: &Factory) -> Result<(), String> {
    const LAST: u64 = 20;
    let mut rig = Rig::open(factory, 2)?;
    let (to, back) = rig.contact(0, 1)?;
    for number in 1..=LAST {
        rig.send(0, to, header(number), &[3; 40])?;
    }
    rig.kill(0);
    rig.tell_failed(1, 0);
    rig.drive("a failure", |rig| rig.count(1, failed(back)) > 0)?;
    rig.settle()?;
    let entries = &rig.log(1).entries;
    let told = entries.iter().position(failed(back));
    let before = entries[..told.unwrap_or(0)]
        .iter()
        .filter(|entry| matches!(entry, Entry::Message(_)))
        .count() as u64;
    ensure(before == LAST, || {
        format!("{before} of the last {LAST} messages came before the failure")
    })?;
    let all = rig.log(1).message_count() as u64;
    ensure(all == LAST, || format!("{all} messages of {LAST}"))
}

/// The failure of one rank touches nobody else's messages.
pub(super) fn the_living_go_on(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 3)?;
    rig.contact(0, 2)?;
    rig.contact(1, 2)?;
    let (to, back) = rig.contact(0, 1)?;
    rig.kill(2);
    rig.tell_failed(0, 2);
    rig.tell_failed(1, 2);
    for number in 1..=500 {
        rig.send(0, to, header(number), &[1; 30])?;
        rig.send(1, back, header(number), &[2; 30])?;
    }
    rig.drive("messages among the living", |rig| {
        (0..2).all(|rank| rig.log(rank).message_count() >= 500 && rig.count(rank, has_failed) > 0)
    })?;
    rig.settle()?;
    for rank in 0..2 {
        let count = rig.log(rank).message_count();
        ensure(count == 500, || {
            format!("rank {rank} got {count} messages of 500")
        })?;
        let told = rig.count(rank, has_failed);
        ensure(told == 1, || {
            format!("rank {rank} was told of {told} failures")
        })?;
    }
    Ok(())
}

/// The failure of a rank that nobody talked to does no harm, and it cannot be reached later.
pub(super) fn strangers_may_fail(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 2)?;
    let address = rig.transport(1).address();
    rig.kill(1);
    rig.tell_failed(0, 1);
    rig.settle()?;
    let stranger = tagwire_base::Rank::new(1);
    let Ok(endpoint) = rig.transport(0).connect(stranger, &address) else {
        return Ok(());
    };
    let post = rig.post(0, endpoint, Class::Data, LAST_MESSAGE, b"");
    ensure(post == Post::Gone, || {
        format!("a send to a rank that failed before: {post:?}")
    })
}

/// Opens an offer, however often it takes.
pub(super) fn offer(
    rig: &mut Rig,
    from: usize,
    to: EndpointId,
    buffer: &SendBuffer,
    token: Token,
) -> Result<Ticket, String> {
    let mut ticket = None;
    rig.insist(from, "an offer", |transport| {
        match transport.offer(LANE, to, buffer, token) {
            Offer::Open(open) => {
                ticket = Some(open);
                Post::Posted
            }
            Offer::Busy => Post::Busy,
            Offer::Unsupported => Post::Unsupported,
        }
    })?;
    ticket.ok_or_else(|| "no ticket".to_owned())
}

/// Offers and claims with a failed peer end as such, each once.
pub(super) fn failure_ends_transfers(factory: &Factory) -> Result<(), String> {
    const LEN: usize = 3 << 20;
    let mut rig = Rig::open(factory, 2)?;
    let (to, back) = rig.contact(0, 1)?;
    let source = rig.patterned_at(0, 1, LEN);
    let (claimed, unclaimed, joined) = (rig.token(), rig.token(), rig.token());
    // One that the dead has claimed, one that nobody has, one that the living claims.
    let ticket = offer(&mut rig, 0, to, &source.send_buffer(), claimed)?;
    let mut waiting = vec![claimed];
    if rig.limits(0).max_offers > 1 {
        offer(&mut rig, 0, to, &source.send_buffer(), unclaimed)?;
        waiting.push(unclaimed);
    }
    let (theirs, foreign) = (rig.patterned_at(1, 2, LEN), [rig.token(), rig.token()]);
    let offered = offer(&mut rig, 1, back, &theirs.send_buffer(), foreign[0])?;
    let (there, here) = (rig.zeroed_at(1, LEN), rig.zeroed_at(0, LEN));
    let dying = rig.transport(1);
    // Without progress in between, which could end the transfer.
    let claim = (0..1000)
        .map(|_| dying.claim(LANE, back, ticket, &there.recv_buffer(), foreign[1]))
        .find(|post| *post != Post::Busy);
    ensure(claim == Some(Post::Posted), || {
        format!("a claim was answered {claim:?}")
    })?;
    rig.kill(1);
    let living = rig.transport(0);
    let claim = (0..1000)
        .map(|_| living.claim(LANE, to, offered, &here.recv_buffer(), joined))
        .find(|post| *post != Post::Busy);
    if claim == Some(Post::Posted) {
        waiting.push(joined);
    }
    rig.tell_failed(0, 1);
    rig.drive("transfers with a failed peer end", |rig| {
        rig.count(0, failed(to)) > 0 && waiting.iter().all(|token| rig.log(0).is_complete(*token))
    })?;
    let before = here.bytes();
    rig.settle()?;
    for token in waiting {
        rig.expect_outcome(0, token, Outcome::PeerFailed)?;
    }
    ensure(here.bytes() == before, || {
        "a buffer was written after its return".to_owned()
    })
}

/// A transport that claims so finds a dead peer by itself.
pub(super) fn finds_the_dead(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 2)?;
    let (to, _) = rig.contact(0, 1)?;
    rig.kill(1);
    rig.drive("a failure found without help", |rig| {
        rig.count(0, failed(to)) > 0
    })?;
    rig.tell_failed(0, 1);
    rig.settle()?;
    let told = rig.count(0, failed(to));
    ensure(told == 1, || format!("a failure was told {told} times"))
}
