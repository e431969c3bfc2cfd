//! The control block in shared memory, and the copies onto it and off it.
//!
//! ```text
//!     0   nonce                          written by the receiver, before the key is given away
//!    64   the receiver's epoch, address  by the receiver
//!   128   consumed                       by the receiver
//!   192   the sender's epoch, address    by the sender
//!   256   a word for each block          by both
//!   then  bytes, of two epochs by turns  by the sender; where partitions are staged
//! ```
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use memmap2::{MmapOptions, MmapRaw};
use tagwire_base::prefetch;

use super::claims::{self, Blocks};
use crate::channel::Buffering;
use crate::data::{ReadRegion, WriteRegion, copy_bytes};
use crate::shm::layout::Line64;
use crate::shm::memfd;

/// How partitions travel, with the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// By two copies, through the control block.
    Staged { block: u64 },
    /// By one copy, from user memory to user memory.
    Direct { block: u64 },
}

impl Mode {
    /// Whether some block has not come as far as its sender takes it: into the control block, or to the receiver.
    pub(super) fn any_missing(self, words: &[AtomicU64], epoch: u64) -> bool {
        let come = |word| match self {
            Self::Staged { .. } => claims::is_shown(word, epoch),
            Self::Direct { .. } => claims::is_done(word, epoch),
        };
        !words.iter().all(come)
    }

    pub(super) const fn block(self) -> u64 {
        match self {
            Self::Staged { block } | Self::Direct { block } => block,
        }
    }
}

/// What the sender needs to open a control block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// The number of the control block's descriptor in the receiver's process.
    pub descriptor: u32,
    /// The number on the control: the descriptor may stand for something else by now.
    pub nonce: u64,
    pub mode: Mode,
    pub buffering: Buffering,
}

impl Key {
    const LEN: usize = 24;

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let staged = matches!(self.mode, Mode::Staged { .. });
        let double = self.buffering == Buffering::Double;
        let words = [
            u64::from(self.descriptor) | u64::from(staged) << 32 | u64::from(double) << 33,
            self.nonce,
            self.mode.block(),
        ];
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().ok()?);
        }
        let [place, nonce, block] = words;
        let mode = match place >> 32 & 1 {
            0 => Mode::Direct { block },
            _ => Mode::Staged { block },
        };
        let buffering = match place >> 33 {
            0 => Buffering::Single,
            1 => Buffering::Double,
            _ => return None,
        };
        (block > 0).then_some(Self {
            descriptor: place as u32,
            nonce,
            mode,
            buffering,
        })
    }
}

/// The epoch that an end has open, and where its buffer lies.
#[repr(C, align(64))]
pub(super) struct EndLine {
    pub open: AtomicU64,
    pub address: AtomicU64,
}

/// The start of a control block; the words of the blocks follow.
#[repr(C, align(64))]
pub(super) struct ControlHeader {
    pub nonce: Line64,
    pub receiver: EndLine,
    /// The last epoch whose staged bytes the receiver has copied out of the control block.
    pub consumed: Line64,
    pub sender: EndLine,
}

/// [`EndLine::open`] of an end that has closed. No epoch.
pub(super) const CLOSED: u64 = u64::MAX;

/// A mapped control block.
pub(super) struct ControlBlock {
    header: NonNull<ControlHeader>,
    blocks: usize,
    /// Where the bytes of even and of odd epochs lie; and how many of either there are.
    stage: usize,
    stride: usize,
    /// The receiver's, for its sender to open.
    file: Option<File>,
    _map: MmapRaw,
}

// SAFETY: the pointer is into the mapping that the value keeps. The words are atomics; the staged bytes are
// copied by whom the words make their owner, never referenced.
unsafe impl Send for ControlBlock {}
// SAFETY: as above.
unsafe impl Sync for ControlBlock {}

impl Deref for ControlBlock {
    type Target = ControlHeader;

    #[inline]
    fn deref(&self) -> &ControlHeader {
        // SAFETY: the mapping is page-aligned, longer than the header, lives as long as `self`, and cannot
        // shrink (sealed). All fields are atomics, for which any bytes are valid.
        unsafe { self.header.as_ref() }
    }
}

impl ControlBlock {
    /// A new control block, on which nothing is shown.
    pub(super) fn create(blocks: &Blocks, mode: Mode) -> io::Result<Self> {
        let shape = Shape::of(blocks, mode);
        let file = memfd::create("tagwire-channel", shape.len as u64)?;
        let mut control = Self::map(&file, blocks, shape)?;
        control.nonce.word.store(memfd::nonce()?, Relaxed);
        control.file = Some(file);
        Ok(control)
    }

    /// The control block that process `pid` has made, or what is wrong with it.
    pub(super) fn open(pid: u32, key: &Key, blocks: &Blocks) -> Result<Self, String> {
        let shape = Shape::of(blocks, key.mode);
        let what = "control block of this channel";
        let file = memfd::open(pid, key.descriptor, shape.len as u64, what)?;
        let path = memfd::path(pid, key.descriptor);
        let control =
            Self::map(&file, blocks, shape).map_err(|error| format!("{path}: {error}"))?;
        if control.nonce.word.load(Relaxed) != key.nonce {
            return Err(format!("{path} is the control block of another channel"));
        }
        Ok(control)
    }

