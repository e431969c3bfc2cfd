//! Writes `mpi.h`.

use std::fmt::Write as _;

use crate::function::{Flag, Function};
use crate::kind::Twin;
use crate::{Api, Constant, Section};

/// Writes the header whole.
pub(crate) fn write(api: &Api) -> String {
    let mut out = HEAD.to_owned();
    for section in api.sections() {
        heading(&mut out, &section.title);
        for entry in &section.entries {
            constant(&mut out, section, entry);
        }
    }
    for (prefix, what) in [
        ("MPI_", ""),
        (
            "PMPI_",
            "The same for tools that define the names above themselves: ",
        ),
    ] {
        for chapter in api.chapters() {
            heading(&mut out, &format!("{what}{}", chapter.title));
            for function in &chapter.functions {
                prototypes(&mut out, function, prefix);
            }
        }
    }
    out.push_str(REMOVED);
    fortran(&mut out, api);
    out.push_str(TAIL);
    out
}

/// The conversions between handles of C and of Fortran, as functions of the header: the ABI has no names for them.
fn fortran(out: &mut String, api: &Api) {
    out.push_str(FORTRAN_HEAD);
    for name in api.handles() {
        // Functions say Type where handles are of MPI_Datatype.
        let stem = if name == "Datatype" { "Type" } else { name };
        let short = stem.to_lowercase();
        let _ = write!(
            out,
            "\nMPI_INLINE MPI_Fint MPI_{stem}_c2f(MPI_{name} {short}) {{ return PMPI_{stem}_toint({short}); }}\n\
             MPI_INLINE MPI_{name} MPI_{stem}_f2c(MPI_Fint {short}) {{ return PMPI_{stem}_fromint({short}); }}\n\
             #define MPI_{stem}_c2f MPI_{stem}_c2f\n\
             #define MPI_{stem}_f2c MPI_{stem}_f2c\n\
             #define PMPI_{stem}_c2f MPI_{stem}_c2f\n\
             #define PMPI_{stem}_f2c MPI_{stem}_f2c\n"
        );
    }
    out.push_str(FORTRAN_STATUSES);
    for name in STATUSES {
        let _ = writeln!(
            out,
            "#define MPI_Status_{name} MPI_Status_{name}\n#define PMPI_Status_{name} MPI_Status_{name}"
        );
    }
    out.push_str(FORTRAN_TAIL);
}

fn heading(out: &mut String, title: &str) {
    let _ = write!(out, "\n/* {title} */\n\n");
}

fn prototypes(out: &mut String, function: &Function, prefix: &str) {
    for twin in function.twins() {
        let mark = match function.has(Flag::Deprecated) {
            true => " /* deprecated */",
            false => "",
        };
        let prototype = wrapped(&function.prototype(*twin, prefix));
        let _ = writeln!(out, "{prototype};{mark}");
    }
}

fn constant(out: &mut String, section: &Section, entry: &Constant) {
    match entry {
        Constant::Int(name, value) if *value < 0 => define(out, name, &format!("({value})")),
        Constant::Int(name, value) => define(out, name, &value.to_string()),
        Constant::Typed(of, ..) if is_enum(section, of) => {}
        Constant::Typed(of, name, value) => define(out, name, &cast(of, *value)),
        Constant::Alias(name, other) => define(out, name, &format!("MPI_{other}")),
        Constant::Handle(name) => {
            let _ = writeln!(out, "typedef struct MPI_ABI_{name} *MPI_{name}; {CONFLICT}");
        }
        Constant::Tool(name, tag) => {
            let _ = writeln!(out, "typedef struct MPI_{tag} *MPI_{name};");
        }
        Constant::Enum(name) => enumeration(out, section, name),
        Constant::Function(function) => {
            let result = match &function.result {
                Some(kind) => kind.c(Twin::Int, ""),
                None => "void".to_owned(),
            };
            let (name, parameters) = (&function.name, function.c_parameters(Twin::Int));
            let text = wrapped(&format!("typedef {result} (MPI_{name})({parameters})"));
            let _ = writeln!(out, "{text};");
        }
        Constant::Same(name, other) => {
            let _ = writeln!(out, "typedef MPI_{other} MPI_{name};");
        }
    }
}

