//! Core: data that is not one piece of memory.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use tagwire_base::Rank;
use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

use super::Factory;
use super::rig::{
    Checked, Receiving, WORLD, World, accepted, ensure, from, only, pattern, same, tag,
};
use tagwire_pml::types::{Failure, SendMode};

/// Cuts `len` bytes into pieces of odd lengths, some of them empty.
fn cut(len: usize) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let (mut start, mut next) = (0, 1);
    while start < len {
        let piece = next.min(len - start);
        pieces.push((start, piece));
        pieces.push((start + piece, 0));
        start += piece;
        next = next * 3 + 1;
    }
    pieces
}

pub(super) fn pieces_are_gathered_and_scattered(factory: &Factory) -> Checked {
    for len in factory.lengths() {
        for (gather, scatter) in [(true, false), (false, true), (true, true)] {
            for posted_first in [true, false] {
                let mut world = World::pair(factory)?;
                let whole = world.lend(&pattern(1, len));
                let data = match whole.region() {
                    // SAFETY: pieces of what the world has lent.
                    Some(region) if gather => unsafe {
                        let place = |(start, len)| (region.as_ptr().add(start), len);
                        SendBuffer::gather(&cut(len).into_iter().map(place).collect::<Vec<_>>())
                    },
                    _ => whole,
                };
                let (whole, buffer) = world.lend_room(len);
                let mut room = Some(match whole.region() {
                    // SAFETY: as above; the pieces do not overlap.
                    Some(region) if scatter => unsafe {
                        let place = |(start, len)| (region.as_ptr().add(start), len);
                        RecvBuffer::scatter(&cut(len).into_iter().map(place).collect::<Vec<_>>())
                    },
                    _ => whole,
                });
                let mut request = None;
                if posted_first && let Some(room) = room.take() {
                    let posted = world.pml(1)?.irecv(room, from(0), only(1), WORLD);
                    request = Some(accepted("irecv", posted)?);
                }
                let sent =
                    world
                        .pml(0)?
                        .isend(data, Rank::new(1), tag(1), WORLD, SendMode::Standard);
                let sent = accepted("isend", sent)?;
                world.settle();
                if let Some(room) = room.take() {
                    let posted = world.pml(1)?.irecv(room, from(0), only(1), WORLD);
                    request = Some(accepted("irecv", posted)?);
                }
                let request = request.ok_or("nothing was posted: the check is wrong")?;
                world.got(
                    Receiving {
                        request,
                        buffer,
                        at: 1,
                    },
                    0,
                    1,
                    1,
                    len,
                )?;
                world.finish_well(0, sent)?;
            }
        }
    }
    Ok(())
}

/// Every other byte of a store.
struct EveryOther(Arc<Mutex<Vec<u8>>>, usize);

impl EveryOther {
    fn with(&self, offset: usize, count: usize, mut each: impl FnMut(usize, &mut u8)) {
        let mut store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for i in 0..count {
            each(i, &mut store[(offset + i) * 2]);
        }
    }
}

impl Pack for EveryOther {
    fn len(&self) -> usize {
        self.1
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        let count = out.len();
        self.with(offset, count, |i, byte| out[i] = *byte);
    }
}

impl Unpack for EveryOther {
    fn capacity(&self) -> usize {
        self.1
    }

    fn unpack(&self, offset: usize, bytes: &[u8]) {
        self.with(offset, bytes.len(), |i, byte| *byte = bytes[i]);
    }
}

pub(super) fn data_is_packed_and_unpacked(factory: &Factory) -> Checked {
    for len in factory.protocols() {
        for room in [len, len - 1] {
            for posted_first in [true, false] {
                for mode in [
                    SendMode::Standard,
                    SendMode::Synchronous,
                    SendMode::Buffered,
                ] {
                    pack_once(factory, len, room, posted_first, mode).map_err(|error| {
                        format!("{len} bytes, room for {room}, {mode:?}: {error}")
                    })?;
                }
            }
        }
    }
    Ok(())
}

fn pack_once(
    factory: &Factory,
    len: usize,
    room: usize,
    posted_first: bool,
    mode: SendMode,
) -> Checked {
    let mut world = World::pair(factory)?;
    let spread: Vec<u8> = pattern(1, len)
        .into_iter()
        .flat_map(|byte| [byte, 0])
        .collect();
    let data = SendBuffer::packed(Box::new(EveryOther(Arc::new(Mutex::new(spread)), len)));
    let store = Arc::new(Mutex::new(vec![0xee; room * 2]));
    let post = |world: &mut World| {
        let room = RecvBuffer::unpacked(Box::new(EveryOther(Arc::clone(&store), room)));
        accepted("irecv", world.pml(1)?.irecv(room, from(0), only(1), WORLD))
    };
    let early = if posted_first {
        Some(post(&mut world)?)
    } else {
        None
    };
    let sent = world.pml(0)?.isend(data, Rank::new(1), tag(1), WORLD, mode);
    let sent = accepted("isend", sent)?;
    world.settle();
    let request = match early {
        Some(request) => request,
        None => post(&mut world)?,
    };
    let status = world.finish(1, request)?;
    let failure = (room < len).then(|| Failure::truncated(room));
    same("the end", (status.length, status.failure), (len, failure))?;
    world.finish_well(0, sent)?;
    let store = store.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = pattern(1, len);
    let whole = failure.is_none() || world.gives_cuts;
    for (i, pair) in store.chunks(2).enumerate() {
        ensure!(
            !whole || pair == [wanted[i], 0xee],
            "byte {i} is {pair:?} where {:?} is right",
            [wanted[i], 0xee]
        );
    }
    Ok(())
}
