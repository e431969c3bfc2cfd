//! The calls of a trace, made by real ranks: receives are posted and messages sent over a transport, and each receive has to
//! take the message that the rules of MPI give it.
//!
//! A job of this process has the rank whose trace it is, and one for each rank that a message of it comes from. Each call is done
//! when what follows from it has been seen: a message that matches when its receive is complete, another one when the layer counts
//! it among the unexpected ones. So messages of different sources arrive in the order of the trace. What the message of a
//! receive is shows its content, which is its number in the trace.

mod content;
mod job;
mod plan;
mod program;
mod recorded;

use std::time::Duration;

use clap::Args;

use tagwire_base::clock::Clock;
use tagwire_matching::Engines;
use tagwire_pml::Stats;
use tagwire_transport::matching::{MatchCounts, MatchLevels};

pub(crate) use self::content::{NUMBER, message};
use self::job::Job;
pub(crate) use self::plan::Plan;
pub(crate) use self::program::play;
pub(crate) use self::recorded::{Member, Posted, recorded};
use crate::error::{Error, Result};

/// The options of real ranks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RealArgs {
    /// With real ranks: what carries their messages, as the setting of that name [default: shm]
    #[arg(long, value_name = "NAME")]
    transport: Option<String>,

    /// With real ranks: a setting of theirs, over its default; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
}

impl RealArgs {
    /// Options with these values.
    #[cfg(test)]
    pub(crate) fn of(transport: &str, settings: &[&str]) -> Self {
        Self {
            transport: Some(transport.to_owned()),
            settings: settings.iter().map(ToString::to_string).collect(),
        }
    }

    /// The way that the options name, which leave the layer open.
    pub(crate) fn way(&self) -> Way<'_> {
        Way {
            layer: "ob1",
            transport: self.transport.as_deref().unwrap_or("shm"),
            engine: None,
            settings: &self.settings,
        }
    }

    /// Refuses options of real ranks where there are none.
    ///
    /// # Errors
    /// [`Error::Usage`] with the option that has them.
    pub(crate) fn check_unused(&self, by: &str) -> Result<()> {
        match self.transport.is_none() && self.settings.is_empty() {
            true => Ok(()),
            false => Err(Error::Usage(format!(
                "--transport and --set are of real ranks, which '{by}' has"
            ))),
        }
    }

    /// Refuses what names no setting.
    ///
    /// # Errors
    /// [`Error::Usage`] with what is wrong.
    pub(crate) fn check(&self, way: Way<'_>) -> Result<()> {
        let wrong = self.settings.iter().find(|text| !text.contains('='));
        if let Some(text) = wrong {
            return Err(Error::Usage(format!(
                "--set takes NAME=VALUE, not '{text}'"
            )));
        }
        job::config(way, &Engines::default())
            .map(drop)
            .map_err(Error::Usage)
    }
}

/// What matches and what carries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way<'a> {
    /// The layer: `ob1`, `cm`.
    pub(crate) layer: &'static str,
    /// The transport, as the setting names it.
    pub(crate) transport: &'a str,
    /// The engine, under ob1.
    pub(crate) engine: Option<&'a str>,
    /// Settings of the ranks, as `NAME=VALUE`.
    pub(crate) settings: &'a [String],
}

#[cfg(test)]
impl Way<'static> {
    /// The default engine over shared memory.
    pub(crate) const SHM: Self = Self {
        layer: "ob1",
        transport: "shm",
        engine: None,
        settings: &[],
    };
}

/// What a run of a trace came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ran {
    /// Of all calls, with what peers did for them.
    pub(crate) elapsed: Duration,
    /// What the engine of the rank did, where it is known.
    pub(crate) engine: Option<Stats>,
    /// What the transport counted, where it matches.
    pub(crate) counts: Option<MatchCounts>,
    /// The most that the transport's lists held behind any call, where it matches; `held` are the messages that have come and are not in these lists: their
    /// senders or the transport keep them.
    pub(crate) most: MatchLevels,
}

