//! Gets in fragments: cut by the weights of the rails, asked again by another where a rail dies.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use tagwire_transport::data::WriteRegion;
use tagwire_transport::{EndpointId, Outcome, Post, RecvBuffer, RemoteMemory, Token, Upcalls};

use super::core::Core;
use super::links::{Link, State};
use super::rail::{LANE, Rail};
use super::weigh::{charge, cut, least_charged};

/// A get of the layer above.
#[derive(Debug)]
struct Read {
    from: EndpointId,
    token: Token,
    target: WriteRegion,
    address: u64,
    /// The key of each rail that may be used.
    keys: Vec<Option<Box<[u8]>>>,
    /// Bytes that are there.
    done: usize,
    under_way: usize,
    /// Fragments to be asked for, with the rail they were cut for.
    todo: Vec<(usize, Range<usize>)>,
    /// How it ends, once nothing is under way.
    failed: Option<Outcome>,
}

impl Read {
    /// How it has ended, if it has.
    fn end(&self) -> Option<Outcome> {
        if self.under_way > 0 || !self.todo.is_empty() {
            return None;
        }
        let all = self.done == self.target.len();
        let done = all.then_some(Outcome::Done(self.done as u64));
        done.or(self.failed)
    }
}

/// A fragment that a rail was asked for.
#[derive(Debug)]
struct Piece {
    read: u64,
    rail: usize,
    range: Range<usize>,
    since: u64,
}

/// All gets that are under way.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// In the order of the gets.
    reads: BTreeMap<u64, Read>,
    pieces: HashMap<Token, Piece>,
    next: u64,
}

impl Reads {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Since when `rail` has been asked for something of `from`.
    pub(super) fn waits_since(&self, from: EndpointId, rail: usize) -> Option<u64> {
        let of_rail = self.pieces.values().filter(|piece| {
            piece.rail == rail
                && self
                    .reads
                    .get(&piece.read)
                    .is_some_and(|read| read.from == from)
        });
        of_rail.map(|piece| piece.since).min()
    }

    /// Asks for `range` by the rail it was cut for, or another that has room; that is charged.
    #[allow(unsafe_code, reason = "parts of a buffer are lent that is lent itself")]
    fn ask(
        &mut self,
        rails: &mut [Rail],
        link: &mut Link,
        number: u64,
        (cut_for, range): (usize, Range<usize>),
        now: u64,
    ) -> Post {
        let token = Token(self.number());
        let Some(read) = self.reads.get_mut(&number) else {
            return Post::Unsupported;
        };
        let Some(part) = read.target.slice(range.clone()) else {
            return Post::Unsupported;
        };
        let (mut busy, mut gone) = (false, true);
        let others = (0..rails.len()).filter(|rail| *rail != cut_for);
        for rail in std::iter::once(cut_for).chain(others) {
            let Some(way) = link.way(rail).filter(|way| way.state == State::Open) else {
                continue;
            };
            gone = false;
            let Some(key) = read.keys.get(rail).and_then(Option::as_deref) else {
                continue;
            };
            let source = RemoteMemory {
                address: read.address.wrapping_add(range.start as u64),
                key,
            };
            // SAFETY: a part of a buffer that is lent until the read ends, which it does after its pieces.
            let target = unsafe { RecvBuffer::of(part) };
            match rails[rail]
                .transport
                .get(LANE, way.theirs, &target, source, token)
            {
                Post::Posted => {
                    way.meter.begin(now);
                    read.under_way += 1;
                    charge(&mut link.meters_mut(), rail, range.len());
                    let piece = Piece {
                        read: number,
                        rail,
                        range,
                        since: now,
                    };
                    self.pieces.insert(token, piece);
                    return Post::Posted;
                }
                Post::Busy => busy = true,
                Post::Gone => way.state = State::Mute,
                Post::Unsupported => read.keys[rail] = None,
            }
        }
        match (busy, gone) {
            (true, _) => Post::Busy,
            (false, true) => Post::Gone,
            (false, false) => Post::Unsupported,
        }
    }
}

