//! Room for the bytes of claimed messages.

use crate::engine::Peers;
use crate::fabric::Place;

/// Places that claimed messages come into.
#[derive(Debug)]
pub(super) struct Rooms {
    /// Longest message that goes at once: there is room for it among the buffers of messages.
    pub(super) short: usize,
    /// Longest message that comes without being asked for.
    pub(super) longest: usize,
    /// Places for those that are longer than short ones.
    free: Vec<Place>,
}

impl Rooms {
    pub(super) const fn new(short: usize, longest: usize) -> Self {
        Self {
            short,
            longest,
            free: Vec::new(),
        }
    }

    /// Returns a place for a message of `length` bytes, and how long it is.
    pub(super) fn take(&mut self, peers: &mut Peers, length: u64) -> Result<(Place, usize), i32> {
        if length <= self.short as u64 {
            return peers.take_place().map(|place| (place, self.short));
        }
        let place = match self.free.pop() {
            Some(place) => place,
            None => Place {
                block: peers.net.allocate(self.longest)?,
                offset: 0,
            },
        };
        Ok((place, self.longest))
    }

    pub(super) fn put(&mut self, peers: &mut Peers, place: Place, length: u64) {
        if length <= self.short as u64 {
            peers.put_place(place);
        } else {
            self.free.push(place);
        }
    }
}
