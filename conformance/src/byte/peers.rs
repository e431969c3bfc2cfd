//! Checks of the life cycle: limits, addresses, first contact, goodbye.

use tagwire_base::Rank;
use tagwire_transport::{Class, Post};

use super::Factory;
use super::log::Entry;
use super::messages::LAST_MESSAGE;
use super::rig::{Rig, header};
use crate::common::ensure;
use tagwire_transport::capability::{Capabilities, WaitObject};

/// Limits and capabilities say the same.
pub(super) fn states_consistent_limits(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 1)?;
    let (all, limits) = (rig.capabilities(0), rig.limits(0));
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, what: &'static str| {
        if !holds {
            wrong.push(what);
        }
    };
    let has = |one| all.contains(one);
    expect(
        (has(Capabilities::COOPERATIVE) || has(Capabilities::ALLOCATION))
            == (limits.max_offers > 0),
        "max_offers",
    );
    expect(
        has(Capabilities::ZERO_COPY) == (limits.max_zero_copy > 0),
        "max_zero_copy",
    );
    let remote = has(Capabilities::PUT) || has(Capabilities::GET);
    expect(
        remote == (limits.max_remote_access > 0),
        "max_remote_access",
    );
    expect(
        has(Capabilities::NOTICE) == (limits.immediate_width > 0),
        "immediate_width",
    );
    expect(
        has(Capabilities::WAKE) == (limits.wait_object != WaitObject::None),
        "wait_object",
    );
    expect(
        limits.max_inline <= limits.max_send,
        "max_inline beyond max_send",
    );
    expect(
        limits.max_send >= 64,
        "max_send too small for a protocol's control messages",
    );
    expect(limits.lanes > 0, "lanes");
    let transport = rig.transport(0);
    expect(!transport.name().is_empty(), "name");
    expect(!transport.address().is_empty(), "address");
    expect(
        transport.address() == transport.address(),
        "an address that changes",
    );
    ensure(wrong.is_empty(), || {
        format!("does not fit together: {}", wrong.join(", "))
    })
}

/// Connecting again returns the same endpoint; other peers have others, numbered from 0.
pub(super) fn connects_to_the_same_endpoint(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 4)?;
    let size = rig.size();
    let own = usize::from(size > 1);
    let mut endpoints = Vec::new();
    for peer in own..size {
        endpoints.push(rig.connect(0, peer)?);
    }
    for (place, endpoint) in endpoints.iter().enumerate() {
        ensure(endpoint.index() == place, || {
            format!("contact {place} was numbered {endpoint:?}")
        })?;
    }
    rig.settle()?;
    for (peer, first) in (own..size).zip(endpoints) {
        let address = rig.transport(peer).address();
        let again = rig
            .transport(0)
            .connect(Rank::new(peer as u32), &address)
            .map_err(|error| format!("connecting again: {error}"))?;
        ensure(again == first, || format!("{first:?} became {again:?}"))?;
    }
    Ok(())
}

/// A peer's first contact is told once, before its first message, with the endpoint that
/// connecting returns, whoever came first.
pub(super) fn greets_once_before_messages(factory: &Factory) -> Result<(), String> {
    for connect_first in [false, true] {
        let mut rig = Rig::open(factory, 2)?;
        let receiver = rig.size() - 1;
        if connect_first {
            rig.connect(receiver, 0)?;
        }
        let to = rig.connect(0, receiver)?;
        for number in 1..=3 {
            rig.send(0, to, header(number), b"hello")?;
        }
        rig.drive("the first messages", |rig| {
            rig.log(receiver).message_count() >= 3
        })?;
        rig.settle()?;
        let greetings = rig.log(receiver).greetings(Rank::new(0));
        let [endpoint] = greetings[..] else {
            return Err(format!("{} greetings by one peer", greetings.len()));
        };
        for entry in &rig.log(receiver).entries {
            match entry {
                Entry::Up(..) => break,
                Entry::Message(_) => return Err("a message came before its sender".to_owned()),
                _ => {}
            }
        }
        let by_others = rig
            .log(receiver)
            .messages()
            .any(|message| message.from != endpoint);
        ensure(!by_others, || {
            "messages came by another endpoint".to_owned()
        })?;
        let connected = rig.connect(receiver, 0)?;
        ensure(connected == endpoint, || {
            format!("connecting answers {connected:?}, the greeting named {endpoint:?}")
        })?;
    }
    Ok(())
}

