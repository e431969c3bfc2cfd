//! The operands of reductions: how values lie for an operation, and what it does with them (MPI-5.0, section 6.9).
//!
//! Values that lie as an array does are combined where they are. Others take part as packed data: for each call of the
//! program's function they are unpacked into memory of this crate, where they lie as their datatype says.
//!
//! ```text
//!     packed     | a b c | a b c |
//!                    |       |
//!     memory     ...a.bc....a.bc..     an extent apart, and as far from the address as the lower bound says
//! ```

use std::sync::Arc;

use tagwire_coll::Operator;
use tagwire_layout::{Basic, Layout, Operation, Packer, Program, Unpacker, UserOperation};

use super::data::Data;
use crate::abi::{Datatype, Op};
use crate::error::{Class, Error, Result};
use crate::functions::call_operation;
use crate::object::datatype::Hold;
use crate::object::operation::{Callback, Chosen};
use crate::process::Process;
use crate::raw::{In, Out, StagingBuffer};

/// How much memory the elements span that a function is called with at once, where one is not longer.
const PIECE: i64 = 64 * 1024;

/// A function of a program may ask for the alignment that its types have in C.
const ALIGNMENT: usize = 64;

/// What a reduction is done with.
pub(super) struct Operands {
    operation: Operation,
    layout: Layout,
    datatype: Datatype,
    is_packed: bool,
    /// How many bytes an element has. A layout has no elements without any: there it is not its extent.
    element: usize,
}

impl Operands {
    /// Returns the operands of an operation on a datatype.
    ///
    /// # Errors
    /// `MPI_ERR_OP` where there is none, or where it is not defined for the datatype. `MPI_ERR_TYPE`.
    pub(super) fn of(process: &Process, op: Op, datatype: Datatype) -> Result<Self> {
        let chosen = process.operations.get(op)?;
        let one = process.types.get(datatype)?;
        let program = one.program()?;
        let packed_bytes = usize::try_from(program.size()).unwrap_or(usize::MAX);
        let (operation, layout, is_packed) = match (chosen, program.layout()) {
            (Chosen::Predefined(operation), layout) => {
                let layout = layout.ok_or_else(undefined)?;
                // The standard has no arithmetic of MPI_CHAR; other libraries have, and programs use it.
                let layout = match layout.basic() {
                    Some(Basic::Char) => Layout::of(Basic::I8).contiguous(layout.extent())?,
                    _ => layout,
                };
                operation.check(&layout)?;
                (operation, layout, false)
            }
            (Chosen::Made(callback, commutes), layout) => {
                let layout = layout.or_else(|| array(program));
                let is_packed = layout.is_none();
                let function = Function {
                    callback,
                    datatype,
                    program: program.clone(),
                    _hold: process.types.hold(datatype)?,
                };
                let operation = match is_packed {
                    false => on_arrays(commutes, function),
                    true => on_packed(commutes, function),
                };
                let packed = || Layout::of(Basic::Byte).contiguous(packed_bytes.max(1));
                let layout = layout.map_or_else(packed, Ok)?;
                (operation, layout, is_packed)
            }
        };
        Ok(Self {
            element: match is_packed {
                true => packed_bytes,
                false => layout.extent(),
            },
            operation,
            layout,
            datatype,
            is_packed,
        })
    }

    /// Returns `count` elements at an address.
    ///
    /// # Errors
    /// `MPI_ERR_COUNT`; `MPI_ERR_BUFFER` where there can be none.
    pub(super) fn data(&self, process: &Process, address: Out, count: i64) -> Result<Data> {
        if self.is_packed {
            return Data::of(process, address.of(count, self.datatype));
        }
        Data::array(address, self.array_bytes(count)?)
    }

    /// Returns how many bytes `count` elements are that lie as an array does.
    fn array_bytes(&self, count: i64) -> Result<usize> {
        let elements = usize::try_from(count)
            .map_err(|_| Error::new(Class::Count, format!("the count is {count}")))?;
        let bytes = self.layout.extent().checked_mul(elements);
        bytes.ok_or_else(|| Error::new(Class::Count, "the data is longer than memory"))
    }

    /// Returns how many bytes an element has in such data.
    pub(super) const fn element(&self) -> usize {
        self.element
    }

    /// Combines data that is there: `into[i] = left[i] op into[i]`.
    pub(super) fn combine(&self, left: &[u8], into: &mut [u8]) -> Result {
        Ok(self.operation.combine(&self.layout, left, into)?)
    }

    pub(super) fn operator(self) -> Operator<'static> {
        Operator::owned(self.operation, self.layout)
    }
}

