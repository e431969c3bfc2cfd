//! The owner's receives: what only it knows of each, and what it shows to senders.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::{Relaxed, Release};

use tagwire_base::Rank;
use tagwire_matching::Handle;

use crate::data::{RecvBuffer, WriteRegion};
use crate::matching::{MatchEnvelope, MatchPattern, ReceiveEnd};
use crate::message::{EndpointId, Outcome, Payload, Token};
use crate::shm::arena::Span;
use crate::shm::matching::completions::Ended;
use crate::shm::matching::layout::RECEIVES;
use crate::shm::matching::memory::TargetMap;
use crate::shm::matching::packed::{EntryName, ReceiveState};

/// What only the owner knows of a receive.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnReceive {
    pub(super) phase: ReceivePhase,
    pub(super) generation: u32,
    pub(super) token: Token,
    pub(super) region: WriteRegion,
    pub(super) handle: Handle,
    /// In the order of posting.
    pub(super) sequence: u64,
    pub(super) pattern: MatchPattern,
    pub(super) envelope: MatchEnvelope,
    /// Of the message's sender, once it has matched.
    pub(super) from: EndpointId,
    /// The sender's number for the message.
    pub(super) number: u64,
    /// Bytes that came by themselves.
    pub(super) streamed: usize,
}

/// What is going on with a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReceivePhase {
    Free,
    Posted,
    /// A transfer moves its bytes.
    Claiming,
    /// Its bytes come through the ring.
    Streaming,
}

impl OwnReceive {
    /// Writes `payload`, which lies at `offset` in the message, into the buffer of a receive that is under way.
    #[inline]
    pub(super) fn write(&self, offset: usize, payload: Payload<'_>) {
        debug_assert!(self.phase != ReceivePhase::Free, "the buffer is lent");
        // SAFETY: the memory is lent until the receive's token completes, and the entry is freed then, or,
        // where the message was matched at once, before the call that posted it has returned.
        unsafe { RecvBuffer::of(self.region) }.write(offset, payload);
    }

    /// Notes the message that it has matched, whose bytes come in `phase`.
    #[inline]
    pub(super) fn matched(
        &mut self,
        phase: ReceivePhase,
        envelope: MatchEnvelope,
        from: EndpointId,
        number: u64,
    ) {
        self.phase = phase;
        self.envelope = envelope;
        self.from = from;
        self.number = number;
        self.streamed = 0;
    }

    const UNUSED: Self = Self {
        phase: ReceivePhase::Free,
        generation: 0,
        token: Token(u64::MAX),
        region: WriteRegion::EMPTY,
        handle: Handle::from_parts(u32::MAX, 0),
        sequence: 0,
        pattern: MatchPattern {
            bits: 0,
            ignore: 0,
            source: None,
        },
        envelope: MatchEnvelope {
            source: Rank::new(0),
            bits: 0,
            length: 0,
        },
        from: EndpointId(u32::MAX),
        number: 0,
        streamed: 0,
    };
}

/// The receives that are open, by the index that they have in the target.
pub(super) struct Receives {
    pub(super) map: TargetMap,
    /// Where the own arena is mapped.
    pub(super) span: Span,
    pub(super) entries: Vec<OwnReceive>,
    free: Vec<u32>,
    /// Where the receive with a token may be found: by the token's lower half.
    hints: Vec<u32>,
    /// Receives posted so far.
    posts: u64,
}

impl Receives {
    pub(super) fn new(map: TargetMap) -> Self {
        Self {
            map,
            span: Span::NONE,
            entries: Vec::new(),
            free: Vec::new(),
            hints: Vec::new(),
            posts: 0,
        }
    }

    /// Makes room for one more receive, if there is none.
    #[inline]
    pub(super) fn grow(&mut self) {
        let len = self.entries.len();
        if !self.free.is_empty() || len >= RECEIVES {
            return;
        }
        let more = (len.max(64)).min(RECEIVES - len);
        self.entries.resize(len + more, OwnReceive::UNUSED);
        self.free.extend((len as u32..(len + more) as u32).rev());
    }

    /// Returns the index that the next receive gets; `None` where there is no room.
    #[inline]
    pub(super) fn next(&self) -> Option<u32> {
        self.free.last().copied()
    }

