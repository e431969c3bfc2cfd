//! Whether operations go on: ranks that live and say so may be stuck all the same.
//!
//! A rank says how many of its operations have ended, and what it waits for ([`Progress`](crate::events::Progress)):
//!
//! - a *stream* is looked after by both of its ranks all the time: the next of its messages ends on one of the two sides within the bound,
//!   whatever else goes on;
//! - a rank that *waits for* others goes on within the bound after the last of them did, and after those whom these wait for.
//!
//! What is not counted: the time before all of them have joined, the time of blows, and that for which slow ones slept. A death begins
//! the time anew, and what has to do with a dead rank is judged by when that is noticed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::disturbances::Toll;
use crate::events::{Event, Progress, Stream, Word};
use crate::oracle::{READING, Seen, Struck};

/// What a rank has said until now.
#[derive(Debug, Default)]
struct Rank {
    /// When it has joined.
    joined: Option<Instant>,
    /// When it last said something new.
    changed: Option<Instant>,
    /// What it said last of how far it is.
    progress: Progress,
    /// Since when each stream has ended no message.
    streams: BTreeMap<Stream, Instant>,
    /// How long it had slept, by the times when it said so.
    slept: BTreeMap<Instant, Duration>,
}

impl Rank {
    fn hear(&mut self, event: &Event) {
        let at = event.at;
        match &event.word {
            Word::Process(_) | Word::Ended(_) => {}
            Word::Alive(progress) => {
                if progress.ended != self.progress.ended {
                    self.changed = Some(at);
                }
                let (old, before) = (&self.progress.streams, &self.streams);
                let since = |(stream, ended): (&Stream, &u64)| match before.get(stream) {
                    Some(since) if old.get(stream) == Some(ended) => (*stream, *since),
                    _ => (*stream, at),
                };
                self.streams = progress.streams.iter().map(since).collect();
                self.slept.insert(at, progress.slept);
                self.progress = progress.clone();
            }
            word => {
                if *word == Word::Ready {
                    self.joined = Some(at);
                }
                // Who closes waits for nobody.
                self.progress.waits_for.clear();
                self.streams.clear();
                self.changed = Some(at);
            }
        }
    }

    /// Returns how long it slept from one time to another.
    fn slept(&self, from: Instant, to: Instant) -> Duration {
        let until = |at| {
            let before = self.slept.range(..=at).next_back();
            before.map_or(Duration::ZERO, |(_, slept)| *slept)
        };
        until(to).saturating_sub(until(from))
    }
}

/// What did not go on: a stream of a rank, or all that it does.
type Place = (u32, Option<Stream>);

impl Seen<'_> {
    /// Returns what did not go on for longer than the bound, and the longest that anything did not.
    pub fn stalls(&self) -> (Vec<String>, Duration) {
        let mut ranks: Vec<Rank> = Vec::new();
        ranks.resize_with(self.plan.job.ranks as usize, Rank::default);
        let mut late: BTreeMap<Place, (Duration, String)> = BTreeMap::new();
        let mut longest = Duration::ZERO;
        for event in self.events {
            let Some(rank) = ranks.get_mut(event.rank as usize) else {
                continue;
            };
            rank.hear(event);
            if !matches!(event.word, Word::Alive(_)) {
                continue;
            }
            for (place, with, since, what) in still(&ranks, event.rank) {
                let Some((lasted, bound)) = self.lasted(&ranks, &with, since, event.at) else {
                    continue;
                };
                longest = longest.max(lasted);
                if lasted > bound && late.get(&place).is_none_or(|(most, _)| *most < lasted) {
                    late.insert(place, (lasted, format!("{what} for {lasted:?}")));
                }
            }
        }
        let texts = late.into_values().map(|(_, text)| text).collect();
        (texts, longest)
    }

    /// Returns how long ranks did not go on since then, and how long they may; `None` where one of them cannot.
    fn lasted(
        &self,
        ranks: &[Rank],
        with: &BTreeSet<u32>,
        since: Instant,
        now: Instant,
    ) -> Option<(Duration, Duration)> {
        let joined = with.iter().map(|rank| ranks[*rank as usize].joined);
        let joined = joined.collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let parting = self.parting().filter(|(struck, _)| struck.from <= now);
        let is_dead = |rank: &u32| match self.death(*rank) {
            Some((_, Toll::Job)) if parting.is_some() => false,
            Some((died, _)) => died <= now,
            None => false,
        };
        if with.iter().any(is_dead) {
            return None;
        }
        let others = |struck: &Struck| parting.is_none_or(|(one, _)| one.blow != struck.blow);
        let bound = match parting {
            Some((_, within)) => within + READING,
            None => self.plan.ground.bound(),
        };
        let deaths = self.struck.iter().filter(|struck| {
            let toll = self.disturbance(struck).toll();
            toll != Toll::None && struck.from <= now
        });
        let begins = deaths.map(|struck| struck.from).chain([joined, since]);
        let since = begins.max()?;
        let slept = with
            .iter()
            .map(|rank| ranks[*rank as usize].slept(since, now));
        let lasted = now.saturating_duration_since(since);
        let lasted = lasted.saturating_sub(self.disturbed(since, now, others));
        Some((lasted.saturating_sub(slept.sum()), bound))
    }
}

