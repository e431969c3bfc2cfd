//! The page of a campaign: what was tried, how often, within which bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use crate::disturbances;
use crate::grounds;
use crate::hostile;
use crate::origin::Origin;
use crate::programs;
use crate::record::{HostileRecord, Line, Record, Standing, Verdict, read};

/// What some records have in common, summed up.
#[derive(Debug, Default)]
struct Sum {
    trials: u64,
    checked: u64,
    suspects: u64,
    finds: u64,
    voids: u64,
    silence_ms: Vec<u64>,
    stall_ms: Vec<u64>,
    notice_ms: Vec<u64>,
}

impl Sum {
    fn add(&mut self, record: &Record) {
        match record.verdict {
            Verdict::Void => {
                self.voids += 1;
                return;
            }
            Verdict::Find => self.finds += 1,
            Verdict::Suspect => self.suspects += 1,
            Verdict::Good => {}
        }
        self.trials += 1;
        self.checked += record.checked;
        self.silence_ms.push(record.silence_ms);
        self.stall_ms.extend(record.stall_ms);
        if record.notice_ms > 0 {
            self.notice_ms.push(record.notice_ms);
        }
    }
}

/// Returns the value that a share of all is at most.
fn share(values: &[u64], percent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

/// Writes the page.
///
/// # Errors
/// When a log cannot be read.
pub fn page(logs: &[PathBuf]) -> Result<String, String> {
    let (mut records, mut villains) = (Vec::new(), Vec::new());
    for log in logs {
        for line in read(log)? {
            match line {
                Line::Trial(record) => records.push(*record),
                Line::Hostile(record) => villains.push(record),
            }
        }
    }
    let mut text = String::from(HEAD);
    all_in_all(&mut text, &records);
    origins(&mut text, &records);
    by_ground(&mut text, &records);
    by_disturbance(&mut text, &records);
    grid(&mut text, &records);
    hostile_members(&mut text, &villains);
    listed(&mut text, &records, Verdict::Find, "Finds");
    listed(&mut text, &records, Verdict::Suspect, "Suspects");
    Ok(text)
}

const HEAD: &str = "\
# Campaign

What a seed draws, a trial runs: a program of several ranks on a ground, struck by disturbances. An oracle knows what must have arrived: every byte
of a message follows from the seed, its sender, its receiver and its number. `tests/campaign` is the program; this page is
`campaign report LOG...`, and states the runs of its logs; its last section is written by hand.

```text
cargo run --release -p tagwire-campaign -- run --seeds 0..1000 --log FILE     trials
cargo run --release -p tagwire-campaign -- trial SEED                         one of them, again
cargo run --release -p tagwire-campaign -- bars --log FILE                    what the file lacks of the bars below
cargo run --release -p tagwire-campaign -- report FILE...                     this page
```

Records have the revision of their build, its profile and the machine. What a file has of the same three is left out, so that `run` and `bars` go on where they
were ended. `bars` is 1,000 kills, 200 cables pulled, trials of all that seeds draw until each other disturbance has 25 blows (`mix`), a flood of 1,000,000 messages
from each rank on each ground, and 100,000,000 packets of hostile members; `--seconds N` begins nothing after N seconds, `--share N` has N of a thousand of it, and
`--only` some of the bars, so that several drivers share the processors, each with a log of its own. A seed draws the same trial at the same revision: its trial changes
with the lists of grounds, programs and disturbances. The profile `checked` is release with debug assertions and overflow checks: it finds what debug finds.

```text
cargo build --profile checked -p tagwire-campaign -p tagwire-cli -p mpi_abi -p mpifort_abi
campaign=target/checked/campaign
$campaign bars --only kill --log A.log & $campaign bars --only flap,cut,sever,mix,flood --log B.log; wait
$campaign bars --only ob1-shm,ob1-memory,dr-memory,striped-memory,cm-memory --log A.log & $campaign bars --only cm-shm --log B.log; wait
$campaign report A.log B.log
```

Trials wait more than they compute: two drivers of them did not slow each other, and what is late is repeated on idle processors all the same. In
profile `checked` on an Intel Xeon (2 threads) 1,000 kills took 10 minutes, and the rest of the first line 20 beside them, floods 2 of these; the second line took 33 minutes
beside simulations: 35,000 to 140,000 packets/s in memory, and 23,000 over shared memory, where the kernel is what takes the time, to open a rank for each member. The flood
over `ofi-cm` needs 17 GB for each rank that sends, and is a find: see the last section.

A trial is good where all of this holds:

- what arrives has the right contents, in the order of its pair and tag, each message once; among ranks that live, all of it;
- operations with a rank that died fail with its name, and no rank that lives is lost by another;
- no rank is silent for longer than the bound, what can go on goes on within it, and a death is known within it: see below;
- a rank that is flooded grows by 104 MiB at most: 64 MiB of payload and 16 MiB of envelopes are its budgets, and 24 MiB are for what is no message. Over
  `ofi-cm` it is 512 MiB, since the provider has a buffer of 16 KiB for each message. The floods of `bars` have 256 to 448 MiB of payload from each rank, so that
  senders are held back; others have up to 160 MB;
- a rank says that a call ended for a shortage only where a blow takes descriptors or memory from it;
- what all members have in common, as a window, ends only with one of them; nobody is held for gone before its death;
- where the only cable is pulled, each rank ends or goes on within 6 s of that: see below;
- afterwards there is no process, no file, no new name in `/dev/shm` that no living process has, and the driver has no descriptor more than before; nor have
  the ranks where the transport is Tagwire's own, but for what the MPI library keeps until its process ends (its store, its memory, two of each process). Memory by memfd_create(2) ends with whoever has it, so that these are the places where it could stay.

A trial in which something was late is repeated twice, each time once the processors idle, or after 20 s in which they do not. It is a find where it is late
again on idle processors, or more than late; else it remains a suspect, of which the page says what the repetitions came to.
A new name in `/dev/shm` may be of others on the machine: its trial is repeated likewise.

`ci/test` runs the first 18 seeds and 3,000 packets of hostile members for each victim, `ci/full` seeds for two minutes. Programs in C are compiled by the
build's own `mpicc`: `cargo build --workspace` makes what it needs. Hosts are network namespaces, which take root and the command `ip`. What is missing makes
a trial void, but for programs in Rust over shared memory: these run everywhere, and a find is what cannot.

## What must go on

A rank says every 50 ms how many of its operations have ended, and what it waits for. Within the bound it says something, and something ends:

- of a *stream*, the messages in one direction between two ranks that both look after it all the time (`mesh`, `partitioned`): its next message or round, on one of
  the two sides, whatever else goes on;
- of a rank that waits for others (`flood`, programs in C, members that meet after a death): an operation of it, of those for whom it waits, or of those for whom these
  wait. So a rank whose peer computes, floods or serves a third is not stuck, and ranks that wait for each other are;
- of any other rank: one of its operations. A rank in a blocking call says nothing, and may wait for any other there.

Not counted are the time before all of these ranks have joined, the time that a blow lasts (of a rank that is stopped, late or short of something, of a cable that is out), the time for which
slow ranks have slept, which they say, and that in which the machine did not run the driver for 250 ms. A death begins the time anew, and what has to do with the dead rank ends when it is known.
The figures are of the driver's reading, and up to 100 ms less than what was.

Where the only cable is pulled, both sides have 6 s for the same ([failures.md](failures.md)). A host learns that it is alone by its TCP connection to the job's store, which is given up
after 1 s of silence and three questions a second apart, or 4 s after bytes that nobody acknowledged (`launch/src/store/socket.rs`); then ranks are told, and end what they have
under way. In 17 trials beside other load what stood still longest stood for 5.0 s. 3 s would take a limit of 2 s, since the system asks by whole seconds, and end jobs in an
outage of 2 s, which TCP survives.

There is no ground of simulated networks: ranks of trials are processes, which the system kills, stops and limits, and they wait by the machine's clock. On
simulated networks the suites run by random schedules ([simulation.md](simulation.md)).

## Trials

";

fn all_in_all(text: &mut String, records: &[Record]) {
    let mut sum = Sum::default();
    records.iter().for_each(|record| sum.add(record));
    let struck = |name: &str| {
        let ran = records
            .iter()
            .filter(|record| record.verdict != Verdict::Void);
        ran.map(|record| record.blows_of(name)).sum::<u64>()
    };
    let cuts: u64 = ["cut", "flap", "sever"].map(struck).iter().sum();
    let wall = records.iter().map(|record| record.wall_ms).sum::<u64>() / 1000;
    let _ = writeln!(
        text,
        "{} trials in {wall} s with {} messages and operations checked, {} kills, {cuts} cables pulled: {} finds, {}, {} that could not be run.\n",
        sum.trials,
        sum.checked,
        struck("kill"),
        sum.finds,
        suspects(records),
        sum.voids
    );
}

/// Returns how many suspects there are, and what their repetitions came to.
fn suspects(records: &[Record]) -> String {
    let all = records
        .iter()
        .filter(|record| record.verdict == Verdict::Suspect);
    let standings: Vec<Standing> = all.map(Record::standing).collect();
    let count = |standing| standings.iter().filter(|one| **one == standing).count();
    let parts = Standing::ALL.map(|standing| (count(standing), standing.text()));
    let parts = parts.into_iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts
        .map(|(count, text)| format!("{count} {text}"))
        .collect();
    match parts.is_empty() {
        true => "0 suspects".to_owned(),
        false => format!("{} suspects ({})", standings.len(), parts.join(", ")),
    }
}

/// Which seeds were run, by build, machine and choice.
fn origins(text: &mut String, records: &[Record]) {
    let mut seeds: BTreeMap<(String, &str), BTreeSet<u64>> = BTreeMap::new();
    for record in records {
        let key = (record.origin.to_string(), record.choice.trim());
        seeds.entry(key).or_default().insert(record.seed);
    }
    text.push_str(
        "| revision | profile | machine | choice | trials | seeds |\n|---|---|---|---|---|---|\n",
    );
    for ((origin, choice), seeds) in seeds {
        let choice = match choice {
            "" => "-".to_owned(),
            choice => format!("`{choice}`"),
        };
        let (count, seeds) = (seeds.len(), ranges(&seeds));
        let _ = writeln!(text, "| {origin} | {choice} | {count} | {seeds} |");
    }
    text.push('\n');
}

/// Returns numbers as ranges, `FROM..TO` without its end.
fn ranges(numbers: &BTreeSet<u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, end)) if *end == *number => *end += 1,
            _ => ranges.push((*number, number + 1)),
        }
    }
    let texts = ranges.iter().map(|(from, end)| format!("{from}..{end}"));
    texts.collect::<Vec<_>>().join(", ")
}

