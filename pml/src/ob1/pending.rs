//! Operations that are pending: what upcalls, which must not call the transport, leave to be done with it right after.

use std::collections::VecDeque;

use super::exposures::Target;
use super::header::{ControlHeader, Kind};
use crate::packet::Packet;
use crate::peers::PeerIndex;
use crate::slab::Handle;

/// Something to be done with the transport, outside its progress.
#[derive(Debug)]
pub(super) enum Operation {
    /// Send a control packet.
    Control(Packet),
    /// Let the protocol of this request go on.
    Advance(Handle),
    /// Sends that wait for this peer may go on.
    Flush(PeerIndex),
    /// The envelope that this peer shows to probes grows old.
    Age(PeerIndex),
    /// A receive that was exposed to this peer waits no more.
    Settle(PeerIndex, Handle),
    /// A send that is out may fill the receive that takes it.
    Fill(Handle, Target),
}

/// The pending operations of a rank, in order.
#[derive(Debug)]
pub(super) struct Pending(VecDeque<Operation>);

impl Pending {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, operation: Operation) {
        self.0.push_back(operation);
    }

    pub(super) fn pop(&mut self) -> Option<Operation> {
        self.0.pop_front()
    }

    /// The first operation becomes the last.
    pub(super) fn take_turns(&mut self) {
        let first = self.pop();
        self.0.extend(first);
    }

    /// Sends `peer` a control packet about its operation `header.handle`.
    pub(super) fn control(&mut self, peer: PeerIndex, header: ControlHeader, payload: &[u8]) {
        self.push(Operation::Control(Packet::new(peer, header, payload)));
    }

    /// Sends `peer` a control packet of `kind` about its operation `handle`, without argument.
    pub(super) fn say(&mut self, peer: PeerIndex, kind: Kind, handle: Handle) {
        let header = ControlHeader {
            kind,
            handle,
            argument: 0,
        };
        self.control(peer, header, &[]);
    }

    /// Lets the protocol of `request` go on, with the transport.
    pub(super) fn advance(&mut self, request: Handle) {
        self.push(Operation::Advance(request));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_come_back_in_order_with_their_bytes() {
        let mut pending = Pending::new();
        let peer = PeerIndex::NONE;
        pending.control(
            peer,
            ControlHeader {
                kind: Kind::FRAGMENTS,
                handle: Handle::NONE,
                argument: 7,
            },
            &[1, 2, 3],
        );
        pending.say(peer, Kind::PULL_TAKEN, Handle::NONE);
        let header = ControlHeader {
            kind: Kind::TARGET,
            handle: Handle::NONE,
            argument: 0,
        };
        pending.control(peer, header, &[7; 100]);
        pending.advance(Handle::NONE);
        assert_eq!(pending.len(), 4);
        let Some(Operation::Control(first)) = pending.pop() else {
            panic!("the control packet went in first");
        };
        assert_eq!((first.header.0[1], first.body()), (7, &[1, 2, 3][..]));
        let Some(Operation::Control(second)) = pending.pop() else {
            panic!("the word went in second");
        };
        assert_eq!((second.header.0[1], second.body()), (0, &[][..]));
        let Some(Operation::Control(third)) = pending.pop() else {
            panic!("the long packet went in third");
        };
        assert_eq!(third.body(), [7; 100]);
        assert!(matches!(pending.pop(), Some(Operation::Advance(_))));
        assert!(pending.is_empty());
    }
}
