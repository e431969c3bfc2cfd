//! Buffers from the memory that ranks of a host share.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use tagwire_transport::Allocation;

use crate::plain::{Plain, zeroed};

/// A buffer for messages, from [`Session::alloc`](crate::Session::alloc): a slice that its rank's peers can reach where the
/// shared memory has room for it. While it is lent to an operation it is borrowed, as any
/// slice; dropped, it gives its memory back.
///
/// Its bytes are this rank's as those of any buffer are: a correct peer touches them within operations only. Where it
/// [is shared](Buffer::is_shared), every rank of the host maps them to be written: a peer that knows the job's secret
/// and keeps to nothing can change them while this rank looks at them as a slice. All ranks of a host have to be
/// trusted that far, as they have to be where they may attach to each other; a vector on the heap is out of reach
/// where the system forbids that.
pub struct Buffer<T: Plain>(Memory<T>);

enum Memory<T> {
    /// As many elements as fit, which was as many as were asked for.
    Shared(Allocation, PhantomData<T>),
    Heap(Box<[T]>),
}

impl<T: Plain> Buffer<T> {
    /// Over `shared`, which is zero and has room for just so many elements, or over the heap.
    pub(crate) fn new(shared: Option<Allocation>, count: usize) -> Self {
        let fits = |memory: &Allocation| {
            memory.as_ptr().cast::<T>().is_aligned() && memory.len() == count * size_of::<T>()
        };
        Self(match shared.filter(fits) {
            Some(memory) => Memory::Shared(memory, PhantomData),
            None => Memory::Heap((0..count).map(|_| zeroed()).collect()),
        })
    }

    /// Whether it lies in the memory that ranks share, so that peers can copy from and to it without the help of the system.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        matches!(self.0, Memory::Shared(..))
    }
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Memory::Shared(memory, _) => {
                let count = memory.len() / size_of::<T>().max(1);
                // SAFETY: the allocation has `count` elements, aligned as `new` has seen; any bytes make a `Plain` value.
                // It is borrowed with `self`.
                unsafe { std::slice::from_raw_parts(memory.as_ptr().as_ptr().cast(), count) }
            }
            Memory::Heap(data) => data,
        }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.0 {
            Memory::Shared(memory, _) => {
                let count = memory.len() / size_of::<T>().max(1);
                // SAFETY: as for `deref`; `self` is borrowed for the only reference.
                unsafe { std::slice::from_raw_parts_mut(memory.as_ptr().as_ptr().cast(), count) }
            }
            Memory::Heap(data) => data,
        }
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}