const TIMES: &str = "| trials | checked | suspects | finds | void | silence, ms: median, 99 %, most | no progress, ms: the same | notice of a death, ms: the same |\n";

fn row(text: &mut String, head: &str, sum: &Sum) {
    let _ = write!(
        text,
        "| {head} | {} | {} | {} | {} | {} |",
        sum.trials, sum.checked, sum.suspects, sum.finds, sum.voids
    );
    for values in [&sum.silence_ms, &sum.stall_ms, &sum.notice_ms] {
        let _ = match values.is_empty() {
            true => write!(text, " - |"),
            false => write!(
                text,
                " {}, {}, {} |",
                share(values, 50),
                share(values, 99),
                share(values, 100)
            ),
        };
    }
    text.push('\n');
}

fn by_ground(text: &mut String, records: &[Record]) {
    let _ = write!(
        text,
        "## By ground\n\n| ground | bound | {}|---|---|---|---|---|---|---|---|---|---|\n",
        &TIMES[2..]
    );
    for ground in grounds::ALL {
        let mut sum = Sum::default();
        records
            .iter()
            .filter(|record| record.ground == ground.name())
            .for_each(|record| sum.add(record));
        let head = format!("{} | {} s", ground.name(), ground.bound().as_secs());
        row(text, &head, &sum);
    }
    text.push('\n');
}

