//! The caller's pointers.
//!
//! A C program promises that the pointers which it gives to a call are as the standard says: that arrays are as long as counts
//! say, that results may be written, and that the buffers of an operation may be read or written until it is complete. The
//! values of this module carry that promise: whoever makes one of a pointer vouches for it, and from there on they are safe to
//! use. Nothing else is dereferenced in this crate.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;
use std::ptr;

use tagwire_layout::{Source, Target};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::abi::{Datatype, Status, UNDEFINED};
use crate::error::{Class, Error, Result};
use crate::functions::confined;
use crate::object::operation::Callback;

/// `MPI_IN_PLACE`.
const IN_PLACE: usize = 1;

/// `MPI_BUFFER_AUTOMATIC`, the last of the constants that stand for buffers.
const BUFFER_AUTOMATIC: usize = 2;

/// `MPI_UNWEIGHTED`.
const UNWEIGHTED: usize = 10;

/// `MPI_WEIGHTS_EMPTY`.
const WEIGHTS_EMPTY: usize = 11;

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
    pub fn copy(self, from: In, bytes: usize) {
        if bytes > 0 {
            // SAFETY: the promises of both makers; no reference to the bytes is made.
            unsafe { ptr::copy(from.at(0), self.at(0), bytes) };
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

/// Memory of this crate for packed data, at an address that stays.
#[derive(Debug)]
pub(crate) struct StagingBuffer {
    /// Not looked at: all is done by the address.
    _memory: Vec<u8>,
    address: Out,
    bytes: usize,
}

impl StagingBuffer {
    pub(crate) fn new(bytes: usize) -> Self {
        let mut memory = vec![0; bytes];
        let address = Out(memory.as_mut_ptr());
        Self {
            _memory: memory,
            address,
            bytes,
        }
    }

    /// Returns the address of all of the memory.
    pub(crate) const fn address(&self) -> Out {
        self.address
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

/// Which function of a pair was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    /// The one with counts of type `int`.
    Int,
    /// The one with counts of type `MPI_Count`, whose name ends in `_c`.
    Big,
}

/// An array of counts or displacements, of `int` or of wider integers.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// `const int[]`.
    Int(*const i32),
    /// `const MPI_Count[]` or `const MPI_Aint[]`.
    Big(*const i64),
}

impl Counts {
    /// Returns an element. Where there is no array, zero.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> i64 {
        match self {
            Self::Int(array) if !array.is_null() => {
                // SAFETY: the caller of MPI promises that the array has an element for each index that a call uses.
                i64::from(unsafe { *array.add(index) })
            }
            Self::Big(array) if !array.is_null() => {
                // SAFETY: as above.
                unsafe { *array.add(index) }
            }
            _ => 0,
        }
    }
}

/// An array that is read.
#[derive(Debug)]
pub struct List<T>(*const T);

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for List<T> {}

impl<T: Copy> List<T> {
    /// Returns the array at an address.
    ///
    /// # Safety
    /// It has an element for each index that the call uses.
    #[must_use]
    pub const unsafe fn new(array: *const T) -> Self {
        Self(array)
    }

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// Returns an element.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is no array.
    pub fn get(self, index: usize) -> Result<T> {
        if self.0.is_null() {
            return Err(Error::new(Class::Arg, "an array is null"));
        }
        // SAFETY: the promise of this value's maker.
        Ok(unsafe { self.0.add(index).read() })
    }

    /// Returns the first `count` elements.
    #[must_use]
    pub fn slice(&self, count: usize) -> &[T] {
        if count == 0 || self.0.is_null() {
            return &[];
        }
        // SAFETY: the promise of this value's maker, who keeps the array for the call; this value is one of its arguments.
        unsafe { std::slice::from_raw_parts(self.0, count) }
    }
}

impl List<i32> {
    /// Returns the weights of `count` edges; `None` where they are `MPI_UNWEIGHTED`.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where edges have none: for `MPI_WEIGHTS_EMPTY`, or a null pointer.
    pub fn weights(&self, count: usize) -> Result<Option<&[i32]>> {
        match self.0.addr() {
            UNWEIGHTED => Ok(None),
            _ if count == 0 => Ok(Some(&[])),
            0 | WEIGHTS_EMPTY => {
                let text = format!("there are no weights for {count} edges");
                Err(Error::new(Class::Arg, text))
            }
            _ => Ok(Some(self.slice(count))),
        }
    }
}

/// An array that the call reads and writes.
#[derive(Debug)]
pub struct Array<T>(*mut T);

impl<T> Clone for Array<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Array<T> {}

impl<T: Copy> Array<T> {
    /// Returns the array at an address.
    ///
    /// # Safety
    /// It has an element for each index that the call uses, which nobody else uses meanwhile.
    #[must_use]
    pub const unsafe fn new(array: *mut T) -> Self {
        Self(array)
    }

    /// Returns an element.
    ///
    /// # Panics
    /// Where there is no array.
    #[must_use]
    pub fn get(self, index: usize) -> T {
        assert!(!self.0.is_null(), "an array was promised");
        // SAFETY: the promise of this value's maker.
        unsafe { self.0.add(index).read() }
    }

    /// Returns no array.
    #[must_use]
    pub const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Sets an element, where there is an array.
    pub fn set(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: as above.
            unsafe { self.0.add(index).write(value) };
        }
    }

    /// Returns whether there is none.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl Array<i32> {
    /// Returns the same for weights of edges that are written: none where it is `MPI_UNWEIGHTED` or `MPI_WEIGHTS_EMPTY`.
    #[must_use]
    pub fn for_weights(self) -> Self {
        match self.0.addr() {
            UNWEIGHTED | WEIGHTS_EMPTY => Self(ptr::null_mut()),
            _ => self,
        }
    }
}

