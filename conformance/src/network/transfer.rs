//! Cooperative transfers: both sides' buffers side by side, copied by whoever makes progress.
#![allow(unsafe_code)]

use std::ptr;

use tagwire_base::Rank;

use tagwire_transport::data::{ReadRegion, SendBuffer, WriteRegion};
use tagwire_transport::message::Token;

/// Memory of `owner` that its peers may read.
#[derive(Debug)]
pub(super) struct Exposed {
    pub(super) owner: Rank,
    pub(super) source: ReadRegion,
}

impl Exposed {
    /// Fills `target` from the bytes at `address`; returns whether they lie inside.
    pub(super) fn read(&self, address: u64, target: WriteRegion) -> bool {
        let part = address
            .checked_sub(self.source.address())
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|offset| self.source.slice(offset..offset.checked_add(target.len())?));
        let Some(part) = part else {
            return false;
        };
        // SAFETY: both have `target.len()` bytes. The source is exposed until its owner ends that
        // or ends itself, under the network's lock, which the caller holds; the target is lent
        // until its token completes. A rank may read its own: `copy` allows an overlap.
        unsafe { ptr::copy(part.as_ptr(), target.as_ptr(), target.len()) };
        true
    }
}

/// Memory of `owner` that its peers may write.
#[derive(Debug)]
pub(super) struct Writable {
    pub(super) owner: Rank,
    pub(super) target: WriteRegion,
}

impl Writable {
    /// Writes `data` to `address`; returns whether it fits inside.
    pub(super) fn write(&self, address: u64, data: &SendBuffer) -> bool {
        // Asked for once: what packs a message may return something else the next time.
        let len = data.len();
        let part = address
            .checked_sub(self.target.address())
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|offset| self.target.slice(offset..offset.checked_add(len)?));
        let Some(part) = part else {
            return false;
        };
        // A copy in between: a rank may write to its own.
        let mut bytes = vec![0; len];
        let count = data.copy_out(0, &mut bytes);
        // SAFETY: `count` is at most `len`, so that it is inside of memory that is registered until its owner ends
        // that or ends itself, under the network's lock, which the caller holds; `bytes` is memory of our own.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), part.as_ptr(), count) };
        true
    }
}

/// The side that joined.
#[derive(Debug)]
pub(super) struct Claim {
    target: WriteRegion,
    token: Option<Token>,
    total: usize,
    moved: usize,
}

/// One offer, from its making to its end.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) offerer: Rank,
    pub(super) claimer: Rank,
    source: ReadRegion,
    offer_token: Option<Token>,
    claim: Option<Claim>,
    /// One side is gone: no memory is touched any more.
    halted: bool,
}

impl Transfer {
    pub(super) fn new(offerer: Rank, claimer: Rank, source: ReadRegion, token: Token) -> Self {
        Self {
            offerer,
            claimer,
            source,
            offer_token: Some(token),
            claim: None,
            halted: false,
        }
    }

    /// Joins; returns whether that was possible.
    pub(super) fn join(&mut self, target: WriteRegion, token: Token) -> bool {
        if self.halted || self.claim.is_some() {
            return false;
        }
        self.claim = Some(Claim {
            target,
            token: Some(token),
            total: self.source.len().min(target.len()),
            moved: 0,
        });
        true
    }

    pub(super) fn involves(&self, rank: Rank) -> bool {
        self.offerer == rank || self.claimer == rank
    }

    pub(super) const fn is_claimed(&self) -> bool {
        self.claim.is_some()
    }

    pub(super) const fn is_halted(&self) -> bool {
        self.halted
    }

    pub(super) fn halt(&mut self) {
        self.halted = true;
    }

    /// How many bytes the transfer moves, once both sides are done.
    pub(super) fn finished(&self) -> Option<usize> {
        let claim = self.claim.as_ref().filter(|_| !self.halted)?;
        (claim.moved == claim.total).then_some(claim.total)
    }

    /// Moves up to `chunk` bytes; returns how many.
    pub(super) fn advance(&mut self, chunk: usize) -> usize {
        let Some(claim) = self.claim.as_mut().filter(|_| !self.halted) else {
            return 0;
        };
        let count = chunk.min(claim.total - claim.moved);
        // SAFETY: `moved + count` is at most `total`, which is at most either region's length.
        // Both buffers are lent until their tokens complete; a token completes, or its rank
        // ends, only after the transfer was finished, removed or halted, and all of that happens
        // under the network's lock, which the caller holds. A rank may send to itself, so the
        // regions may overlap: `copy` allows it.
        unsafe {
            ptr::copy(
                self.source.as_ptr().add(claim.moved),
                claim.target.as_ptr().add(claim.moved),
                count,
            );
        }
        claim.moved += count;
        count
    }

    /// The token of the side that offered, if it has not completed.
    pub(super) fn take_offer_token(&mut self) -> Option<Token> {
        self.offer_token.take()
    }

    /// The token of the side that joined, if it has not completed.
    pub(super) fn take_claim_token(&mut self) -> Option<Token> {
        self.claim.as_mut()?.token.take()
    }

    /// The tokens that `rank` has in this transfer and that have not completed.
    pub(super) fn take_tokens(&mut self, rank: Rank) -> impl Iterator<Item = Token> + use<> {
        let offer = if self.offerer == rank {
            self.take_offer_token()
        } else {
            None
        };
        let claim = if self.claimer == rank {
            self.take_claim_token()
        } else {
            None
        };
        offer.into_iter().chain(claim)
    }

    pub(super) fn has_tokens(&self) -> bool {
        self.offer_token.is_some()
            || self
                .claim
                .as_ref()
                .is_some_and(|claim| claim.token.is_some())
    }
}
