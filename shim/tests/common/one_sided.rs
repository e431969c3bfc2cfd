//! Calls of one-sided communication as the library's entries make them: the short form first, then, where that does nothing, the handler.

use tagwire_shim::abi::{Datatype, Op, Win};
use tagwire_shim::call::windows::{accumulates, synchronization, transfers};
use tagwire_shim::raw::{Elements, In, Out, Place};
use tagwire_shim::{Process, Result};

/// Declares a call: the module of its handler, its short form, and what both are given behind the process.
macro_rules! calls {
    ($($module:ident::$name:ident, $short:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            #[allow(clippy::too_many_arguments, reason = "those of the standard")]
            pub fn $name(process: &Process, $($argument: $kind),*) -> Result {
                match $module::$short(process, $($argument),*) {
                    Some(()) => Ok(()),
                    None => $module::$name(process, $($argument),*),
                }
            }
        )*
    };
}

calls! {
    transfers::put, try_put(origin: Elements<In>, place: Place, win: Win);
    transfers::get, try_get(origin: Elements<Out>, place: Place, win: Win);
    accumulates::accumulate, try_accumulate(origin: Elements<In>, place: Place, op: Op, win: Win);
    accumulates::get_accumulate, try_get_accumulate(origin: Elements<In>, result: Elements<Out>, place: Place, op: Op, win: Win);
    accumulates::fetch_and_op, try_fetch_and_op(origin: In, result: Out, datatype: Datatype, rank: i32, displacement: i64, op: Op, win: Win);
    accumulates::compare_and_swap, try_compare_and_swap(origin: In, compare: In, result: Out, datatype: Datatype, rank: i32, displacement: i64, win: Win);
    synchronization::win_flush, try_win_flush(rank: i32, win: Win);
    synchronization::win_flush_local, try_win_flush_local(rank: i32, win: Win);
}
