//! Words that note which cache line each access touches.
//!
//! An engine over them does what it always does, and the lines that an operation touches can be counted without counters
//! of the processor. Where an array begins in a line is up to the allocator. What an engine keeps outside of its storage,
//! on the stack or in its own struct, is seen only where it says so ([`Cells::touch`]).

use std::cell::{Cell, RefCell};
use std::fmt::Debug;

use super::{Cells, Word};

/// The kind of these words.
#[derive(Debug)]
pub enum Counting {}

impl Cells for Counting {
    type Word = Counted<u32>;
    type Wide = Counted<u64>;

    /// Notes each line that the memory lies on.
    fn touch<T: ?Sized>(memory: &T) {
        let first = std::ptr::from_ref(memory).cast::<()>().addr();
        let last = first + size_of_val(memory).max(1) - 1;
        for line in first / LINE..=last / LINE {
            note_line(line);
        }
    }
}

/// A word whose accesses are noted; as large as a plain one, so that entries lie as they always do.
#[derive(Debug)]
#[repr(transparent)]
pub struct Counted<T: Copy>(Cell<T>);

impl<T: Copy + Debug + Send> Word<T> for Counted<T> {
    fn with(value: T) -> Self {
        Self(Cell::new(value))
    }

    fn load(&self) -> T {
        note(self);
        self.0.get()
    }

    fn store(&self, value: T) {
        note(self);
        self.0.set(value);
    }
}

thread_local! {
    /// The lines that were touched, in order, without repetitions in a row. A word has no room for whose log it writes, so it
    /// is the thread's.
    static LOG: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn note<T>(word: &T) {
    note_line(std::ptr::from_ref(word).addr() / LINE);
}

fn note_line(line: usize) {
    LOG.with_borrow_mut(|log| {
        if log.last() != Some(&line) {
            log.push(line);
        }
    });
}

/// Hands over the lines that this thread's engines have touched since the last call.
pub fn take_log(into: &mut Vec<usize>) {
    into.clear();
    LOG.with_borrow_mut(|log| std::mem::swap(log, into));
}

/// Bytes of a cache line.
pub const LINE: usize = 64;
