//! What was promised of contexts: that no receive of theirs is for any source, or for any tag.

use tagwire_base::ContextId;

use crate::engine::ContextAssertions;
use crate::storage::{ANY_SOURCE, ANY_TAG, Cells, Selector, WILD, Word};

/// The wildcards that a promise is about, in the order of the words.
const WILDCARDS: [u32; 2] = [ANY_SOURCE, ANY_TAG];

/// A word for each promise, with a bit for each of the first 64 contexts.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Promises<C: Cells>([C::Wide; 2]);

impl<C: Cells> Promises<C> {
    pub(crate) fn none() -> Self {
        Self(std::array::from_fn(|_| C::Wide::with(0)))
    }

    /// Takes all promises back.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|word| word.store(0));
    }

    /// Notes what was promised of a context, unless one of the wildcards that are `queued` already breaks it.
    pub(crate) fn give(&self, context: ContextId, assertions: ContextAssertions, queued: u32) {
        let bit = bit(u32::from(context.as_u16()));
        let given = [assertions.no_any_source, assertions.no_any_tag];
        for ((word, wild), given) in self.0.iter().zip(WILDCARDS).zip(given) {
            let others = word.load() & !bit;
            let is_kept = given && queued & wild == 0;
            word.store(if is_kept { others | bit } else { others });
        }
    }

    /// A receive with a wildcard is against a promise: from now on its context is treated like any other.
    pub(crate) fn end(&self, receive: Selector) {
        let bit = bit(receive.kind & !WILD);
        for (word, wild) in self.0.iter().zip(WILDCARDS) {
            if receive.kind & wild != 0 {
                word.store(word.load() & !bit);
            }
        }
    }

    /// Returns the wildcards that no receive has which would take a message.
    #[inline]
    pub(crate) fn barred(&self, message: Selector) -> u32 {
        let bit = bit(message.kind);
        let [no_any_source, no_any_tag] = &self.0;
        let mut barred = 0;
        if no_any_source.load() & bit != 0 {
            barred |= ANY_SOURCE;
        }
        if message.is_internal() || no_any_tag.load() & bit != 0 {
            barred |= ANY_TAG;
        }
        barred
    }
}

/// The bit of a context; contexts from 64 on have none.
#[inline]
const fn bit(context: u32) -> u64 {
    if context < 64 { 1 << context } else { 0 }
}
