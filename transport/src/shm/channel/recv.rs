//! The receiving end.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};

use super::claims::{self, Blocks, Hint, Side};
use super::control::{CLOSED, ControlBlock, Key, Mode, Target};
use super::send::describe;
use crate::channel::{Buffering, RecvChannel};
use crate::shm::partner::Partner;
use crate::shm::segment::HeaderMap;
use crate::shm::waiter::wake_sleeper;

/// After how many looks at the first block that is missing those behind it are looked at.
const LOOKS: u32 = 16;

pub(super) struct Receiver {
    control: ControlBlock,
    blocks: Blocks,
    mode: Mode,
    buffering: Buffering,
    target: Target,
    partner: Arc<Partner>,
    /// The own header, to wake threads of this rank.
    own: HeaderMap,
    /// What became of each staged block: `epoch << 1`, and 1 when it lies in the buffer. Of this rank's threads
    /// one copies.
    landed: Box<[AtomicU64]>,
    /// Staged blocks that have landed, in all epochs.
    count: AtomicU64,
    /// All blocks before this one have landed.
    front: Hint,
    /// How often everything was looked at: a rhythm, of which threads may lose some to each other.
    looks: AtomicU32,
}

impl Receiver {
    pub(super) fn new(
        control: ControlBlock,
        blocks: Blocks,
        mode: Mode,
        buffering: Buffering,
        target: Target,
        partner: Arc<Partner>,
        own: HeaderMap,
    ) -> Self {
        let address = target.region().address();
        control.receiver.address.store(address, Release);
        let notes = match mode {
            Mode::Staged { .. } => blocks.len(),
            Mode::Direct { .. } => 0,
        };
        Self {
            control,
            blocks,
            mode,
            buffering,
            target,
            partner,
            own,
            landed: (0..notes).map(|_| AtomicU64::new(0)).collect(),
            count: AtomicU64::new(0),
            front: Hint::new(),
            looks: AtomicU32::new(0),
        }
    }

    /// What the sender needs to join.
    pub(super) fn key(&self) -> Key {
        Key {
            descriptor: self.control.descriptor(),
            nonce: self.control.nonce.word.load(Relaxed),
            mode: self.mode,
            buffering: self.buffering,
        }
    }

    /// Whether a block lies in the buffer; sees to it where the block has come.
    #[inline]
    fn take_in(&self, epoch: u64, block: usize) -> bool {
        if let Mode::Staged { .. } = self.mode {
            return self.take_staged(epoch, block);
        }
        let word = &self.control.words()[block];
        claims::is_done(word, epoch) || claims::is_free(word, epoch) && self.read_from(epoch, block)
    }

    /// Whether a staged block lies in the buffer; copies it there where it has come.
    #[inline]
    fn take_staged(&self, epoch: u64, block: usize) -> bool {
        let note = &self.landed[block];
        let (copying, done) = (epoch << 1, epoch << 1 | 1);
        let seen = note.load(Acquire);
        if seen >= copying {
            return seen == done;
        }
        if !claims::is_shown(&self.control.words()[block], epoch)
            || note
                .compare_exchange(seen, copying, Relaxed, Relaxed)
                .is_err()
        {
            return false;
        }
        let range = self.blocks.range(block..block + 1);
        let room = self.room(epoch);
        self.control.unstage(epoch, range, &self.target, room);
        note.store(done, Release);
        let landed = self.count.fetch_add(1, AcqRel) + 1;
        if landed == epoch * self.blocks.len() as u64 {
            self.control.consumed.word.store(epoch, Release);
            self.partner.wake();
            wake_sleeper(&self.own);
        }
        true
    }

    /// Takes half of the free blocks from `first` on and reads them out of the sender's memory. Returns
    /// whether `first` was among them.
    fn read_from(&self, epoch: u64, first: usize) -> bool {
        if self.partner.pid().is_none() {
            return false;
        }
        let words = &self.control.words()[first..];
        let free = words.iter();
        let free = free
            .take_while(|word| claims::is_free(*word, epoch))
            .count();
        let bytes = self.blocks.range(first..first + free).len();
        let taken = words[..claims::share(free, bytes)].iter();
        let taken = taken
            .take_while(|word| claims::take(*word, epoch, Side::Receiver))
            .count();
        let words = &words[..taken];
        if !self.read(epoch, first..first + taken) {
            words.iter().for_each(|word| claims::show(word, epoch));
            return false;
        }
        words.iter().for_each(|word| claims::finish(word, epoch));
        self.partner.wake();
        wake_sleeper(&self.own);
        taken > 0
    }

    /// Reads `blocks`, which were taken, out of the sender's memory.
    #[allow(unsafe_code, reason = "the buffer is lent in rounds")]
    fn read(&self, epoch: u64, blocks: Range<usize>) -> bool {
        // The claims come before this look, the sender's look at them after it closes.
        fence(SeqCst);
        if self.control.sender.open.load(Relaxed) != epoch {
            return false;
        }
        let range = self.blocks.range(blocks);
        let base = self.control.sender.address.load(Acquire);
        let address = base.wrapping_add(range.start as u64);
        let room = self.room(epoch);
        let place = room + range.start..room + range.end;
        // SAFETY: the epoch has begun, so that the target is lent, and the block is this thread's.
        unsafe { self.partner.read(address, self.target.region(), place) }
    }

    /// Where the bytes of `epoch` begin in the buffer.
    #[inline]
    fn room(&self, epoch: u64) -> usize {
        self.buffering.room(epoch) * self.blocks.bytes()
    }
}

impl RecvChannel for Receiver {
    fn start(&self, epoch: u64) {
        // The credit for what is staged is that rounds before were consumed.
        if let Mode::Direct { .. } = self.mode {
            // Not back, nor open again what has closed.
            let open = self.buffering.credit(epoch);
            self.control.receiver.open.fetch_max(open, SeqCst);
            self.partner.wake();
        }
    }

    #[inline]
    fn has_landed(&self, epoch: u64, partition: u32) -> bool {
        let mut blocks = self.blocks.of(partition..partition + 1);
        blocks.all(|block| self.take_in(epoch, block))
    }

    fn advance(&self, epoch: u64) -> bool {
        let blocks = self.blocks.len();
        let mut front = self.front.get(epoch, 0).min(blocks);
        while front < blocks && self.take_in(epoch, front) {
            front += 1;
        }
        self.front.set(epoch, front);
        // Blocks come in any order. To look at all of them each time would take their lines away from
        // a sender that is just writing there.
        let looks = self.looks.load(Relaxed).wrapping_add(1);
        self.looks.store(looks, Relaxed);
        if looks.is_multiple_of(LOOKS) {
            for block in front + 1..blocks {
                self.take_in(epoch, block);
            }
        }
        front == blocks
    }

    fn is_over(&self, epoch: u64) -> bool {
        self.control.sender.open.load(Acquire) == CLOSED
            && self.mode.any_missing(self.control.words(), epoch)
    }

    fn close(&self) -> bool {
        self.control.receiver.open.store(CLOSED, Release);
        fence(SeqCst);
        self.partner.wake();
        let held = |word| claims::is_taken(word, Side::Sender);
        matches!(self.mode, Mode::Staged { .. })
            || !self.control.words().iter().any(held)
            || self.partner.is_over()
    }

    fn describe(&self) -> String {
        describe(self.mode)
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("mode", &self.mode)
            .field("blocks", &self.blocks.len())
            .finish_non_exhaustive()
    }
}