/// Makes the calls of a plan.
///
/// # Errors
/// What was not as the rules have it, with the number of the call; or what a rank refused.
pub(crate) fn run(plan: &Plan, way: Way<'_>, known: &Engines) -> Result<Ran, String> {
    let mut job = Job::open(plan, way, known)?;
    let clock = Clock::default();
    let start = clock.now();
    let made = plan.steps.iter().try_for_each(|step| {
        let done = job.make(step);
        done.map_err(|why| format!("call {}: {why}", step.call))
    });
    let elapsed = clock.now().since(start);
    let ran = made.and_then(|()| job.ran(elapsed));
    // What is still queued is of no interest any more, and a job that went wrong is closed as well.
    let ended = job.end(match &ran {
        Ok(_) => job::DEADLINE,
        Err(_) => job::AFTER_FAILURE,
    });
    let ran = ran?;
    ended.map(|()| ran)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_base::{SourceSelector, TagSelector};
    use tagwire_matching::Pattern;
    use tagwire_matching::trace::{Event, Size};

    use super::plan::Action;
    use super::*;
    use crate::apps::AppName;
    use crate::trace::Trace;
    use crate::trace::tests::{message, trace};
    use crate::traffic::Model;

    const SHM: Way<'static> = Way {
        engine: Some("list"),
        ..Way::SHM
    };

    fn traces(app: &str, model: &str) -> Vec<Trace> {
        let model: Model = model.parse().unwrap();
        let scripts = AppName::parse(app).unwrap().scripts();
        model.traces(&scripts, app).unwrap()
    }

    fn cancels_and_wildcards() -> Trace {
        let any = |tag: i32| Pattern {
            source: SourceSelector::ANY,
            ..Pattern::exact(message(0, tag))
        };
        let any_tag = Pattern {
            tag: TagSelector::ANY,
            ..Pattern::exact(message(4, 0))
        };
        let arrive = |source, tag| Event::Arrive(message(source, tag), Size::of(100));
        trace(&[
            (Event::Post(any(1)), false),
            (Event::Post(any_tag), false),
            (Event::Cancel(0), true),
            (Event::Cancel(0), false),
            // An internal message is for no receive of any tag.
            (arrive(4, -7), false),
            (arrive(2, 1), false),
            (arrive(4, 9), true),
            (Event::Probe(any(1)), true),
            (Event::Claim(any(2)), false),
            (Event::ArriveExpected(message(2, 5)), false),
            (Event::Claim(any(1)), true),
            (Event::Cancel(1), false),
            (Event::Post(Pattern::exact(message(4, -7))), true),
            // Long, and behind the last call still queued.
            (Event::Arrive(message(2, 6), Size::of(1 << 20)), false),
        ])
    }

    /// Ranks that post and send as the traces say get what the rules give, with each engine and under both layers.
    #[test]
    fn real_ranks_match_as_the_trace() {
        let mut all = Vec::new();
        for (app, model) in [
            ("halo7:x=3,y=3,z=3,steps=1", "random:seed=5"),
            ("farm:workers=3,tasks=20", "random:seed=2"),
            ("amg:ranks=32,levels=2,steps=1", "shuffled"),
        ] {
            all.extend(traces(app, model).into_iter().take(2));
        }
        all.push(cancels_and_wildcards());
        let cm = Way {
            layer: "cm",
            engine: None,
            ..SHM
        };
        let bins = Way {
            engine: Some("bins:few=0"),
            ..SHM
        };
        for trace in &all {
            let plan = Plan::new(trace).unwrap();
            for way in [SHM, bins, cm] {
                let ran = run(&plan, way, &Engines::default());
                let ran = ran.unwrap_or_else(|why| panic!("{way:?}: {why}"));
                assert_eq!(ran.counts.is_some(), way.layer == "cm");
                assert!(ran.engine.is_some_and(|stats| stats.matches() > 0));
            }
        }
    }

    /// Messages beyond what a receiver lists stay with their sender, and are found where a call asks for one.
    #[test]
    fn what_its_sender_keeps_is_found() {
        let arrive = |tag| (Event::Arrive(message(1, tag), Size::of(8)), false);
        let mut calls: Vec<_> = std::iter::repeat_with(|| arrive(1)).take(30).collect();
        calls.push(arrive(2));
        calls.push(arrive(3));
        calls.push((Event::Probe(Pattern::exact(message(1, 2))), true));
        calls.push((Event::Claim(Pattern::exact(message(1, 3))), true));
        calls.push((Event::Probe(Pattern::exact(message(1, 4))), false));
        let plan = Plan::new(&trace(&calls)).unwrap();
        let settings = ["shm-headers=16".to_owned()];
        let way = Way {
            layer: "cm",
            engine: None,
            settings: &settings,
            ..SHM
        };
        let ran = run(&plan, way, &Engines::default());
        assert!(ran.is_ok(), "{:?}", ran.err());
    }

    /// A receive that takes another message than the rules give it is told, with both calls.
    #[test]
    fn another_message_is_told() {
        let mut plan = Plan::new(&cancels_and_wildcards()).unwrap();
        let of_claim = plan
            .steps
            .iter_mut()
            .find_map(|step| match &mut step.action {
                Action::Claim {
                    takes: Some((number, _)),
                    ..
                } => Some(number),
                _ => None,
            });
        assert_eq!(std::mem::replace(of_claim.unwrap(), 5), 6);
        let told = run(&plan, SHM, &Engines::default()).unwrap_err();
        assert_eq!(
            told,
            "call 11: the receive took the message of call 6 in place of that of call 5"
        );
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_the_reason() {
        let gone = [
            (Event::Arrive(message(1, 1), Size::of(8)), false),
            (Event::Discard(0), true),
        ];
        let refused = Plan::new(&trace(&gone)).unwrap_err();
        assert!(
            refused.starts_with("call 2: a message is thrown away"),
            "{refused}"
        );
        let plan = Plan::new(&cancels_and_wildcards()).unwrap();
        for (way, told) in [
            (
                Way {
                    transport: "shn",
                    ..SHM
                },
                "shn",
            ),
            (
                Way {
                    engine: Some("lost"),
                    ..SHM
                },
                "lost",
            ),
            (
                Way {
                    settings: &["egaer-limit=1".to_owned()],
                    ..SHM
                },
                "eager-limit",
            ),
            (
                Way {
                    layer: "cm",
                    engine: Some("list"),
                    ..SHM
                },
                "runs under ob1 alone",
            ),
        ] {
            let refused = run(&plan, way, &Engines::default()).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
