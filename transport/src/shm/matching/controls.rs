//! Control messages between ranks that match for each other.

use std::collections::VecDeque;

use crate::byte::ByteTransport;
use crate::message::{AmHeader, EndpointId, Lane};
use crate::post::{Class, Post};
use crate::shm::Shm;
use crate::shm::layout::MAX_SHORT;
use crate::shm::matching::wire;

/// Control messages that found no room, in order.
#[derive(Debug, Default)]
pub(super) struct Controls {
    queue: VecDeque<Control>,
}

#[derive(Debug, Clone, Copy)]
struct Control {
    to: EndpointId,
    header: AmHeader,
    words: Option<[u64; 3]>,
}

impl Controls {
    /// Sends a control message, now or later. Returns whether the peer is there.
    pub(super) fn send(
        &mut self,
        shm: &mut Shm,
        to: EndpointId,
        header: AmHeader,
        words: Option<[u64; 3]>,
    ) -> bool {
        let control = Control { to, header, words };
        if self.queue.is_empty() {
            match control.push(shm) {
                Post::Posted => return true,
                Post::Busy => {}
                Post::Gone | Post::Unsupported => return false,
            }
        }
        self.queue.push_back(control);
        true
    }

    /// Sends those that found no room.
    pub(super) fn push(&mut self, shm: &mut Shm) -> usize {
        let mut events = 0;
        for _ in 0..self.queue.len() {
            let Some(control) = self.queue.pop_front() else {
                break;
            };
            match control.push(shm) {
                Post::Busy => self.queue.push_back(control),
                _ => events += 1,
            }
        }
        events
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
}

impl Control {
    fn push(&self, shm: &mut Shm) -> Post {
        let bytes = self.words.map(wire::three_bytes);
        let payload: &[u8] = bytes.as_ref().map_or(&[], |bytes| bytes.as_slice());
        debug_assert!(payload.len() <= MAX_SHORT);
        shm.send(Lane(0), self.to, Class::Control, self.header, payload)
    }
}
