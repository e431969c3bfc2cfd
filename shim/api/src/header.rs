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
    out.push_str(TAIL);
    out
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

const TAIL: &str = r"
#if defined(__cplusplus)
}
#endif

#endif /* TAGWIRE_MPI_H */
";
