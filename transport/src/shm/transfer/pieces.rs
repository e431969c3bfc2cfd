//! Transfers through the ring: the side that has the source copies pieces of it in, the other side copies them out.
//!
//! ```text
//!   header of a piece:
//!     word 0   number of the descriptor u32 | its generation u32
//!     word 1   first unit u32 | 1 where whoever claimed the transfer has the target | 2 where nobody had claimed it yet
//! ```
//!
//! Whose piece it is claims its units as for a copy by the kernel. They are finished once they are copied out, by whoever does that in the
//! name of the other side.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use super::{Buffer, Run, Step, Transfer, Transfers};
use crate::data::SendBuffer;
use crate::message::{AmHeader, EndpointId, Payload};
use crate::shm::layout::MAX_SEND;
use crate::shm::offers::{self, CLAIMED, Chunk, Side, Taken};
use crate::shm::peer::{Inbound, Outbound, Peer};
use crate::shm::ring::Pop;

/// Units of a piece.
pub(super) const PIECE: u32 = (MAX_SEND as u64 / offers::UNIT) as u32;

/// Pieces that are taken out in one go.
const MOST: usize = 64;

/// Looks at a ring for the next piece of a transfer of which one was just taken out. To go round through all that a rank looks after takes
/// as long as a piece.
const LOOKS: u32 = 16;

/// Pieces that are staged in one go, at most.
pub(super) const STAGED: u32 = 8;

/// Says in a header that whoever claimed the transfer has the target.
const TO_CLAIMER: u64 = 1 << 32;
/// Says in a header that nobody had claimed the offer when the piece was staged.
pub(super) const EARLY: u64 = 2 << 32;

impl Transfer {
    /// Copies some pieces of the source into the ring, of `limit` units at most each. `None`: there is no space.
    pub(super) fn stage_some(
        &mut self,
        run: Run,
        limit: u32,
        peer: &Peer,
        out: &mut Outbound,
    ) -> Option<Step> {
        let first = self.stage(run, limit, peer, out);
        // A part that is tried is counted after each piece.
        if first == Some(Step::Copied) && limit == u32::MAX {
            for _ in 1..STAGED {
                match self.stage(run, limit, peer, out) {
                    Some(Step::Copied) => {}
                    Some(Step::Insane) => return Some(Step::Insane),
                    Some(Step::Nothing) | None => break,
                }
            }
        }
        first
    }

    /// The header of the piece that this side stages, with `marks`.
    pub(super) fn piece_header(&self, chunk: Chunk, marks: u64) -> AmHeader {
        let place = self.line.number as u64 | u64::from(self.line.generation) << 32;
        let to = match self.side {
            Side::Claimer => 0,
            Side::Maker => TO_CLAIMER,
        };
        AmHeader([place, u64::from(chunk.first) | to | marks])
    }

    /// Counts what this side has copied out of pieces as finished, in the name of `stager`.
    fn count_taken(&mut self, stager: Side) {
        let count = std::mem::take(&mut self.uncounted);
        offers::finish(&self.line.get().finished, stager, count);
    }

    /// Whether pieces have come since this was asked last: what they say need not be looked for where both sides write.
    pub(super) fn has_gone_on(&mut self) -> bool {
        std::mem::replace(&mut self.seen, self.came) != self.came
    }

    /// Copies a piece of the source into the ring, of `limit` units at most. `None`: there is no space.
    fn stage(&mut self, run: Run, limit: u32, peer: &Peer, out: &mut Outbound) -> Option<Step> {
        let Buffer::Source(region) = self.buffer else {
            return Some(Step::Nothing);
        };
        let count = PIECE.min(limit);
        if !out
            .producer
            .has_space(count as usize * offers::UNIT as usize)
        {
            return None;
        }
        let line = self.line.get();
        let taken = offers::take(&line.claims, self.side, run.units, |free| count.min(free));
        Some(match taken {
            Taken::Chunk(chunk) => {
                let header = self.piece_header(chunk, 0);
                // SAFETY: the buffer is lent until the token completes.
                let data = unsafe { SendBuffer::of(region) };
                let bytes = data.bytes(run.range(chunk));
                if bytes.is_some_and(|bytes| out.producer.push_piece(header, bytes)) {
                    out.wake();
                    return Some(Step::Copied);
                }
                // A last piece that is short goes where there may be no space.
                self.mark_writes(&run);
                fence(SeqCst);
                if offers::is_stopped(&line.claims) {
                    // The claimer may have looked before the mark.
                    offers::finish(&line.finished, self.side, chunk.count);
                    return Some(Step::Nothing);
                }
                self.copied(run, chunk, peer)
            }
            other => self.found(run, &other),
        })
    }
}

