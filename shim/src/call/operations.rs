//! Making operations of reductions (MPI-5.0, section 6.9.5).

use crate::abi::Op;
use crate::callbacks::Reduction;
use crate::error::{Class, Error, Result};
use crate::object::operation::Callback;
use crate::process::Process;
use crate::raw::Ref;

/// `MPI_Op_create`, for counts of both widths.
pub fn op_create(process: &Process, function: Reduction, commutes: i32, op: Ref<Op>) -> Result {
    let callback = match function {
        Reduction::Int(function) => function.map(Callback::Int),
        Reduction::Big(function) => function.map(Callback::Wide),
    };
    let callback = callback.ok_or_else(|| Error::new(Class::Arg, "the function is null"))?;
    op.set(process.operations.enter(callback, commutes != 0)?);
    Ok(())
}

/// `MPI_Op_free`.
pub fn op_free(process: &Process, op: Ref<Op>) -> Result {
    process.operations.free(op.get()?)?;
    op.set(Op::NULL);
    Ok(())
}

/// `MPI_Op_commutative`.
pub fn op_commutative(process: &Process, op: Op, commutes: Ref<i32>) -> Result {
    commutes.set(i32::from(process.operations.commutes(op)?));
    Ok(())
}