    /// Opens the receive that [`next`](Self::next) names, and shows it to senders: it is in the engine.
    #[inline]
    pub(super) fn post(
        &mut self,
        index: u32,
        handle: Handle,
        pattern: MatchPattern,
        region: WriteRegion,
        token: Token,
    ) {
        self.free.pop();
        self.posts += 1;
        let own = &mut self.entries[index as usize];
        own.phase = ReceivePhase::Posted;
        own.generation = own.generation.wrapping_add(1);
        own.token = token;
        own.region = region;
        own.handle = handle;
        own.sequence = self.posts;
        own.pattern = pattern;
        self.hint(token, index);
        self.publish(index);
    }

    /// Opens a receive for a message that is to be noted as [matched](OwnReceive::matched). Returns its index;
    /// `None` where there is no room.
    pub(super) fn open(&mut self, region: WriteRegion, token: Token) -> Option<u32> {
        let index = self.free.pop()?;
        self.hint(token, index);
        let own = &mut self.entries[index as usize];
        own.generation = own.generation.wrapping_add(1);
        own.token = token;
        own.region = region;
        Some(index)
    }

    /// Frees the receive at an index, which is over.
    #[inline]
    pub(super) fn free(&mut self, index: u32) {
        self.entries[index as usize].phase = ReceivePhase::Free;
        self.hide(index);
        self.free.push(index);
    }

    /// Shows senders that a receive is not posted any more.
    #[inline]
    pub(super) fn hide(&self, index: u32) {
        if let Some(shared) = self.map.receive(index) {
            shared.state.store(ReceiveState::Free.pack(), Relaxed);
        }
    }

    /// Ends a receive that has matched; returns what is to be reported.
    #[inline]
    pub(super) fn end(&mut self, index: u32, outcome: Outcome) -> Ended {
        let own = &self.entries[index as usize];
        let (token, envelope) = (own.token, own.envelope);
        self.free(index);
        Ended::Received(token, ReceiveEnd::Matched(envelope, outcome))
    }

    /// Returns the name of the open receive at an index. Indices and tokens are used again: what waits to
    /// be done for a receive goes by its name.
    #[inline]
    pub(super) fn name(&self, index: u32) -> EntryName {
        let generation = self.entries[index as usize].generation;
        EntryName { index, generation }
    }

    /// Returns where the receive of that name is; `None` once it is over.
    pub(super) fn named(&self, name: EntryName) -> Option<u32> {
        let own = self.entries.get(name.index as usize)?;
        let is_it = own.phase != ReceivePhase::Free && own.generation == name.generation;
        is_it.then_some(name.index)
    }

    /// Returns where the receive is that was posted under a token.
    pub(super) fn find(&self, token: Token) -> Option<u32> {
        let is_it = |index: &u32| {
            let own = self.entries.get(*index as usize);
            own.is_some_and(|own| own.phase != ReceivePhase::Free && own.token == token)
        };
        let hint = self.hints.get(token.0 as u32 as usize).copied();
        hint.filter(is_it)
            .or_else(|| (0..self.entries.len() as u32).find(is_it))
    }

    /// Returns the receives that are posted, in the order of posting.
    pub(super) fn posted(&self) -> Vec<u32> {
        let entry = |index: &u32| &self.entries[*index as usize];
        let mut posted: Vec<u32> = (0..self.entries.len() as u32)
            .filter(|index| entry(index).phase == ReceivePhase::Posted)
            .collect();
        posted.sort_by_key(|index| entry(index).sequence);
        posted
    }

    fn hint(&mut self, token: Token, index: u32) {
        let at = token.0 as u32 as usize;
        if at >= self.hints.len() {
            if at >= 1 << 20 {
                return;
            }
            self.hints.resize((at + 1).next_power_of_two(), u32::MAX);
        }
        self.hints[at] = index;
    }

    #[inline]
    fn publish(&self, index: u32) {
        let own = &self.entries[index as usize];
        let Some(shared) = self.map.receive(index) else {
            return;
        };
        let name = self.span.name(own.region.address(), own.region.len());
        shared.address.store(name, Relaxed);
        shared.capacity.store(own.region.len() as u64, Relaxed);
        shared.state.store(ReceiveState::Posted.pack(), Relaxed);
        self.map.head().counts.posts.store(self.posts, Release);
    }
}
