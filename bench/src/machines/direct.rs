//! The side that decides: it has jobs run on both machines, and gets what their ranks report.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::messages::{Failure, Job, PeerMessage, Starting};
use super::part::Link;
use crate::Host;
use crate::environment::{Environment, Other, Used};
use crate::error::{Error, Result};
use crate::jobs::{Jobs, Reported, complete, judge, spec_of_ours};
use crate::link::{Message, ReportServer};
use crate::plan::Plan;

/// The settings that ranks of one job have to agree in.
const COMMON: [&str; 2] = ["pml", "engine"];

/// The other machine, as the side that decides sees it.
#[derive(Debug)]
pub(crate) struct Director {
    link: Link,
    /// The other machine and this one, as the one that rank 0 is not on.
    there: Other,
    here: Other,
    /// Whether both sides are on one machine, whose cores they have to share.
    shares: bool,
}

/// A job that the other side has its part in.
#[derive(Debug)]
pub(crate) struct Agreed {
    plan: Plan,
    starting: Starting,
}

impl Director {
    pub(super) fn new(link: Link, host: &Host, there: Other, shares: bool) -> Self {
        Self {
            link,
            there,
            here: Other::this(host, String::new()),
            shares,
        }
    }

    /// Returns how many of a job's ranks are here.
    pub(crate) const fn own(&self, ranks: u32) -> u32 {
        let first = ranks.div_ceil(2);
        if self.link.listens {
            first
        } else {
            ranks - first
        }
    }

