//! What must have happened in a trial, against what was said.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::away::Span;
use crate::disturbances::{self, Disturbance, Toll};
use crate::events::{Event, Word};
use crate::plan::Plan;

/// What is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Whether it is about time alone. Such a trial is repeated before it counts.
    pub late: bool,
    /// What it is.
    pub text: String,
}

/// A blow that was struck.
#[derive(Debug, Clone)]
pub struct Struck {
    /// Of the plan, by its place there.
    pub blow: usize,
    /// From when to when it lasted.
    pub from: Instant,
    /// The same as `from` where it lasts no time.
    pub to: Instant,
}

/// What an oracle looks at.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// What was to happen.
    pub plan: &'a Plan,
    /// What the ranks have said, in the order of times.
    pub events: &'a [Event],
    /// What was struck.
    pub struck: &'a [Struck],
    /// When the machine did not run the driver.
    pub away: &'a [Span],
    /// Whether all processes have ended by themselves.
    pub ended: bool,
}

/// How long things took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The longest that a rank said nothing, less what disturbed it.
    pub silence: Duration,
    /// The longest that nothing went on which could, less what disturbed it.
    pub stall: Duration,
    /// The longest until a rank knew of a death.
    pub notice: Duration,
}

/// How late the driver may read what a rank has said in time.
pub const READING: Duration = Duration::from_millis(200);
/// The status of a process that has aborted itself: 128 and the signal.
const ABORTED: i32 = 128 + 6;
/// Those of a panic, and of SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV.
const CRASHES: [i32; 6] = [101, 128 + 4, ABORTED, 128 + 7, 128 + 8, 128 + 11];

