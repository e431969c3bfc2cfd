//! Checks of remote access: put, get, keys.

use std::rc::Rc;

use super::Factory;
use super::memory::Memory;
use super::rig::{LANE, Rig, ensure, pattern};
use crate::byte::{ByteTransport, Post, RegistrationHandle};
use crate::error::Result as TransportResult;
use crate::message::{EndpointId, Outcome};

/// Bytes of the memory that peers reach.
const LEN: usize = 10_000;

/// Where, and how much, within that memory.
const RANGES: [(usize, usize); 6] = [(0, 0), (0, 1), (7, 8), (1, 4097), (LEN - 1, 1), (0, LEN)];

/// A pair of which `b` has registered memory.
struct Exposed {
    rig: Rig,
    a: usize,
    b: usize,
    to: EndpointId,
    memory: Rc<Memory>,
    handle: RegistrationHandle,
}

/// How memory comes within the reach of peers.
type Reach = fn(&mut dyn ByteTransport, &Memory) -> TransportResult<RegistrationHandle>;

impl Exposed {
    /// Memory that peers may write.
    fn writable(factory: &Factory) -> Result<Self, String> {
        Self::open(factory, |transport, memory| {
            transport.register(&memory.recv_buffer())
        })
    }

    /// Memory that peers may read.
    fn readable(factory: &Factory) -> Result<Self, String> {
        Self::open(factory, |transport, memory| {
            transport.expose(&memory.send_buffer())
        })
    }

    fn open(factory: &Factory, reach: Reach) -> Result<Self, String> {
        let (mut rig, a, b, _) = Rig::pair(factory)?;
        let (to, _) = rig.contact(a, b)?;
        let memory = rig.patterned(99, LEN);
        let handle = reach(rig.transport(b), &memory)
            .map_err(|error| format!("memory cannot be registered: {error}"))?;
        Ok(Self {
            rig,
            a,
            b,
            to,
            memory,
            handle,
        })
    }

    /// Puts `len` bytes at `offset` under `key`; answers how that ended, if it was taken at all.
    fn put(
        &mut self,
        seed: u64,
        offset: usize,
        len: usize,
        key: &[u8],
    ) -> Result<Option<Outcome>, String> {
        let source = self.rig.patterned(seed, len);
        let token = self.rig.token();
        let (a, to) = (self.a, self.to);
        let target = self.memory.remote(offset, key);
        let answer = self.rig.insist(a, "a put", |transport| {
            transport.put(LANE, to, &source.send_buffer(), target, None, token)
        });
        if answer.is_err() {
            return Ok(None);
        }
        self.rig
            .drive("a put ends", |rig| rig.log(a).is_complete(token))?;
        self.flush()?;
        match self.rig.log(a).outcomes(token)[..] {
            [outcome] => Ok(Some(outcome)),
            ref outcomes => Err(format!("a put ended with {outcomes:?}")),
        }
    }

    /// Gets `len` bytes at `offset` under `key`; answers how that ended, if it was taken at all,
    /// and the memory it was to fill.
    fn get(
        &mut self,
        offset: usize,
        len: usize,
        key: &[u8],
    ) -> Result<(Option<Outcome>, Rc<Memory>), String> {
        let target = self.rig.zeroed(len);
        let token = self.rig.token();
        let source = self.memory.remote(offset, key);
        let (a, to) = (self.a, self.to);
        let answer = self.rig.insist(a, "a get", |transport| {
            transport.get(LANE, to, &target.recv_buffer(), source, token)
        });
        if answer.is_err() {
            return Ok((None, target));
        }
        self.rig
            .drive("a get ends", |rig| rig.log(a).is_complete(token))?;
        self.rig.settle()?;
        match self.rig.log(a).outcomes(token)[..] {
            [outcome] => Ok((Some(outcome), target)),
            ref outcomes => Err(format!("a get ended with {outcomes:?}")),
        }
    }

    /// Waits until what was put is there.
    fn flush(&mut self) -> Result<(), String> {
        let token = self.rig.token();
        let (a, to) = (self.a, self.to);
        self.rig
            .insist(a, "a flush", |transport| transport.flush(LANE, to, token))?;
        self.rig
            .drive("a flush ends", |rig| rig.log(a).is_complete(token))?;
        self.rig.settle()
    }
}