    /// Returns where ranks run that nobody has bound: two sides on one machine do not know of each other's cores.
    pub(crate) fn bind<'b>(&self, asked: Option<&'b str>) -> Option<&'b str> {
        asked.or_else(|| self.shares.then_some("none"))
    }

    /// Puts both machines into the circumstances: rank 0's, whose clock is read, and the other one.
    pub(crate) fn describe(&self, environment: &mut Environment) {
        let transports: Vec<Used> = environment.transports.clone();
        let mut other = if self.link.listens {
            self.there.clone()
        } else {
            environment.machine = self.there.machine.clone();
            (environment.version, environment.commit) =
                (self.there.version.clone(), self.there.commit.clone());
            self.here.clone()
        };
        other.transports = transports;
        environment.other = Some(Box::new(other));
    }

    /// Puts in how ranks are bound, as both sides have said.
    pub(crate) fn describe_binding(
        &self,
        environment: &mut Environment,
        own: &str,
        agreed: &Agreed,
    ) {
        let there = agreed.starting.binding.clone();
        let (zero, other) = match self.link.listens {
            true => (own.to_owned(), there),
            false => (there, own.to_owned()),
        };
        environment.binding = zero;
        if let Some(known) = &mut environment.other {
            known.binding = other;
        }
    }

    /// Asks the other side for its part in a job, and returns what it is to be.
    pub(crate) fn agree(&self, jobs: &Jobs<'_>, mut plan: Plan) -> Result<Agreed> {
        plan.other_from = Some(plan.ranks.div_ceil(2));
        let starting = self.ask(&Job {
            plan: plan.clone(),
            ranks: plan.ranks - self.own(plan.ranks),
            settings: common(jobs.host),
            timeout: jobs.args.timeout,
        })?;
        Ok(Agreed { plan, starting })
    }

    /// Runs a job on both machines to its end. `take` gets what its ranks report.
    pub(crate) fn run(
        &self,
        jobs: &Jobs<'_>,
        Agreed { mut plan, starting }: Agreed,
        take: impl FnMut(Message) -> Result<()> + Send,
    ) -> Result<()> {
        let (host, limit) = (jobs.host, jobs.args.timeout);
        let (total, own) = (plan.ranks, self.own(plan.ranks));
        let server = ReportServer::open()?;
        plan.results = Some(server.address().clone());
        let mut spec = spec_of_ours(&plan, own, jobs.placement)?;
        spec.timeout = limit;
        complete(&mut spec, &plan, host)?;
        spec.hosts = Some(self.link.hosts(total, starting.port));
        let shared = Mutex::new((Reported::default(), take));
        let hear = |message: Message| {
            let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
            let (heard, take) = &mut *shared;
            heard.note(&message);
            take(message)
        };
        let (mut there, mut is_over_there) = (None, false);
        let started = |port: Option<u16>| {
            if let (true, Some(port)) = (self.link.listens, port) {
                self.link.say(&PeerMessage::Meet { port });
            }
        };
        let of_other = |word: PeerMessage| match word {
            PeerMessage::Report(message) => hear(message).map(|()| false),
            PeerMessage::Ended { failure } => {
                (there, is_over_there) = (failure, true);
                Ok(true)
            }
            _ => Err(self.foreign()),
        };
        let (ended, taken) = server.serve(hear, || self.link.run(spec, started, of_other, true));
        if ended.is_err() && !is_over_there {
            self.link.say(&PeerMessage::GiveUp);
            there = self.end_there();
        }
        taken?;
        let (heard, _) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.judge(ended, &heard, there, limit)
    }

    /// Waits for the end of the other side's part, where this one's could not be started; returns what went wrong there.
    fn end_there(&self) -> Option<Failure> {
        loop {
            if let PeerMessage::Ended { failure } = self.link.hear()? {
                return failure.filter(|it| it.interrupted);
            }
        }
    }

    /// Asks the other side for its part, and returns how it starts that.
    fn ask(&self, job: &Job) -> Result<Starting> {
        self.link.say(&PeerMessage::Job(Box::new(job.clone())));
        loop {
            match self.link.hear() {
                Some(PeerMessage::Starting(starting)) => return Ok(starting),
                Some(PeerMessage::Ended {
                    failure: Some(failure),
                }) => return Err(self.failed(failure)),
                // What was under way when an earlier job was given up.
                Some(PeerMessage::Ended { failure: None } | PeerMessage::Report(_)) => {}
                Some(_) => return Err(self.foreign()),
                None => return Err(self.link.lost()),
            }
        }
    }

    /// How the end of both parts is to be understood: what a rank says of itself comes first, then a part that says why.
    fn judge(
        &self,
        ended: Result<tagwire_launch::JobReport>,
        heard: &Reported,
        there: Option<Failure>,
        limit: Option<Duration>,
    ) -> Result<()> {
        let report = match (ended, &there) {
            (Ok(report), _) => report,
            (Err(_), Some(failure)) => return Err(self.failed(failure.clone())),
            (Err(error), None) => return Err(error),
        };
        if report.interrupted.is_none() && !report.timed_out {
            heard.result()?;
            if let Some(failure) = there {
                return Err(self.failed(failure));
            }
        }
        judge(&report, heard, limit)
    }

    fn failed(&self, failure: Failure) -> Error {
        let at = &self.link.other;
        let text = match failure.interrupted {
            true => format!("the other side at {at} was ended: {}", failure.text),
            false => format!("on the other side at {at}: {}", failure.text),
        };
        Error::Elsewhere {
            text,
            status: failure.status,
        }
    }

    fn foreign(&self) -> Error {
        Error::Job(format!(
            "the other side at {} says what no 'tagwire bench' says",
            self.link.other
        ))
    }
}

impl Drop for Director {
    fn drop(&mut self) {
        self.link.say(&PeerMessage::Bye);
    }
}

/// The settings that both sides have to agree in, as far as they are not at their default.
fn common(host: &Host) -> Vec<(String, String)> {
    let named = COMMON.iter().filter_map(|name| {
        let entry = host.config.entry(name).ok()?;
        let is_default = entry.origin() == tagwire_base::config::Origin::Default;
        (!is_default).then(|| ((*name).to_owned(), entry.value().to_string()))
    });
    named.collect()
}