impl Seen<'_> {
    /// Returns when a rank died, or may have died. One that may have, and says at its end that it has done, has not.
    pub fn death(&self, rank: u32) -> Option<(Instant, Toll)> {
        let lived = || {
            self.of(rank)
                .any(|event| matches!(event.word, Word::Done(_)))
        };
        let mut deaths = self.struck.iter().filter_map(|struck| {
            let blow = &self.plan.job.blows[struck.blow];
            let toll = disturbances::of(blow).toll();
            let of_rank = toll == Toll::Job || (toll != Toll::None && blow.rank == rank);
            let has_died = of_rank && !(toll == Toll::MayDie && lived());
            has_died.then_some((struck.from, toll))
        });
        deaths.next()
    }

    /// Whether a rank died before then, or may have died: what comes later is no reason for what was said.
    fn is_dead(&self, rank: u32, at: Instant) -> bool {
        self.death(rank).is_some_and(|(died, _)| died <= at)
    }

    /// Whether a rank was short of something before then.
    fn is_short(&self, rank: u32, at: Instant) -> bool {
        self.struck.iter().any(|struck| {
            let blow = &self.plan.job.blows[struck.blow];
            blow.rank == rank && struck.from <= at && disturbances::of(blow).makes_short()
        })
    }

    fn of(&self, rank: u32) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.rank == rank)
    }

    /// Returns the disturbance of a blow that was struck.
    pub fn disturbance(&self, struck: &Struck) -> &'static dyn Disturbance {
        disturbances::of(&self.plan.job.blows[struck.blow])
    }

    /// Returns how long of a time blows lasted, of those that count, or the machine ran nobody.
    pub fn disturbed(
        &self,
        from: Instant,
        to: Instant,
        counts: impl Fn(&Struck) -> bool,
    ) -> Duration {
        let mut times: Vec<_> = self
            .struck
            .iter()
            .filter(|struck| counts(struck))
            .map(|struck| (struck.from, struck.to))
            .chain(self.away.iter().copied())
            .map(|(begin, end)| (begin.max(from), end.min(to)))
            .collect();
        times.sort();
        let (mut sum, mut until) = (Duration::ZERO, from);
        for (begin, end) in times {
            sum += end.saturating_duration_since(begin.max(until));
            until = until.max(end);
        }
        sum
    }

    /// Judges a trial.
    pub fn judge(&self) -> (Vec<Finding>, Times) {
        let (mut findings, mut times) = (Vec::new(), Times::default());
        findings.extend(self.crashes().map(|text| Finding { late: false, text }));
        if !self.ended {
            let text = "ranks have not ended, and had to be".to_owned();
            let late = !self.plan.anything_goes() && self.went_on();
            findings.push(Finding { late, text });
        }
        if self.plan.anything_goes() {
            return (findings, times);
        }
        let mut wrong = |text: String| findings.push(Finding { late: false, text });
        for event in self.events {
            match &event.word {
                Word::Wrong(why) => wrong(format!("rank {}: {why}", event.rank)),
                // Who ends because something is wrong is missed too.
                Word::Lost(peer) if !self.is_dead(*peer, event.at) && !self.is_wrong(*peer) => {
                    wrong(format!(
                        "rank {} has lost rank {peer}, which lives",
                        event.rank
                    ));
                }
                Word::Unopened(why)
                    if !self.names_a_death(why, event.at)
                        && !self.is_dead(event.rank, event.at) =>
                {
                    wrong(format!("rank {} could not join: {why}", event.rank));
                }
                Word::Short(why) if !self.is_short(event.rank, event.at) => {
                    wrong(format!("rank {} has enough of all: {why}", event.rank));
                }
                Word::Broken
                    if !self.has_lost_somebody(event.rank)
                        && !self.dies_behind_another(event.rank, event.at) =>
                {
                    wrong(format!(
                        "what rank {} has with all members is broken, and it has lost none",
                        event.rank
                    ));
                }
                Word::Done(more) if *more > 0 && self.plan.ground.gives_descriptors_back() => {
                    wrong(format!(
                        "rank {} has {more} descriptors more than before",
                        event.rank
                    ));
                }
                _ => {}
            }
        }
        let (stalls, longest) = self.stalls();
        findings.extend(stalls.into_iter().map(|text| Finding { late: true, text }));
        times.stall = longest;
        for rank in 0..self.plan.job.ranks {
            let (late, more) = self.judge_rank(rank, &mut times);
            findings.extend(late.into_iter().map(|text| Finding { late: true, text }));
            findings.extend(more.into_iter().map(|text| Finding { late: false, text }));
        }
        (findings, times)
    }

    /// Whether the last that was said says that something went on: there was not enough time.
    fn went_on(&self) -> bool {
        let ranks = 0..self.plan.job.ranks;
        let last_change = ranks.filter_map(|rank| self.changes(rank).pop()).max();
        let last = self.events.last().map(|event| event.at);
        let still = last.zip(last_change).map(|(last, change)| last - change);
        still.is_some_and(|still| still < self.plan.ground.bound())
    }

    /// Returns which ranks have crashed or panicked. One without memory may have aborted itself.
    fn crashes(&self) -> impl Iterator<Item = String> {
        self.events.iter().filter_map(|event| {
            let Word::Ended(status) = event.word else {
                return None;
            };
            let may_abort = matches!(self.death(event.rank), Some((_, Toll::MayDie)));
            let is_crash = CRASHES.contains(&status) && !(may_abort && status == ABORTED);
            is_crash.then(|| format!("rank {} has crashed: status {status}", event.rank))
        })
    }

    fn has_lost_somebody(&self, rank: u32) -> bool {
        self.of(rank)
            .any(|event| matches!(event.word, Word::Lost(_)))
    }

    /// Whether a rank died that somebody else had died before: it may have had no time to say whom it has lost.
    fn dies_behind_another(&self, rank: u32, at: Instant) -> bool {
        let mut others = (0..self.plan.job.ranks).filter(|other| *other != rank);
        self.death(rank).is_some() && others.any(|other| self.is_dead(other, at))
    }

    fn is_wrong(&self, rank: u32) -> bool {
        self.of(rank)
            .any(|event| matches!(event.word, Word::Wrong(_)))
    }

    /// Whether the reason why a rank could not join tells of a death before then. A program in C knows no reason.
    fn names_a_death(&self, why: &str, at: Instant) -> bool {
        let is_named = |rank| self.plan.program.is_in_c() || why.contains(&format!("rank {rank}"));
        let mut ranks = 0..self.plan.job.ranks;
        ranks.any(|rank| self.is_dead(rank, at) && is_named(rank))
    }

    /// Returns how long ranks that were told to be slow have slept, all together.
    fn slept(&self, from: Instant, to: Instant) -> Duration {
        let until = |rank, at| {
            let said = self.of(rank).take_while(|event| event.at <= at);
            let slept = said.filter_map(|event| match &event.word {
                Word::Alive(progress) => Some(progress.slept),
                _ => None,
            });
            slept.last().unwrap_or_default()
        };
        let ranks = 0..self.plan.job.ranks;
        let each = ranks.map(|rank| until(rank, to).saturating_sub(until(rank, from)));
        each.sum()
    }

    /// Returns the blow that parts hosts, where one was struck: it has a time of its own.
    pub fn parting(&self) -> Option<(&Struck, Duration)> {
        let with_time = |struck| Some((struck, self.disturbance(struck).within()?));
        self.struck.iter().find_map(with_time)
    }

    /// Returns when a rank said something that it could not have said before: all but that it is as far as it was.
    fn changes(&self, rank: u32) -> Vec<Instant> {
        let (mut ended, mut changes) = (0, Vec::new());
        for event in self.of(rank) {
            match &event.word {
                Word::Alive(progress) if progress.ended == ended => continue,
                Word::Alive(progress) => ended = progress.ended,
                _ => {}
            }
            changes.push(event.at);
        }
        changes
    }

    /// Returns what a rank did too late after hosts were parted.
    fn judge_within(&self, rank: u32) -> Option<String> {
        let (parting, within) = self.parting()?;
        let from = parting.from;
        let others = |other: &Struck| other.blow != parting.blow;
        let mut times = self.changes(rank);
        times.retain(|at| *at > from);
        times.insert(0, from);
        let gap = |from: Instant, to: Instant| {
            (to - from).saturating_sub(self.disturbed(from, to, others))
        };
        let gaps = times.windows(2).map(|pair| gap(pair[0], pair[1]));
        let longest = gaps.max().unwrap_or_default();
        let is_late = longest > within + READING;
        is_late.then(|| format!("rank {rank} neither ended nor went on for {longest:?}"))
    }

    /// Judges one rank: what was late, and what is missing.
    fn judge_rank(&self, rank: u32, times: &mut Times) -> (Vec<String>, Vec<String>) {
        let (mut late, mut missing) = (Vec::new(), Vec::new());
        let bound = self.plan.ground.bound();
        let is_last = |event: &&Event| {
            matches!(
                event.word,
                Word::Done(_) | Word::Wrong(_) | Word::Unopened(_)
            )
        };
        let last = self.of(rank).find(is_last).map(|event| event.at);
        let death = self.death(rank);
        if last.is_none() && death.is_none() && self.ended {
            missing.push(format!("rank {rank} has ended without a word"));
        }
        late.extend(self.judge_within(rank));
        // Silences, from when it has joined to its end.
        let mut before: Option<Instant> = None;
        for event in self
            .of(rank)
            .filter(|event| !matches!(event.word, Word::Process(_) | Word::Ended(_)))
        {
            if let Some(before) = before {
                let mut silence =
                    (event.at - before).saturating_sub(self.disturbed(before, event.at, |_| true));
                // A blocking call may wait for any rank, and closing for those that have not all yet.
                if silence > bound {
                    silence = silence.saturating_sub(self.slept(before, event.at));
                }
                times.silence = times.silence.max(silence);
                if silence > bound {
                    late.push(format!("rank {rank} said nothing for {silence:?}"));
                }
            }
            before = Some(event.at);
        }
        if death.is_some() {
            return (late, missing);
        }
        let mut lost: BTreeMap<u32, Instant> = BTreeMap::new();
        for event in self.of(rank) {
            if let Word::Lost(peer) = event.word {
                lost.insert(peer, event.at);
            }
        }
        let closing = self
            .of(rank)
            .find(|event| matches!(event.word, Word::Closing(_)));
        let closing = closing.map(|event| event.at).or(last);
        for peer in (0..self.plan.job.ranks).filter(|peer| *peer != rank) {
            let Some((died, Toll::Dies)) = self.death(peer) else {
                continue;
            };
            // Who has closed before hears of nobody; the end of a peer that closed before is no death.
            let over = |rank: u32| {
                self.of(rank)
                    .find(|event| matches!(event.word, Word::Closing(_)))
            };
            let was_over = closing.is_some_and(|at| at < died + bound) || over(peer).is_some();
            match lost.get(&peer) {
                Some(at) => {
                    let notice = at.saturating_duration_since(died);
                    let notice = notice.saturating_sub(self.disturbed(died, *at, |_| true));
                    times.notice = times.notice.max(notice);
                    if notice > bound {
                        late.push(format!(
                            "rank {rank} knew of the end of rank {peer} after {notice:?}"
                        ));
                    }
                }
                None if was_over || !self.of(rank).any(|event| event.word == Word::Ready) => {}
                None if self.plan.program.hears_of(rank, peer, self.plan.job.ranks) => {
                    missing.push(format!(
                        "rank {rank} has not heard of the end of rank {peer}"
                    ));
                }
                None => {}
            }
        }
        (late, missing)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::events::Progress;
    use crate::plan::Choice;

    /// Returns a program of three ranks on a ground, with what strikes them.
    pub fn plan(ground: &str, program: &str, blows: &[&str]) -> Plan {
        let choice = Choice {
            ground: Some(ground.to_owned()),
            program: Some(program.to_owned()),
            ..Choice::default()
        };
        let mut plan = Plan::of(1, &choice).unwrap();
        plan.job.ranks = 3;
        plan.job.blows = blows.iter().map(|blow| blow.parse().unwrap()).collect();
        plan
    }

    /// What ranks say, each with the milliseconds of its time.
    pub type Words = Vec<(u32, Word, u64)>;

    /// Judges what was said in the trial of a plan, as lines.
    pub fn judge_plan(plan: &Plan, words: &[(u32, Word, u64)], ended: bool) -> String {
        let begin = Instant::now();
        let at = |millis| begin + Duration::from_millis(millis);
        let events = words.iter().map(|(rank, word, millis)| Event {
            rank: *rank,
            word: word.clone(),
            at: at(*millis),
        });
        let mut events: Vec<_> = events.collect();
        events.sort_by_key(|event| event.at);
        let struck = (0..).zip(&plan.job.blows).map(|(number, blow)| Struck {
            blow: number,
            from: begin + blow.at,
            to: begin + blow.at + blow.lasts,
        });
        let seen = Seen {
            plan,
            events: &events,
            struck: &struck.collect::<Vec<_>>(),
            away: &[],
            ended,
        };
        let found = seen.judge().0.into_iter();
        let lines: Vec<_> = found
            .map(|one| format!("{}{}", if one.late { "late: " } else { "" }, one.text))
            .collect();
        lines.join("; ")
    }

    /// The same where rank 1 is killed.
    fn judge(words: &[(u32, Word, u64)]) -> String {
        judge_plan(&plan("shm", "mesh", &["kill:1:100:0:0"]), words, true)
    }

    /// That so many operations have ended.
    fn alive_after(ended: u64) -> Word {
        Word::Alive(Progress {
            ended,
            ..Progress::default()
        })
    }

    /// What ranks 0 and 2 say in a good trial.
    fn good() -> Words {
        let of = |rank| {
            [
                (rank, Word::Ready, 10),
                (rank, Word::Lost(1), 600),
                (rank, alive_after(4), 1500),
                (rank, Word::Closing(9), 2000),
                (rank, Word::Done(0), 2010),
            ]
        };
        let mut all = vec![(1, Word::Ready, 10)];
        all.extend(of(0));
        all.extend(of(2));
        all
    }

    #[test]
    fn a_good_trial_is_good() {
        assert_eq!(judge(&good()), "");
    }

    #[test]
    fn what_is_wrong_is_found() {
        let with = |change: &dyn Fn(&mut Words)| {
            let mut words = good();
            change(&mut words);
            judge(&words)
        };
        let found = with(&|words| words.push((0, Word::Lost(2), 300)));
        assert_eq!(found, "rank 0 has lost rank 2, which lives");
        let found = with(&|words| words[2].1 = alive_after(3));
        assert_eq!(found, "rank 0 has not heard of the end of rank 1");
        let found = with(&|words| words[3].2 = 1700);
        assert_eq!(found, "late: rank 0 said nothing for 1.1s");
        let found = with(&|words| words[2].2 = 1200);
        assert!(
            found.contains("late: rank 0 knew of the end of rank 1 after 1.1s"),
            "{found}"
        );
        let found = with(&|words| words[5].1 = Word::Done(2));
        assert_eq!(found, "rank 0 has 2 descriptors more than before");
        let found = with(&|words| drop(words.pop()));
        assert_eq!(found, "rank 2 has ended without a word");
        let found = with(&|words| words[5].1 = Word::Wrong("message 3 is wrong".to_owned()));
        assert_eq!(found, "rank 0: message 3 is wrong");
    }

    #[test]
    fn a_death_excuses_nothing_that_was_said_before_it() {
        let with = |word: Word, at| {
            let mut words = good();
            words.push((0, word, at));
            judge(&words)
        };
        assert_eq!(
            with(Word::Lost(1), 90),
            "rank 0 has lost rank 1, which lives"
        );
        assert_eq!(with(Word::Lost(1), 110), "");
        let refused = || Word::Unopened("rank 1 is gone".to_owned());
        let found = with(refused(), 90);
        assert_eq!(found, "rank 0 could not join: rank 1 is gone");
        assert_eq!(with(refused(), 110), "");
    }

    #[test]
    fn who_never_joins_is_missed_though_another_dies() {
        let without = |gone: u32| {
            let mut words = good();
            words.retain(|(rank, ..)| *rank != gone);
            words
        };
        assert_eq!(judge(&without(2)), "rank 2 has ended without a word");
        // A program in C says no more than that.
        let plan = plan("shm", "mpi", &["kill:1:100:0:0"]);
        let refused = |at| {
            let mut words = without(2);
            words.push((2, Word::Unopened("MPI_Init".to_owned()), at));
            judge_plan(&plan, &words, true)
        };
        assert_eq!(refused(110), "");
        assert_eq!(refused(90), "rank 2 could not join: MPI_Init");
    }

    /// What three ranks say that live.
    fn alive() -> Words {
        let of = |rank| {
            [
                (rank, Word::Ready, 10),
                (rank, Word::Closing(9), 900),
                (rank, Word::Done(0), 910),
            ]
        };
        (0..3).flat_map(of).collect()
    }

    #[test]
    fn shortages_are_of_those_who_have_too_little() {
        let short = |blows: &[&str], at| {
            let mut words = alive();
            words.push((1, Word::Short("no descriptor".to_owned()), at));
            judge_plan(&plan("shm", "mesh", blows), &words, true)
        };
        let found = "rank 1 has enough of all: no descriptor";
        assert_eq!(short(&[], 300), found);
        assert_eq!(short(&["descriptors:2:200:50:0"], 300), found);
        for blow in ["descriptors:1:200:50:0", "memory:1:200:50:0"] {
            assert_eq!(short(&[blow], 100), found);
            assert_eq!(short(&[blow], 300), "");
        }
    }

    #[test]
    fn who_may_die_and_does_not_is_lost_by_nobody() {
        let mut words = alive();
        words.push((0, Word::Lost(1), 300));
        let plan = plan("shm", "mesh", &["memory:1:200:50:0"]);
        let found = judge_plan(&plan, &words, true);
        assert_eq!(found, "rank 0 has lost rank 1, which lives");
        words.retain(|(rank, word, _)| *rank != 1 || *word == Word::Ready);
        assert_eq!(judge_plan(&plan, &words, true), "");
    }

    #[test]
    fn what_all_have_breaks_with_somebody() {
        let mut words = alive();
        words.push((0, Word::Broken, 300));
        let found = judge_plan(&plan("shm", "one-sided", &[]), &words, true);
        assert_eq!(
            found,
            "what rank 0 has with all members is broken, and it has lost none"
        );
        let mut words = good();
        words.push((0, Word::Broken, 300));
        assert_eq!(judge(&words), "");
        // Who is killed behind another may have had no time to say whom it has lost.
        let killed = |blows: &[&str]| {
            let mut words = alive();
            words.retain(|(rank, word, _)| *rank == 2 || *word == Word::Ready);
            words.push((0, Word::Broken, 110));
            words.push((2, Word::Lost(0), 130));
            words.push((2, Word::Lost(1), 130));
            judge_plan(&plan("ucx", "one-sided", blows), &words, true)
        };
        assert_eq!(killed(&["kill:1:100:0:0", "kill:0:120:0:0"]), "");
        let found = killed(&["kill:0:120:0:0", "kill:1:125:0:0"]);
        assert!(found.contains("it has lost none"), "{found}");
    }

    #[test]
    fn hosts_that_are_apart_know_it_in_time() {
        let plan = plan("hosts", "mesh", &["sever:0:100:6000:0"]);
        let said = |at| {
            let mut words = Words::new();
            for rank in 0..3 {
                words.push((rank, Word::Ready, 10));
                words.push((rank, alive_after(1), at));
                words.push((rank, Word::Ended(0), at + 100));
            }
            judge_plan(&plan, &words, true)
        };
        assert_eq!(said(6000), "");
        let found = said(6400);
        let late = "late: rank 0 neither ended nor went on for 6.3s";
        assert!(found.starts_with(late), "{found}");
    }

    #[test]
    fn who_closes_waits_for_a_slow_rank() {
        let plan = plan("shm", "partitioned", &["slow:1:0:0:20000"]);
        let closes = |share: u64| {
            let mut words: Words = (0..3).map(|rank| (rank, Word::Ready, 10)).collect();
            words.push((0, Word::Closing(9), 900));
            words.push((2, Word::Closing(9), 900));
            for at in (50..=3000).step_by(50) {
                let progress = Progress {
                    ended: at,
                    slept: Duration::from_millis(at * share / 10),
                    ..Progress::default()
                };
                words.push((1, Word::Alive(progress), at));
            }
            words.push((1, Word::Closing(9), 3010));
            words.extend((0..3).map(|rank| (rank, Word::Done(0), 3020)));
            judge_plan(&plan, &words, true)
        };
        assert_eq!(closes(9), "");
        assert!(closes(1).starts_with("late: rank 0 said nothing for 1.9"));
    }

    #[test]
    fn who_has_not_ended_is_late_while_it_goes_on() {
        let plan = plan("shm", "flood", &[]);
        let said = |ended: &dyn Fn(u64) -> u64| {
            let mut words = alive();
            words.retain(|(rank, word, _)| *rank > 0 || *word == Word::Ready);
            words.extend((1..100).map(|at| (0, alive_after(ended(at)), 50 * at)));
            judge_plan(&plan, &words, false)
        };
        let late = "late: ranks have not ended, and had to be";
        assert_eq!(said(&|at| at), late);
        let found = said(&|at| at.min(50));
        assert!(found.starts_with("ranks have not ended, and"), "{found}");
    }

    #[test]
    fn jobs_end_whatever_is_written_into_their_memory() {
        let plan = plan("shm", "mesh", &["scribble:1:100:0:7"]);
        assert_eq!(judge_plan(&plan, &alive(), true), "");
        let found = judge_plan(&plan, &alive(), false);
        assert_eq!(found, "ranks have not ended, and had to be");
    }
}
