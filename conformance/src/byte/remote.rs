//! Checks of remote access: put, get, keys.

use std::rc::Rc;

use super::Factory;
use super::rig::Rig;
use crate::common::{LANE, ensure, pattern};
use crate::memory::Memory;
use tagwire_transport::capability::Ordering;
use tagwire_transport::error::Result as TransportResult;
use tagwire_transport::message::{EndpointId, Outcome, Token};
use tagwire_transport::{ByteTransport, Post, RegistrationHandle};

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
        Self::writable_of(factory, LEN)
    }

    /// So many bytes of it.
    fn writable_of(factory: &Factory, len: usize) -> Result<Self, String> {
        Self::open(factory, len, |transport, memory| {
            transport.register(&memory.recv_buffer())
        })
    }

    /// Memory that peers may read.
    fn readable(factory: &Factory) -> Result<Self, String> {
        Self::open(factory, LEN, |transport, memory| {
            transport.expose(&memory.send_buffer())
        })
    }

    fn open(factory: &Factory, len: usize, reach: Reach) -> Result<Self, String> {
        let (mut rig, a, b, _) = Rig::pair(factory)?;
        let (to, _) = rig.contact(a, b)?;
        let memory = rig.patterned(99, len);
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

    /// Posts a put of `len` bytes at `offset` under `key`; returns its token, if it was taken at all.
    fn post(
        &mut self,
        seed: u64,
        (offset, len): (usize, usize),
        key: &[u8],
        immediate: Option<u64>,
    ) -> Option<Token> {
        let source = self.rig.patterned(seed, len);
        let token = self.rig.token();
        let (a, to) = (self.a, self.to);
        let target = self.memory.remote(offset, key);
        let answer = self.rig.insist(a, "a put", |transport| {
            transport.put(LANE, to, &source.send_buffer(), target, immediate, token)
        });
        answer.is_ok().then_some(token)
    }

    /// Puts `len` bytes at `offset` under `key`; returns how that ended, if it was taken at all.
    fn put(
        &mut self,
        seed: u64,
        offset: usize,
        len: usize,
        key: &[u8],
    ) -> Result<Option<Outcome>, String> {
        let Some(token) = self.post(seed, (offset, len), key, None) else {
            return Ok(None);
        };
        let a = self.a;
        self.rig
            .drive("a put ends", |rig| rig.log(a).is_complete(token))?;
        self.flush()?;
        match self.rig.log(a).outcomes(token)[..] {
            [outcome] => Ok(Some(outcome)),
            ref outcomes => Err(format!("a put ended with {outcomes:?}")),
        }
    }

    /// Gets `len` bytes at `offset` under `key`; returns how that ended, if it was taken at all,
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

/// Puts with a notice, of several sizes and all under way at once: each is told once, with its value,
/// and not before its bytes are there.
pub(super) fn notices_tell_what_is_there(factory: &Factory) -> Result<(), String> {
    /// Of so many bytes, and so many of them.
    const PIECES: [(usize, usize); 3] = [(1, 40), (300, 20), (30_000, 6)];
    let mut exposed = Exposed::writable_of(factory, 300_000)?;
    let key = exposed.handle.key.clone();
    let width = exposed.rig.transport(exposed.b).limits().immediate_width;
    let most = u64::MAX >> (64 - 8 * width.clamp(1, 8));
    let sizes = PIECES
        .iter()
        .flat_map(|(len, count)| std::iter::repeat_n(*len, *count));
    let mut puts = Vec::new();
    let mut offset = 0;
    for (number, len) in (0..).zip(sizes) {
        // The first and the last values that there are.
        let value = if number % 2 == 0 {
            number
        } else {
            most - number
        };
        let posted = exposed.post(number, (offset, len), &key, Some(value));
        let token =
            posted.ok_or_else(|| format!("a put of {len} bytes with a notice was refused"))?;
        puts.push((value, token, number, offset..offset + len));
        offset += len;
    }
    let (a, b, memory) = (exposed.a, exposed.b, Rc::clone(&exposed.memory));
    let mut early = None;
    exposed.rig.drive("all notices come", |rig| {
        let told: Vec<_> = rig.log(b).notices().collect();
        for (value, _, seed, range) in puts.iter().filter(|put| told.contains(&put.0)) {
            if memory.bytes()[range.clone()] != pattern(*seed, range.len()) {
                early.get_or_insert(*value);
            }
        }
        early.is_some() || told.len() >= puts.len()
    })?;
    ensure(early.is_none(), || {
        format!("the notice {early:?} came before its bytes")
    })?;
    exposed.rig.drive("all puts end", |rig| {
        puts.iter().all(|put| rig.log(a).is_complete(put.1))
    })?;
    exposed.rig.settle()?;
    let mut told: Vec<_> = exposed.rig.log(b).notices().collect();
    let mut wanted: Vec<_> = puts.iter().map(|put| put.0).collect();
    told.sort_unstable();
    wanted.sort_unstable();
    ensure(told == wanted, || {
        format!("the notices were {told:?} where {wanted:?} were given")
    })?;
    ensure(memory.guards_hold(), || {
        "a put wrote around the memory".to_owned()
    })
}

/// Bytes, a fence, and a flag behind them, several times and all under way at once: who sees a flag finds
/// its bytes. Nothing is asked of transports that promise no order.
pub(super) fn puts_become_visible_in_the_order_that_is_promised(
    factory: &Factory,
) -> Result<(), String> {
    const PIECES: usize = 12;
    const PIECE: usize = 20_000;
    const FLAG: usize = 8;
    let mut exposed = Exposed::writable_of(factory, PIECES * (PIECE + FLAG))?;
    let (a, to) = (exposed.a, exposed.to);
    if exposed.rig.transport(a).towards(to).1.ordering != Ordering::WriteAfterWrite {
        return Ok(());
    }
    let key = exposed.handle.key.clone();
    let flag_at = |piece: usize| PIECES * PIECE + piece * FLAG..PIECES * PIECE + (piece + 1) * FLAG;
    let flag = |piece: usize| 1_000 + piece as u64;
    let mut tokens = Vec::new();
    for piece in 0..PIECES {
        let bytes = (piece * PIECE, PIECE);
        tokens.push(exposed.post(piece as u64, bytes, &key, None));
        exposed
            .rig
            .insist(a, "a fence", |transport| transport.fence(LANE, to))?;
        let (start, len) = (flag_at(piece).start, FLAG);
        tokens.push(exposed.post(flag(piece), (start, len), &key, None));
    }
    let memory = Rc::clone(&exposed.memory);
    let mut early = None;
    exposed.rig.drive("all flags come", |_| {
        let there = memory.bytes();
        let set = |piece: &usize| there[flag_at(*piece)] == pattern(flag(*piece), FLAG);
        let set: Vec<_> = (0..PIECES).filter(set).collect();
        // The bytes once more: those above were read before the flags.
        let there = memory.bytes();
        let whole = |piece: usize| there[piece * PIECE..][..PIECE] == pattern(piece as u64, PIECE);
        early = early.or_else(|| set.iter().copied().find(|piece| !whole(*piece)));
        early.is_some() || set.len() == PIECES
    })?;
    ensure(early.is_none(), || {
        format!("flag {early:?} was seen before its bytes")
    })?;
    exposed.rig.drive("all puts end", |rig| {
        let ended = |token: &Option<Token>| token.is_none_or(|token| rig.log(a).is_complete(token));
        tokens.iter().all(ended)
    })?;
    exposed.rig.settle()?;
    ensure(memory.guards_hold(), || {
        "a put wrote around the memory".to_owned()
    })
}

/// A put that reaches nothing reports nothing.
pub(super) fn puts_that_fail_give_no_notice(factory: &Factory) -> Result<(), String> {
    let mut exposed = Exposed::writable(factory)?;
    let key = exposed.handle.key.clone();
    let there = exposed.memory.bytes();
    let (a, b) = (exposed.a, exposed.b);
    let handle = exposed.handle.clone();
    for (range, key) in [((LEN - 4, 8), &key[..]), ((0, 8), &key[..key.len() / 2])] {
        if let Some(token) = exposed.post(1, range, key, Some(7)) {
            exposed
                .rig
                .drive("a put ends", |rig| rig.log(a).is_complete(token))?;
        }
    }
    exposed.rig.transport(b).deregister(handle);
    if let Some(token) = exposed.post(2, (0, 8), &key, Some(8)) {
        exposed
            .rig
            .drive("a put ends", |rig| rig.log(a).is_complete(token))?;
    }
    exposed.rig.settle()?;
    let told: Vec<_> = exposed.rig.log(b).notices().collect();
    ensure(told.is_empty(), || {
        format!("puts that reach nothing gave the notices {told:?}")
    })?;
    ensure(exposed.memory.bytes() == there, || {
        "a put that failed has written".to_owned()
    })
}
