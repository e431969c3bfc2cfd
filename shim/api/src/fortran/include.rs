//! Writes `mpif.h`, and the constants of the modules.

use std::fmt::Write as _;

use super::declare::Interface;
use crate::{Api, Constant};

/// A constant as Fortran has it.
#[derive(Debug)]
pub(crate) enum Value {
    /// An INTEGER.
    Int(i64),
    /// An INTEGER of the kind that its name says.
    Kind(&'static str, i64),
    /// The integer of a handle.
    Handle(String, u64),
}

/// Returns the constants that Fortran has: those of the ABI that are numbers or handles, and its own.
pub(crate) fn constants(api: &Api) -> Vec<(String, Value)> {
    let mut all: Vec<(String, Value)> = OWN
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::Int(*value)))
        .collect();
    let entries = api.sections().iter().flat_map(|section| &section.entries);
    for entry in entries {
        match entry {
            Constant::Int(name, _) if name.starts_with("T_") || name.starts_with("F_") => {}
            // A text of Fortran has no null at its end.
            Constant::Int(name, value) if name.starts_with("MAX_") => {
                all.push((name.clone(), Value::Int(value - 1)));
            }
            Constant::Int(name, value) => all.push((name.clone(), Value::Int(*value))),
            Constant::Typed(of, name, value) if of == "Offset" => {
                let value = Value::Kind("MPI_OFFSET_KIND", value.cast_signed());
                all.push((name.clone(), value));
            }
            Constant::Typed(of, name, value) if !of.contains(['*', '_']) => {
                all.push((name.clone(), Value::Handle(of.clone(), *value)));
            }
            Constant::Alias(name, other) => {
                let same = all.iter().find(|(known, _)| known == other);
                if let Some((_, Value::Handle(of, value))) = same {
                    let value = Value::Handle(of.clone(), *value);
                    all.push((name.clone(), value));
                }
            }
            _ => {}
        }
    }
    all
}

/// Writes the constants of a module, without handles' types where handles are integers.
pub(crate) fn declared(api: &Api, interface: Interface) -> String {
    let mut out = String::new();
    for (name, value) in constants(api) {
        let _ = match (value, interface) {
            (Value::Int(value), _) => {
                writeln!(out, "  INTEGER, PARAMETER :: MPI_{name} = {value}")
            }
            (Value::Kind(kind, value), _) => writeln!(
                out,
                "  INTEGER(KIND={kind}), PARAMETER :: MPI_{name} = {value}_{kind}"
            ),
            (Value::Handle(_, value), Interface::Mpi) => {
                writeln!(out, "  INTEGER, PARAMETER :: MPI_{name} = {value}")
            }
            (Value::Handle(of, value), Interface::Mpi2008) => writeln!(
                out,
                "  TYPE(MPI_{of}), PARAMETER :: MPI_{name} = MPI_{of}({value})"
            ),
        };
    }
    for (support, value) in supports(interface) {
        let _ = writeln!(out, "  LOGICAL, PARAMETER :: MPI_{support} = {value}");
    }
    out
}

/// What the binding does of what it may do without.
fn supports(interface: Interface) -> [(&'static str, &'static str); 2] {
    let value = match interface {
        Interface::Mpi => ".FALSE.",
        Interface::Mpi2008 => ".TRUE.",
    };
    [
        ("SUBARRAYS_SUPPORTED", value),
        ("ASYNC_PROTECTS_NONBLOCKING", value),
    ]
}

/// Declares the constants that stand for addresses: variables in a common block of the library.
pub(crate) fn addresses(interface: Option<Interface>) -> String {
    let mut out = String::new();
    let (indent, colons) = match interface {
        Some(_) => ("  ", " ::"),
        None => ("      ", ""),
    };
    for (name, [of, bounds], [of_2008, bounds_2008]) in ADDRESSES {
        let (of, bounds) = match interface {
            Some(Interface::Mpi2008) => (of_2008, bounds_2008),
            _ => (of, bounds),
        };
        let _ = writeln!(out, "{indent}{of}{colons} MPI_{name}{bounds}");
    }
    if interface.is_some() {
        // What MPI_Buffer_detach returns is compared with its C_LOC.
        let _ = writeln!(out, "{indent}TARGET :: MPI_BUFFER_AUTOMATIC");
    }
    let _ = writeln!(out, "{indent}CHARACTER*1{colons} tagwire_mpi_rest(6)");
    for (name, ..) in ADDRESSES {
        let _ = writeln!(out, "{indent}COMMON /tagwire_mpi_addresses/ MPI_{name}");
    }
    let _ = writeln!(
        out,
        "{indent}COMMON /tagwire_mpi_addresses/ tagwire_mpi_rest"
    );
    out
}

