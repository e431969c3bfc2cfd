//! Routines whose arguments differ between the languages in their own way. Their parameters are those of Fortran.
//!
//! # Safety
//!
//! All functions: the addresses are what the standard asks the caller for.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::abi::{Comm, Datatype, Errhandler, Info, Op, Request, Session, Win};
use crate::c::*;
use crate::callbacks::{self, Datarep, Generalized, Keyval};
use crate::handles::Handles;
use crate::raise::{On, fail, finish};
use crate::text::{In, Out};
use crate::{address, attributes, others};

/// Tells the library what LOGICAL is, where nobody has yet: the modules' build has tried it with the compiler. MPICH may be asked only
/// once it is initialized.
fn booleans() {
    let (mut yes, mut no, mut is_set) = (1_i32, 0_i32, 0_i32);
    let size = size_of::<i32>() as i32;
    let (mut old_yes, mut old_no) = (0_i32, 0_i32);
    // SAFETY: the values are of the size that is given.
    unsafe {
        PMPI_Abi_get_fortran_booleans(
            size,
            (&raw mut old_yes).cast(),
            (&raw mut old_no).cast(),
            &raw mut is_set,
        );
        if is_set == 0 {
            PMPI_Abi_set_fortran_booleans(size, (&raw mut yes).cast(), (&raw mut no).cast());
        }
    }
}

pub(crate) unsafe fn init(ierror: *mut i32) {
    // SAFETY: as for all here.
    unsafe { initialized(PMPI_Init(ptr::null_mut(), ptr::null_mut()), ierror) };
}

pub(crate) unsafe fn init_thread(required: *mut i32, provided: *mut i32, ierror: *mut i32) {
    // SAFETY: as for all here.
    unsafe {
        let code = PMPI_Init_thread(ptr::null_mut(), ptr::null_mut(), *required, provided);
        initialized(code, ierror);
    }
}

/// Returns from an initialization with its code.
unsafe fn initialized(code: i32, ierror: *mut i32) {
    if code == 0 {
        booleans();
    }
    // SAFETY: as for all here.
    unsafe { finish(ierror, code) };
}

pub(crate) unsafe fn info_create_env(info: *mut i32, ierror: *mut i32) {
    let mut new = Info::UNSET;
    // SAFETY: as for all here.
    unsafe {
        let code = PMPI_Info_create_env(0, ptr::null_mut(), &raw mut new);
        new.write(info);
        finish(ierror, code);
    }
}

macro_rules! detaches {
    ($($(#[$doc:meta])* $name:ident($($object:ident: $Object:ident)?) $Size:ty, $call:ident, $written:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) unsafe fn $name(
            $($object: *mut i32,)?
            buffer: *mut *mut c_void,
            size: *mut $Size,
            ierror: *mut i32,
        ) {
            let mut found: *mut c_void = ptr::null_mut();
            // SAFETY: as for all here.
            unsafe {
                let code = $call(
                    $($Object::of_fortran(*$object),)?
                    (&raw mut found).cast(),
                    size,
                );
                if $written && code == 0 {
                    *buffer = address::buffer_of_c(found);
                }
                finish(ierror, code);
            }
        }
    )*};
}

// In mpif.h and the module mpi the buffer's address is no variable for it: nothing is written.
detaches! {
    buffer_detach() i32, PMPI_Buffer_detach, false;
    buffer_detach_f08() i32, PMPI_Buffer_detach, true;
    buffer_detach_c_f08() i64, PMPI_Buffer_detach_c, true;
    comm_detach_buffer(comm: Comm) i32, PMPI_Comm_detach_buffer, false;
    comm_detach_buffer_f08(comm: Comm) i32, PMPI_Comm_detach_buffer, true;
    comm_detach_buffer_c_f08(comm: Comm) i64, PMPI_Comm_detach_buffer_c, true;
    session_detach_buffer(session: Session) i32, PMPI_Session_detach_buffer, false;
    session_detach_buffer_f08(session: Session) i32, PMPI_Session_detach_buffer, true;
    session_detach_buffer_c_f08(session: Session) i64, PMPI_Session_detach_buffer_c, true;
}

#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(crate) unsafe fn info_get(
    info: *mut i32,
    key: *mut u8,
    valuelen: *mut i32,
    value: *mut u8,
    flag: *mut i32,
    ierror: *mut i32,
    key_length: usize,
    value_length: usize,
) {
    // SAFETY: as for all here.
    unsafe {
        let key = In::trimmed(key, key_length);
        let mut found = Out::of(usize::try_from(*valuelen).unwrap_or(0));
        let code = PMPI_Info_get(
            Info::of_fortran(*info),
            key.pointer(),
            *valuelen,
            found.pointer(),
            flag,
        );
        if code == 0 && *flag != 0 {
            found.write(value, value_length);
        }
        finish(ierror, code);
    }
}