/// A result of a call. Where the caller's pointer is null, it is dropped.
#[derive(Debug)]
pub struct Ref<T>(*mut T);

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ref<T> {}

impl<T: Copy> Ref<T> {
    /// Returns the result at an address.
    ///
    /// # Safety
    /// It is null, or may be read and written during the call.
    #[inline]
    #[must_use]
    pub const unsafe fn new(result: *mut T) -> Self {
        Self(result)
    }

    /// Sets it.
    #[inline]
    pub fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: the promise of this value's maker.
            unsafe { self.0.write(value) };
        }
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    #[inline]
    pub fn get(self) -> Result<T> {
        if self.0.is_null() {
            return Err(Error::new(Class::Arg, "a pointer is null"));
        }
        // SAFETY: as above.
        Ok(unsafe { self.0.read() })
    }

    /// Returns no result: it is dropped.
    #[must_use]
    pub const fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// Returns whether the caller's pointer is null.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }
}

/// What a count becomes that does not fit its `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Narrow {
    /// `MPI_UNDEFINED`.
    Undefined,
    /// An error of the call, `MPI_ERR_VALUE_TOO_LARGE`.
    Error,
}

/// A count that a call returns, or moves on: in an `int` or in an `MPI_Count`.
#[derive(Debug, Clone, Copy)]
pub struct CountOut(Width);

#[derive(Debug, Clone, Copy)]
enum Width {
    Int(Ref<i32>, Narrow),
    Big(Ref<i64>),
}

impl CountOut {
    /// Returns the count in an `int`.
    ///
    /// # Safety
    /// It is null, or may be read and written during the call.
    #[must_use]
    pub const unsafe fn int(count: *mut i32, narrow: Narrow) -> Self {
        // SAFETY: the caller's promise.
        Self(Width::Int(unsafe { Ref::new(count) }, narrow))
    }

    /// Returns the count in an `MPI_Count`.
    ///
    /// # Safety
    /// As [`int`](Self::int).
    #[must_use]
    pub const unsafe fn big(count: *mut i64) -> Self {
        // SAFETY: the caller's promise.
        Self(Width::Big(unsafe { Ref::new(count) }))
    }

    /// Returns the same for a result that is an `MPI_Count` in any case.
    #[must_use]
    pub const fn wide(count: Ref<i64>) -> Self {
        Self(Width::Big(count))
    }

    /// Sets it.
    ///
    /// # Errors
    /// `MPI_ERR_VALUE_TOO_LARGE` where it does not fit, and is not to be `MPI_UNDEFINED` then.
    pub fn set(self, value: i64) -> Result {
        match (self.0, i32::try_from(value)) {
            (Width::Big(count), _) => count.set(value),
            (Width::Int(count, _), Ok(narrow)) => count.set(narrow),
            (Width::Int(count, Narrow::Undefined), Err(_)) => count.set(UNDEFINED),
            (Width::Int(_, Narrow::Error), Err(_)) => {
                let text = format!("{value} does not fit an int");
                return Err(Error::new(Class::ValueTooLarge, text));
            }
        }
        Ok(())
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    pub fn get(self) -> Result<i64> {
        match self.0 {
            Width::Int(count, _) => Ok(i64::from(count.get()?)),
            Width::Big(count) => count.get(),
        }
    }
}

/// A status, or `MPI_STATUS_IGNORE`.
#[derive(Debug, Clone, Copy)]
pub struct StatusRef(*mut Status);

impl StatusRef {
    /// Returns the status at an address.
    ///
    /// # Safety
    /// It is null, or may be read and written during the call.
    #[inline]
    #[must_use]
    pub const unsafe fn new(status: *mut Status) -> Self {
        Self(status)
    }

    /// Returns whether nobody asks for it.
    #[inline]
    #[must_use]
    pub const fn is_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Sets it, but for its error (MPI-5.0, section 3.2.5).
    #[inline]
    pub fn set(self, status: Status) {
        if !self.0.is_null() {
            // SAFETY: the promise of this value's maker.
            unsafe {
                let error = (*self.0).error;
                self.0.write(status.with_error(error));
            }
        }
    }