/// Returns the layout of elements of several basic types that lie without gaps, as an array does.
fn array(program: &Program) -> Option<Layout> {
    let block = program.contiguous(2)?;
    let size = usize::try_from(program.size()).ok()?;
    let is_array = size > 0 && block.offset == 0 && program.datatype().extent() == size as i64;
    is_array
        .then(|| Layout::of(Basic::Byte).contiguous(size).ok())
        .flatten()
}

/// A program's function, and what it is called for.
struct Function {
    callback: Callback,
    datatype: Datatype,
    program: Program,
    _hold: Option<Hold>,
}

impl Function {
    /// Calls it with `count` elements that lie `extent` bytes apart.
    fn call(&self, left: In, into: Out, count: usize, extent: i64) {
        call_operation(self.callback, left, into, count, extent, self.datatype);
    }
}

/// Returns the operation that calls a function with the values where they are.
fn on_arrays(commutes: bool, function: Function) -> Operation {
    let combine = move |layout: &Layout, left: &[u8], into: &mut [u8]| {
        let extent = layout.extent();
        let count = into.len() / extent.max(1);
        function.call(In::over(left), Out::over(into), count, extent as i64);
    };
    user(commutes, combine)
}

/// Returns the operation that unpacks the values, and calls a function with them.
fn on_packed(commutes: bool, function: Function) -> Operation {
    let combine = move |_: &Layout, left: &[u8], into: &mut [u8]| {
        let program = &function.program;
        let size = program.size() as usize;
        let (low, high) = reach(program, 1);
        let most = usize::try_from(PIECE / (high - low).max(1)).unwrap_or(1);
        let most = most.clamp(1, into.len() / size);
        let (low, high) = reach(program, most);
        let memory = [Unpacked::new(low, high), Unpacked::new(low, high)];
        let pieces = left.chunks(most * size).zip(into.chunks_mut(most * size));
        for (left, into) in pieces {
            let count = into.len() / size;
            let [from, to] = [&memory[0], &memory[1]].map(|one| one.address);
            unpack(program, count, left, from);
            unpack(program, count, into, to);
            let extent = program.datatype().extent();
            function.call(from.read(), to, count, extent);
            pack(program, count, to.read(), into);
        }
    };
    user(commutes, combine)
}

fn user(
    commutes: bool,
    combine: impl Fn(&Layout, &[u8], &mut [u8]) + Send + Sync + 'static,
) -> Operation {
    let operation = UserOperation::new("a user's", commutes, combine);
    Operation::User(Arc::new(operation))
}

/// Memory for elements, whose address may lie outside of it.
struct Unpacked {
    _memory: StagingBuffer,
    address: Out,
}

impl Unpacked {
    /// Returns memory for what lies between two displacements.
    fn new(low: i64, high: i64) -> Self {
        let bytes = usize::try_from(high - low).unwrap_or(usize::MAX);
        let memory = StagingBuffer::new(bytes.saturating_add(ALIGNMENT));
        let address = memory.address().moved(low.wrapping_neg());
        let gap = address.read().address().addr().wrapping_neg() % ALIGNMENT;
        Self {
            _memory: memory,
            address: address.moved(gap as i64),
        }
    }
}

/// Returns between which displacements so many elements lie: their data, and what their bounds say.
fn reach(program: &Program, count: usize) -> (i64, i64) {
    let (datatype, count) = (program.datatype(), count as i64);
    let last = datatype.extent().saturating_mul(count - 1);
    let data = (datatype.true_lower(), datatype.true_upper());
    let bounds = (datatype.lower(), datatype.upper());
    let ends = [data.0, data.1, bounds.0, bounds.1];
    let all = ends.map(|end| [end, end.saturating_add(last)]);
    let all = all.as_flattened();
    let (low, high) = (all.iter().min(), all.iter().max());
    (low.copied().unwrap_or(0), high.copied().unwrap_or(0))
}

/// What is said of a program that fits: that of all elements was looked at when the call began.
const FITS: &str = "the data of all elements fits 64 bits";

fn unpack(program: &Program, count: usize, packed: &[u8], to: Out) {
    let span = program.span(count as u64).expect(FITS);
    let unpacker = Unpacker::new(program, count as u64, to.target(span));
    unpacker.expect(FITS).unpack(packed);
}

fn pack(program: &Program, count: usize, from: In, packed: &mut [u8]) {
    let span = program.span(count as u64).expect(FITS);
    let packer = Packer::new(program, count as u64, from.source(span));
    packer.expect(FITS).pack(packed);
}

#[cold]
fn undefined() -> Error {
    let text =
        "a predefined operation is not defined for a datatype with gaps, or of several basic types";
    Error::new(Class::Op, text)
}
