//! Checks of messages: every byte, each one once, in order.

use std::collections::BTreeSet;

use super::Factory;
use super::log::{Entry, Message};
use super::rig::{Rig, header};
use crate::common::{LANE, ensure, pattern};
use crate::memory::Backwards;
use tagwire_transport::Class;
use tagwire_transport::body::Body;
use tagwire_transport::capability::Capabilities;
use tagwire_transport::data::SendBuffer;
use tagwire_transport::message::{AmHeader, EndpointId, Outcome};

/// Messages of the checks that go through many.
const MANY: u64 = 5000;

/// Message `number` with `len` bytes, as it has to arrive.
fn expected(from: EndpointId, number: u64, len: usize) -> Message {
    Message {
        from,
        header: header(number),
        bytes: pattern(number, len),
    }
}

/// Says where two messages differ without printing all of their bytes.
fn difference(got: &Message, wanted: &Message) -> String {
    let first = got
        .bytes
        .iter()
        .zip(&wanted.bytes)
        .position(|(a, b)| a != b);
    format!(
        "message {}: got {:?} from {:?} with {} bytes, wanted {:?} from {:?} with {}; first \
         different byte: {first:?}",
        wanted.header.0[0],
        got.header,
        got.from,
        got.bytes.len(),
        wanted.header,
        wanted.from,
        wanted.bytes.len(),
    )
}

/// Compares what `rank` got with what was sent to it, whatever the order unless it is kept.
fn compare(rig: &Rig, rank: usize, ordered: bool, mut wanted: Vec<Message>) -> Result<(), String> {
    let mut got: Vec<Message> = rig.log(rank).messages().cloned().collect();
    if !ordered {
        let key = |message: &Message| (message.from, message.header.0);
        got.sort_by_key(key);
        wanted.sort_by_key(key);
    }
    for (got, wanted) in got.iter().zip(&wanted) {
        ensure(got == wanted, || difference(got, wanted))?;
    }
    ensure(got.len() == wanted.len(), || {
        format!("{} messages arrived of {} sent", got.len(), wanted.len())
    })
}

/// Lengths where copies, slots and lines begin or end, up to what one send may carry.
fn interesting_sizes(max_inline: usize, max_send: usize) -> BTreeSet<usize> {
    let mut sizes: BTreeSet<usize> = (0..=130).collect();
    let mut edge = 128;
    while edge <= max_send {
        sizes.extend([edge - 1, edge, edge + 1, edge + edge / 2]);
        edge *= 2;
    }
    for edge in [max_inline, max_send] {
        sizes.extend([edge.saturating_sub(1), edge, edge + 1]);
    }
    sizes.into_iter().filter(|size| *size <= max_send).collect()
}

/// Every size from nothing to the largest arrives with its header and its bytes.
pub(super) fn delivers_every_size(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, back) = rig.contact(a, b)?;
    let limits = rig.limits(a);
    let sizes = interesting_sizes(limits.max_inline, limits.max_send);
    for len in &sizes {
        let number = *len as u64 + 1;
        rig.send(a, to, header(number), &pattern(number, *len))?;
    }
    rig.drive("all sizes arrive", |rig| {
        rig.log(b).message_count() >= sizes.len()
    })?;
    rig.settle()?;
    let wanted = sizes
        .iter()
        .map(|len| expected(back, *len as u64 + 1, *len));
    compare(&rig, b, false, wanted.collect())
}

