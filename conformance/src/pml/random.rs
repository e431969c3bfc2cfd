//! Random traffic from a seed: everything at once, and then the history is checked.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::fault::SplitMix64;

use super::history::{History, Sent, Wanted};
use super::rig::{ANYONE, Checked, Receiving, WORLD, World, accepted, ensure, same, tag};
use super::{Budget, Factory, Setup};
use tagwire_pml::types::{CancelOutcome, Failure, RequestId, SendMode};

/// Room of every receive: more than the longest message.
const ROOM: usize = 24_100;

/// The tag inside that a run uses.
const INSIDE: Tag = Tag::internal(3);

/// What a run is like.
#[derive(Debug, Clone, Copy)]
struct Plan {
    ranks: u32,
    steps: usize,
    budget: Option<Budget>,
    kill: bool,
}

/// Messages from each to each before a run on a budget: more than may come without credit.
const PRELUDE: usize = 90;

/// A budget that is spent at once.
const TINY: Budget = Budget {
    payload: 4000,
    headers: 1000,
    buffered: 1 << 24,
};

const NOTHING: Budget = Budget {
    payload: 0,
    headers: 0,
    buffered: 1 << 24,
};

pub(super) fn random_traffic_of_two(factory: &Factory) -> Checked {
    several(factory, 6, plan(2, 250))
}

pub(super) fn random_traffic_of_three(factory: &Factory) -> Checked {
    several(factory, 5, plan(3, 300))
}

pub(super) fn random_traffic_of_eight(factory: &Factory) -> Checked {
    several(factory, 2, plan(8, 500))
}

pub(super) fn random_traffic_on_tiny_budgets(factory: &Factory) -> Checked {
    for budget in [TINY, NOTHING] {
        let budget = Some(budget);
        several(
            factory,
            4,
            Plan {
                budget,
                ..plan(2, 400)
            },
        )?;
        several(
            factory,
            4,
            Plan {
                budget,
                ..plan(3, 600)
            },
        )?;
    }
    Ok(())
}

pub(super) fn random_traffic_around_a_death(factory: &Factory) -> Checked {
    for budget in [None, Some(TINY)] {
        let kill = true;
        several(
            factory,
            4,
            Plan {
                budget,
                kill,
                ..plan(3, 250)
            },
        )?;
        several(
            factory,
            2,
            Plan {
                budget,
                kill,
                ..plan(4, 400)
            },
        )?;
    }
    Ok(())
}

const fn plan(ranks: u32, steps: usize) -> Plan {
    Plan {
        ranks,
        steps,
        budget: None,
        kill: false,
    }
}

fn several(factory: &Factory, runs: u64, plan: Plan) -> Checked {
    let asked = std::env::var("TAGWIRE_CONFORMANCE_SEED").ok();
    let seeds = match asked.as_deref().map(str::parse) {
        Some(Ok(seed)) => seed..seed + 1,
        Some(Err(_)) => return Err("TAGWIRE_CONFORMANCE_SEED is not a number".into()),
        None => 1..runs * rounds() + 1,
    };
    for seed in seeds {
        Run::open(factory, plan, seed)
            .and_then(Run::finish)
            .map_err(|error| format!("seed {seed} of {plan:?}: {error}"))?;
    }
    Ok(())
}