/// A put writes the bytes that were given where it was told, and nothing else.
pub(super) fn puts_exactly_where_told(factory: &Factory) -> Result<(), String> {
    let mut exposed = Exposed::writable(factory)?;
    let key = exposed.handle.key.clone();
    let mut wanted = pattern(99, LEN);
    for (seed, (offset, len)) in RANGES.into_iter().enumerate() {
        let outcome = exposed.put(seed as u64, offset, len, &key)?;
        ensure(outcome == Some(Outcome::Done(len as u64)), || {
            format!("a put of {len} bytes at {offset} ended with {outcome:?}")
        })?;
        wanted[offset..offset + len].copy_from_slice(&pattern(seed as u64, len));
        ensure(exposed.memory.bytes() == wanted, || {
            format!("a put of {len} bytes at {offset} left other bytes than it should")
        })?;
    }
    let fence = exposed.rig.transport(exposed.a).fence(LANE, exposed.to);
    ensure(matches!(fence, Post::Posted | Post::Busy), || {
        format!("a fence: {fence:?}")
    })?;
    ensure(exposed.memory.guards_hold(), || {
        "a put wrote around the memory".to_owned()
    })
}

/// A get reads the bytes that were named, and nothing else.
pub(super) fn gets_exactly_what_was_named(factory: &Factory) -> Result<(), String> {
    let mut exposed = Exposed::readable(factory)?;
    let key = exposed.handle.key.clone();
    let there = exposed.memory.bytes();
    for (offset, len) in RANGES {
        let (outcome, target) = exposed.get(offset, len, &key)?;
        ensure(outcome == Some(Outcome::Done(len as u64)), || {
            format!("a get of {len} bytes at {offset} ended with {outcome:?}")
        })?;
        ensure(target.bytes() == there[offset..offset + len], || {
            format!("a get of {len} bytes at {offset} read other bytes")
        })?;
        ensure(target.guards_hold(), || {
            "a get wrote around its buffer".to_owned()
        })?;
    }
    ensure(exposed.memory.bytes() == there, || {
        "a get changed its source".to_owned()
    })?;
    for (offset, what) in [(LEN - 4, "ends outside"), (LEN + 1, "lies outside")] {
        let (outcome, target) = exposed.get(offset, 8, &key)?;
        ensure(!matches!(outcome, Some(Outcome::Done(_))), || {
            format!("a get of a range that {what} ended with {outcome:?}")
        })?;
        ensure(target.guards_hold(), || {
            "a get that failed wrote around its buffer".to_owned()
        })?;
    }
    let handle = exposed.handle.clone();
    exposed.rig.transport(exposed.b).deregister(handle);
    let (outcome, _) = exposed.get(0, 8, &key)?;
    ensure(!matches!(outcome, Some(Outcome::Done(_))), || {
        format!("a get of memory that is not registered any more ended with {outcome:?}")
    })
}

/// Keys that were not given, or are not valid any more, and ranges that are not registered, reach
/// nothing.
pub(super) fn bad_keys_reach_nothing(factory: &Factory) -> Result<(), String> {
    let mut exposed = Exposed::writable(factory)?;
    let key = exposed.handle.key.clone();
    let mut changed = key.clone();
    if let Some(byte) = changed.first_mut() {
        *byte ^= 0x55;
    }
    let there = exposed.memory.bytes();
    for (offset, len, key, what) in [
        (0, 8, &[][..], "no key"),
        (0, 8, &key[..key.len() / 2], "half a key"),
        (0, 8, &changed, "a changed key"),
        (LEN - 4, 8, &key, "a range that ends outside"),
        (LEN + 1, 1, &key, "a range outside"),
        (0usize.wrapping_sub(1 << 20), 8, &key, "a range before"),
    ] {
        let outcome = exposed.put(5, offset, len, key)?;
        ensure(!matches!(outcome, Some(Outcome::Done(_))), || {
            format!("a put with {what} ended with {outcome:?}")
        })?;
    }
    let handle = exposed.handle.clone();
    exposed.rig.transport(exposed.b).deregister(handle);
    let outcome = exposed.put(5, 0, 8, &key)?;
    ensure(!matches!(outcome, Some(Outcome::Done(_))), || {
        format!("a put to memory that is not registered any more ended with {outcome:?}")
    })?;
    ensure(
        exposed.memory.bytes() == there && exposed.memory.guards_hold(),
        || "a put that failed has written".to_owned(),
    )
}