/// A send from pieces or from a callback, or of a part, arrives as one message.
pub(super) fn sends_gathered_and_packed_data(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, back) = rig.contact(a, b)?;
    let len = rig.limits(a).max_send.min(3000);
    let memory = rig.patterned(7, len);
    let mut backwards = pattern(7, len);
    backwards.reverse();
    let shapes = [
        memory.send_buffer(),
        memory.gathered(&[1, 0, len / 3, 2]),
        SendBuffer::packed(Box::new(Backwards(backwards))),
    ];
    let ranges = [
        0..len,
        0..0,
        len / 2..len,
        len / 3..len / 3 + 5.min(len - len / 3),
        1.min(len)..len,
    ];
    let mut wanted = Vec::new();
    for shape in &shapes {
        for range in &ranges {
            let number = wanted.len() as u64 + 1;
            rig.insist(a, "a send from a buffer", |transport| {
                transport.send_from(LANE, to, header(number), &Body::of(shape, range.clone()))
            })?;
            wanted.push(Message {
                from: back,
                header: header(number),
                bytes: pattern(7, len)[range.clone()].to_vec(),
            });
        }
    }
    // Behind bytes of the sender's own.
    for len in [0, 3, len - 8] {
        let number = wanted.len() as u64 + 1;
        let (prefix, data) = (pattern(number, 8), rig.patterned(9, len));
        let shape = data.gathered(&[1]);
        rig.insist(a, "a send of two parts", |transport| {
            let body = Body::with_prefix(&prefix, &shape);
            transport.send_from(LANE, to, header(number), &body)
        })?;
        wanted.push(Message {
            from: back,
            header: header(number),
            bytes: [prefix, pattern(9, len)].concat(),
        });
    }
    rig.drive("all shapes arrive", |rig| {
        rig.log(b).message_count() >= wanted.len()
    })?;
    rig.settle()?;
    compare(&rig, b, false, wanted)
}

/// A size for message `number`: mostly small, now and then as large as can be.
fn mixed_size(number: u64, max_send: usize) -> usize {
    let draw = header(number).0[1] as usize;
    match number % 16 {
        0 => draw % (max_send + 1),
        1..4 => draw % (max_send.min(512) + 1),
        _ => draw % (max_send.min(64) + 1),
    }
}

/// Sends many messages of mixed sizes and classes; returns what has to arrive.
fn send_many(rig: &mut Rig, a: usize, b: usize) -> Result<Vec<Message>, String> {
    let (to, back) = rig.contact(a, b)?;
    let max_send = rig.limits(a).max_send;
    let mut wanted = Vec::new();
    for number in 1..=MANY {
        let message = expected(back, number, mixed_size(number, max_send));
        let class = if number % 7 == 0 {
            Class::Control
        } else {
            Class::Data
        };
        rig.insist(a, "a send", |transport| {
            transport.send(LANE, to, class, message.header, &message.bytes)
        })?;
        wanted.push(message);
    }
    rig.drive("all messages arrive", |rig| {
        rig.log(b).message_count() >= wanted.len()
    })?;
    rig.settle()?;
    Ok(wanted)
}

/// Through full queues and around their ends, each message arrives intact, and once.
pub(super) fn delivers_each_message_once(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let wanted = send_many(&mut rig, a, b)?;
    compare(&rig, b, false, wanted)
}

/// Messages to one peer arrive in the order of sending, whatever their size and class.
pub(super) fn keeps_order_per_peer(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let wanted = send_many(&mut rig, a, b)?;
    compare(&rig, b, true, wanted)
}

/// Bytes that go each way with one length: more than transports receive into before they look for other room.
const BYTES_OF_LENGTH: usize = 150 << 10;

/// Messages of the shorter lengths.
const MOST_OF_LENGTH: usize = 150;

/// Messages of one length go to and fro one at a time, as in a ping-pong, also where what a transport receives into ends in the middle of
/// one: lengths that divide nothing.
pub(super) fn goes_on_with_any_length(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, back) = rig.contact(a, b)?;
    let limits = rig.limits(a);
    let largest = limits.max_send;
    let borders = [
        8,
        limits.max_inline,
        limits.max_inline + 1,
        512,
        1100,
        4096,
        largest / 2 + 1,
        largest,
    ];
    let lengths: BTreeSet<usize> = borders.into_iter().filter(|len| *len <= largest).collect();
    let mut number = 0;
    for len in lengths {
        for round in 0..(BYTES_OF_LENGTH / (len + 1)).min(MOST_OF_LENGTH) {
            for (from, at, endpoint, seen) in [(a, b, to, back), (b, a, back, to)] {
                number += 1;
                let wanted = expected(seen, number, len);
                rig.send(from, endpoint, wanted.header, &wanted.bytes)?;
                let before = rig.log(at).entries.len();
                rig.drive(&format!("message {round} of {len} bytes"), |rig| {
                    rig.log(at).entries.len() > before
                })?;
                match rig.log(at).entries.last() {
                    Some(Entry::Message(got)) => {
                        ensure(*got == wanted, || difference(got, &wanted))
                    }
                    other => Err(format!("message {round} of {len} bytes: {other:?}")),
                }?;
            }
        }
    }
    rig.settle()
}

