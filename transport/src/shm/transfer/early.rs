//! Pieces that go before the claim.
//!
//! Where the last messages of a pair went through the ring, whoever offers a source stages pieces of it behind the envelope at once: a receiver that was
//! waiting has the first ones as soon as it has claimed. Where it was not, they find no transfer and are thrown away, and
//! whoever claims later begins anew. Units from the back are staged first, in the order of their addresses within what is claimed at once.

use super::pieces::{AT_ONCE, EARLY, PIECE, STAGED};
use super::{Buffer, Line, Marks, Transfer, Transfers, entry};
use crate::message::{EndpointId, Outcome};
use crate::shm::layout::OFFERS;
use crate::shm::offers::{self, Chunk, Early};
use crate::shm::peer::Outbound;

/// Units of one offer that are staged before it is claimed, at most: what may be in vain.
const MOST: u32 = 8 * PIECE;

impl Transfer {
    /// Some of the source is staged before anybody claims it.
    pub(super) fn stage_unclaimed(&mut self) {
        self.early = MOST;
    }

    /// Whether its receiver was there in time, where that can be told: what was staged before the claim counts, or it claimed before anything was.
    pub(in crate::shm) fn was_in_time(&self, marks: Marks) -> Option<bool> {
        match self.has_staged {
            true => Some(marks.keeps),
            false => (self.early != 0).then_some(true),
        }
    }

    /// Whether pieces count that were staged before the claim.
    pub(super) fn keeps_early(&self) -> bool {
        self.run.is_some_and(|run| run.marks.keeps)
    }

    /// Copies some pieces of an offer that nobody has claimed into the ring, where there is space. Returns how many.
    pub(super) fn stage_early(&mut self, out: &mut Outbound) -> usize {
        let mut count = 0;
        while self.early != 0 && count < STAGED as usize && self.stage_one_early(out) {
            count += 1;
        }
        count
    }

    fn stage_one_early(&mut self, out: &mut Outbound) -> bool {
        let Buffer::Source(region) = self.buffer else {
            return false;
        };
        let total = region.len() as u64;
        let claims = &self.line.get().claims;
        let mut take = |most: u32| {
            let fits = |chunk: Chunk| {
                let len = chunk.range(total).len();
                out.producer.has_space(chunk.count.div_ceil(PIECE), len)
            };
            offers::take_early(claims, most.min(self.early), fits)
        };
        let taken = match take(PIECE * AT_ONCE) {
            Early::Later => take(PIECE),
            taken => taken,
        };
        let chunk = match taken {
            Early::Chunk(chunk) => chunk,
            Early::Later => return false,
            Early::Over => {
                self.early = 0;
                return false;
            }
        };
        self.early -= chunk.count;
        self.has_staged = true;
        let rest = self.push_chunk(chunk, EARLY, total, out);
        if rest.count != 0 {
            // There was space for it: nobody would move these units.
            self.stop(Outcome::Impossible);
        }
        rest.count == 0
    }
}

/// Offers of which pieces were thrown away, by endpoint: the generation of each line.
#[derive(Default)]
pub(super) struct Thrown(Vec<Option<Box<[u32; OFFERS]>>>);

impl Thrown {
    #[cold]
    pub(super) fn note(&mut self, from: EndpointId, number: usize, generation: u32) {
        let lines = entry(&mut self.0, from, || [0; OFFERS]);
        if let Some(line) = lines.get_mut(number) {
            *line = generation;
        }
    }

    fn has(&self, from: EndpointId, line: &Line) -> bool {
        let lines = self.0.get(from.index()).and_then(Option::as_ref);
        lines.is_some_and(|lines| lines.get(line.number) == Some(&line.generation))
    }
}

impl Transfers {
    /// Prepares the claims of an offer that this side claims, of `units` in all: what its maker has staged counts where `may_keep`, and
    /// all of it is still to come out of the ring. Returns whether it counts.
    pub(in crate::shm) fn prepare_claims(
        &self,
        from: EndpointId,
        line: &Line,
        units: u32,
        may_keep: bool,
    ) -> bool {
        let words = line.get();
        let keeps = may_keep
            && !self.thrown.has(from, line)
            && offers::prepare_begun(&words.claims, &words.finished, units);
        if !keeps {
            offers::prepare(&words.claims, &words.finished, units);
        }
        keeps
    }
}