fn by_disturbance(text: &mut String, records: &[Record]) {
    let _ = write!(
        text,
        "## By disturbance\n\n| disturbance | blows | {}|---|---|---|---|---|---|---|---|---|---|\n",
        &TIMES[2..]
    );
    for disturbance in disturbances::ALL {
        let (mut sum, mut blows) = (Sum::default(), 0);
        for record in records {
            let count = record.blows_of(disturbance.name());
            if count > 0 {
                sum.add(record);
                blows += if record.verdict == Verdict::Void {
                    0
                } else {
                    count
                };
            }
        }
        let head = format!("{}: {} | {blows}", disturbance.name(), disturbance.about());
        row(text, &head, &sum);
    }
    text.push('\n');
}

/// How often each program ran on each ground.
fn grid(text: &mut String, records: &[Record]) {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record.verdict != Verdict::Void)
    {
        *counts.entry((&record.program, &record.ground)).or_default() += 1;
    }
    text.push_str("## Programs on grounds\n\n| program |");
    for ground in grounds::ALL {
        let _ = write!(text, " {} |", ground.name());
    }
    let _ = writeln!(text, "\n|---|{}", "---|".repeat(grounds::ALL.len()));
    for program in programs::ALL {
        let _ = write!(text, "| {}: {} |", program.name(), program.about());
        for ground in grounds::ALL {
            let count = counts
                .get(&(program.name(), ground.name()))
                .copied()
                .unwrap_or_default();
            let _ = write!(text, " {count} |");
        }
        text.push('\n');
    }
    text.push('\n');
}