/// Writes the file.
pub(crate) fn write(api: &Api) -> String {
    let mut out = HEAD.to_owned();
    for (name, value) in constants(api) {
        let (of, value) = match value {
            Value::Int(value) => ("INTEGER".to_owned(), value),
            Value::Kind(kind, value) => (format!("INTEGER(KIND={kind})"), value),
            Value::Handle(_, value) => ("INTEGER".to_owned(), value.cast_signed()),
        };
        let _ = writeln!(
            out,
            "      {of} MPI_{name}\n      PARAMETER (MPI_{name}={value})"
        );
    }
    for (support, value) in supports(Interface::Mpi) {
        let _ = writeln!(
            out,
            "      LOGICAL MPI_{support}\n      PARAMETER (MPI_{support}={value})"
        );
    }
    out.push_str(&addresses(None));
    for name in FUNCTIONS {
        let _ = writeln!(out, "      EXTERNAL MPI_{name}");
    }
    out.push_str(TAIL);
    out
}

/// What Fortran alone has. Kinds come first: the types of others need them.
const OWN: &[(&str, i64)] = &[
    ("ADDRESS_KIND", 8),
    ("COUNT_KIND", 8),
    ("OFFSET_KIND", 8),
    ("INTEGER_KIND", 4),
    ("STATUS_SIZE", 8),
    ("SOURCE", 1),
    ("TAG", 2),
    ("ERROR", 3),
];

/// The constants that stand for addresses, in the order of the common block, with their types and bounds: in mpif.h and the module mpi,
/// and in mpi_f08.
const ADDRESSES: &[(&str, [&str; 2], [&str; 2])] = &[
    (
        "STATUS_IGNORE",
        ["INTEGER", "(MPI_STATUS_SIZE)"],
        ["TYPE(MPI_Status)", ""],
    ),
    (
        "STATUSES_IGNORE",
        ["INTEGER", "(MPI_STATUS_SIZE,1)"],
        ["TYPE(MPI_Status)", "(1)"],
    ),
    ("BOTTOM", ["INTEGER", ""], ["INTEGER", ""]),
    ("IN_PLACE", ["INTEGER", ""], ["INTEGER", ""]),
    ("BUFFER_AUTOMATIC", ["INTEGER", ""], ["INTEGER", ""]),
    ("ERRCODES_IGNORE", ["INTEGER", "(1)"], ["INTEGER", "(1)"]),
    ("UNWEIGHTED", ["INTEGER", "(1)"], ["INTEGER", "(1)"]),
    ("WEIGHTS_EMPTY", ["INTEGER", "(1)"], ["INTEGER", "(1)"]),
    ("ARGV_NULL", ["CHARACTER*1", "(1)"], ["CHARACTER*1", "(1)"]),
    (
        "ARGVS_NULL",
        ["CHARACTER*1", "(1,1)"],
        ["CHARACTER*1", "(1,1)"],
    ),
];

/// The predefined functions of callers.
pub(crate) const FUNCTIONS: &[&str] = &[
    "NULL_COPY_FN",
    "NULL_DELETE_FN",
    "DUP_FN",
    "COMM_NULL_COPY_FN",
    "COMM_NULL_DELETE_FN",
    "COMM_DUP_FN",
    "TYPE_NULL_COPY_FN",
    "TYPE_NULL_DELETE_FN",
    "TYPE_DUP_FN",
    "WIN_NULL_COPY_FN",
    "WIN_NULL_DELETE_FN",
    "WIN_DUP_FN",
    "CONVERSION_FN_NULL",
];

const HEAD: &str = "\
!     Tagwire's mpif.h: MPI 5.0 for Fortran 77. Fixed and free form.
!     Written by shim/api from its tables.
!
";

/// The clock has 8 bytes also in programs that are compiled with other reals (`-fdefault-real-8` makes `DOUBLE PRECISION` 16).
const TAIL: &str = "      REAL(KIND=8) MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK
      EXTERNAL MPI_WTIME, MPI_WTICK, PMPI_WTIME, PMPI_WTICK
      INTEGER(KIND=MPI_ADDRESS_KIND) MPI_AINT_ADD, MPI_AINT_DIFF
      INTEGER(KIND=MPI_ADDRESS_KIND) PMPI_AINT_ADD, PMPI_AINT_DIFF
      EXTERNAL MPI_AINT_ADD, MPI_AINT_DIFF
      EXTERNAL PMPI_AINT_ADD, PMPI_AINT_DIFF
";
