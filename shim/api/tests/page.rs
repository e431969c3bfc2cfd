//! The page `docs/mpi.md`: its table is that of the functions.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs;

use tagwire_mpi_api::Api;

#[test]
fn the_page_has_the_table_of_all_names() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mpi.md");
    let page = fs::read_to_string(page).unwrap();
    let table = Api::load().unwrap().coverage();
    let write = "'cargo run -p tagwire-mpi-api --example write coverage' writes it";
    assert!(page.ends_with(&table), "another table: {write}");
}
