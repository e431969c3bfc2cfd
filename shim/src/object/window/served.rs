//! Short accesses that a target does for their origin while it waits in a call of MPI: memory that is not mapped is reached by calls of
//! the system, which take longer than a word there and back.
//!
//! ```text
//!     origin                                    target, whenever it makes progress
//!     sees that the target has looked lately    says from time to time that it looks
//!     writes what it wants, and a new number    sees the number, and takes the access:
//!     waits a little for the reply                a swap in the reply's line
//!       done: has it                            does it, and writes the reply
//!       not taken: withdraws, by a swap in
//!         the reply's line, and goes itself
//! ```
//!
//! Before the end of an epoch that the target ends too, it is asked where it is there already, and looks all the time; else it would come too
//! late.
//!
//! Nobody depends on the target: one that computes, or sleeps, has not looked lately, and its memory is accessed by calls of the system.
//! Whichever swap comes first decides who does it. Where a target sleeps and many accesses come, their origin wakes it.
//!
//! Accumulates are done by instructions, noted as those of the target itself, so that they are atomic beside those of others.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};

use tagwire_pml::{Driver, Messenger};

use crate::object::operation::predefined;
use crate::object::window::atomics::{self, Change};
use crate::object::window::block::Block;
use crate::object::window::exchange::{Data, LOOKS_PER_STAMP, STAMP, Serving, What, taken};
use crate::object::window::{Member, Window};
use crate::raw::{In, Out};

/// So many members are looked at in a call of progress, beside the one that has asked last: it takes no longer in a large group.
const IN_TURN: usize = 16;

/// Does what other members ask of this process, on a window whose memory they do not map.
pub(super) struct Server {
    messenger: Arc<Messenger>,
    window: Weak<Window>,
    block: Block,
    /// The members that may ask, each with the number of its last access that is over.
    askers: Box<[(usize, AtomicU64)]>,
    /// The places of the asker whose turn it is to be looked at, and of the one that has asked last: it may ask again soon.
    next: AtomicUsize,
    recent: AtomicUsize,
    looks: AtomicU32,
    stamped: AtomicU64,
}

impl Server {
    fn new(window: &Arc<Window>, block: Block) -> Self {
        let others = window.members.iter().enumerate();
        let near = others.filter(|(member, to)| *member != window.me() && to.block.is_mapped());
        let messenger = Arc::clone(&window.messenger);
        let near = near.map(|(member, _)| member);
        Self::among(near, block, (messenger, Arc::downgrade(window)))
    }

    /// Returns the one that looks for what these members ask, in a block.
    fn among(
        askers: impl Iterator<Item = usize>,
        block: Block,
        (messenger, window): (Arc<Messenger>, Weak<Window>),
    ) -> Self {
        Self {
            messenger,
            window,
            block,
            askers: askers.map(|member| (member, AtomicU64::new(0))).collect(),
            next: AtomicUsize::new(0),
            recent: AtomicUsize::new(0),
            looks: AtomicU32::new(0),
            stamped: AtomicU64::new(0),
        }
    }

    /// Does what some members ask for. Returns how many of them did.
    fn look(&self) -> usize {
        let count = self.askers.len();
        let (first, most) = (self.next.load(Relaxed), count.min(IN_TURN));
        let recent = (count > most).then(|| self.recent.load(Relaxed));
        let turn = (first..first + most).map(|place| match place < count {
            true => place,
            false => place - count,
        });
        let mut served = 0;
        for place in recent.into_iter().chain(turn) {
            if self.serve(&self.askers[place]) {
                self.recent.store(place, Relaxed);
                served += 1;
            }
        }
        if count > most {
            let next = first + most;
            let next = if next < count { next } else { next - count };
            self.next.store(next, Relaxed);
        }
        served
    }

    /// Says that it looks, where the last time is a while ago.
    #[cold]
    fn stamp(&self, looked: &AtomicU64) {
        let now = self.messenger.clock().now().as_nanos();
        if now.saturating_sub(self.stamped.load(Relaxed)) > STAMP {
            self.stamped.store(now, Relaxed);
            looked.store(now, Relaxed);
        }
    }

