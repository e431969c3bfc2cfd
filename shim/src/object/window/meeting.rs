//! Meeting all other members, by words of the control blocks.
//!
//! In the k-th round a member tells the one 2^k behind it that it is there, and waits for the one 2^k before it: after the last round
//! each has heard of all, directly or by others. What a member writes is how many meetings it has begun, in a word of its own in
//! the block of whom it tells. No two rounds of a meeting tell the same member, and a word never falls: one is enough.

use crate::error::Result;
use crate::object::window::Window;
use crate::object::window::block::Word;

/// Meets all other members of a window. What each has stored before is to be seen by all after it.
///
/// # Errors
/// As [`Window::check_members`].
pub(crate) fn meet(window: &Window) -> Result {
    if !window.maps_all {
        return window.barrier();
    }
    window.check_whole()?;
    let (members, messenger) = (&window.members, window.messenger());
    let (me, size) = (window.me(), members.len());
    let meeting = window.meetings.next();
    let mut distance = 1;
    while distance < size {
        let (behind, before) = ((me + distance) % size, (me + size - distance) % size);
        let told = &members[behind].block;
        told.set(messenger, Word::Meetings(me), meeting)?;
        window.wake(behind)?;
        window.wait(me, "a fence", || {
            Ok(members[me].block.get(messenger, Word::Meetings(before))? >= meeting)
        })?;
        distance *= 2;
    }
    Ok(())
}
