//! Ranks that are threads of the test, and its buffers as a C program gives them.
#![allow(dead_code)]
#![allow(unsafe_code)]

pub mod files;
pub mod one_sided;
pub mod sides;
pub mod sites;
pub mod windows;

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_shim::abi::{Comm, Datatype, Errhandler, Op, Status};
use tagwire_shim::call::communicators::comm_set_errhandler;
use tagwire_shim::error::Class;
use tagwire_shim::functions::{CommCopy, CommErrorFunction};
use tagwire_shim::raw::{
    Array, CountOut, Counts, Elements, In, List, Narrow, Out, Pointer, Ref, StatusRef, Statuses,
    Text, TextOut,
};
use tagwire_shim::{Library, Process};

pub const INT: Datatype = Datatype(0x209);
pub const DOUBLE: Datatype = Datatype(0x214);
pub const BYTE: Datatype = Datatype(0x247);
pub const DOUBLE_INT: Datatype = Datatype(0x229);
pub const SUM: Op = Op(0x21);
pub const WORLD: Comm = Comm::WORLD;

/// Runs `body` on each of `size` ranks over shared memory. Errors are returned.
pub fn ranks<T: Send>(size: u32, body: impl Fn(&Arc<Process>, i32) -> T + Sync) -> Vec<T> {
    ranks_with(size, &[("wait", "yield")], body)
}

