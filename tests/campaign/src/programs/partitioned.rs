//! A ring of partitioned operations: every rank sends to the next and receives from the one before, round after round, its
//! partitions in an order of chance.

use std::time::Duration;

use tagwire::{Error, PartitionedRecv, PartitionedSend, Policy, Session};
use tagwire_conformance::Chance;

use super::Program;
use crate::contents::fill;
use crate::events::{Stream, Word};
use crate::stage::{Stage, Trouble, whose};

/// A ring of partitioned operations.
#[derive(Debug)]
pub struct Partitioned;

/// How long a wait lasts before the other operation is looked at.
const NAP: Duration = Duration::from_millis(5);
/// What the first bytes of a round's data say: its number, and whether it is the last.
const HEAD: usize = 16;

impl Program for Partitioned {
    fn name(&self) -> &'static str {
        "partitioned"
    }

    fn about(&self) -> &'static str {
        "a ring of partitioned sends and receives of 1 to 32 partitions, by each policy"
    }

    fn hears_of(&self, rank: u32, peer: u32, ranks: u32) -> bool {
        (rank + 1) % ranks == peer || (peer + 1) % ranks == rank
    }

    fn run(&self, stage: &Stage) -> Result<(), Trouble> {
        let session = stage.open(Session::builder())?;
        let (me, size) = (session.rank(), session.size());
        let mut ends = Ends::new(stage, &session, (me + 1) % size, (me + size - 1) % size)?;
        ends.run(stage)?;
        drop(ends);
        stage.close(session)
    }
}

/// How a link of the ring is divided, as both of its ranks draw it.
struct Shape {
    sends: u32,
    receives: u32,
    len: usize,
    policy: &'static str,
}

impl Shape {
    fn of(seed: u64, from: u32) -> Self {
        let mut chance = Chance::new(seed ^ u64::from(from) << 9);
        let (sends, receives) = (1 + chance.below(32) as u32, 1 + chance.below(32) as u32);
        // A round ends as a whole, so that it is not much longer than the longest messages of others.
        let each = chance.one_of(&[1, 7, 100]);
        Self {
            sends,
            receives,
            len: (sends * receives) as usize * each * HEAD,
            policy: chance.one_of(&[
                "each",
                "default",
                "fixed:2",
                "timer:2048:20",
                "messages",
                "single",
            ]),
        }
    }
}

fn contents(seed: u64, from: u32, round: u64, is_last: bool, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(seed ^ u64::from(from) << 40 ^ round, &mut bytes);
    bytes[..8].copy_from_slice(&round.to_le_bytes());
    bytes[8..HEAD].fill(u8::from(is_last));
    bytes
}

/// A rank's two operations.
struct Ends<'s> {
    next: u32,
    before: u32,
    /// `None` where the peer has ended before it could be made.
    send: Option<PartitionedSend<'s, u8>>,
    receive: Option<PartitionedRecv<'s, u8>>,
    sent: u64,
    /// How many of the rounds that were sent have ended.
    ended: u64,
    received: u64,
    send_is_over: bool,
    receive_is_over: bool,
    lost: Vec<u32>,
}

impl<'s> Ends<'s> {
    fn new(stage: &Stage, session: &'s Session, next: u32, before: u32) -> Result<Self, Trouble> {
        let (world, me) = (session.world(), session.rank());
        let (out, into) = (Shape::of(stage.seed, me), Shape::of(stage.seed, before));
        let policy: Policy = out
            .policy
            .parse()
            .map_err(|why| format!("{}: {why}", out.policy))?;
        let mut ends = Self {
            next,
            before,
            send: None,
            receive: None,
            sent: 0,
            ended: 0,
            received: 0,
            send_is_over: false,
            receive_is_over: false,
            lost: Vec::new(),
        };
        let send = world.psend_init_with(policy, vec![0; out.len], out.sends, next, 1);
        let receive = world.precv_init(vec![0; into.len], into.receives, before, 1);
        ends.send_is_over = made(&mut ends.send, send)
            .map_or_else(|error| ends.is_end(stage, next, Err(error)), |()| Ok(false))?;
        ends.receive_is_over = made(&mut ends.receive, receive).map_or_else(
            |error| ends.is_end(stage, before, Err(error)),
            |()| Ok(false),
        )?;
        Ok(ends)
    }