fn define(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "#define MPI_{name:<34} {value}");
}

/// A value of another type than int: handles in hexadecimal notation, as the standard has them.
fn cast(of: &str, value: u64) -> String {
    let stars = of.len() - of.trim_end_matches('*').len();
    let (name, stars) = of.split_at(of.len() - stars);
    let name = match name {
        "void" | "int" | "char" => name.to_owned(),
        _ => format!("MPI_{name}"),
    };
    let space = if stars.is_empty() { "" } else { " " };
    let value = match (of, stars) {
        ("Offset", _) => value.cast_signed().to_string(),
        (_, "") if value > 9 => format!("{value:#x}"),
        _ => value.to_string(),
    };
    format!("(({name}{space}{stars}){value})")
}

fn is_enum(section: &Section, name: &str) -> bool {
    let mut entries = section.entries.iter();
    entries.any(|entry| matches!(entry, Constant::Enum(known) if known == name))
}

fn enumeration(out: &mut String, section: &Section, name: &str) {
    let values = section.entries.iter().filter_map(|entry| match entry {
        Constant::Typed(of, constant, value) if of == name => {
            Some(format!("    MPI_{constant} = {value}"))
        }
        _ => None,
    });
    let values: Vec<_> = values.collect();
    let values = values.join(",\n");
    let _ = writeln!(out, "typedef enum MPI_{name} {{\n{values}\n}} MPI_{name};");
}

/// Breaks a declaration behind commas into lines of at most 120 columns.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_inclusive(", ") {
        if column > 0 && column + word.trim_end().len() > COLUMNS {
            out.truncate(out.trim_end().len());
            out.push_str("\n    ");
            column = 4;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

const COLUMNS: usize = 118;

/// Compilers print the line that a later declaration contradicts.
const CONFLICT: &str = "/* a conflict here: another MPI's mpi.h follows Tagwire's */";

const HEAD: &str = r#"/* Tagwire's mpi.h: the standard ABI of MPI 5.0.
 *
 * Written by shim/api from functions.txt and constants.txt: change those, not this file.
 */
#ifndef TAGWIRE_MPI_H
#define TAGWIRE_MPI_H

#if defined(MPI_VERSION) || defined(MPICH_VERSION) || defined(MPICH_NAME) || defined(OMPI_MAJOR_VERSION) \
    || defined(OPEN_MPI) || defined(I_MPI_VERSION) || defined(MVAPICH2_VERSION) || defined(MSMPI_VER)
#error "Tagwire: the mpi.h of another MPI has been included before this one: look for its folder in the include path"
#endif

/* Another header of the same ABI, included later, has nothing to add. */
#define MPI_H_ABI

#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE;
    int MPI_TAG;
    int MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;
"#;

/// What programs of MPI-1 have still. Other libraries have it too, and the ABI has no names for it.
const REMOVED: &str = r"
#if defined(__GNUC__)
#define MPI_INLINE static __inline__
#else
#define MPI_INLINE static inline
#endif

/* What MPI-3.0 has removed
 *
 * MPI-5.0, section 17.1: no part of the binary interface. The functions call those that have replaced them. MPI_LB and MPI_UB, which
 * were datatypes, are not there. MPI_NO_REMOVED, defined before this header, leaves all of it out.
 */

#if !defined(MPI_NO_REMOVED)

typedef MPI_Comm_errhandler_function MPI_Handler_function;

MPI_INLINE int MPI_Address(void *location, MPI_Aint *address) { return MPI_Get_address(location, address); }
MPI_INLINE int MPI_Errhandler_create(MPI_Handler_function *function, MPI_Errhandler *errhandler)
{
    return MPI_Comm_create_errhandler(function, errhandler);
}
MPI_INLINE int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler *errhandler) { return MPI_Comm_get_errhandler(comm, errhandler); }
MPI_INLINE int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler errhandler) { return MPI_Comm_set_errhandler(comm, errhandler); }
MPI_INLINE int MPI_Type_extent(MPI_Datatype datatype, MPI_Aint *extent)
{
    MPI_Aint lower;
    return MPI_Type_get_extent(datatype, &lower, extent);
}
MPI_INLINE int MPI_Type_lb(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint extent;
    return MPI_Type_get_extent(datatype, displacement, &extent);
}
MPI_INLINE int MPI_Type_ub(MPI_Datatype datatype, MPI_Aint *displacement)
{
    MPI_Aint lower = 0, extent = 0;
    int code = MPI_Type_get_extent(datatype, &lower, &extent);
    if (code == MPI_SUCCESS)
        *displacement = lower + extent;
    return code;
}
MPI_INLINE int MPI_Type_hvector(int count, int blocklength, MPI_Aint stride, MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype);
}
MPI_INLINE int MPI_Type_hindexed(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype oldtype, MPI_Datatype *newtype)
{
    return MPI_Type_create_hindexed(count, blocklengths, displacements, oldtype, newtype);
}
MPI_INLINE int MPI_Type_struct(int count, int blocklengths[], MPI_Aint displacements[], MPI_Datatype types[], MPI_Datatype *newtype)
{
    return MPI_Type_create_struct(count, blocklengths, displacements, types, newtype);
}

