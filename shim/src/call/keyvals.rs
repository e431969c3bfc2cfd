//! Keys of attributes, and the attributes that have them (MPI-5.0, section 7.7).
//!
//! `MPI_Keyval_create`, `MPI_Keyval_free`, `MPI_Attr_put`, `MPI_Attr_get` and `MPI_Attr_delete` are older names of the calls for
//! communicators.

use crate::abi::{Comm, Datatype, Win};
use crate::call::on_comm;
use crate::call::windows::on_kept_win;
use crate::error::Result;
use crate::functions::{CommCopy, CommDelete, Functions, TypeCopy, TypeDelete, WinCopy, WinDelete};
use crate::object::attributes::{Attributes, invalid, key as keys};
use crate::process::Process;
use crate::raw::{Pointer, Ref};

/// Keys for communicators.
const COMM: Functions = Functions::Comm(None, None);
/// Keys for datatypes.
const TYPE: Functions = Functions::Type(None, None);
/// Keys for windows.
const WIN: Functions = Functions::Win(None, None);

/// Runs the body of a call on the attributes of a communicator.
fn of_comm(process: &Process, comm: Comm, body: impl FnOnce(&Attributes) -> Result) -> Result {
    on_comm(process, comm, |comm| body(comm.attributes()))
}

/// Runs the body of a call on the attributes of a datatype.
fn of_type(
    process: &Process,
    datatype: Datatype,
    body: impl FnOnce(&Attributes) -> Result,
) -> Result {
    body(process.types.get(datatype)?.attributes())
}

/// Runs the body of a call on the attributes of a window.
fn of_win(process: &Process, win: Win, body: impl FnOnce(&Attributes) -> Result) -> Result {
    on_kept_win(process, win, |window| body(window.attributes()))
}

/// Makes the calls for a kind of objects: `kind of functions(its types), name in MPI: keys that are like it, the calls, by body`.
macro_rules! calls {
    ($($Kind:ident($Copy:ty, $Delete:ty, $Handle:ty), $Name:literal:
        $LIKE:ident, $create:ident $free:ident $set:ident $delete:ident by $on:ident;)*) => {$(
        #[doc = concat!("`MPI_", $Name, "_create_keyval`.")]
        pub fn $create(
            process: &Process,
            copy: Option<$Copy>,
            delete: Option<$Delete>,
            key: Ref<i32>,
            extra: Pointer,
        ) -> Result {
            key.set(process.keys.enter(Functions::$Kind(copy, delete), extra)?);
            Ok(())
        }

        #[doc = concat!("`MPI_", $Name, "_free_keyval`. Attributes that have the key stay.")]
        pub fn $free(process: &Process, key: Ref<i32>) -> Result {
            process.keys.free(key.get()?, &$LIKE)?;
            key.set(keys::INVALID);
            Ok(())
        }

        #[doc = concat!("`MPI_", $Name, "_set_attr`.")]
        pub fn $set(process: &Process, of: $Handle, key: i32, value: Pointer) -> Result {
            $on(process, of, |attributes| {
                let key = process.keys.to_set(key, &$LIKE)?;
                attributes.set(of.0, key, value)
            })
        }

        #[doc = concat!("`MPI_", $Name, "_delete_attr`.")]
        pub fn $delete(process: &Process, of: $Handle, key: i32) -> Result {
            $on(process, of, |attributes| {
                let found = process.keys.get(key, &$LIKE)?;
                match attributes.delete(of.0, &found)? {
                    true => Ok(()),
                    false => Err(invalid(key)),
                }
            })
        }
    )*};
}

calls! {
    Comm(CommCopy, CommDelete, Comm), "Comm":
        COMM, comm_create_keyval comm_free_keyval comm_set_attr comm_delete_attr by of_comm;
    Type(TypeCopy, TypeDelete, Datatype), "Type":
        TYPE, type_create_keyval type_free_keyval type_set_attr type_delete_attr by of_type;
    Win(WinCopy, WinDelete, Win), "Win":
        WIN, win_create_keyval win_free_keyval win_set_attr win_delete_attr by of_win;
}

fn found(found: Option<Pointer>, value: Ref<Pointer>, flag: Ref<i32>) {
    flag.set(i32::from(found.is_some()));
    if let Some(found) = found {
        value.set(found);
    }
}

/// `MPI_Comm_get_attr`.
pub fn comm_get_attr(
    process: &Process,
    comm: Comm,
    key: i32,
    value: Ref<Pointer>,
    flag: Ref<i32>,
) -> Result {
    of_comm(process, comm, |attributes| {
        let known = match key {
            keys::TAG_UB..=keys::UNIVERSE_SIZE => {
                let predefined = process.predefined_attribute(key);
                predefined.map(|value| Pointer(value.cast_mut().cast()))
            }
            _ => attributes.get(&process.keys.get(key, &COMM)?),
        };
        found(known, value, flag);
        Ok(())
    })
}

/// `MPI_Type_get_attr`.
pub fn type_get_attr(
    process: &Process,
    datatype: Datatype,
    key: i32,
    value: Ref<Pointer>,
    flag: Ref<i32>,
) -> Result {
    of_type(process, datatype, |attributes| {
        let key = process.keys.get(key, &TYPE)?;
        found(attributes.get(&key), value, flag);
        Ok(())
    })
}

/// `MPI_Win_get_attr`.
pub fn win_get_attr(
    process: &Process,
    win: Win,
    key: i32,
    value: Ref<Pointer>,
    flag: Ref<i32>,
) -> Result {
    on_kept_win(process, win, |window| {
        let known = match window.predefined_attribute(key) {
            None => window.attributes().get(&process.keys.get(key, &WIN)?),
            predefined => predefined,
        };
        found(known, value, flag);
        Ok(())
    })
}
