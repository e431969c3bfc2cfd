//! A member dies in a collective access: the others' accesses end, and so do later ones.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::{Selection, Team};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_files::{Access, Data, File, Hints, Kind, Result, Room, Switch, View};
use tagwire_layout::{Basic, Datatype, Program};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::fault::{FaultOptions, FaultTransport};

use crate::common::memory::Memory;
use crate::common::open;

const SIZE: u32 = 3;

/// It dies: an aggregator, and a member that is none.
const VICTIMS: [u32; 2] = [0, 2];

/// Writes and reads until that fails.
fn use_file(file: &File) -> Result<()> {
    let me = file.team().me() as u64;
    let byte = Datatype::of(Basic::Byte);
    let every_third = Program::of(&byte.resized(0, 3).unwrap());
    let view = View::new(me, &Program::of(&byte), &every_third)?;
    let data = [me as u8; 200];
    loop {
        let access = Access::new(&view, 0);
        file.write_all(access, &Data::Bytes(&data)).into_result()?;
        let mut seen = [0; 200];
        let read = file
            .read_all(access, &mut Room::Bytes(&mut seen))
            .into_result()?;
        assert_eq!((read, seen), (200, data));
    }
}

fn hints() -> Hints {
    Hints {
        two_phase_writes: Switch::Enable,
        two_phase_reads: Switch::Enable,
        buffer: 100,
        unit: Some(1),
        ..Hints::default()
    }
}

fn run(victim: u32, kill_after: u64) {
    let network = MemoryNetwork::new(SIZE, MemoryOptions::full());
    let job = LocalJob::new(SIZE).unwrap();
    let memory = Memory::default();
    let (sender, ends) = channel();
    for number in 0..SIZE {
        let (job, network, memory) = (job.clone(), network.clone(), memory.clone());
        let sender = sender.clone();
        // Not joined: the dead rank's thread may wait for ever.
        std::thread::spawn(move || {
            let rank = Rank::new(number);
            let faults = FaultOptions {
                kill_after: (number == victim).then_some(kill_after),
                ..FaultOptions::default()
            };
            let reporter = job.clone();
            let rail = FaultTransport::new(Box::new(network.rank(rank)), rank, faults).on_death(
                move |rank| {
                    network.fail(rank);
                    reporter.declare_failed(rank);
                },
            );
            let options = Ob1Options::default();
            let ob1 = Ob1::open(&options, Box::new(rail), Box::new(job.member(rank))).unwrap();
            let policy = WaitPolicy::adaptive(true);
            let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
            let team = Team::world(&messenger, Arc::new(Selection::parse("").unwrap()));
            let file = open(team, Arc::new(memory), hints(), u64::from(number / 2));
            let end = file.and_then(|file| {
                let end = use_file(&file);
                let closed = file.close();
                end.and(closed)
            });
            if number != victim {
                let _ = sender.send(end);
            }
        });
    }
    for _ in 1..SIZE {
        let end = ends.recv_timeout(Duration::from_secs(60));
        let end = end.unwrap_or_else(|_| panic!("{victim} after {kill_after}: somebody hangs"));
        let error = end.unwrap_err();
        assert_eq!(
            error.kind(),
            Kind::Peer,
            "{victim} after {kill_after}: {error}"
        );
    }
}

#[test]
fn the_others_accesses_end() {
    for victim in VICTIMS {
        // Each message of two accesses, and some later ones.
        for kill_after in (6..60).step_by(4) {
            run(victim, kill_after);
        }
    }
}
