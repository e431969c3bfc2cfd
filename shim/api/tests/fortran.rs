//! What is written for Fortran.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeSet;

use tagwire_mpi_api::Api;

#[test]
fn fortran_has_all_but_the_tools_interface_and_the_integers_of_handles() {
    let api = Api::load().unwrap();
    let symbols: BTreeSet<_> = api.fortran().unwrap().symbols().into_iter().collect();
    for function in api.functions() {
        let name = function.name.as_str();
        let is_of_c =
            name.starts_with("T_") || name.ends_with("_toint") || name.ends_with("_fromint");
        let symbol = format!("mpi_{}_", name.to_lowercase());
        assert_eq!(symbols.contains(&symbol), !is_of_c, "{name}");
    }
    for name in [
        "pmpi_send_f08ts_",
        "mpi_send_c_f08ts_",
        "mpi_get_count_c_f08_",
        "mpi_op_create_c_f08_",
        "mpi_win_allocate_cptr_",
    ] {
        assert!(symbols.contains(name), "{name}");
    }
    // Both forms would have equal kinds.
    assert!(!symbols.contains("mpi_type_get_extent_c_f08_"));
}

#[test]
fn mpif_h_fits_into_fixed_form() {
    let api = Api::load().unwrap();
    let text = api.fortran().unwrap().include();
    for line in text.lines() {
        assert!(line.len() <= 72, "{line}");
        assert!(
            line.starts_with("      ") || line.starts_with('!'),
            "{line}"
        );
    }
    for line in [
        "      PARAMETER (MPI_COMM_WORLD=257)",
        // One less than in C: there is no null at the end.
        "      PARAMETER (MPI_MAX_ERROR_STRING=511)",
        "      COMMON /tagwire_mpi_addresses/ MPI_BOTTOM",
    ] {
        assert!(text.lines().any(|is| is == line), "{line}");
    }
    assert!(!text.contains("MPI_T_"));
}

#[test]
fn modules_have_lines_of_a_length_that_all_compilers_take() {
    let api = Api::load().unwrap();
    let fortran = api.fortran().unwrap();
    for text in [fortran.module(), fortran.module_2008()] {
        let long = text.lines().find(|line| line.len() > 132);
        assert_eq!(long, None);
    }
}

#[test]
fn a_wrong_line_is_told_with_its_number() {
    let api = Api::load().unwrap();
    for (line, why) in [
        ("Send buf", "1 words for 6 parameters"),
        ("Sent buf", "no function of that name here"),
        (
            "Send buf:bytes count datatype dest tag comm",
            "unknown type `bytes`",
        ),
        ("Finalize | f90", "unknown flag `f90`"),
    ] {
        let error = api.fortran_of(line).unwrap_err();
        assert_eq!((error.line, error.why.as_str()), (1, why));
    }
}
