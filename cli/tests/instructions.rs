//! The instructions that the pages tell are those that `ci/instructions` holds the code to.

use std::collections::BTreeMap;
use std::path::Path;

fn read(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

fn figures() -> BTreeMap<String, f64> {
    let read = read("ci/instructions.txt");
    let figure = |line: &str| {
        let (name, figure) = line.split_once(' ').unwrap();
        (name.to_owned(), figure.parse().unwrap())
    };
    read.lines().map(figure).collect()
}

#[test]
fn the_page_of_performance_has_the_instructions_of_the_file() {
    let (page, figures) = (read("docs/performance.md"), figures());
    for (row, names) in [
        ("| one rank to itself |", &["self"][..]),
        ("| two ranks, receive posted first |", &["pair"]),
        ("| two ranks, message first |", &["unexpected"]),
        (
            "| two ranks, each call of both engines recorded with a coarse clock |",
            &["pair-recorded"],
        ),
        (
            "| `MPI_Irecv`, `MPI_Isend`, two `MPI_Wait` |",
            &["mpi-wait"],
        ),
        (
            "| 64 `MPI_Irecv`, 64 `MPI_Isend`, two `MPI_Waitall`, for each message |",
            &["mpi-window"],
        ),
        ("| `MPI_Sendrecv` with oneself |", &["mpi-sendrecv"]),
        ("| `MPI_Test` of a request under way |", &["mpi-test"]),
        ("| `MPI_Iprobe` that finds nothing |", &["mpi-iprobe"]),
        (
            "| `MPI_Put` of 8 bytes, `MPI_Win_flush`, in a window of one's own |",
            &["mpi-put", "mpi-flush"],
        ),
        (
            "| `MPI_Fetch_and_op`, `MPI_Compare_and_swap` and `MPI_Accumulate` of a long there |",
            &["mpi-fop", "mpi-cas", "mpi-acc"],
        ),
        (
            "| `MPI_Put` of 8 bytes and `MPI_Win_fence` |",
            &["mpi-fence"],
        ),
        (
            "| the same between `MPI_Win_lock` and `MPI_Win_unlock`; between `MPI_Win_post`, `_start` and `_complete`, `_wait` |",
            &["mpi-lock", "mpi-pscw"],
        ),
    ] {
        let line = page.lines().find_map(|line| line.strip_prefix(row));
        let cell = line.unwrap_or_else(|| panic!("there is no row {row}"));
        let cell = cell.split('|').next().unwrap();
        let told: Vec<f64> = cell
            .split([';', ' '])
            .map(|word| word.trim_end_matches(',').replace(',', ""))
            .filter(|word| !word.is_empty())
            .map(|word| word.parse().unwrap())
            .collect();
        let wanted: Vec<f64> = names.iter().map(|name| figures[*name].round()).collect();
        assert_eq!(told, wanted, "{row}");
    }
}

#[test]
fn the_page_of_matching_has_the_instructions_of_the_default_engine() {
    let (page, figures) = (read("docs/matching.md"), figures());
    for (row, name) in [
        (
            "| receive posted, message arrives, nothing else queued |",
            "engine-0",
        ),
        ("| behind 1 receive that does not match |", "engine-1"),
        ("| behind 16 |", "engine-16"),
        ("| behind 1,024 |", "engine-1024"),
        ("| behind 65,536 |", "engine-65536"),
        (
            "| behind 1 that stays, when a search has looked far before |",
            "engine-stays",
        ),
    ] {
        // The first row of that name is one of receives.
        let line = page.lines().find_map(|line| line.strip_prefix(row));
        let cell = line.and_then(|line| line.split('|').next());
        let told: Option<f64> = cell.and_then(|cell| cell.trim().parse().ok());
        assert_eq!(told, Some(figures[name].round()), "{row}");
    }
}

#[test]
fn the_page_of_engines_has_what_a_record_costs() {
    let (page, figures) = (read("docs/engines.md"), figures());
    let (without, with) = (figures["pair"], figures["pair-recorded"]);
    let told = format!("is {without:.1} instructions without and\n{with:.1} with the records");
    assert!(page.contains(&told), "{told}");
}
