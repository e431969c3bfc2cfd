//! Cooperative transfers: both sides' buffers side by side, copied by whoever makes progress.
#![allow(unsafe_code)]

use std::ptr;

use tagwire_transport::data::{ReadRegion, WriteRegion};
use tagwire_transport::message::Token;

/// The side that joined.
#[derive(Debug)]
pub(crate) struct Claim {
    target: WriteRegion,
    token: Option<Token>,
    total: usize,
    moved: usize,
}

/// One offer, from its making to its end. `R` names ranks.
#[derive(Debug)]
pub(crate) struct Transfer<R> {
    pub(crate) offerer: R,
    pub(crate) claimer: R,
    source: ReadRegion,
    offer_token: Option<Token>,
    claim: Option<Claim>,
    /// One side is gone: no memory is touched any more.
    halted: bool,
}

impl<R: Copy + Eq> Transfer<R> {
    pub(crate) fn new(offerer: R, claimer: R, source: ReadRegion, token: Token) -> Self {
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
    pub(crate) fn join(&mut self, target: WriteRegion, token: Token) -> bool {
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

    pub(crate) fn involves(&self, place: R) -> bool {
        self.offerer == place || self.claimer == place
    }

    /// Returns the other side than `own`.
    pub(crate) fn peer_of(&self, own: R) -> R {
        match self.offerer == own {
            true => self.claimer,
            false => self.offerer,
        }
    }

    pub(crate) const fn is_claimed(&self) -> bool {
        self.claim.is_some()
    }

    /// How many bytes it moves, once both sides are known.
    pub(crate) fn total(&self) -> Option<usize> {
        self.claim.as_ref().map(|claim| claim.total)
    }

    pub(crate) const fn is_halted(&self) -> bool {
        self.halted
    }

    pub(crate) fn halt(&mut self) {
        self.halted = true;
    }

    /// How many bytes the transfer moves, once both sides are done.
    pub(crate) fn finished(&self) -> Option<usize> {
        let claim = self.claim.as_ref().filter(|_| !self.halted)?;
        (claim.moved == claim.total).then_some(claim.total)
    }

    /// Moves up to `chunk` bytes; returns how many.
    pub(crate) fn advance(&mut self, chunk: usize) -> usize {
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

    /// Has all bytes count as moved, and touches none.
    pub(crate) fn pass_over(&mut self) {
        if let Some(claim) = self.claim.as_mut().filter(|_| !self.halted) {
            claim.moved = claim.total;
        }
    }

    /// The token of the side that offered, if it has not completed.
    pub(crate) fn take_offer_token(&mut self) -> Option<Token> {
        self.offer_token.take()
    }

    /// The token of the side that joined, if it has not completed.
    pub(crate) fn take_claim_token(&mut self) -> Option<Token> {
        self.claim.as_mut()?.token.take()
    }

    /// The tokens that `place` has in this transfer and that have not completed.
    pub(crate) fn take_tokens(&mut self, place: R) -> impl Iterator<Item = Token> + use<R> {
        let offer = if self.offerer == place {
            self.take_offer_token()
        } else {
            None
        };
        let claim = if self.claimer == place {
            self.take_claim_token()
        } else {
            None
        };
        offer.into_iter().chain(claim)
    }

    pub(crate) fn has_tokens(&self) -> bool {
        self.offer_token.is_some()
            || self
                .claim
                .as_ref()
                .is_some_and(|claim| claim.token.is_some())
    }
}
