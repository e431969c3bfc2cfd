//! Reductions (MPI-5.0, sections 6.9 to 6.11). One body serves the calls of a family, in one group and between two.

use std::borrow::Cow;

use tagwire_coll::operations::{Allreduce, Exscan, Reduce, ReduceScatter, Root, Scan};

use super::buffers::{Buffers, Pair};
use super::data::{Data, Side, too_many};
use super::fast;
use super::operands::Operands;
use super::run::Call;
use crate::abi::Op;
use crate::error::{Class, Error, Result};
use crate::process::Process;
use crate::raw::{Elements, In, Out};

/// What is combined, where the result goes, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reduction {
    pub(super) send: In,
    pub(super) recv: Elements<Out>,
    pub(super) op: Op,
}

impl Reduction {
    fn operands(&self, call: &Call<'_>) -> Result<Operands> {
        Operands::of(call.process, self.op, self.recv.datatype)
    }

    /// Returns both sides of the call.
    fn sides(&self) -> [Side; 2] {
        let send = self.send.of(self.recv.count, self.recv.datatype);
        [send.into(), self.recv.into()]
    }

    fn input(&self, call: &Call<'_>, operands: &Operands) -> Result<Data> {
        operands.data(call.process, self.send.into(), self.recv.count)
    }

    fn output(&self, call: &Call<'_>, operands: &Operands) -> Result<Data> {
        operands.data(call.process, self.recv.address, self.recv.count)
    }

    /// Returns both buffers, of which the result lies over the input where that is in place.
    fn buffers(&self, call: &Call<'_>, operands: &Operands) -> Result<Pair> {
        let (output, [send, _]) = (self.output(call, operands)?, self.sides());
        let input = call.input(send, |_| self.input(call, operands))?;
        Pair::of(input, output)
    }
}

pub(super) fn reduce(call: &Call<'_>, of: Reduction, root: i32) -> Result {
    let root = call.root(root)?;
    if root == Root::Beside {
        return call.run(Pair::none(), |_| Reduce::beside());
    }
    let [send, recv] = of.sides();
    if let Some(done) = fast::reduce(call, send, recv, of.op, root) {
        return done;
    }
    let (operands, is_root) = (of.operands(call)?, call.is_root(root));
    let buffers = match root {
        Root::Here => Pair::received(of.output(call, &operands)?),
        _ if is_root => of.buffers(call, &operands)?,
        // The others' receive buffers mean nothing, and may be null.
        _ => Pair::new(of.input(call, &operands)?, Data::none())?,
    };
    let operator = operands.operator();
    call.run(buffers, move |(input, out)| Reduce {
        operator: operator.clone(),
        input,
        out: is_root.then_some(out),
        root,
    })
}

pub(super) fn allreduce(call: &Call<'_>, of: Reduction) -> Result {
    let [send, recv] = of.sides();
    if let Some(done) = fast::allreduce(call, send, recv, of.op) {
        return done;
    }
    let operands = of.operands(call)?;
    let buffers = of.buffers(call, &operands)?;
    let operator = operands.operator();
    call.run(buffers, move |(input, data)| Allreduce {
        operator: operator.clone(),
        input,
        data,
    })
}

pub(super) fn scan(call: &Call<'_>, of: Reduction) -> Result {
    call.comm.check_intra()?;
    let operands = of.operands(call)?;
    let buffers = of.buffers(call, &operands)?.over_input();
    let operator = operands.operator();
    call.run(buffers, move |(_, data)| Scan {
        operator: operator.clone(),
        data,
    })
}

pub(super) fn exscan(call: &Call<'_>, of: Reduction) -> Result {
    call.comm.check_intra()?;
    let operands = of.operands(call)?;
    let buffers = match call.comm.rank() == 0 && !of.send.is_in_place() {
        false => of.buffers(call, &operands)?,
        // The first member's receive buffer means nothing: it stays as it is.
        true => {
            let input = of.input(call, &operands)?;
            if !of.recv.address.is_constant() {
                // Where it is the same memory at all members, all refuse it.
                input.check_disjoint(&of.output(call, &operands)?)?;
            }
            let unused = Data::unused(input.len());
            Pair::new(input, unused)?
        }
    };
    let operator = operands.operator();
    call.run(buffers.over_input(), move |(_, data)| Exscan {
        operator: operator.clone(),
        data,
    })
}

/// Combines the blocks that follow each other, and gives each member of a group that of its number; `count` returns how many
/// elements a block has, instead of `of`.
pub(super) fn reduce_scatter(
    call: &Call<'_>,
    of: Reduction,
    count: impl Fn(usize) -> i64,
) -> Result {
    let counts: Vec<_> = (0..call.comm.size() as usize).map(count).collect();
    if let Some(count) = counts.iter().find(|count| **count < 0) {
        return Err(Error::new(Class::Count, format!("the count is {count}")));
    }
    let mut all = counts.iter();
    let total = all.try_fold(0_i64, |sum, count| sum.checked_add(*count));
    let (operands, total) = (of.operands(call)?, total.ok_or_else(too_many)?);
    let own = counts[call.comm.rank() as usize];
    let [send, _] = of.sides();
    let input = call.input(send, |_| operands.data(call.process, of.send.into(), total))?;
    // In place the result comes at the start of what is combined.
    let len = if input.is_some() { own } else { total };
    let output = operands.data(call.process, of.recv.address, len)?;
    let buffers = Pair::of(input, output)?;
    let element = operands.element();
    let lengths = counts.iter().map(|count| *count as usize * element);
    let lengths: Vec<usize> = lengths.collect();
    let operator = operands.operator();
    call.run(buffers, move |(input, out)| ReduceScatter {
        operator: operator.clone(),
        input,
        lengths: Cow::Owned(lengths.clone()),
        out,
    })
}

/// `MPI_Reduce_local`.
pub fn reduce_local(process: &Process, send: In, recv: Elements<Out>, op: Op) -> Result {
    let operands = Operands::of(process, op, recv.datatype)?;
    let into = operands.data(process, recv.address, recv.count)?;
    let left = operands.data(process, send.into(), recv.count)?;
    let buffers = Pair::new(left, into)?.with_output();
    buffers.with(|(left, into)| operands.combine(left.unwrap_or_default(), into))
}
