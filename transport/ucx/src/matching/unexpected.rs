//! Unexpected messages outside of UCX: those that were claimed, and those that had to be looked
//! at one by one.
#![allow(unsafe_code)]

use std::collections::VecDeque;

use tagwire_base::Rank;
use tagwire_transport::{ClaimId, MatchEnvelope, MatchLevels, MatchPattern};
use tagwire_ucx_sys::{Started, UCS_OK};

use super::UcxMatch;
use crate::layout::{ACCESS, COUNTED, envelope_of};
use crate::operations::Purpose;
use crate::worker::Message;

/// The longest message of a peer that is gone which may still be had: longer ones are sent by
/// rendezvous, and their bytes went with the peer.
const LONGEST_LEGACY: u64 = 64 * 1024;

/// Where a message is that UCX has given up.
#[derive(Debug)]
pub(super) enum Place {
    /// In UCX, to be received by its handle.
    There(Message),
    /// Its bytes are here: its sender is gone.
    Here(Vec<u8>),
    /// Its bytes are gone with its sender.
    Lost,
}

/// A message that was taken out of UCX's matching.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) tag: u64,
    pub(super) length: u64,
    pub(super) place: Place,
}

impl Taken {
    pub(super) fn envelope(&self) -> MatchEnvelope {
        envelope_of(self.tag, self.length)
    }
}

/// Messages that probes have claimed, each under a slot and a generation.
#[derive(Debug, Default)]
pub(super) struct Claims {
    slots: Vec<(u32, Option<Taken>)>,
    free: Vec<u32>,
}

impl Claims {
    pub(super) fn add(&mut self, taken: Taken) -> ClaimId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            self.slots.len() as u32 - 1
        });
        let (generation, place) = &mut self.slots[slot as usize];
        *place = Some(taken);
        ClaimId(u64::from(*generation) << 32 | u64::from(slot))
    }

    pub(super) fn take(&mut self, claim: ClaimId) -> Option<Taken> {
        let (slot, generation) = (claim.0 as u32, (claim.0 >> 32) as u32);
        let (current, place) = self.slots.get_mut(slot as usize)?;
        if *current != generation {
            return None;
        }
        let taken = place.take()?;
        *current = current.wrapping_add(1);
        self.free.push(slot);
        Some(taken)
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut Taken> {
        self.slots
            .iter_mut()
            .filter_map(|(_, place)| place.as_mut())
    }
}

impl UcxMatch {
    /// Takes every unexpected message out of UCX, in their order, after those that were before.
    pub(super) fn empty_into_list(&self) {
        let mut list = self.list.borrow_mut();
        while let Some((message, info)) = self.bytes.core.worker.probe(0, ACCESS, true) {
            list.push_back(Taken {
                tag: info.sender_tag,
                length: info.length as u64,
                place: Place::There(message),
            });
        }
    }

    /// The place in the list of the earliest message that `pattern` accepts.
    #[inline]
    pub(super) fn find_in_list(&self, pattern: &MatchPattern) -> Option<usize> {
        let list = self.list.borrow();
        if list.is_empty() {
            return None;
        }
        list.iter()
            .position(|taken| pattern.accepts(&taken.envelope()))
    }

    /// A peer is gone: what it sent and can be had is kept, the rest forgotten.
    #[cold]
    pub(super) fn inherit(&mut self, source: Rank) {
        self.empty_into_list();
        let mut list = std::mem::take(&mut *self.list.borrow_mut());
        let mut claims = std::mem::take(&mut self.claims);
        let all = list.iter_mut().chain(claims.iter_mut());
        for taken in all.filter(|taken| taken.envelope().source == source) {
            if let Place::There(message) = taken.place {
                taken.place = self.fetch(message, taken.length);
            }
        }
        list.retain(|taken| !matches!(taken.place, Place::Lost));
        self.claims = claims;
        self.list.replace(list);
    }

    /// Receives a message of a peer that is gone into memory of our own, if that is possible.
    fn fetch(&mut self, message: Message, length: u64) -> Place {
        let room = if length <= LONGEST_LEGACY {
            length as usize
        } else {
            0
        };
        let core = &mut self.bytes.core;
        let index = core.operations.take(&core.shared, Purpose::Inherit, None);
        let operation = core.operations.get_mut(index);
        let start = operation.make_room(room);
        // SAFETY: the operation keeps its room until it is given back, which is after its mark
        // ended; the message was taken out of matching, and this is its one receive.
        let started = unsafe {
            core.worker
                .receive_taken(message, start, room, &operation.mark)
        };
        if !matches!(started, Started::Open(_)) {
            core.operations.give(index);
            return Place::Lost;
        }
        match core.ended_at_once(index) {
            Some(finished) if finished.status == UCS_OK => {
                Place::Here(core.operations.get(index).bytes())
            }
            // Where it has not ended, UCX waits for bytes that do not come: the slot is lost until
            // the worker goes.
            _ => Place::Lost,
        }
    }

    /// How many unexpected messages are kept against the allowance of their senders.
    pub(super) fn count_unexpected(&self) -> MatchLevels {
        self.empty_into_list();
        let mut levels = MatchLevels::default();
        for taken in self.list.borrow().iter() {
            if taken.tag & COUNTED != 0 {
                levels.unexpected += 1;
                levels.unexpected_bytes += taken.length as usize;
            }
        }
        levels
    }
}

/// The list: nearly always empty.
pub(super) fn empty_list() -> VecDeque<Taken> {
    VecDeque::new()
}
