//! The tables themselves.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::collections::BTreeSet;

use tagwire_mpi_api::Api;

#[test]
fn every_name_is_there_once() {
    let api = Api::load().unwrap();
    assert_eq!(api.functions().count(), 503);
    let names = api.names();
    let different: BTreeSet<_> = names.iter().collect();
    assert_eq!((names.len(), different.len()), (662, 662));
    assert_eq!(
        names.iter().filter(|name| name.ends_with("_c")).count(),
        159
    );
    assert_eq!(
        names.iter().filter(|name| name.starts_with("T_")).count(),
        51
    );
}

#[test]
fn no_two_parameters_of_a_function_have_one_name() {
    for function in Api::load().unwrap().functions() {
        let mut names: Vec<_> = function.parameters.iter().map(|it| &it.name).collect();
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{}", function.name);
    }
}

#[test]
fn every_constant_is_there_once() {
    let api = Api::load().unwrap();
    let entries = api.sections().iter().flat_map(|section| &section.entries);
    let mut seen = BTreeSet::new();
    for name in entries.filter_map(|entry| entry.constant()) {
        assert!(seen.insert(name), "{name} twice");
    }
}

#[test]
fn a_line_that_cannot_be_read_is_named() {
    let functions = "== Chapter\n\nSend buf:inn | -\n";
    let error = Api::parse(functions, "").unwrap_err();
    assert_eq!(error.line, 3);
    let said = "line 3: unknown kind `inn`: Send buf:inn | -";
    assert_eq!(error.to_string(), said);
    assert!(Api::parse("Send buf:in | -", "").is_err());
    assert!(Api::parse("", "== Numbers\nint ONE one\n").is_err());
}

#[test]
fn the_coverage_counts_every_name() {
    let text = Api::load().unwrap().coverage();
    let sums = text
        .lines()
        .find(|line| line.starts_with("| all |"))
        .unwrap();
    let sums: usize = sums
        .split(" | ")
        .filter_map(|word| word.trim_end_matches(" |").parse::<usize>().ok())
        .sum();
    assert_eq!(sums, 662);
}