/// What hostile members in one process have come to.
fn hostile_members(text: &mut String, records: &[HostileRecord]) {
    text.push_str(HOSTILE);
    for target in hostile::ALL {
        let of_it: Vec<_> = records
            .iter()
            .filter(|record| record.hostile == target.name())
            .collect();
        let sum = |figure: fn(&HostileRecord) -> u64| {
            of_it.iter().map(|record| figure(record)).sum::<u64>()
        };
        let of: BTreeSet<String> = of_it
            .iter()
            .map(|one| {
                let Origin {
                    revision,
                    profile,
                    machine,
                } = &one.origin;
                format!("{revision}, {profile}, {machine}")
            })
            .collect();
        let of = of.into_iter().collect::<Vec<_>>().join("; ");
        let (packets, wall_ms) = (sum(|one| one.packets), sum(|one| one.wall_ms));
        let _ = writeln!(
            text,
            "| {}: {} | {packets} | {} | {} | {} | {} | {} | {} | {of} |",
            target.name(),
            target.about(),
            sum(|one| one.villains),
            sum(|one| one.given_up),
            sum(|one| one.ended),
            sum(|one| one.why.len() as u64),
            sum(|one| one.late.len() as u64),
            packets * 1000 / wall_ms.max(1),
        );
    }
    text.push('\n');
}

const HOSTILE: &str = "\
## Hostile members

In one process a member that has proved who it is sends its victim packets as correct peers send them, packets of chance, and those that it has heard, as they were or changed
(`campaign hostile --packets N`); eight of them, one after the other. The victim has messages under way with each, reaches a window that has the key of its own, sends and receives
partitions under one tag, and makes duplicates of the group of all: so a member that says again what it has heard answers, and `services` counts the accesses and rounds that
ended as with a correct peer. The victim gives each up or goes on, says what it waits for, closes, panics never, and its memory stays.
A packet counts where the transport took it. A round of more than 1 s is repeated as a trial is. The disturbance `scribble` is the same in shared memory, between processes.

| victim | packets | members | given up | services | finds | late | packets/s | of |
|---|---|---|---|---|---|---|---|---|
";

/// The trials of a verdict, one by one.
fn listed(text: &mut String, records: &[Record], verdict: Verdict, head: &str) {
    let found = records.iter().filter(|record| record.verdict == verdict);
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return;
    }
    let _ = write!(
        text,
        "## {head}\n\n| seed | trial | what |\n|---|---|---|\n"
    );
    for record in found {
        let mut what = record.why.first().cloned().unwrap_or_default();
        if verdict == Verdict::Suspect {
            let _ = write!(what, "; {}", record.standing().text());
        }
        let _ = writeln!(
            text,
            "| `trial {}{}` | {} of {} ranks on {}: {} | {} |",
            record.seed,
            record.choice,
            record.program,
            record.ranks,
            record.ground,
            record.blows.join(" "),
            what
        );
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::record::{Again, Repeat};

    #[test]
    fn suspects_are_what_their_repetitions_were() {
        let suspect = |repeats: &[(Again, bool)]| {
            let mut record = record();
            record.verdict = Verdict::Suspect;
            let repeats = repeats.iter();
            record.repeats = repeats
                .map(|(again, idle)| Repeat {
                    again: *again,
                    idle: *idle,
                })
                .collect();
            record
        };
        assert_eq!(suspects(&[record()]), "0 suspects");
        let all = [
            suspect(&[(Again::Good, true), (Again::Good, true)]),
            suspect(&[(Again::Late, false), (Again::Good, true)]),
            suspect(&[(Again::Late, false), (Again::Late, false)]),
            suspect(&[]),
        ];
        assert_eq!(
            suspects(&all),
            "4 suspects (1 good when repeated on idle processors, 2 late again beside other load, 1 not repeated)"
        );
    }

    /// The page in `docs/` may be of another revision: what is no figure is the same.
    #[test]
    fn the_page_begins_as_it_is_written() {
        let page = include_str!("../../../docs/campaign.md");
        assert!(page.starts_with(HEAD), "docs/campaign.md differs from HEAD");
        let (words, _) = HOSTILE.split_once("\n| ").unwrap();
        assert!(
            page.contains(words),
            "docs/campaign.md differs from HOSTILE"
        );
    }

    #[test]
    fn pages_name_builds_machines_choices_and_seeds() {
        let of = |revision: &str, choice: &str, seed| {
            let mut record = record();
            record.origin.revision = revision.to_owned();
            record.origin.machine = "a machine".to_owned();
            record.origin.profile = "release".to_owned();
            (record.choice, record.seed) = (choice.to_owned(), seed);
            record
        };
        let records = [
            of("one", "", 2),
            of("one", "", 0),
            of("one", "", 1),
            of("one", " --disturbance kill", 9),
            of("two", "", 5),
        ];
        let mut text = String::new();
        origins(&mut text, &records);
        let rows: Vec<_> = text
            .lines()
            .skip(2)
            .filter(|line| !line.is_empty())
            .collect();
        let expected = [
            "| one | release | a machine | - | 3 | 0..3 |",
            "| one | release | a machine | `--disturbance kill` | 1 | 9..10 |",
            "| two | release | a machine | - | 1 | 5..6 |",
        ];
        assert_eq!(rows, expected);
    }
}