/// Returns what of a rank has not gone on: where, which ranks have to do with it, since when, and the words for it.
fn still(ranks: &[Rank], rank: u32) -> Vec<(Place, BTreeSet<u32>, Instant, String)> {
    let of = |rank: u32| &ranks[rank as usize];
    let in_job = |peer: u32| (peer as usize) < ranks.len();
    let streams = of(rank).streams.iter();
    let streams = streams.filter(|(stream, _)| in_job(stream.peer()));
    let mut found: Vec<_> = streams
        .map(|(stream, since)| {
            let what = format!("rank {rank}: no message {stream} has ended");
            let with = BTreeSet::from([rank, stream.peer()]);
            let other_side = of(stream.peer()).streams.get(&stream.seen_by_peer(rank));
            let since = other_side.map_or(*since, |other| *since.max(other));
            ((rank, Some(*stream)), with, since, what)
        })
        .collect();
    if !found.is_empty() {
        return found;
    }
    // Those whom it waits for, and those whom they wait for.
    let (mut with, mut next) = (BTreeSet::from([rank]), vec![rank]);
    while let Some(one) = next.pop() {
        let peers = of(one).progress.waits_for.iter().copied();
        next.extend(peers.filter(|peer| in_job(*peer) && with.insert(*peer)));
    }
    let changed = with.iter().filter_map(|one| of(*one).changed).max();
    if let Some(changed) = changed {
        let peers: Vec<String> = of(rank)
            .progress
            .waits_for
            .iter()
            .map(ToString::to_string)
            .collect();
        let what = match peers.is_empty() {
            true => format!("rank {rank} has done nothing"),
            false => format!(
                "rank {rank} waits for {}: nothing has ended",
                peers.join(", ")
            ),
        };
        found.push(((rank, None), with, changed, what));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::tests::{Words, judge_plan, plan};

    /// Three ranks that join at 10 ms and say each 50 ms how far they are, from 50 to 4,000.
    fn said(progress: impl Fn(u32, u64) -> Progress) -> Words {
        let mut words = Words::new();
        for rank in 0..3 {
            words.push((rank, Word::Ready, 10));
            for at in (50..=4000).step_by(50) {
                words.push((rank, Word::Alive(progress(rank, at)), at));
            }
            words.push((rank, Word::Closing(9), 4010));
            words.push((rank, Word::Done(0), 4020));
        }
        words
    }

    /// As far as a rank is that does something each 50 ms, but for a time.
    fn but_for(from: u64, to: u64, at: u64) -> u64 {
        if (from..to).contains(&at) { from } else { at }
    }

    /// A mesh in which one stream stands still for a time, and all else goes on.
    fn mesh(from: u64, to: u64) -> Words {
        said(|rank, at| {
            let peers = (0..3).filter(|peer| *peer != rank);
            let is_far = |stands: bool| if stands { but_for(from, to, at) } else { at };
            let streams = peers.flat_map(|peer| {
                let sent = is_far((rank, peer) == (2, 0));
                let received = is_far((rank, peer) == (0, 2));
                [(Stream::To(peer), sent), (Stream::From(peer), received)]
            });
            Progress {
                ended: at,
                streams: streams.collect(),
                ..Progress::default()
            }
        })
    }

    #[test]
    fn a_stream_that_stands_still_is_found_while_all_else_goes_on() {
        let plan = plan("shm", "mesh", &[]);
        assert_eq!(judge_plan(&plan, &mesh(1000, 1900), true), "");
        let found = judge_plan(&plan, &mesh(1000, 3000), true);
        assert_eq!(
            found,
            "late: rank 0: no message from rank 2 has ended for 1.95s; late: rank 2: no message to rank 0 has ended for 1.95s"
        );
    }

    #[test]
    fn what_arrives_goes_on_whenever_its_sends_end() {
        let mut words = mesh(1000, 3000);
        for (rank, word, at) in &mut words {
            if let (0, Word::Alive(progress)) = (*rank, word) {
                progress.streams.insert(Stream::From(2), *at);
            }
        }
        assert_eq!(judge_plan(&plan("shm", "mesh", &[]), &words, true), "");
    }

    #[test]
    fn what_disturbs_a_stream_is_not_counted() {
        let stopped = |blow: &str| {
            let plan = plan("shm", "mesh", &[blow]);
            judge_plan(&plan, &mesh(1000, 2600), true)
        };
        assert_eq!(stopped("stop:2:1000:700:0"), "");
        assert_ne!(stopped("stop:2:1000:500:0"), "");
        // A rank that slept for most of the time was asked to.
        let slow = |share: u64| {
            let mut words = mesh(1000, 3000);
            for (rank, word, at) in &mut words {
                if let (2, Word::Alive(progress)) = (*rank, word) {
                    progress.slept = Duration::from_millis(*at * share / 10);
                }
            }
            judge_plan(&plan("shm", "mesh", &["slow:2:0:0:20000"]), &words, true)
        };
        assert_eq!(slow(8), "");
        assert_ne!(slow(1), "");
    }

    #[test]
    fn a_stream_to_a_rank_that_has_not_joined_waits() {
        let mut words = mesh(0, 1500);
        assert_ne!(judge_plan(&plan("shm", "mesh", &[]), &words, true), "");
        let is_early = |rank: u32, at: u64| rank == 2 && at <= 900;
        words.retain(|(rank, _, at)| !is_early(*rank, *at));
        words.push((2, Word::Ready, 900));
        assert_eq!(judge_plan(&plan("shm", "mpi", &[]), &words, true), "");
    }

    /// Rank 0 waits for 1, and 1 for 2, which does something but for a time.
    fn chain(from: u64, to: u64) -> Words {
        said(|rank, at| Progress {
            ended: if rank == 2 { but_for(from, to, at) } else { 0 },
            waits_for: (rank < 2).then_some(rank + 1).into_iter().collect(),
            ..Progress::default()
        })
    }

    #[test]
    fn who_waits_for_a_rank_that_goes_on_is_not_stuck() {
        let plan = plan("shm", "mpi", &[]);
        assert_eq!(judge_plan(&plan, &chain(1000, 1900), true), "");
        let found = judge_plan(&plan, &chain(1000, 3000), true);
        assert_eq!(
            found,
            "late: rank 0 waits for 1: nothing has ended for 2s; late: rank 1 waits for 2: nothing has ended for 2s; \
             late: rank 2 has done nothing for 1.95s"
        );
    }

    #[test]
    fn those_who_wait_for_each_other_are_stuck_though_a_third_goes_on() {
        let words = said(|rank, at| Progress {
            ended: if rank == 2 { at } else { 0 },
            waits_for: (rank < 2).then_some(1 - rank.min(1)).into_iter().collect(),
            ..Progress::default()
        });
        let found = judge_plan(&plan("shm", "mpi", &[]), &words, true);
        let first = "late: rank 0 waits for 1: nothing has ended for 3.";
        assert!(found.starts_with(first), "{found}");
        assert!(!found.contains("rank 2"), "{found}");
    }

    #[test]
    fn hosts_that_are_apart_have_their_own_time() {
        let plan = plan("hosts", "mesh", &["sever:0:100:6000:0"]);
        let found = |to| {
            let mut words = mesh(0, to);
            for word in &mut words {
                word.2 *= 2;
            }
            judge_plan(&plan, &words, true)
        };
        assert_eq!(found(3000), "");
        let late = "late: rank 0: no message from rank 2 has ended for 6.8s";
        assert!(found(3500).starts_with(late), "{}", found(3500));
    }
}