impl Core {
    /// Begins to read; the first fragment decides whether there is room.
    pub(super) fn read(
        &mut self,
        rails: &mut [Rail],
        from: EndpointId,
        target: WriteRegion,
        (address, keys): (u64, Vec<Option<Box<[u8]>>>),
        token: Token,
    ) -> Post {
        let now = self.options.now();
        let least = self.options.fragment;
        let Some(link) = self.links.get(from).filter(|link| !link.is_gone) else {
            return Post::Gone;
        };
        let mut meters = link.meters();
        if meters.iter().all(Option::is_none) {
            return Post::Gone;
        }
        for (rail, meter) in meters.iter_mut().enumerate() {
            if keys.get(rail).is_none_or(Option::is_none) {
                *meter = None;
            }
        }
        if least_charged(&meters).is_none() {
            return Post::Unsupported;
        }
        let mut todo = cut(target.len(), &meters, least);
        todo.reverse();
        let number = self.reads.number();
        let read = Read {
            from,
            token,
            target,
            address,
            keys,
            done: 0,
            under_way: 0,
            todo,
            failed: None,
        };
        self.reads.reads.insert(number, read);
        let posted = self.ask_on(rails, number, now);
        let begun = self.reads.reads.get(&number);
        if begun.is_some_and(|read| read.under_way > 0) {
            return Post::Posted;
        }
        self.reads.reads.remove(&number);
        posted
    }

    /// Asks for what a read still lacks; returns how the last request went.
    fn ask_on(&mut self, rails: &mut [Rail], number: u64, now: u64) -> Post {
        let mut last = Post::Posted;
        while let Some(read) = self.reads.reads.get_mut(&number)
            && let Some(fragment) = read.todo.pop()
        {
            let Some(link) = self.links.get(read.from) else {
                return Post::Gone;
            };
            let from = read.from;
            last = self.reads.ask(rails, link, number, fragment.clone(), now);
            link.write_off();
            if last == Post::Posted {
                continue;
            }
            self.list(from);
            if let Some(read) = self.reads.reads.get_mut(&number) {
                if last == Post::Busy {
                    read.todo.push(fragment);
                } else {
                    read.todo.clear();
                    read.failed = Some(match last {
                        Post::Gone => Outcome::PeerFailed,
                        _ => Outcome::Impossible,
                    });
                }
            }
            break;
        }
        last
    }

    /// Goes on with what is to be read from a peer; returns whether something has to wait.
    pub(super) fn read_on(
        &mut self,
        rails: &mut [Rail],
        from: EndpointId,
        above: &mut dyn Upcalls,
    ) -> bool {
        let now = self.options.now();
        let reads = self.reads.reads.iter();
        let mine = reads.filter(|(_, read)| read.from == from && read.under_way_or_todo());
        let numbers: Vec<u64> = mine.map(|(number, _)| *number).collect();
        let mut waits = false;
        for number in numbers {
            waits |= self.ask_on(rails, number, now) == Post::Busy;
            self.conclude(number, above);
        }
        waits
    }

    /// A fragment has come, or has not.
    pub(super) fn piece_ended(&mut self, token: Token, outcome: Outcome, above: &mut dyn Upcalls) {
        let now = self.options.now();
        let Some(piece) = self.reads.pieces.remove(&token) else {
            return;
        };
        let Some(read) = self.reads.reads.get_mut(&piece.read) else {
            return;
        };
        let from = read.from;
        read.under_way -= 1;
        let len = piece.range.len();
        let is_done = outcome == Outcome::Done(len as u64);
        if let Some(way) = self.links.get(from).and_then(|link| link.way(piece.rail)) {
            way.meter.end(if is_done { len } else { 0 }, now);
        }
        if is_done {
            read.done += len;
        } else {
            // By another rail it may work, and by this one it did not.
            read.keys[piece.rail] = None;
            read.todo.push((piece.rail, piece.range));
            self.list(from);
        }
        self.conclude(piece.read, above);
    }

    /// Tells the end of a read that has one.
    fn conclude(&mut self, number: u64, above: &mut dyn Upcalls) {
        if let Some(read) = self.reads.reads.get(&number)
            && let Some(outcome) = read.end()
        {
            let token = read.token;
            self.reads.reads.remove(&number);
            above.complete(token, outcome);
        }
    }
}

impl Read {
    /// Whether there is something to do for it.
    fn under_way_or_todo(&self) -> bool {
        !self.todo.is_empty() || self.end().is_some()
    }
}