    fn map(file: &File, blocks: &Blocks, shape: Shape) -> io::Result<Self> {
        let map = MmapOptions::new().len(shape.len).map_raw(file)?;
        let start = NonNull::new(map.as_mut_ptr())
            .ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self {
            header: start.cast(),
            blocks: blocks.len(),
            stage: shape.stage,
            stride: shape.stride,
            file: None,
            _map: map,
        })
    }

    /// The number of the descriptor, in the process that made the control block.
    pub(super) fn descriptor(&self) -> u32 {
        self.file
            .as_ref()
            .map_or(u32::MAX, |file| file.as_raw_fd().unsigned_abs())
    }

    /// The words of the blocks.
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: the control block was made with room for so many words behind the header, whose size keeps
        // them aligned; the rest is as for `deref`.
        unsafe {
            let first = self.header.as_ptr().add(1).cast::<AtomicU64>();
            std::slice::from_raw_parts(first, self.blocks)
        }
    }

    /// The place of staged bytes, if they lie in the control block.
    #[inline]
    fn place(&self, epoch: u64, range: &Range<usize>) -> Option<*mut u8> {
        if range.start > range.end || range.end > self.stride {
            return None;
        }
        let offset = self.stage + (epoch & 1) as usize * self.stride + range.start;
        // SAFETY: the control block has twice `stride` bytes from `stage` on.
        Some(unsafe { self.header.as_ptr().cast::<u8>().add(offset) })
    }

    /// Copies bytes into the control block.
    #[inline]
    pub(super) fn stage(&self, epoch: u64, range: Range<usize>, from: &Source) {
        let Some(place) = self.place(epoch, &range) else {
            return;
        };
        if range.end <= from.0.len() {
            // SAFETY: both ranges were checked. The source is lent: the partition is ready, nobody writes
            // it. On the control block the credit makes the place the sender's.
            unsafe { copy_bytes(from.0.as_ptr().add(range.start), place, range.len()) };
        }
    }

    /// Takes over the lines of `range` for the epoch after this one. The receiver read them an epoch ago: to
    /// write them takes as long as to copy them, and is off the way now.
    #[inline]
    pub(super) fn take_over(&self, epoch: u64, range: &Range<usize>) {
        // Of parts of a line each would do it again.
        if range.len() >= 64
            && let Some(place) = self.place(epoch + 1, range)
        {
            prefetch::range_for_write(place, range.len());
        }
    }

    /// Copies bytes out of the control block, to `range` behind `base` of the target.
    #[inline]
    pub(super) fn unstage(&self, epoch: u64, range: Range<usize>, to: &Target, base: usize) {
        let Some(place) = self.place(epoch, &range) else {
            return;
        };
        if range.end <= to.0.len().saturating_sub(base) {
            // SAFETY: both ranges were checked. The target is lent for the epoch, and the block is this
            // thread's. A peer that writes the control block meanwhile tears bytes: they are data.
            unsafe { copy_bytes(place, to.0.as_ptr().add(base + range.start), range.len()) };
        }
    }
}

/// What lies where.
#[derive(Clone, Copy)]
struct Shape {
    stage: usize,
    stride: usize,
    len: usize,
}

impl Shape {
    fn of(blocks: &Blocks, mode: Mode) -> Self {
        let words = size_of::<ControlHeader>() + blocks.len() * 8;
        let stage = words.next_multiple_of(64);
        let stride = match mode {
            Mode::Staged { .. } => blocks.bytes().next_multiple_of(64),
            Mode::Direct { .. } => 0,
        };
        Self {
            stage,
            stride,
            len: stage + 2 * stride,
        }
    }
}

/// The sender's buffer, for all threads of its rank.
pub(super) struct Source(ReadRegion);

// SAFETY: threads only read it, each what is ready; the region's maker lent it for that.
unsafe impl Sync for Source {}

impl Source {
    /// # Safety
    /// A partition of `region` is lent from its post to the end of the epoch, and, where the receiver may read it in
    /// place, until the end was closed.
    pub(super) const unsafe fn new(region: ReadRegion) -> Self {
        Self(region)
    }

    pub(super) const fn region(&self) -> ReadRegion {
        self.0
    }
}

/// The receiver's buffer, for all threads of its rank.
pub(super) struct Target(WriteRegion);

// SAFETY: threads write disjoint parts of it: each block is taken by one of them. The region's maker lent it
// for that.
unsafe impl Sync for Target {}

impl Target {
    /// # Safety
    /// `region` is lent in the epochs that are begun, until the end was closed.
    pub(super) const unsafe fn new(region: WriteRegion) -> Self {
        Self(region)
    }

    pub(super) const fn region(&self) -> WriteRegion {
        self.0
    }
}

const _: () = assert!(size_of::<ControlHeader>() == 256);
