//! The contexts of a rank: which of their ids are in use.
//!
//! A rank assigns the ids of its own contexts, and its peers send with them: ids of different ranks need not agree.

use std::collections::VecDeque;

use tagwire_base::{ContextId, Tag};

use crate::error::{Error, Result};

/// So many freed ids wait before one is assigned again, where the layer has others: a message that a wrong program
/// has left on its way should find nobody.
const RESTING: usize = 64;

/// The contexts in use, by id. The world is always there.
#[derive(Debug)]
pub(crate) struct Contexts {
    states: Vec<State>,
    /// Freed ids, the oldest first.
    free: VecDeque<ContextId>,
    most: usize,
    /// How many contexts are broken.
    broken: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Open, but no collective is to come any more.
    Broken,
    Closed,
}

impl Contexts {
    /// The world's context alone, of at most `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            states: vec![State::Open],
            free: VecDeque::new(),
            most: most.min(ContextId::COUNT),
            broken: 0,
        }
    }

    /// Assigns an id to a new context. `is_busy` returns whether receives in a freed context are still posted, so
    /// that its id cannot be assigned yet.
    ///
    /// # Errors
    /// [`Error::NoContext`] when all are in use.
    pub(crate) fn open(&mut self, is_busy: impl Fn(ContextId) -> bool) -> Result<ContextId> {
        let has_fresh = self.states.len() < self.most;
        if !has_fresh || self.free.len() >= RESTING {
            let rested = self.free.iter().position(|id| !is_busy(*id));
            if let Some(id) = rested.and_then(|place| self.free.remove(place)) {
                self.states[usize::from(id.as_u16())] = State::Open;
                return Ok(id);
            }
        }
        if !has_fresh {
            return Err(Error::NoContext);
        }
        let id = u16::try_from(self.states.len()).map_err(|_| Error::NoContext)?;
        self.states.push(State::Open);
        Ok(ContextId::new(id))
    }

    pub(crate) fn close(&mut self, context: ContextId) -> Result<()> {
        if context == ContextId::WORLD || !self.contains(context) {
            return Err(Error::NoSuchContext(context.as_u16()));
        }
        let state = &mut self.states[usize::from(context.as_u16())];
        self.broken -= usize::from(*state == State::Broken);
        *state = State::Closed;
        self.free.push_back(context);
        Ok(())
    }

    #[inline]
    pub(crate) fn contains(&self, context: ContextId) -> bool {
        self.states
            .get(usize::from(context.as_u16()))
            .is_some_and(|state| *state != State::Closed)
    }

    /// Has messages of collectives in `context` dropped from now on.
    pub(crate) fn break_collectives(&mut self, context: ContextId) {
        if self.contains(context) {
            let state = &mut self.states[usize::from(context.as_u16())];
            self.broken += usize::from(*state != State::Broken);
            *state = State::Broken;
        }
    }

    /// Returns the contexts whose messages of collectives are dropped.
    pub(crate) fn broken(&self) -> Vec<ContextId> {
        if self.broken == 0 {
            return Vec::new();
        }
        let states = (0..=u16::MAX).zip(&self.states);
        let broken = states.filter(|(_, state)| **state == State::Broken);
        broken.map(|(id, _)| ContextId::new(id)).collect()
    }

    /// Whether nobody will receive such a message.
    pub(crate) fn drops(&self, context: ContextId, tag: Tag) -> bool {
        match self.states.get(usize::from(context.as_u16())) {
            Some(State::Open) => false,
            Some(State::Broken) => tag.is_collective(),
            // Ids that were never assigned too: no correct peer knows one.
            Some(State::Closed) | None => true,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::types::TagLimits;

    const IDLE: fn(ContextId) -> bool = |_| false;

    #[test]
    fn every_number_is_a_context_and_no_more() {
        let mut contexts = Contexts::new(TagLimits::ALL.contexts);
        for number in 1..=u16::MAX {
            assert_eq!(contexts.open(IDLE).unwrap(), ContextId::new(number));
        }
        assert!(matches!(contexts.open(IDLE), Err(Error::NoContext)));
        let last = ContextId::new(u16::MAX);
        contexts.close(last).unwrap();
        assert!(!contexts.contains(last));
        assert!(contexts.close(last).is_err());
        assert_eq!(contexts.open(IDLE).unwrap(), last);
    }

    #[test]
    fn a_layer_with_fewer_has_the_worlds_and_as_many_as_are_left() {
        let mut contexts = Contexts::new(2);
        assert_eq!(contexts.open(IDLE).unwrap(), ContextId::new(1));
        assert!(matches!(contexts.open(IDLE), Err(Error::NoContext)));
        assert!(contexts.close(ContextId::WORLD).is_err());
    }

    #[test]
    fn a_freed_number_rests() {
        let mut contexts = Contexts::new(TagLimits::ALL.contexts);
        let mut last = ContextId::WORLD;
        for _ in 0..10_000 {
            let id = contexts.open(IDLE).unwrap();
            assert_ne!(id, last);
            contexts.close(id).unwrap();
            last = id;
        }
        assert!(contexts.states.len() <= RESTING + 1, "they come again");
    }

    #[test]
    fn what_has_receives_posted_is_not_assigned_again() {
        let mut contexts = Contexts::new(3);
        let (first, second) = (contexts.open(IDLE).unwrap(), contexts.open(IDLE).unwrap());
        contexts.close(first).unwrap();
        contexts.close(second).unwrap();
        assert_eq!(contexts.open(|id| id == first).unwrap(), second);
        assert!(contexts.open(|id| id == first).is_err());
        assert_eq!(contexts.open(IDLE).unwrap(), first);
    }
}
