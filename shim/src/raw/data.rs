//! The addresses of data.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;

use tagwire_layout::{Source, Target};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::abi::Datatype;

/// `MPI_IN_PLACE`.
const IN_PLACE: usize = 1;

/// `MPI_BUFFER_AUTOMATIC`, the last of the constants that stand for buffers.
const BUFFER_AUTOMATIC: usize = 2;

/// The address of data that is read. The null address is `MPI_BOTTOM`.
#[derive(Debug, Clone, Copy)]
pub struct In(*const u8);

/// The address of data that is written. The null address is `MPI_BOTTOM`.
#[derive(Debug, Clone, Copy)]
pub struct Out(*mut u8);

// SAFETY: an address; what is done by it is promised by its maker, for any thread.
unsafe impl Send for In {}
// SAFETY: as above.
unsafe impl Sync for In {}
// SAFETY: as above.
unsafe impl Send for Out {}
// SAFETY: as above.
unsafe impl Sync for Out {}

impl In {
    /// Returns the address as data.
    ///
    /// # Safety
    /// The bytes that the arguments of the call name there may be read until the operation is complete, and nobody writes them.
    #[inline]
    #[must_use]
    pub const unsafe fn new(address: *const c_void) -> Self {
        Self(address.cast())
    }

    /// Returns the address of data of this crate, for an operation that is complete before they go.
    pub(crate) const fn over(data: &[u8]) -> Self {
        Self(data.as_ptr())
    }

    /// Returns `count` elements at the address.
    #[inline(always)]
    #[must_use]
    pub const fn of(self, count: i64, datatype: Datatype) -> Elements<Self> {
        Elements {
            address: self,
            count,
            datatype,
        }
    }

    /// Returns whether it is `MPI_IN_PLACE`.
    #[must_use]
    pub fn is_in_place(self) -> bool {
        self.0.addr() == IN_PLACE
    }

    /// Returns whether it is one of the constants that no data is at, `MPI_BOTTOM` among them.
    #[inline]
    #[must_use]
    pub fn is_constant(self) -> bool {
        self.0.addr() <= BUFFER_AUTOMATIC
    }

    /// Returns the address.
    #[must_use]
    pub const fn address(self) -> *const c_void {
        self.0.cast()
    }

    /// Returns whether so many bytes here are none of those there.
    pub(crate) fn is_disjoint(self, bytes: usize, other: Out, others: usize) -> bool {
        let (start, other) = (self.0.addr(), other.0.addr());
        bytes == 0
            || others == 0
            || start.saturating_add(bytes) <= other
            || other.saturating_add(others) <= start
    }

    /// Returns the address at an offset.
    #[must_use]
    pub fn moved(self, offset: i64) -> Self {
        Self(self.at(offset))
    }

    fn at(self, offset: i64) -> *const u8 {
        match self.0.is_null() {
            true => ptr::with_exposed_provenance(offset as usize),
            false => self.0.wrapping_offset(offset as isize),
        }
    }

    /// Returns the data at an offset as a buffer of messages.
    #[inline]
    #[must_use]
    pub fn buffer(self, offset: i64, bytes: usize) -> SendBuffer {
        if bytes == 0 {
            return SendBuffer::EMPTY;
        }
        // SAFETY: the promise of this value's maker.
        unsafe { SendBuffer::contiguous(self.at(offset), bytes) }
    }

    /// Returns the data at an offset.
    ///
    /// # Safety
    /// What is returned is used no longer than the operation of this value goes on, and nobody writes the bytes meanwhile.
    #[must_use]
    pub(crate) unsafe fn bytes<'a>(self, offset: i64, bytes: usize) -> &'a [u8] {
        if bytes == 0 {
            return &[];
        }
        // SAFETY: the promise of this value's maker, and the caller's.
        unsafe { std::slice::from_raw_parts(self.at(offset), bytes) }
    }

    /// Returns a copy of so many bytes.
    #[must_use]
    pub fn to_vec(self, bytes: usize) -> Vec<u8> {
        // SAFETY: nobody writes the bytes until the operation is complete, and they are copied before this returns.
        unsafe { self.bytes(0, bytes) }.to_vec()
    }

    /// Appends a copy of so many bytes to others.
    pub(crate) fn append(self, bytes: usize, to: &mut Vec<u8>) {
        // SAFETY: as above.
        to.extend_from_slice(unsafe { self.bytes(0, bytes) });
    }

    /// Returns the memory around the address.
    #[must_use]
    pub const fn source(self, span: Range<i64>) -> Source<'static> {
        // SAFETY: as above.
        unsafe { Source::at(self.0, span) }
    }
}

impl Out {
    /// Returns the address as memory for data.
    ///
    /// # Safety
    /// The bytes that the arguments of the call name there may be written until the operation is complete, and nobody else uses
    /// them.
    #[inline]
    #[must_use]
    pub const unsafe fn new(address: *mut c_void) -> Self {
        Self(address.cast())
    }

    /// Returns whether it is `MPI_IN_PLACE`.
    #[must_use]
    pub fn is_in_place(self) -> bool {
        self.0.addr() == IN_PLACE
    }

    /// Returns `count` elements at the address.
    #[inline(always)]
    #[must_use]
    pub const fn of(self, count: i64, datatype: Datatype) -> Elements<Self> {
        Elements {
            address: self,
            count,
            datatype,
        }
    }

    /// Where nothing is.
    pub(crate) const EMPTY: Self = Self(ptr::null_mut());

