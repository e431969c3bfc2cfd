//! The page of a campaign: what was tried, how often, within which bounds.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use crate::disturbances;
use crate::grounds;
use crate::hostile;
use crate::programs;
use crate::record::{HostileRecord, Line, Record, Verdict, read};

/// What some records have in common, summed up.
#[derive(Debug, Default)]
struct Sum {
    trials: u64,
    checked: u64,
    suspects: u64,
    finds: u64,
    voids: u64,
    silence_ms: Vec<u64>,
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
    by_ground(&mut text, &records);
    by_disturbance(&mut text, &records);
    grid(&mut text, &records);
    hostile_members(&mut text, &villains);
    finds(&mut text, &records);
    Ok(text)
}

const HEAD: &str = "\
# Campaign

What a seed draws, a trial runs: a program of several ranks on a ground, struck by disturbances. An oracle knows what must have arrived: every byte
of a message follows from the seed, its sender, its receiver and its number. `tests/campaign` is the program; this page is
`campaign report LOG...`, and states the runs of its logs.

```text
cargo run --release -p tagwire-campaign -- run --seeds 0..1000 --log FILE     trials; those that the file has are left out
cargo run --release -p tagwire-campaign -- trial SEED                         one of them, again
cargo run --release -p tagwire-campaign -- report FILE...                     this page
```

A trial is good where all of this holds:

- what arrives has the right contents, in the order of its pair and tag, each message once; among ranks that live, all of it;
- operations with a rank that died fail with its name, and no rank that lives is lost by another;
- no rank is silent for longer than the bound, and knows of a death within it. The time that a blow lasts is not counted;
- afterwards there is no process, no name in `/dev/shm`, no file, and the ranks have no descriptor more than before where the transport is Tagwire's own.

A trial in which something was late is repeated twice, once the processors idle, and is a find where it is late again. Where they do not idle within 20 s it
remains a suspect.

`ci/test` runs the first 18 seeds and 3,000 packets of hostile members for each victim, `ci/full` seeds for two minutes. Programs in C are compiled by the
build's own `mpicc`: `cargo build --workspace` makes what it needs. Hosts are network namespaces, which take root and the command `ip`. What is missing makes
a trial void.

";

fn all_in_all(text: &mut String, records: &[Record]) {
    let mut sum = Sum::default();
    records.iter().for_each(|record| sum.add(record));
    let struck = |name: &str| {
        let ran = records
            .iter()
            .filter(|record| record.verdict != Verdict::Void);
        let blows = ran.flat_map(|record| &record.blows);
        blows
            .filter(|blow| blow.split(':').next() == Some(name))
            .count()
    };
    let wall = records.iter().map(|record| record.wall_ms).sum::<u64>() / 1000;
    let _ = writeln!(
        text,
        "{} trials in {wall} s with {} messages and operations checked, {} kills: {} finds, {} suspects that were good alone, {} that could not be run.\n",
        sum.trials,
        sum.checked,
        struck("kill"),
        sum.finds,
        sum.suspects,
        sum.voids
    );
}

const TIMES: &str = "| trials | checked | suspects | finds | void | silence, ms: median, 99 %, most | notice of a death, ms: median, 99 %, most |\n";

fn row(text: &mut String, head: &str, sum: &Sum) {
    let _ = write!(
        text,
        "| {head} | {} | {} | {} | {} | {} |",
        sum.trials, sum.checked, sum.suspects, sum.finds, sum.voids
    );
    for values in [&sum.silence_ms, &sum.notice_ms] {
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
        "## By ground\n\n| ground | bound | {}|---|---|---|---|---|---|---|---|---|\n",
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
        "## By disturbance\n\n| disturbance | blows | {}|---|---|---|---|---|---|---|---|---|\n",
        &TIMES[2..]
    );
    for disturbance in disturbances::ALL {
        let (mut sum, mut blows) = (Sum::default(), 0);
        for record in records {
            let of_it = |blow: &&String| blow.split(':').next() == Some(disturbance.name());
            let count = record.blows.iter().filter(of_it).count();
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
        let (packets, wall_ms) = (sum(|one| one.packets), sum(|one| one.wall_ms));
        let _ = writeln!(
            text,
            "| {}: {} | {packets} | {} | {} | {} | {} |",
            target.name(),
            target.about(),
            sum(|one| one.villains),
            sum(|one| one.given_up),
            sum(|one| one.why.len() as u64),
            packets * 1000 / wall_ms.max(1),
        );
    }
    text.push('\n');
}

const HOSTILE: &str = "\
## Hostile members

In one process a member that has proved who it is sends its victim packets as correct peers send them, packets of chance, and changed ones of those that it
has heard (`campaign hostile --packets N`). The victim gives it up or goes on, says what it waits for, closes, panics never, and its memory stays.
A packet counts where the victim had not given its sender up. The disturbance `scribble` is the same in shared memory, between processes.

| victim | packets | members | given up | finds | packets/s |
|---|---|---|---|---|---|
";

fn finds(text: &mut String, records: &[Record]) {
    let found = records
        .iter()
        .filter(|record| record.verdict == Verdict::Find);
    let found: Vec<_> = found.collect();
    if found.is_empty() {
        return;
    }
    text.push_str("## Finds\n\n| seed | trial | what |\n|---|---|---|\n");
    for record in found {
        let what = record.why.first().map(String::as_str).unwrap_or_default();
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