/// The length of a text of C, with its null, in the place of one of Fortran. No length asks for the length.
fn with_end(length: i32, room: usize) -> i32 {
    match length {
        ..=0 => length,
        _ => length.min(i32::try_from(room).unwrap_or(i32::MAX - 1)) + 1,
    }
}

#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(crate) unsafe fn info_get_string(
    info: *mut i32,
    key: *mut u8,
    buflen: *mut i32,
    value: *mut u8,
    flag: *mut i32,
    ierror: *mut i32,
    key_length: usize,
    value_length: usize,
) {
    // SAFETY: as for all here.
    unsafe {
        let key = In::trimmed(key, key_length);
        let asked = *buflen;
        let mut length = with_end(asked, value_length);
        let mut found = Out::of(usize::try_from(length).unwrap_or(0));
        let code = PMPI_Info_get_string(
            Info::of_fortran(*info),
            key.pointer(),
            &raw mut length,
            found.pointer(),
            flag,
        );
        if code == 0 && *flag != 0 {
            *buflen = length - 1;
            if asked > 0 {
                found.write(value, value_length);
            }
        }
        finish(ierror, code);
    }
}

pub(crate) unsafe fn session_get_nth_pset(
    session: *mut i32,
    info: *mut i32,
    n: *mut i32,
    pset_len: *mut i32,
    pset_name: *mut u8,
    ierror: *mut i32,
    pset_name_length: usize,
) {
    // SAFETY: as for all here.
    unsafe {
        let asked = *pset_len;
        let mut length = with_end(asked, pset_name_length);
        let mut found = Out::of(usize::try_from(length).unwrap_or(0));
        let code = PMPI_Session_get_nth_pset(
            Session::of_fortran(*session),
            Info::of_fortran(*info),
            *n,
            &raw mut length,
            found.pointer(),
        );
        if code == 0 {
            *pset_len = length - 1;
            if asked > 0 {
                found.write(pset_name, pset_name_length);
            }
        }
        finish(ierror, code);
    }
}

/// Takes arguments of a program: rows of an array, `step` rows apart, until a blank one.
unsafe fn arguments(rows: *const u8, length: usize, step: usize) -> Vec<In> {
    let mut all = Vec::new();
    if address::has_no_arguments(rows) {
        return all;
    }
    loop {
        // SAFETY: as for all here: a blank row ends them.
        let row = unsafe { In::new(rows.add(all.len() * step * length), length) };
        if row.is_blank() {
            return all;
        }
        all.push(row);
    }
}

/// The addresses of texts, with a null behind them.
fn addresses(texts: &[In]) -> Vec<*const c_char> {
    let texts = texts.iter().map(In::pointer);
    texts.chain([ptr::null()]).collect()
}

fn is_root(comm: Comm, root: i32) -> bool {
    let mut rank = 0;
    // SAFETY: the result may be written.
    unsafe { PMPI_Comm_rank(comm, &raw mut rank) == 0 && rank == root }
}

#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(crate) unsafe fn comm_spawn(
    command: *mut u8,
    argv: *mut u8,
    maxprocs: *mut i32,
    info: *mut i32,
    root: *mut i32,
    comm: *mut i32,
    intercomm: *mut i32,
    array_of_errcodes: *mut i32,
    ierror: *mut i32,
    command_length: usize,
    argv_length: usize,
) {
    // SAFETY: as for all here; what the root alone has is read there alone.
    unsafe {
        let of = Comm::of_fortran(*comm);
        let (mut name, mut rows, mut processes, mut hints) = (None, Vec::new(), 0, Info::UNSET);
        if is_root(of, *root) {
            name = Some(In::new(command, command_length));
            rows = arguments(argv, argv_length, 1);
            (processes, hints) = (*maxprocs, Info::of_fortran(*info));
        }
        let mut rows = addresses(&rows);
        let mut new = Comm::UNSET;
        let code = PMPI_Comm_spawn(
            name.as_ref().map_or(ptr::null(), In::pointer),
            rows.as_mut_ptr().cast(),
            processes,
            hints,
            *root,
            of,
            &raw mut new,
            address::codes(array_of_errcodes),
        );
        new.write(intercomm);
        finish(ierror, code);
    }
}

