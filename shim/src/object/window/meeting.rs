//! Meeting all other members, by words of the control blocks.
//!
//! In the k-th round a member tells the one 2^k behind it that it is there, and waits for the one 2^k before it: after the last round
//! each has heard of all, directly or by others. What a member writes is how many meetings it has begun, in a word of its own in
//! the block of whom it tells. No two rounds of a meeting tell the same member, and a word never falls: one is enough.

use crate::error::Result;
use crate::object::window::Window;
use crate::object::window::block::Word;

impl Window {
    /// Meets all other members. What each has stored before is to be seen by all after it.
    ///
    /// # Errors
    /// As [`check_members`](Self::check_members).
    pub(crate) fn meet(&self) -> Result {
        if !self.maps_all {
            return self.barrier();
        }
        self.check_whole()?;
        let (me, size) = (self.me(), self.members.len());
        let own = &self.members[me].block;
        let meeting = self.meetings.next();
        let mut distance = 1;
        while distance < size {
            let (behind, before) = ((me + distance) % size, (me + size - distance) % size);
            let told = &self.members[behind].block;
            told.set(&self.messenger, Word::Meetings(me), meeting)?;
            self.wake(behind)?;
            self.wait(me, "a fence", || {
                Ok(own.get(&self.messenger, Word::Meetings(before))? >= meeting)
            })?;
            distance *= 2;
        }
        Ok(())
    }
}
