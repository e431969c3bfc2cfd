//! Hostile members, in one process at a high rate: a rank is in contact with a member that has proved who it is, and then
//! sends whatever it likes.
//!
//! ```text
//!   villain: a bare transport           victim: a layer over a transport, with messages and services under way
//!     packets of chance, or      ---->    takes them, or gives the villain up
//!     what it heard, changed     <----    its own packets
//! ```
//!
//! A round is one victim and some villains, one after the other: each until the victim gives it up, or it has sent its packets.
//! The victim ends every round in good order: it can be asked what it waits for, and it closes. It never panics, and its memory
//! does not grow from round to round. To open a rank takes a thousand times as long as a packet: so a victim has several villains.

mod bytes;
mod matching;
mod memory;
mod packet;
mod places;
mod services;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_conformance::Chance;
use tagwire_pml::{Messenger, SendMode};
use tagwire_transport::Post;

use places::{Scattered, buffer};
use services::Services;

use crate::deadline::Deadline;
use crate::idle::wait_for_idle_processors;
use crate::origin::Origin;
use crate::record::{HostileRecord, Line, append, read};

/// The victim's rank, and how many villains there are in a round: the ranks from 1 on.
const VICTIM: Rank = Rank::new(0);
const VILLAINS: u32 = 8;
/// The tag of the victim's messages.
const TAG: Tag = Tag::from_wire(1).expect("it is positive");
/// Packets of a villain at most.
const PACKETS: u64 = 400;
/// What the process may grow by, once it has had the rounds of its beginning.
const MOST_KIB: u64 = 64 << 10;
const BEGINNING: u64 = 100;
/// How long a victim may take to close: nobody answers it.
const CLOSING: Duration = Duration::from_millis(1);
/// Packets of a record at most.
const AT_ONCE: u64 = 1_000_000;
/// How long a round may take.
const BOUND: Duration = Duration::from_secs(1);

/// What a transport says to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It is sent.
    Sent,
    /// It is not: there is no room, or it cannot be sent at all.
    Refused,
    /// It is not: the victim listens no more.
    Gone,
}

impl From<Post> for Answer {
    fn from(post: Post) -> Self {
        match post {
            Post::Posted => Self::Sent,
            Post::Busy | Post::Unsupported => Self::Refused,
            Post::Gone => Self::Gone,
        }
    }
}

/// One who has proved to be a member.
pub trait Villain {
    /// Sends one packet, where the transport takes it.
    fn send(&mut self, chance: &mut Chance) -> Answer;

    /// Hears what the victim says, to say it again with changes.
    fn hear(&mut self);
}

/// A victim and its villains, in the order of their ranks.
pub struct Bed {
    victim: Arc<Messenger>,
    villains: Vec<Box<dyn Villain>>,
}

/// Returns the ranks of the villains.
fn villains() -> impl Iterator<Item = Rank> {
    (1..=VILLAINS).map(Rank::new)
}

/// What a victim stands on.
pub trait Target: Sync {
    /// Returns its name in reports.
    fn name(&self) -> &'static str;

    /// Returns one line for reports.
    fn about(&self) -> &'static str;

    /// Opens a victim, and villains that can reach it.
    ///
    /// # Errors
    /// When they cannot be opened.
    fn open(&self, chance: &mut Chance) -> Result<Bed, String>;
}

/// All of them.
pub const ALL: &[&dyn Target] = &[
    &bytes::MEMORY,
    &bytes::SHM,
    &bytes::DR,
    &bytes::STRIPED,
    &matching::MEMORY,
    &matching::SHM,
];

/// What rounds have come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Victims.
    pub rounds: u64,
    /// Villains.
    pub villains: u64,
    /// Packets that they sent.
    pub packets: u64,
    /// Villains that were given up.
    pub given_up: u64,
    /// Operations of services that ended as with a correct peer.
    pub ended: u64,
    /// Rounds in which something was wrong.
    pub wrong: u64,
}