impl Transfers {
    /// Copies out what has come in pieces from a peer. Returns how many there were.
    ///
    /// What was copied is counted as finished in one go: a line that both sides write takes as long to go and come back as a short copy.
    pub(in crate::shm) fn take_pieces(&mut self, way: &mut Inbound) -> usize {
        let count = self.take_some(way);
        if count != 0 && self.count_taken(way.endpoint) {
            // Whoever calls may tell the peer nothing else.
            way.nudge();
        }
        count
    }

    fn take_some(&mut self, way: &mut Inbound) -> usize {
        let from = way.endpoint;
        for count in 0..MOST {
            let popped = way
                .consumer
                .pop_piece(|header, payload| self.take_piece(from, header, payload));
            let broken = match popped {
                Pop::Message(Ok(Piece::Last)) => {
                    way.nudge();
                    continue;
                }
                Pop::Message(Ok(Piece::More)) => {
                    (0..LOOKS)
                        .take_while(|_| !way.consumer.is_ready())
                        .for_each(|_| std::hint::spin_loop());
                    continue;
                }
                Pop::Message(Ok(Piece::Left)) => continue,
                Pop::Message(Err(what)) => what.to_owned(),
                Pop::Corrupt(shape) => format!("a piece of kind and length {shape:#010x}"),
                Pop::Empty | Pop::Left | Pop::Other => return count,
            };
            way.broken.get_or_insert(broken);
            return count;
        }
        MOST
    }

    /// Copies a piece into the target. One of a transfer that is over is left, and one that comes before its offer is claimed is thrown away.
    fn take_piece(
        &mut self,
        from: EndpointId,
        header: AmHeader,
        payload: Payload<'_>,
    ) -> Result<Piece, &'static str> {
        let [place, at] = header.0;
        let (number, generation) = (place as u32 as usize, (place >> 32) as u32);
        let (list, stager) = match at & TO_CLAIMER {
            0 => (&mut self.offers, Side::Claimer),
            _ => (&mut self.claims, Side::Maker),
        };
        let mut list = list.iter_mut();
        let transfer = list.find(|transfer| {
            let line = &transfer.line;
            transfer.endpoint == from && line.number == number && line.generation == generation
        });
        let Some(transfer) = transfer else {
            if at & EARLY != 0 {
                self.thrown.note(from, number, generation);
            }
            return Ok(Piece::Left);
        };
        if at & EARLY != 0 && !transfer.keeps_early() {
            return Ok(Piece::Left);
        }
        let (start, len) = (u64::from(at as u32) * offers::UNIT, payload.len());
        let (Buffer::Target(region), Some(units)) = (transfer.buffer, offers::units(len as u64))
        else {
            return Err("a piece for a buffer that is read");
        };
        let target = region.slice(start as usize..start as usize + len);
        let Some(target) = target.filter(|target| target.len() == len) else {
            return Err("a piece outside of its buffer");
        };
        if transfer.run.is_none() && transfer.line.claimer_mark() & CLAIMED == 0 {
            return Err("a piece of a transfer that nobody claimed");
        }
        // SAFETY: the buffer is lent until the token completes, which is after the transfer has left the list; `target` has `len`
        // bytes. A payload in a ring overlaps no user memory.
        unsafe { payload.copy_to(target.as_ptr(), len) };
        transfer.came = transfer.came.wrapping_add(units);
        transfer.uncounted = transfer.uncounted.wrapping_add(units);
        if transfer.run.is_none_or(|run| run.units != transfer.came) {
            return Ok(Piece::More);
        }
        transfer.count_taken(stager);
        Ok(Piece::Last)
    }

    /// Counts what was copied out of pieces of a peer as finished. Returns whether a transfer is complete with it.
    fn count_taken(&mut self, from: EndpointId) -> bool {
        let mut is_complete = false;
        for (list, stager) in [
            (&mut self.offers, Side::Claimer),
            (&mut self.claims, Side::Maker),
        ] {
            for transfer in list.iter_mut() {
                if transfer.uncounted != 0 && transfer.endpoint == from {
                    transfer.count_taken(stager);
                    is_complete |= transfer.is_complete();
                }
            }
        }
        is_complete
    }
}

/// What became of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece {
    /// Its transfer is complete.
    Last,
    /// There are more to come.
    More,
    /// It was of no use.
    Left,
}
