//! Changes of values where they lie: by instructions, and by the kernels of reductions (MPI-5.0, section 12.3.4).
//!
//! A value of 1, 2, 4 or 8 bytes without padding that lies at a multiple of its size is changed by one instruction, or by a loop of
//! compare-and-swap around the kernel of the operation for one value. Both are atomic among themselves, whatever the type.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use tagwire_layout::{Basic, Layout, Operation};

use crate::abi::Op;
use crate::error::{Class, Error, Result};
use crate::object::datatype::Word;
use crate::raw::{In, Out};

/// An operation on the values of a type.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) operation: Operation,
    pub(crate) layout: Layout,
    pub(crate) basic: Basic,
    step: Step,
}

/// How one value is changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    Read,
    Write,
    Add,
    And,
    Or,
    Xor,
    /// By the kernel of the operation.
    Combine,
}

/// So many values are changed by instructions at most: more are changed faster by a kernel, under a lock.
pub(crate) const FEW: usize = 16;

/// Handles of predefined operations are from here on.
const FIRST_OPERATION: usize = 0x20;

/// How the operation with a handle changes a value: one that is no integer, and one that is.
static STEPS: [[Option<Step>; 32]; 2] = {
    let mut steps = [[None; 32]; 2];
    let mut kind = 0;
    while kind < 2 {
        steps[kind][0x3d - FIRST_OPERATION] = Some(Step::Read);
        steps[kind][0x3c - FIRST_OPERATION] = Some(Step::Write);
        kind += 1;
    }
    steps[1][0x21 - FIRST_OPERATION] = Some(Step::Add);
    steps[1][0x28 - FIRST_OPERATION] = Some(Step::And);
    steps[1][0x29 - FIRST_OPERATION] = Some(Step::Or);
    steps[1][0x2a - FIRST_OPERATION] = Some(Step::Xor);
    steps
};

impl Step {
    /// Returns how an operation that one instruction does changes a value of a type; `None` of others, those that are not defined
    /// among them.
    #[inline]
    pub(crate) fn direct(operation: &Operation, basic: Basic) -> Option<Self> {
        Some(match operation {
            Operation::NoOp => Self::Read,
            Operation::Replace => Self::Write,
            Operation::Sum if is_integer(basic) => Self::Add,
            Operation::BitAnd if is_integer(basic) => Self::And,
            Operation::BitOr if is_integer(basic) => Self::Or,
            Operation::BitXor if is_integer(basic) => Self::Xor,
            _ => return None,
        })
    }

    /// Changes a value of so many bytes by the operand at `origin`. `old` gets what it was. `combine` is called for what no
    /// instruction does.
    // The size is looked at once for all that is done with it.
    #[inline(always)]
    fn change(
        self,
        (at, size): (Out, usize),
        origin: In,
        old: Option<Out>,
        combine: impl Fn(&mut [u8], &[u8]),
    ) {
        macro_rules! on {
            ($Atomic:ty, $word:ty) => {{
                let address = at.read().address().cast_mut().cast::<$word>();
                // SAFETY: the program has promised that the value may be written; it is aligned, which was checked, and all others
                // that change it meanwhile do so atomically, or the program has not kept its promise.
                let cell = unsafe { <$Atomic>::from_ptr(address) };
                // SAFETY: the program has promised that the value may be read. That of `MPI_NO_OP` is not.
                let operand = || unsafe { origin.address().cast::<$word>().read_unaligned() };
                let was = match self {
                    Self::Read => cell.load(SeqCst),
                    Self::Write => cell.swap(operand(), SeqCst),
                    Self::Add => cell.fetch_add(operand(), SeqCst),
                    Self::And => cell.fetch_and(operand(), SeqCst),
                    Self::Or => cell.fetch_or(operand(), SeqCst),
                    Self::Xor => cell.fetch_xor(operand(), SeqCst),
                    Self::Combine => {
                        let right = operand().to_ne_bytes();
                        let mut was = cell.load(SeqCst);
                        loop {
                            let mut into = was.to_ne_bytes();
                            combine(&mut into, &right);
                            let new = <$word>::from_ne_bytes(into);
                            match cell.compare_exchange_weak(was, new, SeqCst, SeqCst) {
                                Ok(_) => break was,
                                Err(found) => was = found,
                            }
                        }
                    }
                };
                if let Some(old) = old {
                    let old = old.read().address().cast_mut().cast::<$word>();
                    // SAFETY: the program has promised that the result may be written.
                    unsafe { old.write_unaligned(was) };
                }
            }};
        }
        match size {
            1 => on!(AtomicU8, u8),
            2 => on!(AtomicU16, u16),
            4 => on!(AtomicU32, u32),
            _ => on!(AtomicU64, u64),
        }
    }

