//! Scripts that real ranks run. The order of arrivals is that of the machine, and traces show it.

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_matching::{Engines, Envelope, Pattern};
use tagwire_pml::{RequestId, SendMode};

use super::Way;
use super::content::{NUMBER, message};
use super::job::words;
use super::plan::LONGEST;
use super::recorded::{Member, Posted, recorded};
use crate::trace::Trace;
use crate::traffic::{Action, Outgoing, Request, Script};

/// Has a rank run each script. Returns what the engines of the ranks were given, by rank.
///
/// # Errors
/// What a rank could not do, with its step.
pub(crate) fn play(
    scripts: &[Script],
    way: Way<'_>,
    known: &Engines,
) -> Result<Vec<Trace>, String> {
    let actions = || {
        scripts
            .iter()
            .flat_map(Script::steps)
            .map(|step| &step.action)
    };
    let sent = |action: &Action| match action {
        Action::Send(Outgoing { bytes, .. }, _) => Some(size(*bytes)),
        _ => None,
    };
    let context = |action: &Action| match action {
        Action::Send(Outgoing { context, .. }, _) => *context,
        Action::Post(pattern, _) | Action::Probe(pattern) => pattern.context.as_u16(),
        _ => 0,
    };
    let longest = actions().filter_map(sent).max().unwrap_or(NUMBER);
    let others = actions().map(context).max().unwrap_or_default();
    recorded(scripts.len() as u32, way, known, |member| {
        let script = &scripts[member.port.rank().as_u32() as usize];
        let mut player = Player {
            member,
            contexts: member.contexts(others.into())?,
            longest,
            begun: std::iter::repeat_with(|| Begun::Not)
                .take(script.requests() as usize)
                .collect(),
            probed: None,
        };
        for (index, step) in script.steps().iter().enumerate() {
            let done = player.act(&step.action);
            done.map_err(|why| format!("step {}: {why}", index + 1))?;
        }
        player.end()
    })
}

/// A rank that runs its script.
struct Player<'a> {
    member: &'a Member<'a>,
    /// By their numbers in scripts.
    contexts: Vec<ContextId>,
    /// Bytes of the longest message, for which each receive has room.
    longest: usize,
    /// The operations of the script.
    begun: Vec<Begun>,
    /// What the last probe found.
    probed: Option<Pattern>,
}

/// How far an operation has come.
enum Begun {
    /// It was not begun, or its end was taken.
    Not,
    Send(RequestId),
    Receive(Posted),
}

impl Player<'_> {
    fn act(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Post(pattern, request) => self.post(self.own(*pattern), *request),
            Action::PostProbed(request) => {
                let probed = self.probed.take();
                self.post(probed.ok_or("no probe has found a message")?, *request)
            }
            Action::Send(outgoing, request) => self.send(outgoing, *request),
            Action::Wait(requests) => requests.iter().try_for_each(|request| self.wait(*request)),
            Action::WaitAny(requests) => self.wait_any(requests),
            Action::Probe(pattern) => self.probe(self.own(*pattern)),
            Action::Cancel(request) => self.cancel(*request),
            Action::Compute(nanos) => {
                self.member.compute(*nanos);
                Ok(())
            }
        }
    }

    /// A pattern in the job's contexts.
    fn own(&self, pattern: Pattern) -> Pattern {
        Pattern {
            context: self.contexts[usize::from(pattern.context.as_u16())],
            ..pattern
        }
    }

    fn post(&mut self, pattern: Pattern, request: Request) -> Result<(), String> {
        let posted = self.member.irecv(pattern, self.longest)?;
        self.begun[request.0 as usize] = Begun::Receive(posted);
        Ok(())
    }

    fn send(&mut self, outgoing: &Outgoing, request: Request) -> Result<(), String> {
        let mode = match outgoing.synchronous {
            true => SendMode::Synchronous,
            false => SendMode::Standard,
        };
        let tag = Tag::from_wire(outgoing.tag).ok_or("its tag is none")?;
        let context = self.contexts[usize::from(outgoing.context)];
        let data = message(request.0.into(), size(outgoing.bytes));
        let port = &self.member.port;
        let sent = port.isend(data, Rank::new(outgoing.to), tag, context, mode);
        self.begun[request.0 as usize] = Begun::Send(sent.map_err(words)?);
        Ok(())
    }

    /// Whether an operation is complete, whose end is taken then.
    fn is_complete(&mut self, request: Request) -> Result<bool, String> {
        let begun = &mut self.begun[request.0 as usize];
        let ended = match begun {
            Begun::Not => return Ok(true),
            Begun::Send(request) => self.member.ended(*request)?,
            Begun::Receive(posted) => self.member.ended(posted.request)?,
        };
        if ended.is_some() {
            *begun = Begun::Not;
        }
        Ok(ended.is_some())
    }

    fn wait(&mut self, request: Request) -> Result<(), String> {
        let member = self.member;
        member.until("an operation was not complete", || {
            Ok(self.is_complete(request)?.then_some(()))
        })
    }

    fn wait_any(&mut self, requests: &[Request]) -> Result<(), String> {
        let member = self.member;
        member.until("none of the operations was complete", || {
            let mut is_one = requests.is_empty();
            for request in requests {
                is_one |= self.is_complete(*request)?;
            }
            Ok(is_one.then_some(()))
        })
    }

    fn probe(&mut self, pattern: Pattern) -> Result<(), String> {
        let port = &self.member.port;
        let found = self.member.until("the probe found nothing", || {
            let found = port.probe(pattern.source, pattern.tag, pattern.context);
            found.map_err(words)
        })?;
        self.probed = Some(Pattern::exact(Envelope {
            source: found.source,
            tag: found.tag,
            context: pattern.context,
        }));
        Ok(())
    }

    fn cancel(&mut self, request: Request) -> Result<(), String> {
        if let Begun::Receive(posted) = &self.begun[request.0 as usize] {
            let _ = self.member.port.cancel(posted.request).map_err(words)?;
            return self.wait(request);
        }
        Ok(())
    }

    /// Waits for what was sent and never waited for. Receives that have no message end with the job.
    fn end(mut self) -> Result<(), String> {
        for request in (0..self.begun.len() as u32).map(Request) {
            if matches!(self.begun[request.0 as usize], Begun::Send(_)) {
                self.wait(request)?;
            }
        }
        Ok(())
    }
}

