//! What a victim has open with its villains beside messages: a window, partitioned operations, a group. So packets of services
//! meet operations that exist, and a villain that says again what it has heard answers them.

use std::sync::Arc;

use tagwire_base::{ContextId, Rank};
use tagwire_coll::{Duplicate, Selection, Team};
use tagwire_conformance::Chance;
use tagwire_pml::rma::Atomic;
use tagwire_pml::{AccessId, Error, Messenger, PartitionedRecv, PartitionedSend, Policy, Region};

use super::TAG;
use super::memory::{LEN, Memory};

/// How many partitioned operations of each kind are open at most: the oldest end.
const MOST: usize = 12;
/// How many duplicates of the group are made at once.
const GROUPS: usize = 3;
/// The partitions of an operation, and their bytes.
const PARTITIONS: u32 = 4;
const BYTES: usize = 4096;

thread_local! {
    static PLACES: Places = Places {
        exposed: Memory::new(),
        room: Memory::new(),
        receive: Memory::new(),
        send: Memory::new(),
    };
}

/// The memory of the victims of a thread. What is sent is never written.
#[derive(Debug, Clone, Copy)]
struct Places {
    exposed: Memory,
    room: Memory,
    receive: Memory,
    send: Memory,
}

/// The services of a victim.
pub struct Services {
    victim: Arc<Messenger>,
    places: Places,
    group: Arc<Team>,
    duplicates: Vec<Duplicate>,
    region: Option<Region>,
    accesses: Vec<AccessId>,
    sends: Vec<PartitionedSend>,
    receives: Vec<PartitionedRecv>,
    /// How many operations have ended as with a correct peer.
    pub ended: u64,
}

impl Services {
    /// Returns those of a victim: nothing is open but its group.
    pub fn of(victim: &Arc<Messenger>) -> Self {
        let group = Team::world(victim, Arc::new(Selection::default()));
        Self {
            victim: Arc::clone(victim),
            places: PLACES.with(|places| *places),
            group: Arc::new(group),
            duplicates: Vec::new(),
            region: None,
            accesses: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
            ended: 0,
        }
    }

    /// Begins an operation with a villain.
    ///
    /// # Errors
    /// When it is refused, though the villain lives.
    pub fn begin(&mut self, villain: Rank, chance: &mut Chance) -> Result<(), String> {
        let begun = match chance.below(4) {
            0 => self.group(),
            1 => self.partitioned(villain, chance),
            _ => self.access(villain, chance),
        };
        match begun {
            // It has been given up, or its transport has no packets of services.
            Ok(()) | Err(Error::Failed(_) | Error::BadRegion(_)) => Ok(()),
            Err(why) => Err(format!("a service: {why}")),
        }
    }

    /// Has all make a duplicate of the group: none begins after one has failed. Each call of progress looks at all that are open.
    fn group(&mut self) -> Result<(), Error> {
        if self.duplicates.len() < GROUPS
            && let Ok(duplicate) = Duplicate::of(&self.group)
        {
            self.duplicates.push(duplicate);
        }
        Ok(())
    }

    /// Sends and receives partitions, under one tag: a villain that says again how the send begins has begun the receive.
    fn partitioned(&mut self, villain: Rank, chance: &mut Chance) -> Result<(), Error> {
        let policy = chance.one_of(&[
            Policy::Default,
            Policy::Each,
            Policy::Fixed(2),
            Policy::Messages(2),
        ]);
        let victim = &self.victim;
        let (data, room) = (
            self.places.send.send_buffer(BYTES),
            self.places.receive.recv_buffer(BYTES),
        );
        let world = ContextId::WORLD;
        let receive = PartitionedRecv::init(victim, &room, PARTITIONS, villain, TAG, world)?;
        let send = PartitionedSend::init(victim, &data, PARTITIONS, villain, TAG, world, policy)?;
        // A villain that has failed meanwhile fails them.
        let _ = receive.start();
        if send.start().is_ok() {
            let _ = send.ready_range(0..PARTITIONS);
        }
        self.receives.push(receive);
        self.sends.push(send);
        Ok(())
    }

    /// Reads, writes or changes memory of a villain, whose key is the victim's own: what is sent there and comes back is about
    /// memory that exists.
    fn access(&mut self, villain: Rank, chance: &mut Chance) -> Result<(), Error> {
        let window = self.victim.window();
        if let Some(region) = self.region.take_if(|_| chance.below(64) == 0) {
            window.withdraw(region)?;
        }
        let region = match self.region.take() {
            Some(region) => region,
            None => window.expose(&self.places.exposed.recv_buffer(LEN))?,
        };
        let region = self.region.insert(region);
        let target = window.reach(villain, region.key())?;
        let len = chance.one_of(&[8, 200, 3_000, 20_000]);
        let offset = 8 * chance.below(((LEN - len) / 8) as u64);
        let access = match chance.below(3) {
            0 => window.put(self.places.send.send_buffer(len), &target, offset)?,
            1 => window.get(self.places.room.recv_buffer(len), &target, offset)?,
            _ => window.atomic(Atomic::Sum(1), &target, offset)?,
        };
        self.accesses.push(access);
        if chance.below(4) == 0 {
            let _ = window.test_flush(&target);
        }
        Ok(())
    }

    /// Takes the ends of operations. How those end that a villain has spoilt nobody knows.
    pub fn look(&mut self) {
        let window = self.victim.window();
        let mut ended = 0;
        let mut has_ended = |end: Result<bool, Error>| match end {
            Ok(has_ended) => {
                ended += u64::from(has_ended);
                has_ended
            }
            Err(_) => true,
        };
        self.accesses
            .retain(|access| !has_ended(window.test(*access).map(|end| end.is_some())));
        self.sends.retain(|send| !has_ended(send.test()));
        self.receives.retain(|receive| !has_ended(receive.test()));
        self.duplicates
            .retain(|duplicate| duplicate.take().is_none());
        self.ended += ended;
        drop_oldest(&mut self.sends);
        drop_oldest(&mut self.receives);
    }
}

fn drop_oldest<T>(open: &mut Vec<T>) {
    open.drain(..open.len().saturating_sub(MOST));
}
