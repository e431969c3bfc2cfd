//! Collectives and groups in jobs of processes, over every kind of transport.

use crate::process::{Job, has};

fn run(ranks: u32, options: &[&str]) {
    let outcome = Job::of_ranks(ranks, options, &["groups"]).finish();
    assert_eq!(outcome.status, 0, "{options:?}: {outcome:#?}");
    for rank in 0..ranks {
        outcome.line(&format!("{rank} did everything"));
    }
}

#[test]
fn groups_of_all_sizes_do_everything() {
    for ranks in [1, 2, 3, 5] {
        run(ranks, &[]);
    }
}

#[test]
fn the_transport_matches_their_messages_too() {
    for ranks in [1, 2, 5] {
        run(ranks, &["--pml", "cm"]);
    }
}

/// With each algorithm that is not the table's choice for some length.
#[test]
fn a_setting_forces_algorithms() {
    let forced = "allreduce:ring,allgather:ring,alltoall:bruck,broadcast:scatter-ring,gather:linear,scatter:linear,reduce-scatter:pairwise";
    run(4, &["--coll-algorithm", forced]);
}

/// A table that takes other algorithms, and one that no rank can read.
#[test]
fn a_file_has_the_table() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let text = "rows = [
        { operation = 'reduce', algorithm = 'scatter-gather', ranks = 2 },
        { operation = 'alltoall', algorithm = 'bruck', place = 'host' },
    ]";
    std::fs::write(path, text).unwrap();
    run(3, &["--coll-table", path]);
    std::fs::write(path, "rows = [{ operation = 'sum' }]").unwrap();
    let outcome = Job::of_ranks(2, &["--coll-table", path], &["groups"]).finish();
    let errors = outcome.errors();
    assert_ne!(outcome.status, 0, "{outcome:#?}");
    assert!(
        errors.contains(path) && errors.contains("line 1"),
        "{errors}"
    );
}

#[test]
fn networks_carry_them() {
    for transport in ["ofi:tcp;ofi_rxm", "ucx:tcp,self", "shm+ofi:tcp"] {
        if has("networks_carry_them", transport.trim_start_matches("shm+")) {
            run(3, &["--transport", transport]);
        }
    }
}

/// With `coll-reduction=fixed`, sums have the same bits by any algorithm, layer and transport.
#[test]
fn sums_have_the_same_bits_everywhere() {
    let test = "sums_have_the_same_bits_everywhere";
    for ranks in [4, 5] {
        let sums = |options: &[&str]| {
            let options = [&["--coll-reduction", "fixed"], options].concat();
            let outcome = Job::of_ranks(ranks, &options, &["groups-sums"]).finish();
            assert_eq!(outcome.status, 0, "{options:?}: {outcome:#?}");
            let bits = |rank| {
                let line = outcome.line(&format!("{rank} sums")).to_owned();
                line.rsplit_once(' ').unwrap().1.to_owned()
            };
            let all: Vec<String> = (0..ranks).map(bits).collect();
            assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
            all[0].clone()
        };
        let bits = sums(&[]);
        let forced = "allreduce:ring,reduce:scatter-gather";
        assert_eq!(bits, sums(&["--coll-algorithm", forced]));
        assert_eq!(bits, sums(&["--pml", "cm"]));
        for transport in ["ofi:tcp;ofi_rxm", "ucx:tcp,self"] {
            if has(test, transport) {
                assert_eq!(bits, sums(&["--transport", transport]), "{transport}");
            }
        }
    }
}

/// The others would wait for a rank that has unwound out of a collective.
#[test]
fn an_operation_that_panics_ends_the_process() {
    let outcome = Job::of_ranks(2, &[], &["panic-in-a-reduction"]).finish();
    assert_eq!(outcome.status, 128 + 6, "{outcome:#?}");
    let errors = outcome.errors();
    assert!(errors.contains("a panic in a collective"), "{errors}");
}

/// Ids and memory of contexts that were freed come again.
#[test]
fn contexts_are_made_and_freed_a_thousand_times() {
    let outcome = Job::of_ranks(8, &[], &["groups-many", "1000"]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    for rank in 0..8 {
        let line = outcome.line(&format!("{rank} resident"));
        let numbers: Vec<u64> = line
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        let [.., before, after] = numbers[..] else {
            panic!("{line}");
        };
        assert!(after <= before + before / 20, "{line}");
    }
}