/// The same with settings.
pub fn ranks_with<T: Send>(
    size: u32,
    settings: &[(&str, &str)],
    body: impl Fn(&Arc<Process>, i32) -> T + Sync,
) -> Vec<T> {
    let job = LocalJob::new(size).unwrap();
    std::thread::scope(|scope| {
        let start = |number: u32| {
            let (member, body) = (job.member(Rank::new(number)), &body);
            scope.spawn(move || {
                let process = Process::open(Box::new(member), settings).unwrap();
                let process = Arc::new(process);
                comm_set_errhandler(&process, WORLD, Errhandler::RETURN).unwrap();
                comm_set_errhandler(&process, Comm::SELF, Errhandler::RETURN).unwrap();
                let end = body(&process, number as i32);
                process.finalize().unwrap();
                end
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(Result::unwrap).collect()
    })
}

/// Returns the library of a program with a process.
pub fn library(process: &Arc<Process>) -> Library {
    Library::of(process)
}

/// Returns that of a program that has not initialized MPI.
pub fn early_library() -> Library {
    extern "C" fn stay() {}
    Library::new(stay)
}

/// Addresses of elements of the type `int`.
pub trait Ints: Sized {
    fn ints(self, count: i64) -> Elements<Self>;
}

impl Ints for In {
    fn ints(self, count: i64) -> Elements<Self> {
        self.of(count, INT)
    }
}

impl Ints for Out {
    fn ints(self, count: i64) -> Elements<Self> {
        self.of(count, INT)
    }
}

/// Data to be sent. It has to be there until the operation is complete.
pub fn data<T>(values: &[T]) -> In {
    // SAFETY: tests keep what they send until it was sent.
    unsafe { In::new(values.as_ptr().cast()) }
}

/// Room for what is received.
pub fn room<T>(values: &mut [T]) -> Out {
    // SAFETY: as above.
    unsafe { Out::new(values.as_mut_ptr().cast()) }
}

/// The same that the test looks at between the rounds of an operation.
pub fn cells<T>(values: &[Cell<T>]) -> Out {
    // SAFETY: as above.
    unsafe { Out::new(values.as_ptr().cast_mut().cast()) }
}

/// No room.
pub fn nowhere() -> Out {
    // SAFETY: an address that is not used.
    unsafe { Out::new(std::ptr::null_mut()) }
}

/// `MPI_IN_PLACE`, to be read.
pub fn in_place() -> In {
    // SAFETY: an address that is not used.
    unsafe { In::new(std::ptr::without_provenance(1)) }
}

/// A result.
pub fn result<T: Copy>(value: &mut T) -> Ref<T> {
    // SAFETY: a variable of the test.
    unsafe { Ref::new(value) }
}

pub fn array<T: Copy>(values: &mut [T]) -> Array<T> {
    // SAFETY: as above.
    unsafe { Array::new(values.as_mut_ptr()) }
}

pub fn list<T: Copy>(values: &[T]) -> List<T> {
    // SAFETY: as above.
    unsafe { List::new(values.as_ptr()) }
}

/// A count that a call returns.
pub fn count(value: &mut i32) -> CountOut {
    // SAFETY: as above.
    unsafe { CountOut::int(value, Narrow::Undefined) }
}

/// A constant that stands for an array.
pub fn named(constant: usize) -> List<i32> {
    // SAFETY: an address that is not used.
    unsafe { List::new(std::ptr::without_provenance(constant)) }
}

/// `MPI_UNWEIGHTED`, for what is returned.
pub fn unweighted() -> Array<i32> {
    // SAFETY: as above.
    unsafe { Array::new(std::ptr::without_provenance_mut(10)) }
}

pub fn counts(values: &[i32]) -> Counts {
    Counts::Int(values.as_ptr())
}

/// An array of `MPI_Count` or of `MPI_Aint`.
pub fn wide(values: &[i64]) -> Counts {
    Counts::Big(values.as_ptr())
}

pub fn status(value: &mut Status) -> StatusRef {
    // SAFETY: as above.
    unsafe { StatusRef::new(value) }
}

pub fn statuses(values: &mut [Status]) -> Statuses {
    // SAFETY: as above.
    unsafe { Statuses::new(values.as_mut_ptr()) }
}

/// `MPI_STATUS_IGNORE`.
pub fn ignore() -> StatusRef {
    // SAFETY: there is none.
    unsafe { StatusRef::new(std::ptr::null_mut()) }
}

/// `MPI_STATUSES_IGNORE`.
pub fn ignore_all() -> Statuses {
    // SAFETY: there are none.
    unsafe { Statuses::new(std::ptr::null_mut()) }
}

/// A text that a call reads.
pub fn text(value: &CStr) -> Text {
    // SAFETY: a constant of the test.
    unsafe { Text::new(value.as_ptr()) }
}

/// Room for a text.
pub fn text_out(room: &mut [u8]) -> TextOut {
    // SAFETY: a variable of the test.
    unsafe { TextOut::new(room.as_mut_ptr().cast()) }
}

/// Returns the text in `room`.
pub fn said(room: &[u8]) -> &str {
    CStr::from_bytes_until_nul(room).unwrap().to_str().unwrap()
}

/// A number as the value of an attribute.
pub fn number(value: usize) -> Pointer {
    Pointer(std::ptr::without_provenance_mut(value))
}

/// A value of the test as what a program gives with a function.
pub fn extra<T>(value: &T) -> Pointer {
    Pointer((&raw const *value).cast_mut().cast())
}

/// What a function of the program was given.
pub fn given<'a, T>(pointer: *mut c_void) -> &'a T {
    // SAFETY: tests give what outlives their functions, of the type that those ask for.
    unsafe { &*pointer.cast() }
}

/// A result of a function of the program.
pub fn out<T: Copy>(pointer: *mut c_void) -> Ref<T> {
    // SAFETY: it points to a result.
    unsafe { Ref::new(pointer.cast()) }
}

/// A function of an error handler.
pub fn error_function(function: extern "C-unwind" fn(*mut Comm, *mut i32)) -> CommErrorFunction {
    // SAFETY: in the calling conventions of the platforms that the tests run on, a variadic call with no further arguments is one
    // of a function without them.
    unsafe {
        std::mem::transmute::<extern "C-unwind" fn(*mut Comm, *mut i32), CommErrorFunction>(
            function,
        )
    }
}

/// `MPI_COMM_DUP_FN`.
pub fn duplicate_function() -> CommCopy {
    // SAFETY: a function pointer that is not null. Nobody calls it.
    unsafe { std::mem::transmute::<usize, CommCopy>(1) }
}

/// Returns the class of an error.
pub fn code(result: tagwire_shim::Result) -> Class {
    Class::of(result.unwrap_err().code()).unwrap()
}

/// A count that is returned.
pub fn count_out(value: &mut i32) -> CountOut {
    count(value)
}

/// `MPI_BUFFER_AUTOMATIC`.
pub fn automatic() -> Out {
    // SAFETY: an address that is not used.
    unsafe { Out::new(std::ptr::without_provenance_mut(2)) }
}

/// Memory that MPI has given.
pub fn out_at(start: Pointer) -> Out {
    // SAFETY: tests use as much of it as they asked for.
    unsafe { Out::new(start.0) }
}

/// Data at a number.
pub fn at(address: usize) -> In {
    // SAFETY: tests use it with offsets that lead to what they have.
    unsafe { In::new(std::ptr::without_provenance(address)) }
}

/// Waits for all ranks.
pub fn barrier(process: &Arc<Process>) {
    tagwire_shim::call::collectives::barrier(process, WORLD).unwrap();
}
