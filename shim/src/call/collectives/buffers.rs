//! The buffers of collectives, which operations are lent.
#![allow(unsafe_code)]

use super::data::Data;
use crate::error::Result;

/// The buffers of an operation.
pub(super) trait Buffers: Send + Sync + 'static {
    /// Their bytes, as the operation finds them.
    type Lent;

    /// Makes the buffers ready: packs data.
    fn pack(&self) -> Result;

    /// Unpacks the result.
    fn unpack(&self) -> Result;

    /// Returns the bytes.
    ///
    /// # Safety
    /// While they are used the program keeps its memory for the operation, nobody else uses the buffers, and these stay.
    unsafe fn lend(&self) -> Self::Lent;

    /// Runs an operation that is over when `operation` returns.
    fn with(&self, operation: impl FnOnce(Self::Lent) -> Result) -> Result {
        self.pack()?;
        // SAFETY: the operation ends before the call of the program does, and before the buffers go.
        operation(unsafe { self.lend() })?;
        self.unpack()
    }
}

/// What an operation reads, and what it writes.
#[derive(Debug)]
pub(super) struct Pair {
    /// None where what is read lies in the output.
    input: Option<Data>,
    output: Data,
    first: First,
    /// Whether the output is the program's result.
    has_result: bool,
}

/// What the output has when the operation begins.
#[derive(Debug, Clone, Copy)]
enum First {
    Nothing,
    /// What the program has there.
    Own,
    /// What the input has.
    Input,
}

impl Pair {
    /// Returns buffers of nothing.
    pub(super) const fn none() -> Self {
        Self::received(Data::none())
    }

    /// Returns a buffer that the operation writes.
    pub(super) const fn received(output: Data) -> Self {
        Self {
            input: None,
            output,
            first: First::Nothing,
            has_result: true,
        }
    }

    /// Returns a buffer that the operation reads and writes.
    pub(super) const fn in_place(output: Data) -> Self {
        Self::received(output).with_output()
    }

    /// Returns a buffer that the operation may write, and does not: it sends it.
    pub(super) const fn sent(data: Data) -> Self {
        let mut buffers = Self::in_place(data);
        buffers.has_result = false;
        buffers
    }

    /// Returns buffers that the operation reads, and writes.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where both are in the same memory.
    pub(super) fn new(input: Data, output: Data) -> Result<Self> {
        input.check_disjoint(&output)?;
        Ok(Self {
            input: Some(input),
            ..Self::received(output)
        })
    }

    /// The same, where no input is one that lies in the output.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn of(input: Option<Data>, output: Data) -> Result<Self> {
        match input {
            Some(input) => Self::new(input, output),
            None => Ok(Self::in_place(output)),
        }
    }

    /// Returns the same for an operation that reads the output too.
    pub(super) const fn with_output(mut self) -> Self {
        self.first = First::Own;
        self
    }

    /// Returns the same for an operation that reads its input in the output.
    pub(super) const fn over_input(mut self) -> Self {
        if matches!(self.first, First::Nothing) {
            self.first = First::Input;
        }
        self
    }
}

impl Buffers for Pair {
    type Lent = (Option<&'static [u8]>, &'static mut [u8]);

    fn pack(&self) -> Result {
        if let Some(input) = &self.input {
            input.pack()?;
            if let First::Input = self.first {
                self.output.place().copy(input.place().read(), input.len());
            }
        }
        match self.first {
            First::Own => self.output.pack(),
            First::Nothing | First::Input => Ok(()),
        }
    }

    fn unpack(&self) -> Result {
        match self.has_result {
            true => self.output.unpack(),
            false => Ok(()),
        }
    }

    unsafe fn lend(&self) -> Self::Lent {
        // SAFETY: the caller's promise.
        let input = self.input.as_ref().map(|input| unsafe { read(input) });
        // SAFETY: as above.
        (input, unsafe { written(&self.output) })
    }
}

/// What an operation with neighbours reads, and what it writes: a block for each edge.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) input: Vec<Data>,
    pub(super) output: Vec<Data>,
}

impl Buffers for Edges {
    type Lent = (Vec<&'static [u8]>, Vec<&'static mut [u8]>);

    fn pack(&self) -> Result {
        self.input.iter().try_for_each(Data::pack)
    }

    fn unpack(&self) -> Result {
        self.output.iter().try_for_each(Data::unpack)
    }

    unsafe fn lend(&self) -> Self::Lent {
        // SAFETY: the caller's promise.
        let input = self.input.iter().map(|data| unsafe { read(data) });
        // SAFETY: as above.
        let output = self.output.iter().map(|data| unsafe { written(data) });
        (input.collect(), output.collect())
    }
}

/// Returns the bytes of input.
///
/// # Safety
/// As [`Buffers::lend`].
unsafe fn read(data: &Data) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { data.place().read().bytes(0, data.len()) }
}

/// Returns the bytes of output.
///
/// # Safety
/// As [`Buffers::lend`].
unsafe fn written(data: &Data) -> &'static mut [u8] {
    // SAFETY: the caller's promise.
    unsafe { data.place().bytes(0, data.len()) }
}