#[allow(clippy::too_many_arguments, reason = "the standard's")]
pub(crate) unsafe fn comm_spawn_multiple(
    count: *mut i32,
    array_of_commands: *mut u8,
    array_of_argv: *mut u8,
    array_of_maxprocs: *mut i32,
    array_of_info: *mut i32,
    root: *mut i32,
    comm: *mut i32,
    intercomm: *mut i32,
    array_of_errcodes: *mut i32,
    ierror: *mut i32,
    array_of_commands_length: usize,
    array_of_argv_length: usize,
) {
    // SAFETY: as for all here; what the root alone has is read there alone.
    unsafe {
        let of = Comm::of_fortran(*comm);
        let number = match is_root(of, *root) {
            true => usize::try_from(*count).unwrap_or(0),
            false => 0,
        };
        let names: Vec<_> = (0..number)
            .map(|at| {
                let length = array_of_commands_length;
                In::new(array_of_commands.add(at * length), length)
            })
            .collect();
        let has_none = address::has_no_arguments(array_of_argv);
        let rows: Vec<_> = (0..if has_none { 0 } else { number })
            .map(|at| {
                let length = array_of_argv_length;
                arguments(array_of_argv.add(at * length), length, number)
            })
            .collect();
        let mut names = addresses(&names);
        let mut rows: Vec<_> = rows.iter().map(|rows| addresses(rows)).collect();
        let mut tables: Vec<_> = rows.iter_mut().map(Vec::as_mut_ptr).collect();
        let mut infos = Handles::<Info>::read(array_of_info, number);
        let mut new = Comm::UNSET;
        let code = PMPI_Comm_spawn_multiple(
            number as i32,
            names.as_mut_ptr().cast(),
            match has_none {
                true => ptr::null_mut(),
                false => tables.as_mut_ptr().cast(),
            },
            array_of_maxprocs,
            infos.pointer(),
            *root,
            of,
            &raw mut new,
            address::codes(array_of_errcodes),
        );
        new.write(intercomm);
        finish(ierror, code);
    }
}

/// Operations and error handlers, whose functions are handed on.
macro_rules! creates {
    ($($name:ident($($flag:ident)?) $Handle:ident $call:ident;)*) => {$(
        pub(crate) unsafe fn $name(
            function: *mut c_void,
            $($flag: *mut i32,)?
            handle: *mut i32,
            ierror: *mut i32,
        ) {
            // SAFETY: as for all here.
            unsafe {
                if let Err(code) = callbacks::handed_on() {
                    return fail(On::None, code, ierror);
                }
                let mut new = $Handle::UNSET;
                let code = $call(function, $(*$flag,)? &raw mut new);
                new.write(handle);
                finish(ierror, code);
            }
        }
    )*};
}

creates! {
    op_create(commute) Op PMPI_Op_create;
    op_create_c_f08(commute) Op PMPI_Op_create_c;
    comm_create_errhandler() Errhandler PMPI_Comm_create_errhandler;
    win_create_errhandler() Errhandler PMPI_Win_create_errhandler;
    file_create_errhandler() Errhandler PMPI_File_create_errhandler;
    session_create_errhandler() Errhandler PMPI_Session_create_errhandler;
}

/// Attributes of the objects that have them.
macro_rules! attributes {
    ($($Handle:ident: $create:ident $make:ident, $set:ident $put:ident, $get:ident $take:ident;)*) => {$(
        pub(crate) unsafe fn $create(
            copy: *mut c_void,
            delete: *mut c_void,
            keyval: *mut i32,
            extra_state: *mut i64,
            ierror: *mut i32,
        ) {
            // SAFETY: as for all here; the functions are of the form that the library wants.
            unsafe {
                let state = *extra_state;
                let state = Box::leak(Box::new(Keyval { copy, delete, state, is_short: false }));
                let code = $make(
                    callbacks::copy::<$Handle> as *const () as *mut c_void,
                    callbacks::delete::<$Handle> as *const () as *mut c_void,
                    keyval,
                    ptr::from_mut(state).cast(),
                );
                finish(ierror, code);
            }
        }

        pub(crate) unsafe fn $set(
            handle: *mut i32,
            keyval: *mut i32,
            attribute_val: *mut i64,
            ierror: *mut i32,
        ) {
            // SAFETY: as for all here.
            unsafe {
                let value = attributes::of_integer(*attribute_val);
                let code = $put($Handle::of_fortran(*handle), *keyval, value);
                if code != 0 {
                    attributes::forget(value);
                }
                finish(ierror, code);
            }
        }

        pub(crate) unsafe fn $get(
            handle: *mut i32,
            keyval: *mut i32,
            attribute_val: *mut i64,
            flag: *mut i32,
            ierror: *mut i32,
        ) {
            let mut value: *mut c_void = ptr::null_mut();
            // SAFETY: as for all here.
            unsafe {
                let of = $Handle::of_fortran(*handle);
                let code = $take(of, *keyval, (&raw mut value).cast(), flag);
                if code == 0 && *flag != 0 {
                    *attribute_val = attributes::of_key(*keyval, value);
                }
                finish(ierror, code);
            }
        }
    )*};
}

