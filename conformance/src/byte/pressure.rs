//! Checks of back-pressure: full is a value, loses nothing, and stops nobody else.

use super::Factory;
use super::rig::{Rig, header};
use crate::common::{Patience, ensure, pattern};
use tagwire_transport::message::EndpointId;
use tagwire_transport::{Class, Post};

/// Messages after which a queue that is never full has no bound.
const UNBOUNDED: u64 = 1 << 20;

/// Bytes after which a queue that is never full has no bound.
const UNBOUNDED_BYTES: u64 = 1 << 30;

/// Sends messages of `len` bytes, numbered from `first`, until the transport is full; returns how
/// many went. Nobody makes progress.
fn fill(
    rig: &mut Rig,
    from: usize,
    to: EndpointId,
    class: Class,
    first: u64,
    len: usize,
) -> Result<u64, String> {
    for sent in 0..UNBOUNDED.min(UNBOUNDED_BYTES / (len as u64 + 1)) {
        let number = first + sent;
        match rig.post(from, to, class, header(number), &pattern(number, len)) {
            Post::Posted => {}
            Post::Busy => return Ok(sent),
            other => return Err(format!("send {sent} of {len} bytes was answered {other:?}")),
        }
    }
    Err(format!(
        "messages of {len} bytes are taken without bound while the receiver makes no progress"
    ))
}

/// Sizes of one slot, of several, and of the largest message.
fn sizes(rig: &mut Rig, rank: usize) -> [usize; 4] {
    let limits = rig.limits(rank);
    [0, limits.max_inline, limits.max_send / 2, limits.max_send]
}

fn expect_numbers(rig: &Rig, rank: usize, last: u64) -> Result<(), String> {
    let mut got: Vec<_> = rig
        .log(rank)
        .messages()
        .map(|message| message.header)
        .collect();
    got.sort_by_key(|header| header.0);
    let wanted: Vec<_> = (1..=last).map(header).collect();
    ensure(got == wanted, || {
        format!(
            "{} messages were posted, {} arrived, or others",
            wanted.len(),
            got.len()
        )
    })
}

/// A transport that is not drained returns `Busy`, has lost nothing, and takes more once it is.
pub(super) fn full_is_busy_and_recovers(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, _) = rig.contact(a, b)?;
    let mut sent = 0;
    for len in sizes(&mut rig, a) {
        for _ in 0..3 {
            let count = fill(&mut rig, a, to, Class::Data, sent + 1, len)?;
            ensure(count > 0, || {
                format!("an empty transport takes no {len} bytes")
            })?;
            sent += count;
            rig.drive("what was posted before full arrives", |rig| {
                rig.log(b).message_count() as u64 >= sent
            })?;
            rig.settle()?;
        }
    }
    expect_numbers(&rig, b, sent)
}

/// When data has filled the transport, control still passes.
pub(super) fn control_passes_full_data(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, _) = rig.contact(a, b)?;
    let mut sent = 0;
    for len in sizes(&mut rig, a) {
        let data = fill(&mut rig, a, to, Class::Data, sent + 1, len)?;
        sent += data;
        let control = fill(&mut rig, a, to, Class::Control, sent + 1, 16)?;
        ensure(control > 0, || {
            format!("{data} messages of {len} bytes leave no room for control")
        })?;
        sent += control;
        rig.drive("data and control arrive", |rig| {
            rig.log(b).message_count() as u64 >= sent
        })?;
        rig.settle()?;
    }
    expect_numbers(&rig, b, sent)
}

/// A peer that takes nothing does not keep others from getting their messages.
pub(super) fn one_full_peer_leaves_others_alone(factory: &Factory) -> Result<(), String> {
    let mut rig = Rig::open(factory, 3)?;
    let (stuck, _) = rig.contact(0, 1)?;
    let (lively, _) = rig.contact(0, 2)?;
    let untaken = fill(&mut rig, 0, stuck, Class::Data, 1, 64)?;
    for number in 1..=1000 {
        let mut patience = Patience::new();
        while rig.post(0, lively, Class::Data, header(number), b"lively") != Post::Posted {
            let events = rig.progress(0) + rig.progress(2);
            ensure(patience.goes_on(events), || {
                format!("message {number} to a lively peer waits for a stuck one")
            })?;
        }
    }
    rig.drive_only(&[0, 2], "the lively peer gets all", |rig| {
        rig.log(2).message_count() >= 1000
    })?;
    ensure(rig.log(1).message_count() == 0, || {
        "a rank was told of messages outside its progress".to_owned()
    })?;
    rig.drive("the stuck peer gets its messages later", |rig| {
        rig.log(1).message_count() as u64 >= untaken
    })?;
    rig.settle()?;
    expect_numbers(&rig, 1, untaken)?;
    expect_numbers(&rig, 2, 1000)
}

/// Where nothing is under way, progress returns 0, so that a rank knows when it may sleep.
pub(super) fn idle_progress_does_nothing(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    rig.settle()?;
    let (to, _) = rig.contact(a, b)?;
    rig.settle()?;
    rig.send(a, to, header(1), b"one")?;
    rig.drive("a message arrives", |rig| rig.log(b).message_count() >= 1)?;
    rig.settle()?;
    expect_numbers(&rig, b, 1)
}
