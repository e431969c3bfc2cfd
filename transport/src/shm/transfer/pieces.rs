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

use tagwire_base::Time;

use super::{Buffer, Run, Step, Transfer, Transfers};
use crate::data::SendBuffer;
use crate::message::{AmHeader, EndpointId, Payload};
use crate::shm::layout::MAX_SEND;
use crate::shm::offers::{self, CLAIMED, Chunk, Side, Taken};
use crate::shm::peer::{Inbound, Outbound, Peer};
use crate::shm::ring::Pop;

/// Units of a piece.
pub(super) const PIECE: u32 = (MAX_SEND as u64 / offers::UNIT) as u32;

/// Of so many looks that find no piece one looks at the descriptor.
const SPARED: u32 = 32;

/// Pieces that are taken out in one go.
const MOST: usize = 64;

/// Looks at a ring for the next piece of a transfer of which one was just taken out. To go round through all that a rank looks after takes
/// as long as a piece.
const LOOKS: u32 = 16;

/// Pieces that are claimed at once, where there is space for so many: what both sides claim by is one line.
pub(super) const AT_ONCE: u32 = 4;

/// So often pieces are staged in one go, at most.
pub(super) const STAGED: u32 = 2;

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

    /// Counts what this side has copied out of pieces as finished, in the name of the other side.
    pub(super) fn count_taken(&mut self) {
        if self.uncounted == 0 {
            return;
        }
        let stager = match self.side {
            Side::Claimer => Side::Maker,
            Side::Maker => Side::Claimer,
        };
        let count = std::mem::take(&mut self.uncounted);
        offers::finish(&self.line.get().finished, stager, count);
    }

    /// Whether this side, which takes pieces out and has found none, leaves the descriptor alone: the other side claims its next piece there, and
    /// would wait for the line. Now and then it looks, and once it has waited in vain.
    pub(super) fn spares_look(&mut self, run: &Run, now: impl Fn() -> Time) -> bool {
        if self.waits.is_none() || !self.takes_pieces(run) {
            return false;
        }
        self.spared = (self.spared + 1) % SPARED;
        self.spared != 0 && !self.has_waited(run, now)
    }

    /// Whether pieces have come since this was asked last: what they say need not be looked for where both sides write.
    pub(super) fn has_gone_on(&mut self) -> bool {
        std::mem::replace(&mut self.seen, self.came) != self.came
    }

    /// Copies a piece of the source into the ring, of `limit` units at most, or several where there is no limit. `None`: there is no space.
    fn stage(&mut self, run: Run, limit: u32, peer: &Peer, out: &mut Outbound) -> Option<Step> {
        if !self.buffer.is_source() {
            return Some(Step::Nothing);
        }
        let (several, one) = (PIECE * AT_ONCE, PIECE.min(limit));
        let count = if limit == u32::MAX && self.has_space(several, out) {
            several
        } else if self.has_space(one, out) {
            one
        } else {
            return None;
        };
        let line = self.line.get();
        let taken = offers::take(&line.claims, self.side, run.units, |free| count.min(free));
        Some(match taken {
            Taken::Chunk(chunk) => {
                let rest = self.push_chunk(chunk, 0, run.total, out);
                if rest.count == 0 {
                    return Some(Step::Copied);
                }
                // A last piece that is short goes where there may be no space.
                self.mark_writes(&run);
                fence(SeqCst);
                if offers::is_stopped(&line.claims) {
                    // The claimer may have looked before the mark.
                    offers::finish(&line.finished, self.side, rest.count);
                    return Some(Step::Nothing);
                }
                self.copied(run, rest, peer)
            }
            other => self.found(run, &other),
        })
    }

    /// Whether pieces of so many units find space.
    fn has_space(&self, units: u32, out: &mut Outbound) -> bool {
        let bytes = u64::from(units) * offers::UNIT;
        out.producer
            .has_space(units.div_ceil(PIECE), bytes as usize)
    }

    /// Copies a chunk of a source of `total` bytes into the ring, in pieces. Returns what found no space.
    pub(super) fn push_chunk(
        &self,
        mut chunk: Chunk,
        marks: u64,
        total: u64,
        out: &mut Outbound,
    ) -> Chunk {
        let Buffer::Source(region) = self.buffer else {
            return chunk;
        };
        // SAFETY: the buffer is lent until the token completes.
        let data = unsafe { SendBuffer::of(region) };
        while chunk.count != 0 {
            let piece = Chunk {
                first: chunk.first,
                count: PIECE.min(chunk.count),
            };
            let header = self.piece_header(piece, marks);
            let bytes = data.bytes(piece.range(total));
            if !bytes.is_some_and(|bytes| out.producer.push_piece(header, bytes)) {
                break;
            }
            out.wake();
            chunk.first += piece.count;
            chunk.count -= piece.count;
        }
        chunk
    }
}

impl Transfers {
    /// Copies out what has come in pieces from a peer. Returns how many there were.
    ///
    /// What was copied is counted as finished in one go, with the last piece: a line that both sides write takes as long to go and come back as a
    /// short copy.
    pub(in crate::shm) fn take_pieces(&mut self, way: &mut Inbound) -> usize {
        let count = self.take_some(way);
        if count != 0 && self.count_parts(way.endpoint) {
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
        let list = match at & TO_CLAIMER {
            0 => &mut self.offers,
            _ => &mut self.claims,
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
        transfer.count_taken();
        Ok(Piece::Last)
    }

    /// Counts what was copied out of pieces of a peer as finished, where a part is timed or the other side moves bytes by the kernel as well.
    /// Returns whether a transfer is complete with it.
    fn count_parts(&mut self, from: EndpointId) -> bool {
        let mut is_complete = false;
        for transfer in self.offers.iter_mut().chain(&mut self.claims) {
            let has_more = transfer.uncounted != 0 && transfer.endpoint == from;
            let waits_for_it = |transfer: &Transfer| {
                let run = transfer.run.as_ref();
                run.is_none_or(|run| !transfer.takes_pieces(run)) || transfer.end.is_some()
            };
            if has_more && waits_for_it(transfer) {
                transfer.count_taken();
                is_complete |= transfer.is_complete();
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
