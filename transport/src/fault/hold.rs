//! Messages that have arrived and are held back.

use std::collections::VecDeque;

use super::config::FaultOptions;
use super::random::SplitMix64;
use crate::message::{AmHeader, PeerEvent};

/// A message held back. The bytes are a `Vec` because that may move while a retained payload
/// points to its bytes.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) header: AmHeader,
    pub(super) bytes: Vec<u8>,
    /// The call of progress from which on it may go.
    due: u64,
    /// How many later ones have overtaken it.
    overtaken: u32,
}

/// What is held back of one peer. A peer event is a fence: nothing overtakes it, for what was
/// sent before a goodbye is delivered before it.
#[derive(Debug)]
pub(super) enum Item {
    Message(Held),
    Fence(PeerEvent),
}

/// The queue of one peer.
#[derive(Debug, Default)]
pub(super) struct PeerHold {
    items: VecDeque<Item>,
}

impl PeerHold {
    /// Takes a message that has arrived in call `now` of progress.
    pub(super) fn push(
        &mut self,
        header: AmHeader,
        bytes: Vec<u8>,
        now: u64,
        options: &FaultOptions,
        random: &mut SplitMix64,
    ) {
        let spread = u64::from(options.delay.max - options.delay.min) + 1;
        self.items.push_back(Item::Message(Held {
            header,
            bytes,
            due: now + u64::from(options.delay.min) + random.below(spread),
            overtaken: 0,
        }));
    }

    pub(super) fn push_fence(&mut self, event: PeerEvent) {
        self.items.push_back(Item::Fence(event));
    }

    /// What may go in call `now` of progress; with `reorder`, any of the first that are due,
    /// unless the first of all has been overtaken as often as it may.
    pub(super) fn pop(&mut self, now: u64, reorder: u32, random: &mut SplitMix64) -> Option<Item> {
        let first = match self.items.front()? {
            Item::Fence(_) => return self.items.pop_front(),
            Item::Message(first) => first,
        };
        let first_only = reorder == 0 || first.overtaken >= reorder;
        let window = if first_only { 1 } else { reorder as usize + 1 };
        let due: Vec<usize> = self
            .items
            .iter()
            .take(window)
            .map_while(|item| match item {
                Item::Message(held) => Some(held.due <= now),
                Item::Fence(_) => None,
            })
            .enumerate()
            .filter_map(|(place, due)| due.then_some(place))
            .collect();
        let place = *due.get(random.below(due.len() as u64) as usize)?;
        for item in self.items.range_mut(..place) {
            if let Item::Message(held) = item {
                held.overtaken += 1;
            }
        }
        self.items.remove(place)
    }
}
