//! Keys of attributes, and the attributes that have them (MPI-5.0, section 7.7).
//!
//! `MPI_Keyval_create`, `MPI_Keyval_free`, `MPI_Attr_put`, `MPI_Attr_get` and `MPI_Attr_delete` are older names of the calls for
//! communicators.

use crate::abi::{Comm, Datatype};
use crate::call::on_comm;
use crate::error::Result;
use crate::functions::{CommCopy, CommDelete, Functions, TypeCopy, TypeDelete};
use crate::object::attributes::{invalid, key as keys};
use crate::process::Process;
use crate::raw::{Pointer, Ref};

/// Keys for communicators.
const COMM: Functions = Functions::Comm(None, None);
/// Keys for datatypes.
const TYPE: Functions = Functions::Type(None, None);

fn free(process: &Process, key: Ref<i32>, like: &Functions) -> Result {
    process.keys.free(key.get()?, like)?;
    key.set(keys::INVALID);
    Ok(())
}

fn got(found: Option<Pointer>, value: Ref<Pointer>, flag: Ref<i32>) {
    flag.set(i32::from(found.is_some()));
    if let Some(found) = found {
        value.set(found);
    }
}

/// `MPI_Comm_create_keyval`.
pub fn comm_create_keyval(
    process: &Process,
    copy: Option<CommCopy>,
    delete: Option<CommDelete>,
    key: Ref<i32>,
    extra: Pointer,
) -> Result {
    key.set(process.keys.enter(Functions::Comm(copy, delete), extra)?);
    Ok(())
}

/// `MPI_Comm_free_keyval`. Attributes that have the key stay.
pub fn comm_free_keyval(process: &Process, key: Ref<i32>) -> Result {
    free(process, key, &COMM)
}

/// `MPI_Comm_set_attr`.
pub fn comm_set_attr(process: &Process, comm: Comm, key: i32, value: Pointer) -> Result {
    on_comm(process, comm, |held| {
        let key = process.keys.to_set(key, &COMM)?;
        held.attributes().set(comm.0, key, value)
    })
}

/// `MPI_Comm_get_attr`.
pub fn comm_get_attr(
    process: &Process,
    comm: Comm,
    key: i32,
    value: Ref<Pointer>,
    flag: Ref<i32>,
) -> Result {
    on_comm(process, comm, |held| {
        let found = match key {
            keys::TAG_UB..=keys::UNIVERSE_SIZE => {
                let predefined = process.predefined_attribute(key);
                predefined.map(|value| Pointer(value.cast_mut().cast()))
            }
            _ => held.attributes().get(&process.keys.get(key, &COMM)?),
        };
        got(found, value, flag);
        Ok(())
    })
}

/// `MPI_Comm_delete_attr`.
pub fn comm_delete_attr(process: &Process, comm: Comm, key: i32) -> Result {
    on_comm(process, comm, |held| {
        let found = process.keys.get(key, &COMM)?;
        match held.attributes().delete(comm.0, &found)? {
            true => Ok(()),
            false => Err(invalid(key)),
        }
    })
}

/// `MPI_Type_create_keyval`.
pub fn type_create_keyval(
    process: &Process,
    copy: Option<TypeCopy>,
    delete: Option<TypeDelete>,
    key: Ref<i32>,
    extra: Pointer,
) -> Result {
    key.set(process.keys.enter(Functions::Type(copy, delete), extra)?);
    Ok(())
}

/// `MPI_Type_free_keyval`. Attributes that have the key stay.
pub fn type_free_keyval(process: &Process, key: Ref<i32>) -> Result {
    free(process, key, &TYPE)
}

/// `MPI_Type_set_attr`.
pub fn type_set_attr(process: &Process, datatype: Datatype, key: i32, value: Pointer) -> Result {
    let one = process.types.get(datatype)?;
    let key = process.keys.to_set(key, &TYPE)?;
    one.attributes().set(datatype.0, key, value)
}

/// `MPI_Type_get_attr`.
pub fn type_get_attr(
    process: &Process,
    datatype: Datatype,
    key: i32,
    value: Ref<Pointer>,
    flag: Ref<i32>,
) -> Result {
    let one = process.types.get(datatype)?;
    let key = process.keys.get(key, &TYPE)?;
    got(one.attributes().get(&key), value, flag);
    Ok(())
}

/// `MPI_Type_delete_attr`.
pub fn type_delete_attr(process: &Process, datatype: Datatype, key: i32) -> Result {
    let one = process.types.get(datatype)?;
    let found = process.keys.get(key, &TYPE)?;
    match one.attributes().delete(datatype.0, &found)? {
        true => Ok(()),
        false => Err(invalid(key)),
    }
}