    /// Does what a member asks for, where that is new. Returns whether it was.
    fn serve(&self, (member, last): &(usize, AtomicU64)) -> bool {
        let lines = self.block.lines(*member);
        let Some(taken) = lines.and_then(|lines| taken(lines, last)) else {
            return false;
        };
        let window = self.window.upgrade();
        let asked = taken.asked().zip(window.as_deref());
        taken.answer(asked.and_then(|(asked, window)| Self::act(window, asked)));
        // Whoever has waited for long may sleep. Its own waits end where the block cannot be read.
        if let Some(window) = window {
            let _ = window.wake(window.me());
        }
        true
    }

    /// Does an access that another member asks for. `None` where it cannot be done so.
    fn act(window: &Window, (what, offset, mut data): (What, u64, Data)) -> Option<Data> {
        let me = window.me();
        let Member { size, start, .. } = &window.members[me];
        let end = offset.checked_add(what.bytes() as u64)?;
        if end > *size {
            return None;
        }
        let at = start.inside(i64::try_from(offset).ok()?);
        match what {
            What::Put(bytes) => at.copy(In::over(&data), bytes),
            What::Get(bytes) => Out::over(&mut data).copy(at.read(), bytes),
            What::Change(op, basic) => {
                let change = Change::new(predefined(op)?, basic).ok()?;
                if !change.has_instructions(at) {
                    return None;
                }
                let (operand, old) = (data, Out::over(&mut data));
                window
                    .try_short_way(me, || change.apply(at, In::over(&operand), Some(old), 1))
                    .ok()??;
            }
            What::CompareSwap(basic) => {
                let word = atomics::word(basic).filter(|word| word.is_compared())?;
                if !atomics::is_aligned(word, at) {
                    return None;
                }
                let values = data;
                let (compare, new) = (In::over(&values), In::over(&values[8..]));
                let old = Out::over(&mut data);
                window
                    .try_short_way(me, || {
                        atomics::compare_and_swap(word, at, compare, new, old)
                    })
                    .ok()??;
            }
        }
        Some(data)
    }
}

impl Driver for Server {
    fn drive(&self) -> usize {
        let Some(lines) = self.block.lines(0) else {
            return 0;
        };
        let looks = self.looks.load(Relaxed).wrapping_add(1);
        self.looks.store(looks, Relaxed);
        if looks.is_multiple_of(LOOKS_PER_STAMP) {
            self.stamp(lines.looked);
        }
        let served = self.look();
        if lines.called.load(Relaxed) == 0 {
            return served;
        }
        // One who was woken for accesses stays awake for a while.
        lines.called.store(0, Relaxed);
        self.stamp(lines.looked);
        served + 1
    }
}

/// Has this process do what other members ask for, whenever it makes progress, until the window is freed: where they do not map its
/// memory.
pub(crate) fn start(window: &Arc<Window>) {
    let (me, members) = (window.me(), window.members.len());
    let block = match window.is_asked {
        true => window.members[me].block.again((me, members)),
        false => None,
    };
    let Some(block) = block else { return };
    let server: Arc<dyn Driver> = Arc::new(Server::new(window, block));
    let driven = window.messenger.drive_with(Arc::clone(&server));
    *window.serving.lock() = Some(Serving::new(server, driven));
}

/// So many looks are made while a synchronization is waited for, before this process makes progress with all else.
const LOOKS: u32 = if cfg!(test) { 1 << 16 } else { 128 };

/// Does what other members ask for until `ended` returns something, for a while.
pub(super) fn attend<T>(window: &Window, mut ended: impl FnMut() -> Option<T>) -> Option<T> {
    let server = window.serving.lock().as_ref().map(Serving::server)?;
    let lines = window.members[window.me()].block.lines(0)?;
    lines.attends.store(1, Relaxed);
    let found = (0..LOOKS).find_map(|_| {
        server.drive();
        ended()
    });
    lines.attends.store(0, Relaxed);
    found
}

/// Does what other members ask for now.
pub(super) fn serve(window: &Window) {
    let server = window.serving.lock().as_ref().map(Serving::server);
    if let Some(server) = server {
        server.drive();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
