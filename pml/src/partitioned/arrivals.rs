//! Who is last: the counters behind `ready`, and the queue of what could not be posted at once.
//!
//! Nothing is reset between epochs. A partition's word holds the epoch in which it was last ready, and a
//! group's counter goes on from epoch to epoch: whoever brings it to `epoch * members` was the last. A group
//! that is complete and cannot be posted just now is noted in a word of its own, its place in the post
//! queue; whoever takes the note posts.
//!
//! ```text
//!   ready: partition = epoch -> counter + 1 -> last?  post, or note = epoch, look once more
//!   flush: note = epoch -> 0 by compare and exchange  post, or note = epoch, look once more
//! ```

use tagwire_base::sync::{AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use tagwire_base::sync::{Ordering::Relaxed, Ordering::Release, Ordering::SeqCst, fence};

/// The counters of a sender.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The epoch in which each user partition was last ready.
    partitions: Box<[AtomicU64]>,
    /// How many ready calls each group has seen in all epochs.
    groups: Box<[AtomicU64]>,
    /// Each unit's place in the post queue: the epoch in which it waits to be posted, or 0.
    queued: Box<[AtomicU64]>,
    /// How many places are taken. A hint: a place is taken before it is counted.
    waiting: AtomicU32,
}

/// What a ready call found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// The group waits for others.
    Early,
    /// The group is complete.
    Last,
    /// The partition was ready before in this epoch.
    Twice,
}

impl Arrivals {
    pub(super) fn new(partitions: u32, groups: u32, units: u32) -> Self {
        let words = |count: u32| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            partitions: words(partitions),
            groups: words(groups),
            queued: words(units),
            waiting: AtomicU32::new(0),
        }
    }

    /// Marks `partition`, in `group` of `members`, ready in `epoch`.
    #[inline]
    pub(super) fn arrive(&self, epoch: u64, partition: u32, group: u32, members: u32) -> Arrival {
        if !self.mark(epoch, partition) {
            return Arrival::Twice;
        }
        if members == 1 || self.count(epoch, group, members) {
            Arrival::Last
        } else {
            Arrival::Early
        }
    }

    /// Marks `partition` ready; returns whether it was not before.
    #[inline]
    pub(super) fn mark(&self, epoch: u64, partition: u32) -> bool {
        // Not back: of one that was ready twice the second word may come in the round after.
        self.partitions[partition as usize].fetch_max(epoch, AcqRel) < epoch
    }

    /// Counts one more member of `group`; returns whether it was the last. What the others wrote is
    /// visible to the last.
    #[inline]
    pub(super) fn count(&self, epoch: u64, group: u32, members: u32) -> bool {
        let before = self.groups[group as usize].fetch_add(1, AcqRel);
        before + 1 == epoch * u64::from(members)
    }

    /// Whether `partition` was ready in `epoch`.
    pub(super) fn is_ready(&self, epoch: u64, partition: u32) -> bool {
        self.partitions[partition as usize].load(Acquire) == epoch
    }

    /// Puts `unit` into the post queue. The caller looks once more whether it can be posted, since whoever
    /// might have done so may have looked before.
    pub(super) fn enqueue(&self, epoch: u64, unit: u32) {
        self.queued[unit as usize].store(epoch, Release);
        self.waiting.fetch_add(1, AcqRel);
        fence(SeqCst);
    }

    /// Takes `unit` out of the post queue, if it is there: it is the caller's to be posted.
    pub(super) fn dequeue(&self, epoch: u64, unit: u32) -> bool {
        let place = &self.queued[unit as usize];
        let taken = place.load(Relaxed) == epoch
            && place.compare_exchange(epoch, 0, AcqRel, Relaxed).is_ok();
        if taken {
            self.waiting.fetch_sub(1, AcqRel);
        }
        taken
    }

    /// Whether `unit` is in the post queue.
    pub(super) fn is_queued(&self, epoch: u64, unit: u32) -> bool {
        self.queued[unit as usize].load(Acquire) == epoch
    }

    /// Whether anything waits to be posted.
    #[inline]
    pub(super) fn are_waiting(&self) -> bool {
        self.waiting.load(Acquire) != 0
    }
}
