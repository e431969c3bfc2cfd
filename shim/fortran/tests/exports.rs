//! The shared library from outside: what it exports and what it needs.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

#[path = "../../abi/tests/library/mod.rs"]
mod library;

use std::collections::BTreeSet;
use std::process::Command;

use library::{library, said};
use tagwire_mpi_api::Api;

/// What has no line in the tables: each name in small letters, with and without a `p` before it.
const OTHERS: [&str; 18] = [
    "mpi_status_f2f08_",
    "mpi_status_f2f08_f08_",
    "mpi_status_f082f_",
    "mpi_status_f082f_f08_",
    "mpi_sizeof_fts_",
    "mpi_sizeof_f08ts_",
    "mpi_f_sync_reg_",
    "mpi_f_sync_reg_f08ts_",
    "mpi_address_",
    "mpi_errhandler_create_",
    "mpi_errhandler_get_",
    "mpi_errhandler_set_",
    "mpi_type_extent_",
    "mpi_type_hindexed_",
    "mpi_type_hvector_",
    "mpi_type_lb_",
    "mpi_type_struct_",
    "mpi_type_ub_",
];

/// The predefined functions, the constants that stand for addresses, and the trial of compilers.
const ALONE: [&str; 16] = [
    "mpi_null_copy_fn_",
    "mpi_null_delete_fn_",
    "mpi_dup_fn_",
    "mpi_comm_null_copy_fn_",
    "mpi_comm_null_delete_fn_",
    "mpi_comm_dup_fn_",
    "mpi_type_null_copy_fn_",
    "mpi_type_null_delete_fn_",
    "mpi_type_dup_fn_",
    "mpi_win_null_copy_fn_",
    "mpi_win_null_delete_fn_",
    "mpi_win_dup_fn_",
    "mpi_conversion_fn_null_",
    "mpi_conversion_fn_null_c_",
    "tagwire_mpi_addresses_",
    "tagwire_mpi_probe_",
];

#[test]
fn the_routines_of_the_tables_are_exported_and_no_others() {
    let text = said(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library()),
    );
    let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
    let exported: BTreeSet<String> = text.lines().filter_map(last).collect();
    let mut wanted: BTreeSet<String> = Api::load()
        .unwrap()
        .fortran()
        .unwrap()
        .symbols()
        .into_iter()
        .collect();
    for name in OTHERS {
        wanted.extend([name.to_owned(), format!("p{name}")]);
    }
    wanted.extend(ALONE.map(str::to_owned));
    let missing: Vec<_> = wanted.difference(&exported).collect();
    let extra: Vec<_> = exported.difference(&wanted).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing {missing:?}, extra {extra:?}"
    );
}

/// The C library is what the program has loaded: its names are open, and only those that tools leave alone are called.
#[test]
fn it_is_linked_with_no_library_of_mpi_and_calls_the_names_of_tools() {
    let text = said(Command::new("readelf").arg("-dW").arg(library()));
    assert!(
        text.contains("Library soname: [libmpifort_abi.so.1]"),
        "{text}"
    );
    let mut needed = text.lines().filter(|line| line.contains("(NEEDED)"));
    assert!(!needed.any(|line| line.contains("mpi")), "{text}");
    let text = said(
        Command::new("nm")
            .args(["-D", "--undefined-only"])
            .arg(library()),
    );
    let names: BTreeSet<_> = text
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .filter(|name| name.contains("MPI_"))
        .collect();
    assert!(names.contains("PMPI_Send"), "{names:?}");
    let known = Api::load().unwrap().names();
    for name in names {
        let plain = name.strip_prefix("PMPI_").unwrap_or(name);
        assert!(name.starts_with("PMPI_"), "{name}");
        assert!(known.iter().any(|known| known == plain), "{name}");
    }
}
