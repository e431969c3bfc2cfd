//! The sending end.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, fence};

use super::claims::{self, Blocks, Hint, Side};
use super::control::{CLOSED, ControlBlock, Mode, Source};
use crate::channel::{Buffering, SendChannel};
use crate::post::Post;
use crate::shm::cma;
use crate::shm::partner::Partner;
use crate::shm::segment::HeaderMap;
use crate::shm::waiter::wake_sleeper;

pub(super) struct Sender {
    control: ControlBlock,
    blocks: Blocks,
    mode: Mode,
    buffering: Buffering,
    source: Source,
    partner: Arc<Partner>,
    /// The own header, to wake threads of this rank.
    own: HeaderMap,
    /// All blocks from this one on are done.
    back: Hint,
    /// All blocks before this one are done.
    front: Hint,
    /// The last round of which it is known that the receiver has consumed it. To look it up takes the line
    /// away from the receiver, so that it is done for every other round.
    consumed: AtomicU64,
}

impl Sender {
    pub(super) fn new(
        control: ControlBlock,
        blocks: Blocks,
        (mode, buffering): (Mode, Buffering),
        source: Source,
        partner: Arc<Partner>,
        own: HeaderMap,
    ) -> Self {
        let address = source.region().address();
        control.sender.address.store(address, Release);
        Self {
            control,
            blocks,
            mode,
            buffering,
            source,
            partner,
            own,
            back: Hint::new(),
            front: Hint::new(),
            consumed: AtomicU64::new(0),
        }
    }

    /// Whether the place for the bytes of `epoch` is free in the control block.
    #[inline]
    fn has_room(&self, epoch: u64) -> bool {
        if self.consumed.load(Acquire).saturating_add(2) >= epoch {
            return true;
        }
        let consumed = self.control.consumed.word.load(Acquire);
        self.consumed.store(consumed, Release);
        consumed.saturating_add(2) >= epoch
    }

    /// Whether the receiver's buffer may be written in `epoch`.
    fn may_write(&self, epoch: u64) -> bool {
        (epoch..CLOSED).contains(&self.control.receiver.open.load(Relaxed))
    }

    /// Takes half of the free blocks that lie last. Returns which.
    fn take_last(&self, epoch: u64) -> Range<usize> {
        let words = self.control.words();
        let mut end = self.back.get(epoch, words.len()).min(words.len());
        while end > 0 && claims::is_done(&words[end - 1], epoch) {
            end -= 1;
        }
        self.back.set(epoch, end);
        while end > 0 && !claims::is_free(&words[end - 1], epoch) {
            end -= 1;
        }
        let free = words[..end].iter().rev();
        let free = free
            .take_while(|word| claims::is_free(*word, epoch))
            .count();
        let bytes = self.blocks.range(end - free..end).len();
        let wanted = claims::share(free, bytes);
        let taken = words[end - wanted..end].iter().rev();
        let taken = taken
            .take_while(|word| claims::take(*word, epoch, Side::Sender))
            .count();
        end - taken..end
    }

    /// Writes `blocks`, which were taken, into the receiver's memory.
    #[allow(unsafe_code, reason = "the buffer is lent in rounds")]
    fn write(&self, epoch: u64, blocks: Range<usize>) -> bool {
        let Some(pid) = self.partner.pid() else {
            return false;
        };
        // The claims come before this look, the receiver's look at them after it closes.
        fence(SeqCst);
        if !self.may_write(epoch) {
            return false;
        }
        let range = self.blocks.range(blocks);
        let base = self.control.receiver.address.load(Acquire);
        let room = self.buffering.room(epoch) * self.blocks.bytes();
        let address = base.wrapping_add((room + range.start) as u64);
        let is_there = || self.partner.is_still();
        // SAFETY: the blocks were posted in this epoch, so that their bytes are lent.
        unsafe { cma::write(pid, address, self.source.region(), range, is_there) }.is_ok()
    }
}

impl SendChannel for Sender {
    fn start(&self, epoch: u64) {
        // Staged bytes are nobody's but the control block's.
        if let Mode::Direct { .. } = self.mode {
            // Not back, nor open again what has closed.
            self.control.sender.open.fetch_max(epoch, SeqCst);
        }
    }

    #[inline]
    fn post(&self, epoch: u64, partitions: Range<u32>) -> Post {
        let blocks = self.blocks.of(partitions);
        let words = &self.control.words()[blocks.clone()];
        if let Mode::Staged { .. } = self.mode {
            if !self.has_room(epoch) {
                return Post::Busy;
            }
            for (block, word) in blocks.clone().zip(words) {
                let range = self.blocks.range(block..block + 1);
                self.control.stage(epoch, range, &self.source);
                claims::show(word, epoch);
            }
            self.control.take_over(epoch, &self.blocks.range(blocks));
        } else {
            words.iter().for_each(|word| claims::show(word, epoch));
        }
        self.partner.wake();
        Post::Posted
    }

    fn advance(&self, epoch: u64) -> usize {
        if matches!(self.mode, Mode::Staged { .. })
            || !self.may_write(epoch)
            || self.partner.pid().is_none()
        {
            return 0;
        }
        let blocks = self.take_last(epoch);
        if blocks.is_empty() {
            return 0;
        }
        let words = &self.control.words()[blocks.clone()];
        if !self.write(epoch, blocks.clone()) {
            words.iter().for_each(|word| claims::show(word, epoch));
            return 0;
        }
        words.iter().for_each(|word| claims::finish(word, epoch));
        self.partner.wake();
        wake_sleeper(&self.own);
        blocks.len()
    }

    fn is_complete(&self, epoch: u64) -> bool {
        if let Mode::Staged { .. } = self.mode {
            return true;
        }
        let words = self.control.words();
        let mut front = self.front.get(epoch, 0).min(words.len());
        while front < words.len() && claims::is_done(&words[front], epoch) {
            front += 1;
        }
        self.front.set(epoch, front);
        front == words.len()
    }

    fn is_over(&self, epoch: u64) -> bool {
        self.control.receiver.open.load(Acquire) == CLOSED
            && self.mode.any_missing(self.control.words(), epoch)
    }

    fn close(&self) -> bool {
        self.control.sender.open.store(CLOSED, Release);
        fence(SeqCst);
        self.partner.wake();
        let held = |word| claims::is_taken(word, Side::Receiver);
        matches!(self.mode, Mode::Staged { .. })
            || !self.control.words().iter().any(held)
            || self.partner.is_over()
    }

    fn describe(&self) -> String {
        describe(self.mode)
    }
}

/// How a channel of this mode completes, in words.
pub(super) fn describe(mode: Mode) -> String {
    match mode {
        Mode::Staged { .. } => "shm: copied through a control block, a word in shared memory tells; small \
                                partitions, for which a cross-memory call costs too much, or the kernel forbids it",
        Mode::Direct { .. } => "shm: cross-memory attach by whichever side has time, a word in shared \
                                memory tells",
    }
    .to_owned()
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("mode", &self.mode)
            .field("blocks", &self.blocks.len())
            .finish_non_exhaustive()
    }
}
