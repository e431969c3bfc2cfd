//! Reductions between ranks that are threads of this process, whose groups lay what members give on a board. The result of every
//! iteration is compared with a sum that one rank does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clap::Parser;
use tagwire_base::{Rank, Tag};

use super::measure::measure;
use crate::args::BenchArgs;
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};
use crate::pattern::collected;
use crate::plan::{Carrier, Plan};
use crate::port::channel::{ChannelPort, Request, job};
use crate::port::group::{Divide, Group, Started};
use crate::port::{Endpoint, Port};
use crate::record::Row;

/// What members have given, by group, operation and member.
#[derive(Default)]
struct Board {
    given: Mutex<BTreeMap<(u64, u64, usize), Vec<u8>>>,
    /// Sums are wrong by one.
    spoils: bool,
}

impl Board {
    fn give(&self, (group, operation): (u64, u64), member: usize, bytes: &[u8]) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let old = given.insert((group, operation, member), bytes.to_vec());
        assert!(old.is_none(), "a member gives twice");
    }

    /// What all of so many have given, in their order.
    fn all(&self, (group, operation): (u64, u64), size: usize) -> Option<Vec<Vec<u8>>> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let members = (0..size).map(|member| given.get(&(group, operation, member)).cloned());
        members.collect()
    }

    fn sum(&self, all: &[Vec<u8>]) -> Vec<u8> {
        let doubles = |bytes: &[u8]| -> Vec<f64> {
            let chunks = bytes.chunks_exact(8);
            chunks
                .map(|it| f64::from_ne_bytes(it.try_into().unwrap()))
                .collect()
        };
        let mut sum = vec![f64::from(u8::from(self.spoils)); all[0].len() / 8];
        for bytes in all {
            assert_eq!(bytes.len(), all[0].len(), "members give different lengths");
            sum.iter_mut()
                .zip(doubles(bytes))
                .for_each(|(sum, own)| *sum += own);
        }
        sum.into_iter().flat_map(f64::to_ne_bytes).collect()
    }
}

struct BoardGroup<'a> {
    board: &'a Board,
    id: u64,
    me: usize,
    size: usize,
    operations: AtomicU64,
}

/// What is to be done with what all have given.
type Finish<'a> = Box<dyn FnOnce(Vec<Vec<u8>>) + Send + 'a>;

struct OnBoard<'a> {
    board: &'a Board,
    place: (u64, u64),
    size: usize,
    finish: Option<Finish<'a>>,
}

impl Started for OnBoard<'_> {
    fn test(&mut self) -> Result<bool> {
        let Some(all) = self.board.all(self.place, self.size) else {
            return Ok(false);
        };
        let finish = self.finish.take().expect("it is not tested after its end");
        finish(all);
        Ok(true)
    }

    fn wait(&mut self) -> Result<()> {
        while !self.test()? {
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl<'a> BoardGroup<'a> {
    fn start(&self, out: Outgoing, finish: Finish<'a>) -> OnBoard<'a> {
        let operation = self.operations.fetch_add(1, Ordering::Relaxed);
        let place = (self.id, operation);
        self.board.give(place, self.me, out.bytes());
        OnBoard {
            board: self.board,
            place,
            size: self.size,
            finish: Some(finish),
        }
    }

    fn run(&self, out: Outgoing, finish: Finish<'a>) -> Result<()> {
        self.start(out, finish).wait()
    }
}

fn write(into: Incoming, bytes: &[u8]) {
    into.with_bytes(|into| into.copy_from_slice(bytes));
}

impl Group for BoardGroup<'_> {
    fn maximum(&self, _: Outgoing, _: Incoming) -> Result<()> {
        Err(Error::Usage("no test needs it".to_owned()))
    }

    fn allreduce(&self, out: Outgoing, into: Incoming) -> Result<()> {
        let board = self.board;
        self.run(out, Box::new(move |all| write(into, &board.sum(&all))))
    }

    fn reduce_scatter(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()> {
        assert_eq!(lengths.iter().sum::<usize>(), out.len());
        let (board, start) = (self.board, lengths[..self.me].iter().sum::<usize>());
        let own = start..start + lengths[self.me];
        self.run(out, Box::new(move |all| write(into, &board.sum(&all)[own])))
    }

    fn allgather(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()> {
        assert_eq!(lengths[self.me], out.len());
        self.run(out, Box::new(move |all| write(into, &all.concat())))
    }

    fn start_reduce(
        &self,
        out: Outgoing,
        into: Incoming,
        root: usize,
    ) -> Result<Box<dyn Started + '_>> {
        let (board, is_root) = (self.board, self.me == root);
        let finish = move |all: Vec<Vec<u8>>| {
            if is_root {
                write(into, &board.sum(&all));
            }
        };
        Ok(Box::new(self.start(out, Box::new(finish))))
    }

    fn start_allreduce(&self, out: Outgoing, into: Incoming) -> Result<Box<dyn Started + '_>> {
        let board = self.board;
        let finish = move |all: Vec<Vec<u8>>| write(into, &board.sum(&all));
        Ok(Box::new(self.start(out, Box::new(finish))))
    }
}

/// A port of channels, with groups on a board.
struct BoardPort<'a> {
    port: &'a ChannelPort,
    board: &'a Board,
    groups: AtomicU64,
}

/// Operations of groups have numbers below it.
const GROUPS: u64 = 1 << 32;

impl Endpoint for BoardPort<'_> {
    fn rank(&self) -> Rank {
        self.port.rank()
    }

    fn size(&self) -> u32 {
        self.port.size()
    }

    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        self.port.send(data, to, tag)
    }

    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        self.port.recv(data, from, tag)
    }

    fn group(&self, divide: Divide) -> Result<Box<dyn Group + '_>> {
        let number = self.groups.fetch_add(1, Ordering::Relaxed);
        let (rank, size) = (self.rank().as_u32() as usize, self.size() as usize);
        let color = match divide {
            Divide::All => 0,
            Divide::Color(color) => color,
        };
        let place = (GROUPS + number, 0);
        self.board.give(place, rank, &color.to_ne_bytes());
        let colors = loop {
            match self.board.all(place, size) {
                Some(all) => break all,
                None => std::thread::yield_now(),
            }
        };
        let alike = |ranks: &[Vec<u8>]| {
            let alike = ranks.iter().filter(|other| **other == color.to_ne_bytes());
            alike.count()
        };
        Ok(Box::new(BoardGroup {
            board: self.board,
            id: number << 16 | u64::from(color),
            me: alike(&colors[..rank]),
            size: alike(&colors),
            operations: AtomicU64::new(0),
        }))
    }
}