/// Bytes of a message as it is sent.
fn size(bytes: u64) -> usize {
    bytes.clamp(NUMBER as u64, LONGEST as u64) as usize
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::apps::{APPS, AppName};
    use crate::stats::{Groups, Key, count, merge};

    /// What each application is, small.
    fn small(name: &str) -> String {
        let sizes = match name {
            "halo7" | "halo27" => "x=3,y=3,z=3,steps=1",
            "fds" => "x=3,y=3,z=3,messages=3,steps=1",
            "sweep" => "x=2,y=2,iterations=1",
            "alltoall" => "ranks=6,steps=2",
            "transpose" => "side=3,steps=2",
            "farm" => "workers=3,tasks=5",
            "amg" => "ranks=32,levels=2,steps=1",
            "nbx" | "particles" => "ranks=8,steps=2",
            "storm" => "senders=3,messages=9",
            "threads" => "x=3,y=3,steps=2",
            other => panic!("{other} has no small form"),
        };
        format!("{name}:{sizes}")
    }

    /// Real ranks post and send what the scripts have, and what matched is what the rules give.
    #[test]
    fn every_application_is_run_by_real_ranks() {
        for app in APPS {
            let name = AppName::parse(&small(app.named.name)).unwrap();
            let scripts = name.scripts();
            let traces = play(&scripts, Way::SHM, &Engines::default());
            let traces = traces.unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(traces.len(), scripts.len(), "{name}");
            for (trace, script) in traces.iter().zip(&scripts) {
                let mut counted = count(trace).unwrap();
                let posts = counted.entry(Key::PROGRAM).or_default().posts;
                assert_eq!(posts, script.receives() as u64, "{name}");
            }
            let mut sum = Groups::new();
            for trace in &traces {
                merge(&mut sum, &count(trace).unwrap());
            }
            let sends: usize = scripts.iter().map(Script::sends).sum();
            let figures = sum[&Key::PROGRAM].summary();
            assert_eq!(figures.arrivals, sends as u64, "{name}");
        }
    }

    #[test]
    fn a_step_that_cannot_be_done_and_a_job_that_is_too_large_are_told() {
        let mut script = Script::new();
        script.compute(10);
        script.send(Outgoing {
            to: 5,
            tag: 1,
            context: 0,
            bytes: 8,
            synchronous: false,
        });
        let told = play(&[script], Way::SHM, &Engines::default()).unwrap_err();
        assert!(told.starts_with("rank 0: step 2: "), "{told}");
        let many = vec![Script::new(); 257];
        let told = play(&many, Way::SHM, &Engines::default()).unwrap_err();
        assert!(told.contains("at most 256"), "{told}");
    }
}