/// Everyone sends to everyone, and each message is known by its sender.
pub(super) fn serves_many_peers(factory: &Factory) -> Result<(), String> {
    const EACH: u64 = 200;
    let mut rig = Rig::open(factory, 8)?;
    let size = rig.size();
    let ordered = rig.capabilities(0).contains(Capabilities::ORDERED);
    let number = |from: usize, i: u64| from as u64 * 1_000_000 + i;
    for i in 0..EACH {
        for from in 0..size {
            for to in (0..size).filter(|to| *to != from) {
                let endpoint = rig.connect(from, to)?;
                let bytes = pattern(number(from, i), i as usize % 61);
                rig.send(from, endpoint, header(number(from, i)), &bytes)?;
            }
        }
    }
    let total = (size - 1) * EACH as usize;
    rig.drive("all to all", |rig| {
        (0..size).all(|rank| rig.log(rank).message_count() >= total)
    })?;
    rig.settle()?;
    for rank in 0..size {
        for peer in (0..size).filter(|peer| *peer != rank) {
            let from = rig.connect(rank, peer)?;
            let mut got: Vec<Message> = rig.log(rank).messages().cloned().collect();
            got.retain(|message| message.from == from);
            if !ordered {
                got.sort_by_key(|message| message.header.0[0]);
            }
            let wanted = (0..EACH).map(|i| expected(from, number(peer, i), i as usize % 61));
            ensure(got.len() == EACH as usize, || {
                format!("rank {rank} got {} messages of rank {peer}", got.len())
            })?;
            for (got, wanted) in got.iter().zip(wanted) {
                ensure(*got == wanted, || difference(got, &wanted))?;
            }
        }
    }
    Ok(())
}

/// A rank sends to itself.
pub(super) fn reaches_itself(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 1)?;
    let to = rig.connect(0, 0)?;
    let max_send = rig.limits(0).max_send;
    let mut wanted = Vec::new();
    for number in 1..=100 {
        let message = expected(to, number, mixed_size(number, max_send));
        rig.send(0, to, message.header, &message.bytes)?;
        wanted.push(message);
    }
    rig.drive("what a rank sends to itself", |rig| {
        rig.log(0).message_count() >= 100
    })?;
    rig.settle()?;
    compare(&rig, 0, false, wanted)
}

/// A zero-copy send arrives like any other, and its token completes once.
pub(super) fn sends_without_a_copy(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, back) = rig.contact(a, b)?;
    let most = rig.limits(a).max_zero_copy;
    let mut wanted = Vec::new();
    let mut tokens = Vec::new();
    for (place, len) in [0, 1, 64, 4096, most / 2, most].into_iter().enumerate() {
        let number = place as u64 + 1;
        let len = len.min(most);
        let memory = rig.patterned(number, len);
        let token = rig.token();
        rig.insist(a, "a zero-copy send", |transport| {
            transport.send_zero_copy(LANE, to, header(number), &memory.send_buffer(), token)
        })?;
        wanted.push(expected(back, number, len));
        tokens.push((token, len));
    }
    rig.drive("zero-copy sends arrive and complete", |rig| {
        rig.log(b).message_count() >= wanted.len()
            && rig.count(a, |entry| matches!(entry, Entry::Complete(..))) >= tokens.len()
    })?;
    rig.settle()?;
    for (token, len) in tokens {
        rig.expect_outcome(a, token, Outcome::Done(len as u64))?;
    }
    compare(&rig, b, false, wanted)
}

/// A header that no check uses for a message of its own.
pub(super) const LAST_MESSAGE: AmHeader = AmHeader([u64::MAX; 2]);