impl Port for BoardPort<'_> {
    type Request = Request;

    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<Request> {
        self.port.isend(data, to, tag)
    }

    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<Request> {
        self.port.irecv(data, from, tag)
    }

    fn wait_all(&self, requests: &mut Vec<Request>) -> Result<()> {
        self.port.wait_all(requests)
    }
}

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn args(line: &str) -> Result<BenchArgs> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    let args = Command::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    args.bench.check()?;
    Ok(args.bench)
}

/// Runs a command on ranks in this process, with results checked. Returns the rows, or the errors of all ranks.
fn run(line: &str, spoils: bool) -> Result<Vec<Row>, Vec<Error>> {
    let args = args(&format!("{line} -c")).unwrap();
    let device = args.device_plan().unwrap();
    let plan = Plan::new(&args, Carrier::Ours("channel".to_owned()), 7, 0);
    let board = Board {
        spoils,
        ..Board::default()
    };
    let results = job(plan.ranks, None, |port| {
        let groups = AtomicU64::new(0);
        let port = BoardPort {
            port,
            board: &board,
            groups,
        };
        collected::rows(&port, None, &plan, |run| measure(run, &device))
    });
    collected::of_all(results)
}

/// Nothing that takes time but what is done.
const FAST: &str = "--engine-rate 1000GB/s --engine-latency 0 --flops-per-element 0 -i 5 -x 0";

/// Vectors of no element, of fewer than there are partitions, of some more, and of many.
const SIZES: &str = "-m 0,8,24,40,296,8000";

#[test]
fn every_algorithm_gives_the_serial_sum_on_every_division_of_ranks() {
    for ranks in [2_u32, 3, 4, 6, 8] {
        for size in (1..=ranks).filter(|size| ranks.is_multiple_of(*size)) {
            let line = format!(
                "allreduce -n {ranks} --group-size {size} --producer engine --callback direct,deferred {FAST} {SIZES}"
            );
            let rows = run(&line, false).unwrap_or_else(|errors| panic!("{line}: {errors:?}"));
            let series: Vec<_> = rows[..4]
                .iter()
                .map(|row| row.series.pattern.series.as_deref().unwrap())
                .collect();
            let expected = ["native/0", "multilane/0", "pr:direct/0", "pr:deferred/0"];
            assert_eq!(series, expected, "{line}");
            assert_eq!(rows.len(), 6 * series.len(), "{line}");
            for row in &rows {
                assert_eq!(row.series.device.group_size, Some(size));
                assert_eq!(row.sampling.iterations, 5);
                let time = row.figures.named("time_us").unwrap();
                assert!(time > 0.0, "{row:?}");
            }
        }
    }
}

#[test]
fn partitions_come_while_the_device_is_at_work() {
    let line = "allreduce -n 4 --algorithm native,pr --callback direct --engine-latency 2ms --engine-rate 1GB/s -m 1600 -i 5";
    let rows = run(line, false).unwrap();
    let overlap = |row: &Row| row.figures.named("overlap_pct").unwrap();
    assert_eq!(overlap(&rows[0]), 0.0);
    assert!(overlap(&rows[1]) > 0.0, "{:?}", rows[1]);
    // Two partitions and their copies begin, and each byte is computed in a nanosecond.
    assert_eq!(rows[0].figures.named("compute_us"), Some(2001.6));
    assert_eq!(rows[1].figures.named("compute_us"), Some(4001.6));
    assert!(rows[1].figures.named("speedup_vs_native").is_some());
    assert!(rows[0].figures.named("speedup_vs_native").is_none());
}

