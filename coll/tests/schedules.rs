//! Collective operations in random schedules of a simulated network: ranks are tasks of one thread, which start several operations at once
//! and wait for them each in an order of its own.
#![cfg(not(loom))]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_coll::{Request, Selection, Team};
use tagwire_conformance::network::{
    Actor, MemoryNetwork, MemoryOptions, Schedule, SimJob, Simulation,
};
use tagwire_conformance::seeds;
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};

use crate::common::cases::{Case, Draws, cases};
use crate::common::each_forced;

/// Seeds of a run of the tests.
const SEEDS: u64 = 2000;

/// How often the ranks of a seed start some operations.
const ROUNDS: u64 = 2;

/// Operations that are under way at once, at most.
const OPEN: usize = 12;

/// Where a rank that ends leaves what it has begun.
const CLOSING: Duration = Duration::from_millis(100);

/// A network of a seed, by whose options messages take every way.
fn network(seed: u64) -> MemoryOptions {
    let mut draws = Draws::of(seed | 1 << 40);
    let mut is = || draws.below(2) == 1;
    MemoryOptions {
        cooperative: is(),
        get: is(),
        put: is(),
        notices: is(),
        machine: Some(seeds::machine(1 + (seed % 3) as u32)),
        schedule: Schedule {
            seed,
            shuffle: true,
            delay: Duration::from_micros(seed % 4 * 5),
            reorder: is(),
            ..Schedule::default()
        },
        trace: seeds::trace(),
        ..MemoryOptions::default()
    }
}

/// A rank, as its task has it.
struct Member {
    team: Arc<Team>,
    messenger: Arc<Messenger>,
    actor: Actor,
}

impl Member {
    /// Waits for the end of an operation.
    async fn end_of(&self, request: &Request) -> Result<(), String> {
        loop {
            if let Some(end) = request.take() {
                return end.map_err(|error| error.to_string());
            }
            let events = self.messenger.progress();
            if events.map_err(|error| error.to_string())? == 0 && !request.is_complete() {
                self.actor.next().await;
            }
        }
    }

    /// Starts operations that are drawn alike by all, and waits for them.
    async fn round(&self, seed: u64, round: u64) -> Result<(), String> {
        let number = seed * ROUNDS + round;
        let mut common = Draws::of(number);
        let mut all = cases(&self.team, number);
        while all.len() > OPEN {
            all.swap_remove(common.below(all.len()));
        }
        let mut open: Vec<_> = all.iter_mut().map(|case| case.start(&self.team)).collect();
        let mut own = Draws::of(number << 8 | self.team.me() as u64 | 1 << 41);
        let mut ended = Ok(());
        while ended.is_ok() && !open.is_empty() {
            let request = open.swap_remove(own.below(open.len()));
            ended = self.end_of(&request).await;
        }
        match ended {
            Ok(()) if all.iter().all(Case::is_right) => Ok(()),
            Ok(()) => Err(format!("round {round}: another result than the oracle's")),
            Err(reason) => {
                // Messages may still touch the buffers.
                std::mem::forget(all);
                Err(format!("round {round}: {reason}"))
            }
        }
    }

    async fn run(self, seed: u64) -> Result<(), String> {
        for round in 0..ROUNDS {
            self.round(seed, round).await?;
        }
        let closed = self.messenger.close(CLOSING);
        closed.map_err(|error| error.to_string())
    }
}

fn operations(seed: u64) -> Result<(), String> {
    let size = 1 + seed as u32 % 7;
    let forced = each_forced();
    // Every other seed takes the algorithms of the table.
    let forced = forced.get(seed as usize / 2 % forced.len());
    let forced = forced.filter(|_| seed % 2 == 1).map_or("", String::as_str);
    let selection = Selection::parse(forced).map_err(|error| error.to_string())?;
    let selection = Arc::new(selection.on_one_host(size % 2 == 1));
    let network = MemoryNetwork::new(size, network(seed));
    let job = SimJob::new(&network);
    let mut simulation = Simulation::new(&network);
    let wrong = Rc::new(RefCell::new(None));
    for rank in (0..size).map(Rank::new) {
        let (transport, clock) = network.open(rank);
        let bootstrap = Box::new(job.member(rank, clock.clone()));
        let ob1 = Ob1::open(&Ob1Options::default(), Box::new(transport), bootstrap);
        let ob1 = ob1.map_err(|error| error.to_string())?;
        let policy = WaitPolicy::adaptive(true);
        let messenger = Messenger::new(ob1, ThreadLevel::Single, policy).with_clock(clock);
        let messenger = Arc::new(messenger);
        let team = Arc::new(Team::world(&messenger, Arc::clone(&selection)));
        let actor = network.actor(rank);
        let member = Member {
            team,
            messenger,
            actor: actor.clone(),
        };
        let wrong = Rc::clone(&wrong);
        simulation.spawn(&actor, async move {
            if let Err(reason) = member.run(seed).await {
                let mut first = wrong.borrow_mut();
                first.get_or_insert(format!("{rank:?}: {reason}"));
            }
        });
    }
    let ended = simulation.run();
    drop(simulation);
    match wrong.take() {
        Some(reason) => Err(format!("{size} ranks, '{forced}': {reason}")),
        None => ended.map_err(|error| format!("{size} ranks, '{forced}': {error}")),
    }
}

#[test]
fn operations_end_in_any_schedule() {
    let again = "cargo test -p tagwire-coll --test tests operations_end_in_any_schedule";
    seeds::on_seeds(SEEDS, again, operations);
}
