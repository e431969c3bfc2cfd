//! The binary interface, as programs and the bindings of other languages ask for it (MPI-5.0, section 20.4).

use crate::abi::Info;
use crate::call::communicators::SHARED_MEMORY;
use crate::error::{Class, Error, Result};
use crate::library::Library;
use crate::object::info::Entries;
use crate::object::named::predefined;
use crate::process::Process;
use crate::raw::{In, Out, Ref};

/// The bytes of a default `LOGICAL`.
const LOGICAL: i32 = 4;

/// Datatypes of Fortran, with the keys that tell their sizes.
const SIZES: [(&str, usize); 4] = [
    ("mpi_logical_size", 0x218),
    ("mpi_integer_size", 0x219),
    ("mpi_real_size", 0x21a),
    ("mpi_double_precision_size", 0x21c),
];

/// Those that a library need not have, with the keys that tell whether it has them.
const SUPPORTED: [(&str, usize); 19] = [
    ("mpi_logical1_supported", 0x2c0),
    ("mpi_logical2_supported", 0x2c8),
    ("mpi_logical4_supported", 0x2d0),
    ("mpi_logical8_supported", 0x2d8),
    ("mpi_logical16_supported", 0x2e0),
    ("mpi_integer1_supported", 0x2c1),
    ("mpi_integer2_supported", 0x2c9),
    ("mpi_integer4_supported", 0x2d1),
    ("mpi_integer8_supported", 0x2d9),
    ("mpi_integer16_supported", 0x2e1),
    ("mpi_real2_supported", 0x2ca),
    ("mpi_real4_supported", 0x2d2),
    ("mpi_real8_supported", 0x2da),
    ("mpi_real16_supported", 0x2e2),
    ("mpi_complex4_supported", 0x2d3),
    ("mpi_complex8_supported", 0x2db),
    ("mpi_complex16_supported", 0x2e3),
    ("mpi_complex32_supported", 0x2eb),
    ("mpi_double_complex_supported", 0x21d),
];

/// `MPI_Abi_get_info`.
pub fn abi_get_info(library: &Library, info: Ref<Info>) -> Result {
    let mut entries = Entries::default();
    for key in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
        entries.set(key, &size_of::<i64>().to_string())?;
    }
    info.set(library.objects().infos.enter(entries)?);
    Ok(())
}

/// Returns what the library says of Fortran's datatypes.
fn fortran() -> Result<Entries> {
    let mut entries = Entries::default();
    for (key, number) in SIZES {
        let size = predefined(number).map_or(0, |(basic, _)| basic.size());
        entries.set(key, &size.to_string())?;
    }
    for (key, number) in SUPPORTED {
        let is_there = predefined(number).is_some();
        entries.set(key, if is_there { "true" } else { "false" })?;
    }
    Ok(entries)
}

/// `MPI_Abi_get_fortran_info`.
pub fn abi_get_fortran_info(library: &Library, info: Ref<Info>) -> Result {
    info.set(library.objects().infos.enter(fortran()?)?);
    Ok(())
}

/// `MPI_Abi_set_fortran_info`. The library has one size for each datatype: others are refused.
pub fn abi_set_fortran_info(library: &Library, info: Info) -> Result {
    let own = fortran()?;
    library.objects().infos.read(info, |given| {
        let keys = SIZES.iter().chain(&SUPPORTED).map(|(key, _)| *key);
        let differs = |key: &&str| {
            let wanted = given.get(key);
            // What is supported need not be used.
            wanted.is_some() && wanted != own.get(key) && wanted != Some("false")
        };
        let mut keys = keys;
        match keys.find(differs) {
            None => Ok(()),
            Some(key) => {
                let text = format!("this library has another value of '{key}'");
                Err(Error::new(Class::Abi, text))
            }
        }
    })
}

fn check_logical(size: i32) -> Result {
    match size {
        LOGICAL => Ok(()),
        _ => {
            let text = format!("a LOGICAL has {LOGICAL} bytes, not {size}");
            Err(Error::new(Class::Abi, text))
        }
    }
}

/// Refuses what no kind of `LOGICAL` has.
fn check_kind(size: i32) -> Result {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(()),
        _ => {
            let text = format!("no LOGICAL has {size} bytes");
            Err(Error::new(Class::Arg, text))
        }
    }
}

/// `MPI_Abi_get_fortran_booleans`. Those of a size that nobody has set are not known, which is no error.
pub fn abi_get_fortran_booleans(
    library: &Library,
    size: i32,
    true_value: Out,
    false_value: Out,
    is_set: Ref<i32>,
) -> Result {
    check_kind(size)?;
    let known = library.objects().booleans.get();
    let known = known.filter(|[yes, _]| yes.len() == size as usize);
    is_set.set(i32::from(known.is_some()));
    if let Some([yes, no]) = known {
        true_value.copy(In::over(&yes), yes.len());
        false_value.copy(In::over(&no), no.len());
    }
    Ok(())
}

/// `MPI_Abi_set_fortran_booleans`. They are set once.
pub fn abi_set_fortran_booleans(
    library: &Library,
    size: i32,
    true_value: Out,
    false_value: Out,
) -> Result {
    check_kind(size)?;
    check_logical(size)?;
    let bytes = size as usize;
    let given = [true_value, false_value].map(|value| value.read().to_vec(bytes));
    library.objects().booleans.set(given)
}

/// `MPI_Get_hw_resource_info`: the resources that `MPI_Comm_split_type` tells apart, in which the process stays.
pub fn get_hw_resource_info(process: &Process, info: Ref<Info>) -> Result {
    let mut entries = Entries::default();
    entries.set(SHARED_MEMORY, "true")?;
    info.set(process.early.infos.enter(entries)?);
    Ok(())
}