/// Runs a round of a seed.
///
/// # Errors
/// Says what is wrong.
fn round(target: &dyn Target, seed: u64) -> Result<Count, String> {
    let mut chance = Chance::new(seed);
    let bed = target.open(&mut chance)?;
    let victim = bed.victim;
    let mut services = Services::of(&victim);
    let mut count = Count {
        rounds: 1,
        ..Count::default()
    };
    for (rank, mut villain) in villains().zip(bed.villains) {
        count.villains += 1;
        let (packets, is_given_up) =
            torment(&victim, &mut services, rank, &mut *villain, &mut chance)?;
        count.packets += packets;
        count.given_up += u64::from(is_given_up);
    }
    for _ in 0..32 {
        victim.progress().map_err(|why| why.to_string())?;
    }
    victim.dump().map_err(|why| why.to_string())?;
    services.look();
    count.ended = services.ended;
    drop(services);
    let _ = victim.close(CLOSING);
    if count.packets == 0 {
        return Err("no packet was sent".to_owned());
    }
    Ok(count)
}

/// Lets one villain send. Returns how many packets it sent, and whether the victim has given it up.
fn torment(
    victim: &Messenger,
    services: &mut Services,
    rank: Rank,
    villain: &mut dyn Villain,
    chance: &mut Chance,
) -> Result<(u64, bool), String> {
    let mut packets = 0;
    for number in 0..PACKETS {
        if number % 16 == 0 {
            begin_something(victim, rank, chance)?;
            services.begin(rank, chance)?;
            services.look();
        }
        if chance.below(3) == 0 {
            villain.hear();
        }
        match villain.send(chance) {
            Answer::Sent => packets += 1,
            Answer::Refused => {}
            Answer::Gone => break,
        }
        if chance.below(2) == 0 {
            victim.progress().map_err(|why| why.to_string())?;
            // What it sends from now on nobody looks at.
            let failed = victim.failed().map_err(|why| why.to_string())?;
            if failed.contains(&rank) {
                return Ok((packets, true));
            }
        }
    }
    Ok((packets, false))
}

/// Has the victim receive and send: what the villain then says may be about that.
fn begin_something(victim: &Messenger, villain: Rank, chance: &mut Chance) -> Result<(), String> {
    let len = chance.one_of(&[0, 8, 3_000, 100_000]);
    let refused = |why: tagwire_pml::Error| match why {
        // The villain has been given up.
        tagwire_pml::Error::Failed(_) => Ok(()),
        why => Err(why.to_string()),
    };
    if chance.is_true() {
        let mode = chance.one_of(&[SendMode::Standard, SendMode::Synchronous]);
        let sent = victim.isend(Scattered::of(len), villain, TAG, ContextId::WORLD, mode);
        return sent.map(drop).or_else(refused);
    }
    let (source, tag) = match chance.is_true() {
        true => (SourceSelector::ANY, TagSelector::ANY),
        false => (SourceSelector::exact(villain), TagSelector::exact(TAG)),
    };
    victim
        .irecv(buffer(len), source, tag, ContextId::WORLD)
        .map(drop)
        .or_else(refused)
}

/// What is run.
#[derive(Debug, Clone, clap::Args)]
pub struct HostileOptions {
    /// Send so many packets to each target, with those that the log has of this build on this machine
    #[arg(long, default_value_t = 100_000)]
    pub packets: u64,
    /// Begin with the round of this seed, or behind those of the log
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Append lines of JSON for each target to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// This target alone
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ALL.iter().map(|one| one.name())))]
    pub target: Option<String>,
}

/// Runs rounds, and says what they came to. Returns how many finds there were.
///
/// # Errors
/// When the log cannot be read or written.
pub fn run(options: &HostileOptions) -> Result<usize, String> {
    let mut finds = 0;
    let wanted = |target: &&&dyn Target| {
        options
            .target
            .as_ref()
            .is_none_or(|name| name == target.name())
    };
    for target in ALL.iter().filter(wanted) {
        let log = options.log.as_deref();
        finds += go_on(
            *target,
            options.seed,
            options.packets,
            log,
            Deadline::default(),
        )?;
    }
    Ok(finds)
}

