//! Operations of reductions by handle.

use std::ffi::c_void;

use tagwire_layout::Operation;

use crate::abi::{Datatype, Op};
use crate::error::Result;
use crate::object::table::{Kind, Table};

/// A user's function, with its number of elements in an `int`: `MPI_User_function`.
pub(crate) type Function =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i32, *mut Datatype);

/// The same with a wider number: `MPI_User_function_c`.
pub(crate) type WideFunction =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut i64, *mut Datatype);

/// What a user's operation calls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Callback {
    Int(Function),
    Wide(WideFunction),
}

/// An operation that a program has made.
#[derive(Debug)]
pub(crate) struct Made {
    callback: Callback,
    commutes: bool,
}

/// What a handle stands for.
#[derive(Debug)]
pub(crate) enum Chosen {
    Predefined(Operation),
    /// What it calls, and whether the order of ranks makes no difference.
    Made(Callback, bool),
}

/// The operations of a process.
#[derive(Debug)]
pub(crate) struct Operations(Table<Made>);

impl Operations {
    pub(crate) fn new() -> Self {
        Self(Table::new(Kind::Op))
    }

    pub(crate) fn enter(&self, callback: Callback, commutes: bool) -> Result<Op> {
        let made = self.0.insert_with(|_| Made { callback, commutes });
        made.map(Op)
    }

    pub(crate) fn free(&self, op: Op) -> Result {
        self.0.find(op.0)?;
        self.0.remove(op.0);
        Ok(())
    }

    pub(crate) fn commutes(&self, op: Op) -> Result<bool> {
        if let Some(predefined) = predefined(op) {
            return Ok(predefined.is_commutative());
        }
        Ok(self.0.find(op.0)?.commutes)
    }

    /// Returns an operation.
    ///
    /// # Errors
    /// `MPI_ERR_OP` where there is none.
    pub(crate) fn get(&self, op: Op) -> Result<Chosen> {
        if let Some(predefined) = predefined(op) {
            return Ok(Chosen::Predefined(predefined));
        }
        let made = self.0.find(op.0)?;
        Ok(Chosen::Made(made.callback, made.commutes))
    }
}

/// Returns the predefined operation with a handle.
pub(crate) fn predefined(op: Op) -> Option<Operation> {
    Some(match op.0 {
        0x21 => Operation::Sum,
        0x22 => Operation::Min,
        0x23 => Operation::Max,
        0x24 => Operation::Product,
        0x28 => Operation::BitAnd,
        0x29 => Operation::BitOr,
        0x2a => Operation::BitXor,
        0x30 => Operation::LogicalAnd,
        0x31 => Operation::LogicalOr,
        0x32 => Operation::LogicalXor,
        0x38 => Operation::MinLoc,
        0x39 => Operation::MaxLoc,
        0x3c => Operation::Replace,
        0x3d => Operation::NoOp,
        _ => return None,
    })
}