/// The endpoint of a first contact can be sent to without connecting.
pub(super) fn answers_by_first_contact(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 2)?;
    let to = rig.connect(0, 1)?;
    rig.send(0, to, header(1), b"question")?;
    rig.drive("a question", |rig| rig.log(1).message_count() >= 1)?;
    let back = rig.log(1).greetings(Rank::new(0));
    let back = *back.first().ok_or("a message without a greeting")?;
    rig.send(1, back, header(2), b"answer")?;
    rig.drive("an answer", |rig| rig.log(0).message_count() >= 1)?;
    rig.settle()?;
    let by = rig.log(0).messages().next().map(|message| message.from);
    ensure(by == Some(to), || {
        format!("sent to {to:?}, answered by {by:?}")
    })
}

/// A rank that closes is told to have left, once, after all that it sent; then it is gone.
pub(super) fn says_goodbye_after_the_last_message(factory: &Factory) -> Result<(), String> {
    const LAST: u64 = 40;
    let mut rig = Rig::open(factory, 2)?;
    let to = rig.connect(0, 1)?;
    let back = rig.connect(1, 0)?;
    for number in 1..=LAST {
        rig.send(0, to, header(number), &[7; 48])?;
    }
    rig.close(0);
    let left = |entry: &Entry| matches!(entry, Entry::Left(endpoint) if *endpoint == back);
    rig.drive("a goodbye", |rig| rig.count(1, left) > 0)?;
    rig.settle()?;
    let count = rig.log(1).message_count() as u64;
    ensure(count == LAST, || {
        format!("{count} of the last {LAST} messages arrived")
    })?;
    ensure(rig.count(1, left) == 1, || {
        "a peer left more than once".to_owned()
    })?;
    let last_message = rig
        .log(1)
        .entries
        .iter()
        .rposition(|e| matches!(e, Entry::Message(_)));
    let goodbye = rig.log(1).entries.iter().position(left);
    ensure(goodbye > last_message, || {
        "a goodbye came before the last message".to_owned()
    })?;
    let failed = rig.count(1, |entry| matches!(entry, Entry::Failed(_)));
    ensure(failed == 0, || {
        "a peer that left was told to have failed".to_owned()
    })?;
    let post = rig.post(1, back, Class::Data, LAST_MESSAGE, b"");
    ensure(post == Post::Gone, || {
        format!("a send to a rank that left: {post:?}")
    })
}

/// A rank that is dropped without having said that it leaves has failed, once, after all that it
/// sent.
pub(super) fn who_says_no_goodbye_has_failed(factory: &Factory) -> Result<(), String> {
    const LAST: u64 = 40;
    let mut rig = Rig::open(factory, 2)?;
    let (to, back) = rig.contact(0, 1)?;
    let before = rig.log(1).message_count() as u64;
    for number in 1..=LAST {
        rig.send(0, to, header(number), &[7; 48])?;
    }
    rig.drive("the last messages", |rig| {
        rig.log(1).message_count() as u64 >= before + LAST
    })?;
    rig.drop_without_goodbye(0);
    let failed = |entry: &Entry| matches!(entry, Entry::Failed(endpoint) if *endpoint == back);
    rig.drive("a failure", |rig| rig.count(1, failed) > 0)?;
    rig.settle()?;
    ensure(rig.count(1, failed) == 1, || {
        "a peer failed more than once".to_owned()
    })?;
    let left = rig.count(1, |entry| matches!(entry, Entry::Left(_)));
    ensure(left == 0, || {
        "a peer that said no goodbye was told to have left".to_owned()
    })?;
    let post = rig.post(1, back, Class::Data, LAST_MESSAGE, b"");
    ensure(post == Post::Gone, || {
        format!("a send to a rank that failed: {post:?}")
    })
}

/// Addresses that nobody published are errors, and do no harm.
pub(super) fn refuses_bad_addresses(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 2)?;
    let peer = rig.size() - 1;
    let good = rig.transport(peer).address();
    let half = good[..good.len() / 2].to_vec();
    for bad in [vec![], half, vec![0xff; good.len()], vec![0; 1024]] {
        let answer = rig.transport(0).connect(Rank::new(peer as u32), &bad);
        if let Ok(endpoint) = answer {
            return Err(format!(
                "{} bytes of nonsense became {endpoint:?}",
                bad.len()
            ));
        }
    }
    let (to, _) = rig.contact(0, peer)?;
    rig.send(0, to, header(1), b"all the same")?;
    rig.drive("a message after bad addresses", |rig| {
        rig.log(peer).message_count() >= 1
    })
}

/// The hang dump has a line for each peer in contact.
pub(super) fn describes_its_peers(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 3)?;
    let last = rig.size() - 1;
    for peer in last.min(1)..=last {
        rig.contact(0, peer)?;
    }
    let mut text = String::new();
    rig.transport(0).describe(&mut text);
    let peers = last.max(1);
    ensure(text.lines().count() >= peers, || {
        format!("{} lines for {peers} peers:\n{text}", text.lines().count())
    })
}