/// Engines that ranks share do the same, and each step of one rank holds up those of others.
#[test]
fn ranks_may_share_an_engine() {
    for (ranks, sharing) in [(2, 2), (4, 2), (4, 4)] {
        for streams in ["same", "other"] {
            let line = format!(
                "allreduce -n {ranks} --engine-sharing {sharing} --producer engine --callback direct,deferred --copy-stream {streams} -m 0,40,8000 -i 5"
            );
            let rows = run(&line, false).unwrap_or_else(|errors| panic!("{line}: {errors:?}"));
            assert_eq!(rows.len(), 3 * 4, "{line}");
            let producer = rows[0].series.device.producer.as_deref().unwrap();
            let shared = format!("8us shared by {sharing} ranks (stand-in");
            assert!(producer.contains(&shared), "{producer}");
        }
    }
    // The engine computes the vectors of all ranks, one after the other, before the last one has its own.
    let line = "allreduce -n 4 --engine-sharing 4 --algorithm native --engine-latency 2ms --engine-rate 1GB/s -m 1600 -i 5";
    let rows = run(line, false).unwrap();
    let figure = |name| rows[0].figures.named(name).unwrap();
    assert_eq!(figure("compute_us"), 2001.6);
    assert!(figure("time_us") >= 4.0 * 2001.6, "{:?}", rows[0]);
}

#[test]
fn wrong_sums_are_found() {
    for algorithm in ["native", "multilane", "pr"] {
        let line = format!("allreduce -n 4 --algorithm {algorithm} -m 80 {FAST}");
        for error in run(&line, true).unwrap_err() {
            assert!(
                matches!(error, Error::Validation(_) | Error::Peer(_)),
                "{line}: {error}"
            );
        }
    }
}

#[test]
fn copies_in_pieces_bring_the_whole_vector() {
    let line = format!("device-copy -n 2 --partitions 1,3,20 {FAST} {SIZES}");
    let line = line.replace("--flops-per-element 0", "");
    let rows = run(&line, false).unwrap();
    assert_eq!(rows.len(), 6 * 3);
    for row in &rows {
        let (copy, moved) = (row.figures.named("copy_us"), row.figures.named("moved_us"));
        assert!(copy >= moved && moved.is_some(), "{row:?}");
    }
    // Each of the three copies begins for 5 ms.
    let rows = run(
        "device-copy -n 1 --partitions 1,3 --engine-latency 5ms -m 800 -i 5",
        false,
    );
    let rows = rows.unwrap();
    assert_eq!(rows[1].series.device.copies, Some(3));
    assert!(rows[1].figures.named("copy_us").unwrap() >= 15_000.0);
    assert_eq!(rows[1].series.pattern.series.as_deref(), Some("copies:3"));
    assert!(
        rows[1]
            .series
            .device
            .producer
            .as_deref()
            .unwrap()
            .contains("stand-in")
    );
}

#[test]
fn rows_are_counted_before_they_come() {
    for (line, count) in [
        ("allreduce --algorithm native", 1),
        ("allreduce --producer engine", 3),
        (
            "allreduce --algorithm pr,native --callback direct,deferred",
            3,
        ),
        ("device-copy", 2),
        ("device-copy --partitions 1,2,4", 3),
    ] {
        let device = args(line).unwrap().device_plan().unwrap();
        assert_eq!(device.series().len(), count, "{line}");
    }
    assert_eq!(args("allreduce").unwrap().device_plan(), None);
}

#[test]
fn groups_are_halves_where_there_are_two() {
    for (ranks, size) in [(2, 1), (3, 3), (4, 2), (8, 4), (1, 1)] {
        let args = args("allreduce -n 2 --producer engine").unwrap();
        let group = args.device_plan().unwrap().group_among(ranks);
        assert_eq!(group.unwrap(), size, "{ranks} ranks");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_does() {
    for (line, reason) in [
        (
            "allreduce -n 6 --algorithm pr --group-size 4",
            "does not divide 6 ranks: it is one of 1, 2, 3, 6",
        ),
        ("allreduce --producer engine -m 12", "no multiple of 8"),
        ("allreduce --group-size 2", "with --algorithm or --producer"),
        (
            "allreduce --algorithm pr --nonblocking",
            "--nonblocking has no meaning",
        ),
        (
            "allreduce --algorithm native --callback direct",
            "for --algorithm pr",
        ),
        (
            "device-copy --group-size 2",
            "--group-size has no meaning for device-copy",
        ),
        (
            "device-copy --threads 2",
            "--threads has no meaning for device-copy",
        ),
        (
            "bcast --algorithm pr",
            "--algorithm has no meaning for bcast",
        ),
        (
            "reduce --producer engine",
            "--producer has no meaning for reduce",
        ),
        (
            "device-copy --policy each",
            "--policy has no meaning for device-copy",
        ),
    ] {
        let error = args(line).unwrap_err().to_string();
        assert!(error.contains(reason), "{line}: {error}");
    }
}