    /// Returns how the operation with a handle changes a value, which one instruction does; `None` of others.
    #[inline(always)]
    pub(crate) fn of(op: Op, word: Word) -> Option<Self> {
        let steps = &STEPS[usize::from(word.is_integer())];
        *steps.get(op.0.wrapping_sub(FIRST_OPERATION))?
    }

    /// Changes a value of a word's size, by an instruction.
    ///
    /// # Panics
    /// Where it is not at a multiple of its size.
    #[inline(always)]
    pub(crate) fn apply(self, word: Word, at: Out, origin: In, old: Option<Out>) {
        assert!(is_aligned(word, at), "a value at a word's place");
        self.change((at, word.size()), origin, old, |_, _| {
            debug_assert!(false, "one that an instruction does");
        });
    }
}

impl Change {
    /// Returns an operation on values of a type.
    ///
    /// # Errors
    /// `MPI_ERR_OP` where it is not defined for them.
    pub(crate) fn new(operation: Operation, basic: Basic) -> Result<Self> {
        // The standard has no arithmetic of MPI_CHAR; other libraries have, and programs use it.
        let like = match basic {
            Basic::Char => Basic::I8,
            _ => basic,
        };
        let layout = Layout::of(like);
        operation.check(&layout)?;
        let step = Step::direct(&operation, like).unwrap_or(Step::Combine);
        Ok(Self {
            operation,
            layout,
            basic,
            step,
        })
    }

    /// Returns whether it takes an operand.
    pub(crate) const fn reads(&self) -> bool {
        !matches!(self.operation, Operation::NoOp)
    }

    /// Returns whether it writes its operand.
    pub(crate) const fn replaces(&self) -> bool {
        matches!(self.operation, Operation::Replace)
    }

    /// Returns whether values at an address are changed by instructions.
    #[inline]
    pub(crate) fn has_instructions(&self, at: Out) -> bool {
        word(self.basic).is_some_and(|word| is_aligned(word, at))
    }

    /// Changes `count` values at an address by instructions. `origin` has as many, and `old` gets what they were.
    ///
    /// # Panics
    /// Where the type [has none](Self::has_instructions) there.
    #[inline]
    pub(crate) fn apply(&self, at: Out, origin: In, old: Option<Out>, count: usize) {
        assert!(self.has_instructions(at), "values of a word's size");
        let size = self.basic.size();
        for index in 0..count {
            let offset = (index * size) as i64;
            let (at, origin) = (at.moved(offset), origin.moved(offset));
            let old = old.map(|old| old.moved(offset));
            self.step.change((at, size), origin, old, |into, right| {
                self.combine(into, right);
            });
        }
    }

    /// Combines values that lie as an array: `into[i] = into[i] op right[i]`.
    fn combine(&self, into: &mut [u8], right: &[u8]) {
        let combined = self.operation.combine_right(&self.layout, into, right);
        debug_assert!(combined.is_ok(), "checked when it was made: {combined:?}");
    }