/// How many times more runs than usual: `TAGWIRE_CONFORMANCE_ROUNDS`, for a long night.
pub(super) fn rounds() -> u64 {
    std::env::var("TAGWIRE_CONFORMANCE_ROUNDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(1)
}

/// A run under way.
struct Run {
    world: World,
    random: SplitMix64,
    plan: Plan,
    history: History,
    sends: Vec<(usize, RequestId)>,
    /// By the number of the receive; what a probe promised.
    receives: Vec<(Receiving, Option<usize>)>,
    contexts: [ContextId; 2],
    death: Option<(usize, usize)>,
}

impl Run {
    fn open(factory: &Factory, plan: Plan, seed: u64) -> Checked<Self> {
        let setup = Setup {
            budget: plan.budget,
        };
        let mut world = World::open(factory, plan.ranks, &setup)?;
        let mut inner = WORLD;
        for rank in 0..world.size() {
            inner = accepted("open_context", world.pml(rank)?.open_context())?;
        }
        let mut random = SplitMix64::stream(seed, u64::from(plan.ranks));
        let death = plan.kill.then(|| {
            let step = random.below(plan.steps as u64) as usize;
            (step, random.below(u64::from(plan.ranks)) as usize)
        });
        Ok(Self {
            world,
            random,
            plan,
            history: History::default(),
            sends: Vec::new(),
            receives: Vec::new(),
            contexts: [WORLD, inner],
            death,
        })
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    /// A rank that lives.
    fn somebody(&mut self) -> usize {
        loop {
            let rank = self.below(self.plan.ranks as usize);
            if self.world.is_alive(rank) {
                return rank;
            }
        }
    }

    /// With a budget: everyone sends everyone more than fits, so that it is spent from the start.
    fn prelude(&mut self) -> Checked {
        if self.plan.budget.is_none() {
            return Ok(());
        }
        for _ in 0..PRELUDE {
            for at in 0..self.world.size() {
                for to in 0..self.world.size() {
                    let len = 4 + self.below(5);
                    self.send_to(at, to, len, tag(9), WORLD, SendMode::Standard)?;
                }
            }
            if self.below(8) == 0 {
                self.world.turn();
            }
        }
        self.world.settle();
        Ok(())
    }

    fn finish(mut self) -> Checked {
        self.prelude()?;
        for step in 0..self.plan.steps {
            if let Some((when, victim)) = self.death
                && when == step
            {
                self.world.kill(victim);
                self.history.dead.push(victim);
            }
            self.step()?;
        }
        self.drain()?;
        self.take_ends()?;
        self.history.check()?;
        self.world.is_idle()
    }

    fn step(&mut self) -> Checked {
        match self.below(100) {
            0..36 => self.send(),
            36..62 => self.receive(),
            62..70 => self.probe(),
            70..76 => self.claim(),
            76..82 => self.cancel(),
            82..84 => {
                self.world.look_around();
                Ok(())
            }
            _ => {
                let rank = self.somebody();
                for _ in 0..=self.below(4) {
                    self.world.pml(rank)?.progress();
                }
                Ok(())
            }
        }
    }

    fn length(&mut self) -> usize {
        match self.below(10) {
            0..6 => self.below(70),
            6..8 => 3500 + self.below(1500),
            _ => 16_000 + self.below(8000),
        }
    }

    fn a_tag(&mut self) -> Tag {
        match self.below(20) {
            0 => INSIDE,
            value => tag(value as u32 % 3),
        }
    }

    fn send(&mut self) -> Checked {
        let (at, to) = (self.somebody(), self.below(self.plan.ranks as usize));
        let (len, tag) = (self.length(), self.a_tag());
        let context = self.contexts[self.below(2)];
        let mode = match self.below(6) {
            0 => SendMode::Synchronous,
            1 => SendMode::Buffered,
            _ => SendMode::Standard,
        };
        self.send_to(at, to, len, tag, context, mode)
    }

    fn send_to(
        &mut self,
        at: usize,
        to: usize,
        len: usize,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Checked {
        let data = super::rig::pattern(self.history.sent.len(), len);
        let lent = self.world.lend(&data);
        let sent = self
            .world
            .pml(at)?
            .isend(lent, Rank::new(to as u32), tag, context, mode);
        match sent {
            Ok(request) => {
                self.sends.push((at, request));
                self.history.sent.push(Sent {
                    from: at,
                    to,
                    tag,
                    context,
                    len,
                });
                Ok(())
            }
            // The dead may be out of reach from the start.
            Err(_) if self.history.dead.contains(&to) => Ok(()),
            Err(error) => Err(format!("isend was refused: {error}")),
        }
    }

    /// Notes a receive that was posted, or a claim that found something.
    fn note(
        &mut self,
        receiving: Receiving,
        source: Option<usize>,
        tag: Option<Tag>,
        context: ContextId,
        promised: Option<usize>,
    ) {
        self.receives.push((receiving, promised));
        self.history.wanted.push(Wanted {
            at: receiving.at,
            source,
            tag,
            context,
            got: None,
            excused: false,
        });
    }

    fn post(
        &mut self,
        at: usize,
        source: Option<usize>,
        tag: Option<Tag>,
        context: ContextId,
        promised: Option<usize>,
    ) -> Checked {
        let (from, wanted) = selectors(source, tag);
        let receiving = self.world.recv_in(at, from, wanted, context, ROOM)?;
        self.note(receiving, source, tag, context, promised);
        Ok(())
    }

    /// What a random receive, probe or claim asks for.
    fn wish(&mut self) -> (usize, Option<usize>, Option<Tag>, ContextId) {
        let at = self.somebody();
        let source = (self.below(2) == 0).then(|| self.below(self.plan.ranks as usize));
        let tag = (self.below(2) == 0).then(|| self.a_tag());
        (at, source, tag, self.contexts[self.below(2)])
    }

    fn receive(&mut self) -> Checked {
        let (at, source, tag, context) = self.wish();
        self.post(at, source, tag, context, None)
    }

    fn probe(&mut self) -> Checked {
        let (at, source, tag, context) = self.wish();
        let (from, wanted) = selectors(source, tag);
        let seen = accepted("probe", self.world.pml(at)?.probe(from, wanted, context))?;
        if let Some(seen) = seen {
            // What was seen is what a receive for just that gets.
            let source = Some(seen.source.index());
            self.post(at, source, Some(seen.tag), context, Some(seen.length))?;
        }
        Ok(())
    }

    fn claim(&mut self) -> Checked {
        let (at, source, tag, context) = self.wish();
        let (from, wanted) = selectors(source, tag);
        let claimed = accepted("claim", self.world.pml(at)?.claim(from, wanted, context))?;
        if let Some((message, seen)) = claimed {
            for _ in 0..self.below(3) {
                self.world.pml(at)?.progress();
            }
            let (room, buffer) = self.world.lend_room(ROOM);
            let request = self.world.pml(at)?.irecv_claimed(room, message);
            let request = accepted("irecv_claimed", request)?;
            let receiving = Receiving {
                request,
                buffer,
                at,
            };
            self.note(receiving, source, tag, context, Some(seen.length));
        }
        Ok(())
    }

    fn cancel(&mut self) -> Checked {
        if self.receives.is_empty() {
            return Ok(());
        }
        let number = self.below(self.receives.len());
        let (receiving, _) = self.receives[number];
        if !self.world.is_alive(receiving.at) || self.history.wanted[number].excused {
            return Ok(());
        }
        self.take_back(number, receiving).map(drop)
    }

    fn take_back(&mut self, number: usize, receiving: Receiving) -> Checked<CancelOutcome> {
        let outcome = self.world.pml(receiving.at)?.cancel(receiving.request);
        let outcome = accepted("cancel", outcome)?;
        if outcome == CancelOutcome::Cancelled {
            self.history.wanted[number].excused = true;
            let status = self.world.pml(receiving.at)?.take(receiving.request);
            let status = accepted("take", status)?.ok_or("a cancelled receive goes on")?;
            ensure!(status.cancelled, "cancelled, and the status denies it");
        }
        Ok(outcome)
    }

    /// Receives whatever is left, so that every message ends somewhere.
    fn drain(&mut self) -> Checked {
        if !self.history.dead.is_empty() {
            for _ in 0..3 {
                self.world.settle();
                self.world.look_around();
            }
            for rank in 0..self.world.size() {
                if self.world.is_alive(rank) {
                    let failed = self.world.pml(rank)?.acknowledge_failures();
                    same("how many failed", failed.len(), 1)?;
                }
            }
        }
        for at in 0..self.world.size() {
            if !self.world.is_alive(at) {
                continue;
            }
            for context in self.contexts {
                for inside in [false, true] {
                    let due = |message: &&Sent| {
                        message.to == at
                            && message.context == context
                            && (message.tag == INSIDE) == inside
                    };
                    // More than enough: some have been received already.
                    for _ in 0..self.history.sent.iter().filter(due).count() {
                        self.post(at, None, inside.then_some(INSIDE), context, None)?;
                        self.world.pml(at)?.progress();
                    }
                }
            }
        }
        for (at, request) in std::mem::take(&mut self.sends) {
            if !self.world.is_alive(at) {
                continue;
            }
            let status = self.world.finish(at, request)?;
            match status.failure {
                None => {}
                Some(Failure::PeerFailed(rank)) if self.history.is_dead(rank) => {}
                failure => return Err(format!("a send ended with {failure:?}")),
            }
        }
        self.world.settle();
        Ok(())
    }

    /// Takes the ends of all receives, those that got nothing by cancelling them.
    fn take_ends(&mut self) -> Checked {
        for number in 0..self.receives.len() {
            let (receiving, promised) = self.receives[number];
            let Receiving { at, request, .. } = receiving;
            if !self.world.is_alive(at) {
                self.history.wanted[number].excused = true;
                continue;
            }
            if self.history.wanted[number].excused {
                continue;
            }
            if !self.world.is_complete(at, request)? {
                // Unmatched at the end: it must not have been passed over.
                match self.take_back(number, receiving)? {
                    CancelOutcome::Cancelled => self.history.wanted[number].excused = false,
                    CancelOutcome::AlreadyMatched => {
                        return Err(format!(
                            "a matched receive never ends\n{}",
                            self.world.dumps()
                        ));
                    }
                }
                continue;
            }
            let status = accepted("take", self.world.pml(at)?.take(request))?;
            let status = status.ok_or("a complete receive has no end")?;
            match status.failure {
                None => {
                    let bytes = self.world.bytes(receiving);
                    self.history.identify(number, status, bytes)?;
                    if let Some(promised) = promised {
                        same("the length after a probe", status.length, promised)?;
                    }
                }
                Some(Failure::PeerFailed(rank)) if self.history.is_dead(rank) => {
                    self.history.wanted[number].excused = true;
                }
                failure => return Err(format!("a receive ended with {failure:?}")),
            }
        }
        Ok(())
    }
}

fn selectors(source: Option<usize>, tag: Option<Tag>) -> (SourceSelector, TagSelector) {
    (
        source.map_or(ANYONE, |rank| SourceSelector::exact(Rank::new(rank as u32))),
        tag.map_or(TagSelector::ANY, TagSelector::exact),
    )
}
