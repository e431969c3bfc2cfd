//! What collectives read and write: slices, which are lent, or vectors, which a persistent one owns.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use crate::buffer::Buffer;
use crate::persistent::Memory;
use crate::plain::Plain;

/// What a collective reads: a reference to a slice, an array, a vector or a [`Buffer`] of [`Plain`] elements; a vector for
/// [`Context::init`](crate::Context::init).
pub trait Readable {
    /// How an operation has it.
    type Lent;

    /// Returns it as an operation has it.
    fn lent(self) -> Self::Lent;
}

/// What a collective writes, perhaps where it has read: a mutable reference to a slice, an array, a vector or a [`Buffer`]; a
/// vector for [`Context::init`](crate::Context::init).
pub trait Writable {
    /// One of its elements.
    type Element: Plain;

    /// What is read beside it.
    type Input;

    /// The buffers of an operation.
    type Buffers;

    /// Returns the buffers of an operation that reads `input`; `None` for one that reads where it writes.
    fn beside(self, input: Option<Self::Input>) -> Self::Buffers;
}

/// Slices that are lent to a collective.
#[derive(Debug)]
pub struct LentBuffers<'a, T: Plain> {
    /// Empty where there is one buffer.
    pub(super) input: &'a [T],
    pub(super) out: &'a mut [T],
}

/// Vectors that a [`PersistentCollective`](crate::PersistentCollective) owns.
#[derive(Debug)]
pub struct OwnedBuffers<T: Plain> {
    pub(super) data: Memory<T>,
    /// There unless the result comes into `data`.
    pub(super) result: Option<Memory<T>>,
}

macro_rules! slices {
    ($($slice:ty $(, $count:ident)?;)*) => {$(
        impl<'a, T: Plain, $(const $count: usize)?> Readable for &'a $slice {
            type Lent = &'a [T];

            fn lent(self) -> &'a [T] {
                self
            }
        }

        impl<'a, T: Plain, $(const $count: usize)?> Readable for &'a mut $slice {
            type Lent = &'a [T];

            fn lent(self) -> &'a [T] {
                self
            }
        }

        impl<'a, T: Plain, $(const $count: usize)?> Writable for &'a mut $slice {
            type Element = T;
            type Input = &'a [T];
            type Buffers = LentBuffers<'a, T>;

            fn beside(self, input: Option<&'a [T]>) -> LentBuffers<'a, T> {
                let input = input.unwrap_or_default();
                LentBuffers { input, out: self }
            }
        }
    )*};
}

slices!([T]; [T; N], N; Vec<T>; Buffer<T>;);

impl<T: Plain> Readable for Vec<T> {
    type Lent = Self;

    fn lent(self) -> Self {
        self
    }
}

impl<T: Plain> Writable for Vec<T> {
    type Element = T;
    type Input = Self;
    type Buffers = OwnedBuffers<T>;

    fn beside(self, input: Option<Self>) -> OwnedBuffers<T> {
        let own = Memory::new(self);
        let (data, result) = match input {
            Some(input) => (Memory::new(input), Some(own)),
            None => (own, None),
        };
        OwnedBuffers { data, result }
    }
}

// SAFETY: what is lent lies in `data` and `result`, which are on the heap.
unsafe impl<T: Plain> Lasting for OwnedBuffers<T> {
    type Lent = LentBuffers<'static, T>;

    unsafe fn lender(&self) -> impl Fn() -> Self::Lent + Send + Sync + 'static + use<T> {
        let data = Lent::of(&self.data);
        let result = self.result.as_ref().map(Lent::of);
        // SAFETY: the caller's promise. The two are not the same memory.
        move || unsafe {
            match &result {
                Some(result) => LentBuffers {
                    input: data.elements(),
                    out: result.elements(),
                },
                None => LentBuffers {
                    input: &[],
                    out: data.elements(),
                },
            }
        }
    }
}

// SAFETY: nothing is lent.
unsafe impl Lasting for () {
    type Lent = ();

    unsafe fn lender(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        || ()
    }
}

/// Buffers that rounds are lent.
///
/// # Safety
/// What is lent borrows from memory that the value owns, which stays where it is when the value moves.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is lent, and a persistent collective owns its buffers: it takes vectors"
)]
pub unsafe trait Lasting: Send + 'static {
    /// What a round gets.
    type Lent;

    /// Returns a function that returns what a round gets.
    ///
    /// # Safety
    /// It is called while the buffers are there. Nobody else looks at them for as long as what it has returned is used.
    unsafe fn lender(&self) -> impl Fn() -> Self::Lent + Send + Sync + 'static + use<Self>;
}

/// Where elements are that rounds are lent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lent<T>(NonNull<[T]>);

// SAFETY: hands out elements, in `elements` alone, and those may be sent.
unsafe impl<T: Plain> Send for Lent<T> {}
// SAFETY: as above.
unsafe impl<T: Plain> Sync for Lent<T> {}

impl<T: Plain> Lent<T> {
    pub(super) const fn of(memory: &Memory<T>) -> Self {
        Self(memory.pointer())
    }

    /// Returns where their bytes are.
    pub(super) fn bytes(memory: &Memory<T>) -> Lent<u8> {
        let elements = memory.pointer();
        let count = elements.len() * size_of::<T>();
        Lent(NonNull::slice_from_raw_parts(elements.cast(), count))
    }

    /// Returns the elements.
    ///
    /// # Safety
    /// They are there, and nobody else looks at them, for as long as they are used.
    pub(super) const unsafe fn elements<'a>(&self) -> &'a mut [T] {
        // SAFETY: the caller's promise; bytes of elements are plain data too.
        unsafe { &mut *self.0.as_ptr() }
    }
}