    /// Changes it.
    pub fn change(self, change: impl FnOnce(Status) -> Status) {
        if !self.0.is_null() {
            // SAFETY: as above.
            unsafe { self.0.write(change(self.0.read())) };
        }
    }

    /// Returns what it is; the empty status where there is none.
    #[must_use]
    pub fn get(self) -> Status {
        match self.0.is_null() {
            true => Status::EMPTY,
            // SAFETY: as above.
            false => unsafe { self.0.read() },
        }
    }
}

/// An array of statuses, or `MPI_STATUSES_IGNORE`.
#[derive(Debug, Clone, Copy)]
pub struct Statuses(*mut Status);

impl Statuses {
    /// Returns the array at an address.
    ///
    /// # Safety
    /// It is null, or has an element for each index that the call uses, which nobody else uses meanwhile.
    #[must_use]
    pub const unsafe fn new(array: *mut Status) -> Self {
        Self(array)
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn are_ignored(self) -> bool {
        self.0.is_null()
    }

    /// Returns one of them.
    #[must_use]
    pub const fn at(self, index: usize) -> StatusRef {
        match self.0.is_null() {
            true => StatusRef(ptr::null_mut()),
            false => StatusRef(self.0.wrapping_add(index)),
        }
    }

    /// Sets the error of one.
    pub fn set_error(self, index: usize, code: i32) {
        self.at(index).change(|status| status.with_error(code));
    }
}

/// A text that the call reads.
#[derive(Debug, Clone, Copy)]
pub struct Text(*const c_char);

impl Text {
    /// Returns the text at an address.
    ///
    /// # Safety
    /// It is null, or ends with a zero byte.
    #[must_use]
    pub const unsafe fn new(text: *const c_char) -> Self {
        Self(text)
    }

    /// Returns what it says.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is none.
    pub fn get(self) -> Result<String> {
        if self.0.is_null() {
            return Err(Error::new(Class::Arg, "a string is null"));
        }
        // SAFETY: the promise of this value's maker.
        let text = unsafe { CStr::from_ptr(self.0) };
        Ok(text.to_string_lossy().into_owned())
    }
}

/// The memory of a text that the call returns.
#[derive(Debug, Clone, Copy)]
pub struct TextOut(*mut c_char);

impl TextOut {
    /// Returns the memory at an address.
    ///
    /// # Safety
    /// It is null, or as long as the standard says for what is returned there.
    #[must_use]
    pub const unsafe fn new(text: *mut c_char) -> Self {
        Self(text)
    }

    /// Sets it to as much of `text` as `size` bytes hold, with a zero byte at the end. Returns the length without that.
    pub fn set(self, text: &str, size: usize) -> i32 {
        let bytes = text.as_bytes();
        let length = bytes.len().min(size.saturating_sub(1));
        if !self.0.is_null() && size > 0 {
            // SAFETY: the promise of this value's maker; `size` is what the standard says, and one byte is left for the zero.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr().cast(), self.0, length);
                self.0.add(length).write(0);
            }
        }
        length as i32
    }
}

/// A pointer that is kept or given back, and not looked behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Pointer(pub *mut c_void);

// SAFETY: nobody looks behind it here.
unsafe impl Send for Pointer {}
// SAFETY: as above.
unsafe impl Sync for Pointer {}

impl Pointer {
    /// Returns the pointer as one.
    ///
    /// # Safety
    /// None: nothing is done by it.
    #[must_use]
    pub const unsafe fn new(pointer: *mut c_void) -> Self {
        Self(pointer)
    }
}

/// Calls a user's function of an operation: `into[i] = left[i] op into[i]`, for elements that lie `extent` bytes apart.
pub(crate) fn call_operation(
    callback: Callback,
    left: In,
    into: Out,
    count: usize,
    extent: i64,
    datatype: Datatype,
) {
    // The standard lets the function write to its second argument alone; the first is not const for it.
    let (mut left, mut into) = (left.0.cast::<c_void>().cast_mut(), into.0.cast::<c_void>());
    let mut rest = count;
    while rest > 0 {
        // In parts where an int does not hold the number.
        let now = match callback {
            Callback::Int(_) => rest.min(i32::MAX as usize),
            Callback::Wide(_) => rest,
        };
        let mut datatype = datatype;
        // SAFETY: the program has promised that the function is one of an operation; the callers have as many elements at both
        // addresses, to themselves.
        confined("a reduction", || unsafe {
            match callback {
                Callback::Int(function) => {
                    let mut length = now as i32;
                    function(left, into, &raw mut length, &raw mut datatype);
                }
                Callback::Wide(function) => {
                    let mut length = now as i64;
                    function(left, into, &raw mut length, &raw mut datatype);
                }
            }
        });
        rest -= now;
        let bytes = (now as isize).wrapping_mul(extent as isize);
        left = left.wrapping_byte_offset(bytes);
        into = into.wrapping_byte_offset(bytes);
    }
}
