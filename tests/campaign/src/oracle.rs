//! What must have happened in a trial, against what was said.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::disturbances::{self, Toll};
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
    /// Whether all processes have ended by themselves.
    pub ended: bool,
}

/// How long things took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// The longest that a rank said nothing, less what disturbed it.
    pub silence: Duration,
    /// The longest until a rank knew of a death.
    pub notice: Duration,
}

/// The status of a process that has aborted itself: 128 and the signal.
const ABORTED: i32 = 128 + 6;
/// Those of a panic, and of SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV.
const CRASHES: [i32; 6] = [101, 128 + 4, ABORTED, 128 + 7, 128 + 8, 128 + 11];

impl Seen<'_> {
    /// Returns when a rank died, or may have died.
    fn death(&self, rank: u32) -> Option<(Instant, Toll)> {
        let mut deaths = self.struck.iter().filter_map(|struck| {
            let blow = &self.plan.job.blows[struck.blow];
            let toll = disturbances::of(blow).toll();
            let of_rank = toll == Toll::Job || (toll != Toll::None && blow.rank == rank);
            of_rank.then_some((struck.from, toll))
        });
        deaths.next()
    }

    fn of(&self, rank: u32) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.rank == rank)
    }

    /// Returns how long of a time blows lasted.
    fn disturbed(&self, from: Instant, to: Instant) -> Duration {
        let mut times: Vec<_> = self
            .struck
            .iter()
            .map(|struck| (struck.from.max(from), struck.to.min(to)))
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
        if self.plan.anything_goes() {
            return (findings, times);
        }
        let mut wrong = |text: String| findings.push(Finding { late: false, text });
        for event in self.events {
            match &event.word {
                Word::Wrong(why) => wrong(format!("rank {}: {why}", event.rank)),
                // Who ends because something is wrong is missed too.
                Word::Lost(peer) if self.death(*peer).is_none() && !self.is_wrong(*peer) => {
                    wrong(format!(
                        "rank {} has lost rank {peer}, which lives",
                        event.rank
                    ));
                }
                Word::Unopened(why)
                    if !self.names_a_death(why) && self.death(event.rank).is_none() =>
                {
                    wrong(format!("rank {} could not join: {why}", event.rank));
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
        for rank in 0..self.plan.job.ranks {
            let (late, more) = self.judge_rank(rank, &mut times);
            findings.extend(late.into_iter().map(|text| Finding { late: true, text }));
            findings.extend(more.into_iter().map(|text| Finding { late: false, text }));
        }
        if !self.ended {
            let text = "ranks have not ended, and had to be".to_owned();
            findings.push(Finding { late: false, text });
        }
        (findings, times)
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

    fn has_deaths(&self) -> bool {
        (0..self.plan.job.ranks).any(|rank| self.death(rank).is_some())
    }

    fn is_wrong(&self, rank: u32) -> bool {
        self.of(rank)
            .any(|event| matches!(event.word, Word::Wrong(_)))
    }

    fn names_a_death(&self, why: &str) -> bool {
        let mut ranks = 0..self.plan.job.ranks;
        ranks.any(|rank| self.death(rank).is_some() && why.contains(&format!("rank {rank}")))
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
        // A program in C does not say why it could not join a job of which somebody died.
        let could_join = self.of(rank).any(|event| event.word == Word::Ready) || !self.has_deaths();
        if last.is_none() && death.is_none() && self.ended && could_join {
            missing.push(format!("rank {rank} has ended without a word"));
        }
        // Silences, from when it has joined to its end.
        let mut before: Option<Instant> = None;
        for event in self
            .of(rank)
            .filter(|event| !matches!(event.word, Word::Process(_) | Word::Ended(_)))
        {
            if let Some(before) = before {
                let silence = (event.at - before).saturating_sub(self.disturbed(before, event.at));
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
                    let notice = notice.saturating_sub(self.disturbed(died, *at));
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
mod tests {
    use super::*;
    use crate::plan::Choice;

    /// A job of three ranks of which rank 1 is killed.
    fn plan() -> Plan {
        let choice = Choice {
            ground: Some("shm".to_owned()),
            program: Some("mesh".to_owned()),
            disturbance: Some("kill".to_owned()),
        };
        let mut plan = Plan::of(1, &choice).unwrap();
        plan.job.ranks = 3;
        plan.job.blows = vec!["kill:1:100:0:0".parse().unwrap()];
        plan
    }

    /// What ranks say, each with the milliseconds of its time.
    type Words = Vec<(u32, Word, u64)>;

    fn judge(words: &[(u32, Word, u64)]) -> Vec<String> {
        let (plan, begin) = (plan(), Instant::now());
        let at = |millis| begin + Duration::from_millis(millis);
        let events = words.iter().map(|(rank, word, millis)| Event {
            rank: *rank,
            word: word.clone(),
            at: at(*millis),
        });
        let mut events: Vec<_> = events.collect();
        events.sort_by_key(|event| event.at);
        let struck = [Struck {
            blow: 0,
            from: at(100),
            to: at(100),
        }];
        let seen = Seen {
            plan: &plan,
            events: &events,
            struck: &struck,
            ended: true,
        };
        let found = seen.judge().0.into_iter();
        found
            .map(|one| format!("{}{}", if one.late { "late: " } else { "" }, one.text))
            .collect()
    }

    /// What ranks 0 and 2 say in a good trial.
    fn good() -> Words {
        let of = |rank| {
            [
                (rank, Word::Ready, 10),
                (rank, Word::Lost(1), 600),
                (rank, Word::Alive, 1500),
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
        assert_eq!(judge(&good()), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_found() {
        let with = |change: &dyn Fn(&mut Words)| {
            let mut words = good();
            change(&mut words);
            judge(&words).join("; ")
        };
        let found = with(&|words| words.push((0, Word::Lost(2), 300)));
        assert_eq!(found, "rank 0 has lost rank 2, which lives");
        let found = with(&|words| words[2].1 = Word::Alive);
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
}