attributes! {
    Comm: comm_create_keyval PMPI_Comm_create_keyval, comm_set_attr PMPI_Comm_set_attr, comm_get_attr PMPI_Comm_get_attr;
    Win: win_create_keyval PMPI_Win_create_keyval, win_set_attr PMPI_Win_set_attr, win_get_attr PMPI_Win_get_attr;
    Datatype: type_create_keyval PMPI_Type_create_keyval, type_set_attr PMPI_Type_set_attr, type_get_attr PMPI_Type_get_attr;
}

pub(crate) unsafe fn keyval_create(
    copy: *mut c_void,
    delete: *mut c_void,
    keyval: *mut i32,
    extra_state: *mut i32,
    ierror: *mut i32,
) {
    // SAFETY: as for all here; the functions are of the form that the library wants.
    unsafe {
        let state = i64::from(*extra_state);
        let state = Box::leak(Box::new(Keyval {
            copy,
            delete,
            state,
            is_short: true,
        }));
        let code = PMPI_Comm_create_keyval(
            callbacks::copy::<Comm> as *const () as *mut c_void,
            callbacks::delete::<Comm> as *const () as *mut c_void,
            keyval,
            ptr::from_mut(state).cast(),
        );
        finish(ierror, code);
    }
}

pub(crate) unsafe fn attr_put(
    comm: *mut i32,
    keyval: *mut i32,
    attribute_val: *mut i32,
    ierror: *mut i32,
) {
    // SAFETY: as for all here.
    let mut value = i64::from(unsafe { *attribute_val });
    // SAFETY: as for all here.
    unsafe { comm_set_attr(comm, keyval, &raw mut value, ierror) };
}

pub(crate) unsafe fn attr_get(
    comm: *mut i32,
    keyval: *mut i32,
    attribute_val: *mut i32,
    flag: *mut i32,
    ierror: *mut i32,
) {
    // SAFETY: as for all here.
    unsafe {
        let mut value = i64::from(*attribute_val);
        comm_get_attr(comm, keyval, &raw mut value, flag, ierror);
        // A longer one is cut: the routine has been deprecated since MPI-2 for that.
        *attribute_val = value as i32;
    }
}

pub(crate) unsafe fn grequest_start(
    query: *mut c_void,
    free: *mut c_void,
    cancel: *mut c_void,
    extra_state: *mut i64,
    request: *mut i32,
    ierror: *mut i32,
) {
    // SAFETY: as for all here; the functions are of the form that the library wants, and `free` takes the state.
    unsafe {
        let state = Box::into_raw(Box::new(Generalized {
            query,
            free,
            cancel,
            state: extra_state,
        }));
        let mut new = Request::UNSET;
        let code = PMPI_Grequest_start(
            callbacks::query as *const () as *mut c_void,
            callbacks::free as *const () as *mut c_void,
            callbacks::cancel as *const () as *mut c_void,
            state.cast(),
            &raw mut new,
        );
        if code != 0 {
            drop(Box::from_raw(state));
        }
        new.write(request);
        finish(ierror, code);
    }
}

macro_rules! registers {
    ($($name:ident $call:ident $read:ident $write:ident $null:path;)*) => {$(
        #[allow(clippy::too_many_arguments, reason = "the standard's")]
        pub(crate) unsafe fn $name(
            datarep: *mut u8,
            read: *mut c_void,
            write: *mut c_void,
            extent: *mut c_void,
            extra_state: *mut i64,
            ierror: *mut i32,
            datarep_length: usize,
        ) {
            let null = $null as *const () as *mut c_void;
            // No conversion is null in C.
            let unless_null = |function: *mut c_void, of: *const ()| match function == null {
                true => ptr::null_mut(),
                false => of.cast_mut().cast::<c_void>(),
            };
            // SAFETY: as for all here; the functions are of the form that the library wants.
            unsafe {
                let name = In::new(datarep, datarep_length);
                let state = *extra_state;
                let state = Box::leak(Box::new(Datarep { read, write, extent, state }));
                let code = $call(
                    name.pointer(),
                    unless_null(read, callbacks::$read as *const ()),
                    unless_null(write, callbacks::$write as *const ()),
                    callbacks::extent as *const () as *mut c_void,
                    ptr::from_mut(state).cast(),
                );
                finish(ierror, code);
            }
        }
    )*};
}

registers! {
    register_datarep PMPI_Register_datarep read write others::mpi_conversion_fn_null_;
    register_datarep_c_f08 PMPI_Register_datarep_c read_c write_c others::mpi_conversion_fn_null_c_;
}