    /// Changes values at an address that lie as an array, of so many bytes with their padding. Nobody else does so meanwhile.
    /// `origin` has as many, and is other memory.
    pub(crate) fn combine_at(&self, at: Out, origin: In, bytes: usize) {
        // SAFETY: the promises of both makers, and the caller's: nobody else changes the values, and the two are disjoint.
        let (into, right) = unsafe { (at.bytes(0, bytes), origin.bytes(0, bytes)) };
        self.combine(into, right);
    }
}

/// Returns what instructions do with values of a type; `None` where there are none for it.
pub(crate) fn word(basic: Basic) -> Option<Word> {
    let size = basic.size();
    let is_word = size == basic.extent() && matches!(size, 1 | 2 | 4 | 8);
    is_word.then(|| Word::new(size, is_integer(basic), is_compared(basic)))
}

/// Returns whether a value of a word's size is at a multiple of its size.
#[inline(always)]
pub(crate) fn is_aligned(word: Word, at: Out) -> bool {
    at.read().address().addr() & (word.size() - 1) == 0
}

/// Compares so many bytes at an address, which nobody else accesses meanwhile, and writes others where they are equal. Returns what they
/// were in `old`.
pub(crate) fn swap_alone(bytes: usize, at: Out, compare: In, new: In, old: Out) {
    let is_equal = at.read().to_vec(bytes) == compare.to_vec(bytes);
    old.copy(at.read(), bytes);
    if is_equal {
        at.copy(new, bytes);
    }
}

/// Compares a value at an address, and writes another where they are equal. Returns what it was in `old`.
///
/// # Panics
/// Where it is not at a multiple of its size.
#[inline(always)]
pub(crate) fn compare_and_swap(word: Word, at: Out, compare: In, new: In, old: Out) {
    assert!(is_aligned(word, at), "a value at a word's place");
    macro_rules! on {
        ($Atomic:ty, $word:ty) => {{
            let address = at.read().address().cast_mut().cast::<$word>();
            let load = |from: In| {
                // SAFETY: the program has promised that both values may be read.
                unsafe { from.address().cast::<$word>().read_unaligned() }
            };
            // SAFETY: as for changes.
            let cell = unsafe { <$Atomic>::from_ptr(address) };
            let swapped = cell.compare_exchange(load(compare), load(new), SeqCst, SeqCst);
            let was = swapped.unwrap_or_else(|found| found);
            let old = old.read().address().cast_mut().cast::<$word>();
            // SAFETY: the program has promised that the result may be written.
            unsafe { old.write_unaligned(was) };
        }};
    }
    match word.size() {
        1 => on!(AtomicU8, u8),
        2 => on!(AtomicU16, u16),
        4 => on!(AtomicU32, u32),
        _ => on!(AtomicU64, u64),
    }
}

const fn is_integer(basic: Basic) -> bool {
    use Basic::{I8, I16, I32, I64, Long, U8, U16, U32, U64, UnsignedLong};
    matches!(
        basic,
        I8 | I16 | I32 | I64 | Long | U8 | U16 | U32 | U64 | UnsignedLong
    )
}

/// Returns whether values of a type are compared (MPI-5.0, section 12.3.4): integers, logicals and bytes.
#[inline]
pub(crate) const fn is_compared(basic: Basic) -> bool {
    use Basic::{Bool, Byte, Char, I128, Logical8, Logical16, Logical32, Logical64, Logical128};
    is_integer(basic)
        || matches!(
            basic,
            Bool | Byte | Char | I128 | Logical8 | Logical16 | Logical32 | Logical64 | Logical128
        )
}

/// Checks that values of a type are compared.
///
/// # Errors
/// `MPI_ERR_TYPE` where they are not.
pub(crate) fn check_compared(basic: Basic) -> Result {
    match is_compared(basic) {
        true => Ok(()),
        false => {
            let text = format!("values of the type {} are not compared", basic.name());
            Err(Error::new(Class::Type, text))
        }
    }
}
