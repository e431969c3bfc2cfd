//! The tables against another library's header of the same ABI: MPICH's, where `ci/peers mpich` has installed it.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use tagwire_mpi_api::{Api, Constant};
use tempfile::TempDir;

/// The other header; nothing, said loudly, where there is none.
fn peer(test: &str) -> Option<PathBuf> {
    let here = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/peers/mpich/include/mpi_abi.h"
    );
    let named = env::var_os("MPI_ABI_HEADER").map_or_else(|| here.into(), PathBuf::from);
    if named.exists() {
        return Some(named);
    }
    eprintln!("SKIPPED: {test} needs `ci/peers mpich`");
    None
}

/// Compiles a C program, which fails where it differs from the header that it includes.
fn compile(program: &str) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("compare.c");
    fs::write(&file, program).unwrap();
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiler = Command::new(cc)
        .args([
            "-std=c11",
            "-Werror",
            "-fmax-errors=20",
            "-c",
            "-o",
            "/dev/null",
        ])
        .arg(&file)
        .output();
    let out = compiler.expect("a C compiler is there");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
}

/// What the preprocessor makes of a header.
fn preprocessed(header: &Path, options: &[&str]) -> String {
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let command = Command::new(cc).args(options).arg(header).output();
    String::from_utf8(command.unwrap().stdout).unwrap()
}

/// C takes a second declaration of a function or of a type only where it is the same.
#[test]
fn every_prototype_is_the_same() {
    let Some(peer) = peer("every_prototype_is_the_same") else {
        return;
    };
    let api = Api::load().unwrap();
    let mut program = format!("#include \"{}\"\n", peer.display());
    for function in api.functions() {
        for (twin, prefix) in function
            .twins()
            .iter()
            .flat_map(|twin| [(*twin, "MPI_"), (*twin, "PMPI_")])
        {
            let _ = writeln!(program, "{};", function.prototype(twin, prefix));
        }
    }
    compile(&program);
    let text = preprocessed(&peer, &["-E", "-P"]);
    let ours: BTreeSet<String> = api.names().into_iter().collect();
    let theirs: BTreeSet<String> = words(&text, "MPI_")
        .filter(|(_, next)| next.starts_with('('))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(ours, theirs);
}

#[test]
fn every_type_is_the_same() {
    let Some(peer) = peer("every_type_is_the_same") else {
        return;
    };
    // All of our types but the status, which has no name that could be declared twice.
    let ours = Api::load().unwrap().header();
    let statements = ours
        .split(';')
        .map(|text| text.rsplit("*/").next().unwrap_or(text));
    let mut types = format!("#include \"{}\"\n#include <stddef.h>\n", peer.display());
    let mut found = 0;
    for statement in statements {
        let lines = statement.lines().filter(|line| !line.starts_with('#'));
        let text: Vec<_> = lines.collect();
        let text = text.join("\n");
        let text = text.trim();
        if text.starts_with("typedef") && !text.contains('{') {
            let _ = writeln!(types, "{text};");
            found += 1;
        }
    }
    assert!(found > 40, "only {found} types");
    types.push_str(
        "_Static_assert(sizeof(MPI_Status) == 32 && offsetof(MPI_Status, MPI_TAG) == 4, \"status\");\n\
         _Static_assert(offsetof(MPI_Status, MPI_ERROR) == 8 && offsetof(MPI_Status, MPI_internal) == 12, \"status\");\n",
    );
    compile(&types);
}

#[test]
fn every_constant_is_the_same() {
    let Some(peer) = peer("every_constant_is_the_same") else {
        return;
    };
    let values = constants();
    let mut program = format!("#include \"{}\"\nint main(void) {{\n", peer.display());
    for (name, value) in &values {
        // What differs keeps a reference to a symbol that nobody has. Addresses are no constants for an assertion.
        let _ = writeln!(
            program,
            "    {{ extern char is_{name}; if ((long long)MPI_{name} != {value}) is_{name} = 0; }}"
        );
    }
    program.push_str("    return 0;\n}\n");
    link(&program);

    // Macros without parameters, and what an enumeration gives a value.
    let macros = preprocessed(&peer, &["-E", "-dM"]);
    let defined = macros.lines().filter_map(|line| {
        let name = line.strip_prefix("#define MPI_")?.split(' ').next()?;
        (!name.contains('(')).then(|| name.to_owned())
    });
    let text = preprocessed(&peer, &["-E", "-P"]);
    let members = words(&text, "MPI_").filter(|(_, next)| next == "=");
    let theirs: BTreeSet<String> = defined.chain(members.map(|(name, _)| name)).collect();
    let ours: BTreeSet<String> = values.into_keys().collect();
    let guard = BTreeSet::from(["H_ABI".to_owned()]);
    let theirs: BTreeSet<_> = theirs.difference(&guard).cloned().collect();
    assert_eq!(ours, theirs);
}

/// Compiles and links a program: it does not link where a constant differs, since the compiler drops what is equal.
fn link(program: &str) {
    let folder = TempDir::new().unwrap();
    let (file, out) = (
        folder.path().join("compare.c"),
        folder.path().join("compare"),
    );
    fs::write(&file, program).unwrap();
    let cc = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiler = Command::new(cc)
        .args(["-std=c11", "-O1", "-o"])
        .arg(out)
        .arg(&file)
        .output();
    let made = compiler.expect("a C compiler is there");
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{said}");
}

/// Our constants with their values.
fn constants() -> BTreeMap<String, String> {
    let api = Api::load().unwrap();
    let mut values = BTreeMap::new();
    let mut aliases = Vec::new();
    for entry in api.sections().iter().flat_map(|section| &section.entries) {
        match entry {
            Constant::Int(name, value) => drop(values.insert(name.clone(), value.to_string())),
            Constant::Typed(_, name, value) => {
                drop(values.insert(name.clone(), value.cast_signed().to_string()))
            }
            Constant::Alias(name, other) => aliases.push((name.clone(), other.clone())),
            _ => {}
        }
    }
    for (name, other) in aliases {
        let value = values[&other].clone();
        values.insert(name, value);
    }
    values
}

/// The words with a prefix, without it, and what follows each. `PMPI_` is no `MPI_`.
fn words<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = (String, String)> + 'a {
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let starts = text
        .match_indices(prefix)
        .filter(move |(at, _)| !text[..*at].ends_with(part));
    starts.map(move |(at, _)| {
        let rest = &text[at + prefix.len()..];
        let end = rest.find(|letter| !part(letter)).unwrap_or(rest.len());
        let next = rest[end..].trim_start().chars().take(1).collect();
        (rest[..end].to_owned(), next)
    })
}