/// Runs rounds of a target until they have sent so many packets, with those that a log has. Returns how many finds there
/// were.
///
/// # Errors
/// When the log cannot be read or written.
pub fn go_on(
    target: &dyn Target,
    first: u64,
    packets: u64,
    log: Option<&Path>,
    deadline: Deadline,
) -> Result<usize, String> {
    let (mut seed, mut sent) = match log {
        Some(log) => known(&read(log)?, target, first),
        None => (first, 0),
    };
    let mut finds = 0;
    while sent < packets && !deadline.is_over() {
        let record = part(target, seed, AT_ONCE.min(packets - sent));
        println!(
            "{}: {} packets of {} members, of whom {} were given up, and {} operations of services that ended, in {} ms",
            record.hostile,
            record.packets,
            record.villains,
            record.given_up,
            record.ended,
            record.wall_ms
        );
        for (seed, why) in &record.why {
            println!(
                "  again: cargo run -p tagwire-campaign -- hostile --target {} --packets 1 --seed {seed}",
                record.hostile
            );
            println!("  {why}");
        }
        if let Some(log) = log {
            append(log, &record)?;
        }
        finds += record.why.len();
        (seed, sent) = (record.end, sent + record.packets);
        if record.packets == 0 {
            break;
        }
    }
    Ok(finds)
}

/// Returns the seed behind those that a log has of a target, this build and this machine, and the packets of these.
pub fn known(lines: &[Line], target: &dyn Target, first: u64) -> (u64, u64) {
    let origin = Origin::here();
    let of_it = lines.iter().filter_map(|line| match line {
        Line::Hostile(one) if one.origin == origin && one.hostile == target.name() => Some(one),
        _ => None,
    });
    of_it
        .filter(|one| one.seed >= first)
        .fold((first, 0), |(seed, packets), one| {
            (seed.max(one.end), packets + one.packets)
        })
}

/// Runs rounds of a target until they have had so many packets, and repeats those that took too long.
fn part(target: &dyn Target, first: u64, packets: u64) -> HostileRecord {
    let began = Instant::now();
    let (count, mut why, slow) = rounds(target, first, packets);
    let mut late = Vec::new();
    for (seed, took) in slow {
        let is_idle = wait_for_idle_processors();
        match round_of(target, seed) {
            Ok((_, again)) if again <= BOUND => {}
            Ok(_) if !is_idle => late.push(seed),
            Ok((_, again)) => why.push((seed, format!("a round took {took:?}, then {again:?}"))),
            Err(text) => why.push((seed, text)),
        }
    }
    HostileRecord {
        origin: Origin::here(),
        hostile: target.name().to_owned(),
        seed: first,
        end: first + count.rounds + count.wrong,
        villains: count.villains,
        packets: count.packets,
        given_up: count.given_up,
        ended: count.ended,
        late,
        why,
        wall_ms: began.elapsed().as_millis() as u64,
    }
}

/// What was wrong in rounds, by their seeds.
type Wrong = Vec<(u64, String)>;
/// The rounds that took too long, and how long.
type Slow = Vec<(u64, Duration)>;

/// Runs a round. A panic is a find, and others may come after it.
fn round_of(target: &dyn Target, seed: u64) -> Result<(Count, Duration), String> {
    let began = Instant::now();
    match catch_unwind(AssertUnwindSafe(|| round(target, seed))) {
        Ok(ended) => ended.map(|count| (count, began.elapsed())),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("panicked: {}", text.unwrap_or_default()))
        }
    }
}

/// Runs rounds of a target until they have had so many packets.
fn rounds(target: &dyn Target, first: u64, packets: u64) -> (Count, Wrong, Slow) {
    let (mut sum, mut before) = (Count::default(), None);
    let (mut wrong, mut slow) = (Wrong::new(), Slow::new());
    for seed in first.. {
        if sum.packets >= packets || wrong.len() > 20 {
            break;
        }
        match round_of(target, seed) {
            Ok((count, took)) => {
                sum.rounds += 1;
                sum.villains += count.villains;
                sum.packets += count.packets;
                sum.given_up += count.given_up;
                sum.ended += count.ended;
                if took > BOUND {
                    slow.push((seed, took));
                }
            }
            Err(why) => {
                sum.wrong += 1;
                wrong.push((seed, why));
            }
        }
        if sum.rounds == BEGINNING {
            before = Some(resident_kib());
        }
    }
    if let Some(before) = before {
        let grown = resident_kib().saturating_sub(before);
        if grown > MOST_KIB {
            let rounds = sum.rounds;
            let text = format!("{rounds} rounds have grown the process by {grown} KiB");
            wrong.push((first, text));
        }
    }
    (sum, wrong, slow)
}

