//! Memory that programs ask for (MPI-5.0, section 9.2).

use std::collections::BTreeMap;
use std::mem;

use tagwire_pml::Messenger;
use tagwire_transport::Allocation;

use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::raw::Pointer;

/// Memory begins at multiples of it, unless the program asks for more.
const ALIGNMENT: usize = 64;

/// The memory that a program has, by address.
#[derive(Debug, Default)]
pub(crate) struct Memory(Lock<BTreeMap<usize, Block>>);

/// Kept until the program frees it, and not looked at: all is done by its address.
#[derive(Debug)]
enum Block {
    /// Of the transport: peers reach it by a mapping.
    Shared(Allocation),
    /// The same, for as long as the process runs.
    Kept,
    /// Of the heap.
    Own(#[expect(dead_code, reason = "kept")] Vec<Line>),
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "as above")] [u8; ALIGNMENT]);

impl Memory {
    /// Returns memory at a multiple of `alignment`, a power of two.
    ///
    /// # Errors
    /// `MPI_ERR_NO_MEM` where there is none.
    pub(crate) fn allocate(
        &self,
        messenger: &Messenger,
        bytes: usize,
        alignment: usize,
    ) -> Result<Pointer> {
        if let Some(shared) = messenger.allocate(bytes.max(1))? {
            let start = shared.as_ptr().as_ptr();
            if start.addr().is_multiple_of(alignment) {
                self.0.lock().insert(start.addr(), Block::Shared(shared));
                return Ok(Pointer(start.cast()));
            }
        }
        // Where more alignment is wanted, there is room to move on to it.
        let more = alignment.saturating_sub(ALIGNMENT);
        let lines = bytes
            .max(1)
            .checked_add(more)
            .map(|bytes| bytes.div_ceil(ALIGNMENT));
        let mut own: Vec<Line> = Vec::new();
        let reserved = lines.map(|lines| own.try_reserve_exact(lines));
        let (Some(lines), Some(Ok(()))) = (lines, reserved) else {
            let text = format!("there is no memory of {bytes} bytes");
            return Err(Error::new(Class::NoMem, text));
        };
        own.resize(lines, Line([0; ALIGNMENT]));
        let first = own.as_mut_ptr().cast::<u8>();
        let start = first.wrapping_add(first.addr().next_multiple_of(alignment) - first.addr());
        self.0.lock().insert(start.addr(), Block::Own(own));
        Ok(Pointer(start.cast()))
    }

    /// Has memory that peers map stay allocated when the program frees it: some may not know yet that they are not to write there.
    pub(crate) fn keep(&self, address: usize) {
        let mut blocks = self.0.lock();
        if let Some((start, block)) = blocks.range_mut(..=address).next_back()
            && let Block::Shared(shared) = block
            && address - start < shared.len()
        {
            let shared = mem::replace(block, Block::Kept);
            // Its pages go with the process.
            mem::forget(shared);
        }
    }

    /// Frees memory.
    ///
    /// # Errors
    /// `MPI_ERR_BASE` where none begins at the address.
    pub(crate) fn free(&self, start: Pointer) -> Result {
        let freed = self.0.lock().remove(&start.0.addr());
        freed.map(drop).ok_or_else(|| {
            let text = format!("{:#x} is no memory of MPI_Alloc_mem", start.0.addr());
            Error::new(Class::Base, text)
        })
    }
}
