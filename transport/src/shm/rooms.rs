//! What a rank spends on rooms: which of those that send to it have one, how large it is, and when it goes back.

use tagwire_base::{Rank, Time};

use super::config::ShmOptions;
use super::layout::{LARGEST_ROOM, PAYLOAD, ROOMS};
use super::peer::Inbound;
use super::room::Size;
use super::segment::Segment;
use crate::control_group::process_memory;
use crate::message::EndpointId;

/// What is left of the memory that a rank may spend, and the largest room.
#[derive(Debug)]
pub(super) struct Rooms {
    left: u64,
    most: Size,
}

impl Rooms {
    /// For a rank that may spend `budget` bytes, on rooms up to `most`.
    pub(super) const fn new(budget: u64, most: Size) -> Self {
        Self { left: budget, most }
    }

    /// Lets the room of a sender grow, where it has used what it has and there is budget.
    #[inline(never)]
    pub(super) fn consider(&mut self, way: &mut Inbound) {
        let now = way.tenant.size().len(&ROOMS);
        let filled = now.max(PAYLOAD as u32);
        if !way.tenant.has_filled(way.consumer.long_bytes(), filled) {
            return;
        }
        let next = way.tenant.size().next();
        let more = u64::from(next.len(&ROOMS).saturating_sub(now));
        if next > self.most || more > self.left {
            return;
        }
        self.left -= more;
        way.tenant.grow(next);
        way.consumer.grow_room(next);
    }

    /// Takes the room of a sender back where it is idle, and the memory once the sender has left it.
    pub(super) fn look_after(&mut self, way: &mut Inbound, own: &Segment, sender: Rank, now: Time) {
        if way.tenant.falls_idle(way.consumer.long_bytes(), now) {
            way.consumer.withdraw_room();
        }
        if way.tenant.is_withdrawn() && way.consumer.leaves_room() {
            self.end(way, own, sender);
        }
    }

    /// Takes the ways of `endpoint` out, whose messages nobody will look at, with their rooms.
    pub(super) fn evict(
        &mut self,
        ways: &mut Vec<Inbound>,
        endpoint: EndpointId,
        own: &Segment,
        sender: Rank,
    ) {
        for mut way in ways.extract_if(.., |way| way.endpoint == endpoint) {
            self.end(&mut way, own, sender);
        }
    }

    /// Frees the room of a sender that writes there no more.
    pub(super) fn end(&mut self, way: &mut Inbound, own: &Segment, sender: Rank) {
        let size = way.tenant.leave();
        if size == Size::NONE {
            return;
        }
        match own.free_room(sender.as_u32()) {
            Ok(()) => self.left += u64::from(size.len(&ROOMS)),
            // The memory stays taken, and the budget with it.
            Err(error) => tracing::debug!(rank = %sender, %error, "its room cannot be freed"),
        }
    }
}

/// The largest room that a rank may grant which may spend `budget` bytes.
pub(super) fn largest(budget: u64) -> Size {
    let fits = |size: &Size| u64::from(size.len(&ROOMS)) <= budget;
    let mut sizes = (1..=LARGEST_ROOM.0).rev().map(Size);
    sizes.find(fits).unwrap_or_default()
}

/// Returns the bytes that a rank may spend, where `ranks` of its job are on the machine: its part of the setting, and a room for one
/// sender at least where that is not 0, or its part of 1/64 of [`memory`]. None where it matches: its senders read its rings as well, and
/// know of no rooms.
pub(super) fn budget(options: &ShmOptions, ranks: u32) -> u64 {
    if options.matches {
        return 0;
    }
    let (ranks, least) = (u64::from(ranks.max(1)), u64::from(ROOMS[1]));
    let Some(all) = options.room else {
        return process_memory() / 64 / ranks;
    };
    let part = all as u64 / ranks;
    if all == 0 || part >= least {
        return part;
    }
    tracing::warn!(
        "shm-room is {all} bytes for {ranks} ranks on this machine, less than the {least} bytes that the ring of one pair needs to grow: \
         each rank uses {least}"
    );
    least
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_too_small_gives_the_least_that_works() {
        let budget_of = |room, matches, ranks| {
            let options = ShmOptions {
                room,
                matches,
                ..ShmOptions::default()
            };
            budget(&options, ranks)
        };
        let least = u64::from(ROOMS[1]);
        for (room, ranks, gives) in [
            (1, 1, least),
            (ROOMS[1] as usize, 2, least),
            (ROOMS[1] as usize * 6, 2, least * 3),
            (0, 2, 0),
        ] {
            assert_eq!(budget_of(Some(room), false, ranks), gives);
            assert_eq!(budget_of(Some(room), true, ranks), 0);
        }
        assert_eq!(largest(least), Size(1));
        assert_eq!(budget_of(None, false, 3), process_memory() / 64 / 3);
    }
}