/// Returns how much memory this process has, by proc_pid_statm(5).
fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * (rustix::param::page_size() as u64 / 1024)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A target whose villain has room for one packet in `room`.
    struct Narrow {
        room: u64,
        taken: Arc<AtomicU64>,
    }

    struct NarrowVillain {
        inner: Box<dyn Villain>,
        room: u64,
        tried: u64,
        taken: Arc<AtomicU64>,
    }

    impl Target for Narrow {
        fn name(&self) -> &'static str {
            "narrow"
        }

        fn about(&self) -> &'static str {
            "most packets are refused"
        }

        fn open(&self, chance: &mut Chance) -> Result<Bed, String> {
            let bed = matching::MEMORY.open(chance)?;
            let narrow = |inner| -> Box<dyn Villain> {
                Box::new(NarrowVillain {
                    inner,
                    room: self.room,
                    tried: 0,
                    taken: Arc::clone(&self.taken),
                })
            };
            let villains = bed.villains.into_iter().map(narrow).collect();
            Ok(Bed { villains, ..bed })
        }
    }

    impl Villain for NarrowVillain {
        fn send(&mut self, chance: &mut Chance) -> Answer {
            self.tried += 1;
            if !self.tried.is_multiple_of(self.room) {
                return Answer::Refused;
            }
            let answer = self.inner.send(chance);
            let is_sent = u64::from(answer == Answer::Sent);
            self.taken.fetch_add(is_sent, Ordering::Relaxed);
            answer
        }

        fn hear(&mut self) {
            self.inner.hear();
        }
    }

    #[test]
    fn packets_that_are_refused_do_not_count() {
        let taken = Arc::new(AtomicU64::new(0));
        let narrow = |room| Narrow {
            room,
            taken: Arc::clone(&taken),
        };
        let count = round(&narrow(4), 1).unwrap();
        assert_eq!(count.packets, taken.load(Ordering::Relaxed));
        let none = round(&narrow(PACKETS + 1), 1);
        assert_eq!(none, Err("no packet was sent".to_owned()));
    }

    #[test]
    fn rounds_go_on_behind_those_of_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let target = &matching::MEMORY;
        let go = |packets| go_on(target, 0, packets, Some(&log), Deadline::default()).unwrap();
        let lines = || read(&log).unwrap();
        assert_eq!(go(1_000), 0);
        let (end, packets) = known(&lines(), target, 0);
        assert!(packets >= 1_000);
        assert_eq!(go(1_000), 0);
        assert_eq!(known(&lines(), target, 0), (end, packets));
        assert_eq!(go(3_000), 0);
        assert_eq!(lines().len(), 2);
        let Line::Hostile(last) = &lines()[1] else {
            panic!("{:?}", lines())
        };
        assert_eq!(last.seed, end);
    }

    #[test]
    fn hostile_members_do_no_harm() {
        for target in ALL {
            let (count, wrong, _) = rounds(*target, 0, 3_000);
            assert!(wrong.is_empty(), "{}: {wrong:?}", target.name());
            assert!(
                count.packets > 2 * count.villains,
                "{}: {count:?}",
                target.name()
            );
            // What is answered is under way at all.
            let answers = [bytes::MEMORY.name(), bytes::SHM.name()].contains(&target.name());
            assert!(count.ended > 0 || !answers, "{}: {count:?}", target.name());
            // Who sends what matches nothing breaks no protocol.
            let can_break = target.name() != matching::MEMORY.name();
            assert_eq!(
                count.given_up > count.villains / 2,
                can_break,
                "{}: {count:?}",
                target.name()
            );
        }
    }
}
