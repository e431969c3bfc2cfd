//! What probes on both sides of a pair keep, see `peek.rs`.

use std::collections::VecDeque;

use tagwire_base::{ContextId, Tag, TagSelector};
use tagwire_matching::Pattern;

use crate::slab::Handle;

/// What probes and this peer have to do with each other.
#[derive(Debug, Default)]
pub(super) struct Peeks {
    /// Questions to the peer that it has not replied to.
    pub asked: VecDeque<(TagSelector, ContextId)>,
    /// What it shows.
    pub shown: Option<Shown>,
    /// Questions of the peer that nothing here has replied to.
    pub questions: VecDeque<Question>,
}

/// A question of a peer.
#[derive(Debug)]
pub(super) struct Question {
    pub tag: TagSelector,
    pub context: ContextId,
    /// The whole queue was looked through in vain.
    pub tried: bool,
}

/// An envelope that a peer has taken out of its queue to show it.
#[derive(Debug)]
pub(super) struct Shown {
    /// What was asked.
    pub asked: TagSelector,
    pub context: ContextId,
    pub tag: Tag,
    pub length: usize,
    pub sender: Handle,
    pub rounds: u8,
}

impl Shown {
    pub(super) fn answers(&self, pattern: &Pattern) -> bool {
        self.asked == pattern.tag && self.context == pattern.context
    }
}

impl Peeks {
    /// Something new waits for the peer: whoever asks for that may get a reply now.
    pub(super) fn look_again(&mut self, tag: Tag, context: ContextId) {
        for question in &mut self.questions {
            question.tried &= !(question.tag.accepts(tag) && question.context == context);
        }
    }
}