    /// Returns an address in memory that this crate has mapped, for operations that are complete before it is unmapped. What is
    /// used of it, and how, is what the program has promised of the window that it is in.
    pub(crate) const fn at_address(start: *mut u8) -> Self {
        Self(start)
    }

    /// Returns the address of memory of this crate, for an operation that is complete before it goes.
    pub(crate) const fn over(memory: &mut [u8]) -> Self {
        Self(memory.as_mut_ptr())
    }

    /// Returns whether it is one of the constants that no memory is at, `MPI_BOTTOM` among them.
    #[inline]
    #[must_use]
    pub fn is_constant(self) -> bool {
        self.0.addr() <= BUFFER_AUTOMATIC
    }

    /// Returns the same, to be read: for data that is replaced.
    #[must_use]
    pub const fn read(self) -> In {
        In(self.0)
    }

    /// Returns the address at an offset.
    pub(crate) fn moved(self, offset: i64) -> Self {
        Self(self.at(offset))
    }

    /// Returns the address at an offset of memory that is not at `MPI_BOTTOM`.
    #[inline(always)]
    pub(crate) const fn inside(self, offset: i64) -> Self {
        Self(self.0.wrapping_offset(offset as isize))
    }

    fn at(self, offset: i64) -> *mut u8 {
        match self.0.is_null() {
            true => ptr::with_exposed_provenance_mut(offset as usize),
            false => self.0.wrapping_offset(offset as isize),
        }
    }

    /// Returns the memory at an offset as a buffer of messages.
    #[inline]
    #[must_use]
    pub fn buffer(self, offset: i64, bytes: usize) -> RecvBuffer {
        if bytes == 0 {
            return RecvBuffer::EMPTY;
        }
        // SAFETY: the promise of this value's maker.
        unsafe { RecvBuffer::contiguous(self.at(offset), bytes) }
    }

    /// Returns the memory at an offset.
    ///
    /// # Safety
    /// What is returned is used no longer than the operation of this value goes on, and nobody else uses the bytes meanwhile.
    #[must_use]
    pub(crate) unsafe fn bytes<'a>(self, offset: i64, bytes: usize) -> &'a mut [u8] {
        if bytes == 0 {
            return &mut [];
        }
        // SAFETY: the promise of this value's maker, and the caller's.
        unsafe { std::slice::from_raw_parts_mut(self.at(offset), bytes) }
    }

    /// Copies so many bytes from somewhere else.
    #[inline]
    pub fn copy(self, from: In, bytes: usize) {
        let (from, to) = (from.at(0), self.at(0));
        match bytes {
            0 => {}
            // One value, as most of the shortest accesses have, without a call.
            // SAFETY: the promises of both makers; no reference to the bytes is made.
            8 => unsafe {
                to.cast::<u64>()
                    .write_unaligned(from.cast::<u64>().read_unaligned())
            },
            // SAFETY: as above.
            _ => unsafe { ptr::copy(from, to, bytes) },
        }
    }

    /// Returns the memory around the address.
    #[must_use]
    pub const fn target(self, span: Range<i64>) -> Target<'static> {
        // SAFETY: as above.
        unsafe { Target::at(self.0, span) }
    }
}

impl From<In> for Out {
    /// Returns the address of data that is only read, for where both kinds are held.
    fn from(data: In) -> Self {
        Self(data.0.cast_mut())
    }
}

/// Elements at an address: three arguments of most calls that have data.
#[derive(Debug, Clone, Copy)]
pub struct Elements<A> {
    /// Where the first one is.
    pub address: A,
    /// How many there are; negative in calls that are wrong.
    pub count: i64,
    /// What each is.
    pub datatype: Datatype,
}

impl From<Elements<In>> for Elements<Out> {
    fn from(data: Elements<In>) -> Self {
        Out::from(data.address).of(data.count, data.datatype)
    }
}

/// Elements in the window of a target: four arguments of most calls that access it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Whose memory it is.
    pub rank: i32,
    /// Where the first one is, in the units of the target.
    pub displacement: i64,
    /// How many there are; negative in calls that are wrong.
    pub count: i64,
    /// What each is.
    pub datatype: Datatype,
}

/// Memory of this crate for packed data, at an address that stays.
#[derive(Debug)]
pub(crate) struct StagingBuffer {
    /// Not looked at: all is done by the address.
    _memory: Vec<u8>,
    address: Out,
    bytes: usize,
}

impl From<Vec<u8>> for StagingBuffer {
    fn from(mut memory: Vec<u8>) -> Self {
        let (address, bytes) = (Out(memory.as_mut_ptr()), memory.len());
        Self {
            _memory: memory,
            address,
            bytes,
        }
    }
}

impl StagingBuffer {
    pub(crate) fn new(bytes: usize) -> Self {
        vec![0; bytes].into()
    }

    /// Returns the address of all of the memory.
    pub(crate) const fn address(&self) -> Out {
        self.address
    }

    /// Returns how many bytes it has.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns all of the memory as elements of a message.
    pub(crate) const fn packed(&self) -> Elements<In> {
        let address = self.address.read();
        address.of(self.bytes as i64, Datatype::PACKED)
    }

    /// Returns the address of a part of the memory.
    ///
    /// # Panics
    /// Where the memory has no such part.
    pub(crate) fn part(&self, start: usize, bytes: usize) -> Out {
        assert!(start + bytes <= self.bytes, "a part of what is there");
        self.address.moved(start as i64)
    }
}