#endif /* MPI_NO_REMOVED */
";

/// The conversions of statuses.
const STATUSES: &[&str] = &["f2c", "c2f", "f082c", "c2f08", "f2f08", "f082f"];

const FORTRAN_HEAD: &str = r"
/* Handles and statuses of Fortran
 *
 * MPI-5.0, section 20.4: no part of the binary interface. The functions call those of the interface, and a handle of Fortran is
 * the integer of the ABI. MPI_NO_FORTRAN, defined before this header, leaves all of it to another binding.
 */

#if !defined(MPI_NO_FORTRAN)

typedef int MPI_Fint;
typedef MPI_Status MPI_F08_status;

/* Fortran's MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE lie in a common block of libmpifort_abi; null in a program without it. */
#if defined(__GNUC__)
extern MPI_Fint tagwire_mpi_addresses_[] __attribute__((weak));
#else
extern MPI_Fint tagwire_mpi_addresses_[];
#endif
#define MPI_F_STATUS_IGNORE      (tagwire_mpi_addresses_)
#define MPI_F_STATUSES_IGNORE    (tagwire_mpi_addresses_ ? tagwire_mpi_addresses_ + 8 : 0)
#define MPI_F08_STATUS_IGNORE    ((MPI_F08_status *)MPI_F_STATUS_IGNORE)
#define MPI_F08_STATUSES_IGNORE  ((MPI_F08_status *)MPI_F_STATUSES_IGNORE)
";

const FORTRAN_STATUSES: &str = r"
/* A status has one form in all languages. One that is ignored has no value: MPI_ERR_ARG. */
MPI_INLINE int tagwire_mpi_status_copy(const void *from, void *to)
{
    if (!from || !to || from == (const void *)MPI_F_STATUS_IGNORE || from == (const void *)MPI_F_STATUSES_IGNORE)
        return MPI_ERR_ARG;
    *(MPI_Status *)to = *(const MPI_Status *)from;
    return MPI_SUCCESS;
}
MPI_INLINE int MPI_Status_f2c(const MPI_Fint *from, MPI_Status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_c2f(const MPI_Status *from, MPI_Fint *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_f082c(const MPI_F08_status *from, MPI_Status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_c2f08(const MPI_Status *from, MPI_F08_status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_f2f08(const MPI_Fint *from, MPI_F08_status *to) { return tagwire_mpi_status_copy(from, to); }
MPI_INLINE int MPI_Status_f082f(const MPI_F08_status *from, MPI_Fint *to) { return tagwire_mpi_status_copy(from, to); }
";

const FORTRAN_TAIL: &str = r"
#endif /* MPI_NO_FORTRAN */
";

const TAIL: &str = r"
#if defined(__cplusplus)
}
#endif

#endif /* TAGWIRE_MPI_H */
";
