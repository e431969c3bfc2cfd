//! The side that does what the other one decides: it runs its part of each job.

use std::io::Write;

use super::messages::{Failure, Job, PeerMessage, Starting};
use super::part::Link;
use crate::Host;
use crate::args::BenchArgs;
use crate::binding::Placement;
use crate::error::{Error, Result};
use crate::jobs::{Reported, complete, judge_part, spec_of_ours};
use crate::link::{Message, ReportServer};
use crate::plan::{Carrier, Plan};

/// The most ranks that another machine may ask for.
const MOST_RANKS: u32 = 4096;

/// What became of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Helped {
    /// How many jobs there were.
    pub jobs: u32,
    /// The last failure of one.
    pub failure: Option<Failure>,
    /// Whether the other side said that it was done.
    pub is_done: bool,
    /// Whether a signal ended a job here.
    pub interrupted: bool,
}

/// Runs this side's parts until the other side is done, or gone. `is_ending` says whether a signal ends this side.
pub(super) fn help(
    link: &Link,
    args: &BenchArgs,
    host: &Host,
    shares: bool,
    is_ending: &dyn Fn() -> bool,
) -> Helped {
    let mut helped = Helped {
        jobs: 0,
        failure: None,
        is_done: false,
        interrupted: false,
    };
    loop {
        let job = match link.hear() {
            Some(PeerMessage::Job(job)) => job,
            Some(PeerMessage::Bye) => {
                helped.is_done = true;
                return helped;
            }
            // Said when it gave up what was over here.
            Some(PeerMessage::GiveUp | PeerMessage::Meet { .. }) => continue,
            _ => return helped,
        };
        if helped.jobs == 0 {
            announce(link, &job);
        }
        helped.jobs += 1;
        let failure = part(link, args, host, shares, *job).err();
        let failure = failure.map(|error| {
            let failure = Failure::of(&error);
            let interrupted = failure.interrupted || is_ending();
            Failure {
                interrupted,
                ..failure
            }
        });
        helped.interrupted = failure.as_ref().is_some_and(|it| it.interrupted);
        if failure.is_some() {
            helped.failure.clone_from(&failure);
        }
        link.say(&PeerMessage::Ended { failure });
        if helped.interrupted {
            return helped;
        }
    }
}

/// Says what the other side has asked for.
fn announce(link: &Link, job: &Job) {
    let transport = match &job.plan.carrier {
        Carrier::Ours(name) => name.as_str(),
        Carrier::Mpi(_) | Carrier::Tool(_) => "mpi",
    };
    let _ = writeln!(
        std::io::stderr(),
        "{}: {} over {transport}, {} ranks, of which {} are here",
        link.other,
        job.plan.test,
        job.plan.ranks,
        job.ranks
    );
}

/// Runs this side's part of a job.
fn part(link: &Link, args: &BenchArgs, host: &Host, shares: bool, job: Job) -> Result<()> {
    let (host, mut plan) = agreed(&job, host)?;
    let bind = args.bind.as_deref().or_else(|| shares.then_some("none"));
    let threads = if plan.any_thread() { 2 } else { 1 };
    let placement = Placement::new(bind, job.ranks, threads)?;
    let server = ReportServer::open()?;
    plan.results = Some(server.address().clone());
    let mut spec = spec_of_ours(&plan, job.ranks, &placement)?;
    spec.timeout = job.timeout;
    complete(&mut spec, &plan, &host)?;
    let starting = |port| {
        link.say(&PeerMessage::Starting(Starting {
            port,
            binding: placement.text.clone(),
        }));
    };
    let mut port = None;
    if !link.listens {
        starting(None);
        port = match link.hear() {
            Some(PeerMessage::Meet { port }) => Some(port),
            Some(_) => return Err(given_up()),
            None => return Err(link.lost()),
        };
    }
    spec.hosts = Some(link.hosts(plan.ranks, port));
    let started = |port| {
        if link.listens {
            starting(port);
        }
    };
    let mut heard = Reported::default();
    let speaker = &link.speaker;
    let take = |message: Message| {
        heard.note(&message);
        // Who is gone is noticed by what is heard.
        let _ = speaker.say(&PeerMessage::Report(message));
        Ok(())
    };
    let (ended, taken) = server.serve(take, || link.run(spec, started, |_| Err(given_up()), false));
    taken?;
    judge_part(&ended?, &heard, job.timeout)
}

/// The plan as this side runs it, with what both sides have to agree in.
fn agreed(job: &Job, host: &Host) -> Result<(Host, Plan)> {
    let mut host = host.clone();
    for (name, value) in &job.settings {
        host.config.set(name, value)?;
    }
    let mut plan = job.plan.clone();
    if job.ranks == 0 || job.ranks >= plan.ranks || plan.ranks > MOST_RANKS {
        return Err(Error::Usage(format!(
            "{} of {} ranks cannot be here: {MOST_RANKS} are the most",
            job.ranks, plan.ranks
        )));
    }
    plan.carrier = match &plan.carrier {
        Carrier::Ours(transport) => Carrier::Ours(without_files(transport, &host)?),
        Carrier::Mpi(_) | Carrier::Tool(_) => {
            return Err(Error::Usage(
                "transport 'mpi' has launchers of its own".to_owned(),
            ));
        }
    };
    plan.bind_here = None;
    Ok((host, plan))
}

/// The transport that the other side names, with the libraries that this side's settings name: no other
/// machine says which file this one loads.
fn without_files(transport: &str, host: &Host) -> Result<String> {
    let mut config = host.config.clone();
    config.set("transport", transport)?;
    Ok(tagwire_rails::named(&config))
}

fn given_up() -> Error {
    Error::Job("the other side gave the job up".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_side_names_no_file_of_this_one() {
        let registry = tagwire_base::config::Registry::new(&tagwire_coll::settings());
        let host = Host {
            config: tagwire_base::Config::defaults(&registry),
            version: String::new(),
            commit: String::new(),
            profile: String::new(),
            loops: crate::Loops::of_crate::<()>(),
            checked: std::collections::BTreeMap::new(),
        };
        for (named, taken) in [
            ("ofi@/tmp/evil.so:tcp", "ofi:tcp"),
            ("shm+ucx@/tmp/evil.so:tcp,self", "shm+ucx:tcp,self"),
            ("shm", "shm"),
        ] {
            assert_eq!(without_files(named, &host).unwrap(), taken);
        }
        assert!(without_files("no-such", &host).is_err());
    }
}
