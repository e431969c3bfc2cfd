//! The queue of events, in the order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Moment;

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A packet is ready for the outgoing side of its sender's NIC.
    Enter(u32),
    /// The first byte of a packet is at its receiver's NIC.
    Head(u32),
    /// The last byte of a packet is at its receiver.
    Land(u32),
    /// A thread of a rank goes on, for something has come.
    Run { rank: u32, thread: u32 },
    /// A thread of a rank has computed, and goes on.
    Computed { rank: u32, thread: u32 },
    /// The slice of a core in which a thread of a rank computes ends.
    Slice { rank: u32, thread: u32 },
    /// A rank dies.
    Kill(u32),
    /// The peers of a rank that has died find out.
    Found(u32),
    /// A rank wanted to be called now.
    Alarm(u32),
}

/// Events by time, and those of one moment by `tie`, then in the order of entry.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Reverse<(Moment, u64, Event)>>,
    entered: u64,
}

/// Bits of an entry's number. Above it are those of its tie.
const NUMBER_BITS: u32 = 44;

impl Queue {
    /// Enters an event. Of those at one moment, the one with the lesser `tie` comes first, of which 20 bits count.
    pub(crate) fn push(&mut self, at: Moment, tie: u64, event: Event) {
        let order = (tie << NUMBER_BITS) | (self.entered & ((1 << NUMBER_BITS) - 1));
        self.entered += 1;
        self.heap.push(Reverse((at, order, event)));
    }

    /// Returns whether no event is entered.
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Returns when the first event is.
    pub(crate) fn next_at(&self) -> Option<Moment> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the first event.
    pub(crate) fn pop(&mut self) -> Option<(Moment, Event)> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn events_come_by_time_then_by_tie_then_as_entered() {
        let mut queue = Queue::default();
        let at = |nanos| Moment::default() + Span::nanos(nanos);
        for (number, (time, tie)) in [(2, 0), (1, 5), (1, 3), (1, 5), (0, 9)]
            .into_iter()
            .enumerate()
        {
            queue.push(at(time), tie, Event::Kill(number as u32));
        }
        let mut order = Vec::new();
        while let Some((_, Event::Kill(number))) = queue.pop() {
            order.push(number);
        }
        assert_eq!(order, [4, 2, 1, 3, 0]);
    }
}