    fn run(&mut self, stage: &Stage) -> Result<(), Trouble> {
        let mut chance = Chance::new(stage.seed ^ u64::from(stage.me));
        while !(self.send_is_over && self.receive_is_over) {
            let idle = self.receive.as_mut().filter(|receive| !receive.is_active());
            if let Some(receive) = idle.filter(|_| !self.receive_is_over) {
                let started = receive.start().map(drop);
                self.receive_is_over |= self.is_end(stage, self.before, started)?;
            }
            let is_idle = self.send.as_ref().is_some_and(|send| !send.is_active());
            if !self.send_is_over && is_idle {
                let ends = stage.step(0);
                let produced = self.produce(stage, &mut chance, ends);
                self.send_is_over |= self.is_end(stage, self.next, produced)?;
            }
            if !self.send_is_over {
                self.finish_send(stage)?;
            }
            if !self.receive_is_over {
                self.finish_receive(stage)?;
            }
            self.tell(stage);
            stage.step(0);
        }
        Ok(())
    }

    /// Says how far both operations are.
    fn tell(&self, stage: &Stage) {
        let sent = (!self.send_is_over).then_some(self.ended);
        let received = (!self.receive_is_over).then_some(self.received);
        stage.stream(Stream::To(self.next), sent);
        stage.stream(Stream::From(self.before), received);
    }

    /// Starts a round, and has its partitions ready one by one.
    fn produce(&mut self, stage: &Stage, chance: &mut Chance, is_last: bool) -> Result<(), Error> {
        let Some(send) = &mut self.send else {
            return Ok(());
        };
        let mut order: Vec<u32> = (0..send.partitions()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, chance.below(at as u64 + 1) as usize);
        }
        let len = Shape::of(stage.seed, stage.me).len;
        let data = contents(stage.seed, stage.me, self.sent, is_last, len);
        let round = send.start()?;
        for number in order {
            let mut part = round.partition(number)?;
            let first = number as usize * part.len();
            let end = first + part.len();
            part.copy_from_slice(&data[first..end]);
            part.ready()?;
        }
        self.sent += 1;
        Ok(())
    }

    fn finish_send(&mut self, stage: &Stage) -> Result<(), Trouble> {
        let Some(send) = &mut self.send else {
            return Ok(());
        };
        let ended = send.wait_for(NAP);
        if matches!(&ended, Err(error) if error.is_timeout()) {
            return Ok(());
        }
        if ended.is_err() {
            self.send_is_over = self.is_end(stage, self.next, ended)?;
            return Ok(());
        }
        let is_last = send.data()?[8] == 1;
        self.send_is_over = is_last;
        self.ended += 1;
        stage.ended(1);
        Ok(())
    }

    fn finish_receive(&mut self, stage: &Stage) -> Result<(), Trouble> {
        let Some(receive) = &mut self.receive else {
            return Ok(());
        };
        let ended = receive.wait_for(NAP);
        if matches!(&ended, Err(error) if error.is_timeout()) {
            return Ok(());
        }
        if ended.is_err() {
            self.receive_is_over = self.is_end(stage, self.before, ended)?;
            return Ok(());
        }
        let data = receive.data()?;
        let is_last = data[8] == 1;
        let must = contents(stage.seed, self.before, self.received, is_last, data.len());
        if let Some(at) = (0..must.len()).find(|at| data[*at] != must[*at]) {
            let text = format!(
                "byte {at} of round {} of rank {} is wrong",
                self.received, self.before
            );
            return Err(Trouble::Wrong(text));
        }
        self.received += 1;
        self.receive_is_over = is_last;
        stage.step(1);
        Ok(())
    }

    /// Whether an operation with a rank has ended because the rank has.
    fn is_end(
        &mut self,
        stage: &Stage,
        peer: u32,
        ended: Result<(), Error>,
    ) -> Result<bool, Trouble> {
        match ended {
            Ok(()) => Ok(false),
            Err(error) if whose(&error) == Some(peer) => {
                if !self.lost.contains(&peer) {
                    self.lost.push(peer);
                    stage.say(&Word::Lost(peer));
                }
                Ok(true)
            }
            Err(error) => Err(Trouble::Wrong(format!("with rank {peer}: {error}"))),
        }
    }
}

/// Keeps what could be made.
fn made<T>(place: &mut Option<T>, made: Result<T, Error>) -> Result<(), Error> {
    *place = Some(made?);
    Ok(())
}
