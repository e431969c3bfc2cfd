//! The examples, as jobs of several sizes: what they compute is right.

use crate::process::{Outcome, example, run_line};

fn run(name: &str, ranks: u32, argument: &str) -> Outcome {
    let outcome = run_line(ranks, &[])
        .args([example(name)])
        .args([argument])
        .finish();
    assert_eq!(outcome.status, 0, "{name} on {ranks} ranks: {outcome:#?}");
    assert_eq!(outcome.stdout.len(), 1, "{name}: {outcome:#?}");
    outcome
}

#[test]
fn the_ring_adds_up() {
    for (ranks, token) in [(1, 0), (2, 300), (4, 6 * 300)] {
        let outcome = run("ring", ranks, "300");
        let line = &outcome.stdout[0];
        let hops = 300 * ranks;
        assert!(
            line.starts_with(&format!("{ranks} ranks, {hops} hops, ")),
            "{line}"
        );
        assert!(
            line.ends_with(&format!(" per hop, token {token}")),
            "{line}"
        );
    }
}

/// The ring: four ranks that share two cores, 10,000 hops.
#[test]
fn a_ring_of_ten_thousand_hops_ends() {
    let outcome = run("ring", 4, "2500");
    eprintln!("{}", outcome.stdout[0]);
}

#[test]
fn the_workers_do_all_the_tasks() {
    let tasks = 150;
    let alone = run("master_worker", 1, "150");
    assert!(alone.stdout[0].contains("needs workers"), "{alone:#?}");
    // Primes below 0 to 99, and below 0 to 49 again.
    let primes = |limit: u64| (2..limit).filter(|n| (2..*n).all(|d| n % d != 0)).count();
    let sum: usize = (0..tasks).map(|task| primes(task % 100)).sum();
    for ranks in [2, 4] {
        let outcome = run("master_worker", ranks, "150");
        let line = &outcome.stdout[0];
        let (start, list) = line.split_once(", done by [").unwrap();
        assert_eq!(start, format!("{tasks} tasks, sum {sum}"));
        let done: Vec<u64> = list
            .trim_end_matches(']')
            .split(", ")
            .map(|count| count.parse().unwrap())
            .collect();
        assert_eq!(done.len(), ranks as usize - 1);
        assert_eq!(done.iter().sum::<u64>(), tasks);
    }
}

/// However many ranks have a share of the rows, the solution is the same.
#[test]
fn conjugate_gradients_find_one_solution() {
    let solution = |ranks| {
        let outcome = run("conjugate_gradient", ranks, "60");
        let (_, found) = outcome.stdout[0].split_once("points: ").unwrap();
        found.to_owned()
    };
    let alone = solution(1);
    assert!(alone.contains("highest point 273.948"), "{alone}");
    for ranks in [2, 3, 7] {
        assert_eq!(solution(ranks), alone);
    }
}

/// The same plate in one piece, without messages: its mean, and the last change in the tile of
/// rank 0.
fn heat(columns: usize, rows: usize, steps: usize) -> (f64, f64) {
    const SIDE: usize = 64;
    let (width, height) = (columns * SIDE + 2, rows * SIDE + 2);
    let mut plate = vec![0.0f64; width * height];
    plate[1..width - 1].fill(100.0);
    let mut change = 0.0f64;
    for _ in 0..steps {
        let old = plate.clone();
        change = 0.0;
        for row in 1..height - 1 {
            for column in 1..width - 1 {
                let i = row * width + column;
                plate[i] = (old[i - 1] + old[i + 1] + old[i - width] + old[i + width]) / 4.0;
                if row <= SIDE && column <= SIDE {
                    change = change.max((plate[i] - old[i]).abs());
                }
            }
        }
    }
    let inner = (1..height - 1).flat_map(|row| &plate[row * width + 1..(row + 1) * width - 1]);
    let cells = (columns * SIDE * rows * SIDE) as f64;
    (inner.sum::<f64>() / cells, change)
}

#[test]
fn the_halo_exchange_computes_what_one_plate_does() {
    for (ranks, columns, rows) in [(1, 1, 1), (2, 1, 2), (4, 2, 2)] {
        // Long enough that heat has crossed the border between tiles.
        let outcome = run("halo", ranks, "400");
        let (mean, change) = heat(columns, rows, 400);
        let expected =
            format!("{columns} x {rows} tiles, 400 steps: mean {mean:.6}, last change {change:.6}");
        assert_eq!(outcome.stdout[0], expected);
    }
}

#[test]
fn the_partitions_of_the_field_add_up() {
    for ranks in [1, 2, 3] {
        let outcome = run("partitioned", ranks, "25");
        let previous = u64::from(ranks.saturating_sub(2));
        let (rounds, len) = (25u64, 12 * 1024u64);
        let indices = (rounds * (rounds - 1) / 2) * (len * (len - 1) / 2);
        let sum = if ranks == 1 {
            0
        } else {
            rounds * len * previous + indices
        };
        let expected = format!("{ranks} ranks, {rounds} rounds, the last rank's sum {sum}");
        assert_eq!(outcome.stdout[0], expected);
    }
}

/// A program whose `main` returns an error ends with its sentence, not with the names of variants.
#[test]
fn a_main_that_returns_an_error_prints_its_sentence() {
    let outcome = std::process::Command::new(example("ring"))
        .env("TAGWIRE_TRANSPRT", "shm")
        .output()
        .unwrap();
    let stderr = String::from_utf8(outcome.stderr).unwrap();
    assert_eq!(outcome.status.code(), Some(1), "{stderr}");
    assert_eq!(
        stderr,
        "Error: unknown setting 'TAGWIRE_TRANSPRT'; did you mean 'TAGWIRE_TRANSPORT'?\n"
    );
}

/// Futures of owned operations, under a runtime of others.
#[test]
fn the_tasks_get_all_answers() {
    for ranks in [1, 2, 4] {
        let outcome = run("tasks", ranks, "50");
        let squares: u32 = (0..50).map(|round| round * round).sum();
        let sum = squares * (1..ranks).sum::<u32>();
        assert_eq!(
            outcome.stdout,
            [format!("{ranks} ranks, 50 rounds, sum {sum}")]
        );
    }
}

/// As in the first minutes of a run of days: memory stays, and the numbers of messages wrap, of slots, and of bytes in a ring.
#[test]
fn memory_stays_while_messages_are_counted_past_2_to_the_32() {
    let starts = ["0", "4294900000", "4294967295"];
    for (layer, start) in ["ob1", "cm", "dr"]
        .into_iter()
        .flat_map(|layer| starts.map(|start| (layer, start)))
    {
        let numbers = [
            "--first-sequence",
            start,
            "--shm-first-slot",
            start,
            "--dr-first",
            start,
        ];
        let outcome = run_line(2, &[&["--pml", layer], &numbers[..]].concat())
            .args([example("endurance")])
            .args(["200000"])
            .finish();
        assert_eq!(outcome.status, 0, "{layer} from {start}: {outcome:#?}");
        for line in &outcome.stdout {
            eprintln!("{layer} from {start}: {line}");
        }
        assert_eq!(outcome.stdout.len(), 2, "{outcome:#?}");
    }
}
