//! Every rank sends to every other, without end, messages of all lengths, several at once; receives are posted ahead or
//! late.

use std::collections::VecDeque;
use std::time::Duration;

use tagwire::{Context, Error, OwnedRecv, OwnedSend, Session};
use tagwire_conformance::Chance;

use super::Program;
use crate::contents::{ENDLESS, Stream};
use crate::events::{Stream as Messages, Word};
use crate::stage::{Stage, Trouble, whose};

/// All to all, by nonblocking operations.
#[derive(Debug)]
pub struct Mesh;

/// How many messages of a stream are under way at most.
const DEPTH: u64 = 6;
/// How long a wait lasts before the others are looked at.
const NAP: Duration = Duration::from_millis(2);
/// How often a call that ended for a shortage is made again before it counts as lost.
const AGAIN: u64 = 20_000;

impl Program for Mesh {
    fn name(&self) -> &'static str {
        "mesh"
    }

    fn about(&self) -> &'static str {
        "streams of messages of 16 bytes to 1 MiB among all ranks, in order for each tag"
    }

    fn calls_again(&self) -> bool {
        true
    }

    fn run(&self, stage: &Stage) -> Result<(), Trouble> {
        let session = stage.open(Session::builder())?;
        exchange(stage, &session)?;
        stage.close(session)
    }
}

/// What two ranks have with each other.
struct Pair<'s> {
    peer: u32,
    outward: Stream,
    inward: Stream,
    /// The next message that is to be sent, and what the stream has in all.
    next: u64,
    end: u64,
    sends: VecDeque<OwnedSend<'s, u8>>,
    /// How many sends have ended.
    sent: u64,
    /// The next receive that is to be posted, and what has arrived.
    posted: u64,
    arrived: u64,
    their_end: u64,
    receives: VecDeque<OwnedRecv<'s, u8>>,
    lost: bool,
    said: bool,
    shortages: u64,
}

/// Runs the streams of a rank until all have ended.
fn exchange(stage: &Stage, session: &Session) -> Result<(), Trouble> {
    let me = stage.me;
    let mut chance = Chance::new(stage.seed ^ u64::from(me) << 17);
    let peers = (0..session.size()).filter(|peer| *peer != me);
    let mut pairs: Vec<Pair<'_>> = peers.map(|peer| Pair::new(stage.seed, me, peer)).collect();
    let ahead = [1, 2, DEPTH][(stage.seed % 3) as usize];
    let world = session.world();
    while !pairs.iter().all(Pair::is_over) {
        let mut moved = 0;
        for pair in &mut pairs {
            let before = (pair.sent, pair.arrived);
            moved += pair.step(stage, world, ahead)?;
            if pair.tell(stage, before) {
                pair.end = pair.end.min(pair.next + 2 * DEPTH);
            }
        }
        // Where nothing happens, it waits for one, which may sleep.
        let open: Vec<usize> = (0..pairs.len())
            .filter(|pair| !pairs[*pair].receives.is_empty())
            .collect();
        if moved == 0 && !open.is_empty() && chance.is_true() {
            pairs[chance.one_of(&open)].wait(stage)?;
        } else if moved == 0 {
            session.progress()?;
            std::thread::yield_now();
        }
    }
    Ok(())
}

impl<'s> Pair<'s> {
    fn new(seed: u64, me: u32, peer: u32) -> Self {
        Self {
            peer,
            outward: Stream {
                seed,
                from: me,
                to: peer,
            },
            inward: Stream {
                seed,
                from: peer,
                to: me,
            },
            next: 0,
            end: ENDLESS,
            sends: VecDeque::new(),
            sent: 0,
            posted: 0,
            arrived: 0,
            their_end: ENDLESS,
            receives: VecDeque::new(),
            lost: false,
            said: false,
            shortages: 0,
        }
    }

    fn is_over(&self) -> bool {
        let idle = self.sends.is_empty() && self.receives.is_empty();
        idle && (self.lost || (self.next == self.end && self.arrived == self.their_end))
    }

    /// Says how far the pair is, where it was so far before. Returns whether the program is to end.
    fn tell(&self, stage: &Stage, (sent, arrived): (u64, u64)) -> bool {
        let sends = !self.sends.is_empty() || self.next < self.end;
        let sends = (sends && !self.lost).then_some(self.sent);
        let receives = self.arrived < self.their_end && !self.lost;
        stage.stream(Messages::To(self.peer), sends);
        stage.stream(Messages::From(self.peer), receives.then_some(self.arrived));
        stage.ended(self.sent - sent);
        stage.step(self.arrived - arrived)
    }

    /// Takes what has ended and starts what may be. Returns how much that was.
    fn step(&mut self, stage: &Stage, world: Context<'s>, ahead: u64) -> Result<usize, Trouble> {
        let mut moved = self.take()?;
        while !self.lost && self.posted < (self.arrived + ahead).min(self.their_end) {
            let room = vec![0; self.inward.len(self.posted)];
            match world.irecv_owned(room, self.peer, self.inward.tag(self.posted)) {
                Ok(receive) => self.receives.push_back(receive),
                Err(error) if self.refused(stage, &error)? => break,
                Err(_) => continue,
            }
            self.posted += 1;
            moved += 1;
        }
        while !self.lost && self.next < self.end && (self.sends.len() as u64) < DEPTH {
            let message = self.outward.message(self.next, self.end);
            match world.isend_owned(message, self.peer, self.outward.tag(self.next)) {
                Ok(send) => self.sends.push_back(send),
                Err(error) if self.refused(stage, &error)? => break,
                Err(_) => continue,
            }
            self.next += 1;
            moved += 1;
        }
        if self.lost && !self.said && self.is_over() {
            self.said = true;
            stage.say(&Word::Lost(self.peer));
        }
        Ok(moved)
    }

    /// Whether a refused call is to be left for now.
    fn refused(&mut self, stage: &Stage, error: &Error) -> Result<bool, Trouble> {
        if whose(error) == Some(self.peer) {
            self.lost = true;
            return Ok(true);
        }
        if self.shortages == 0 {
            stage.say(&Word::Short(error.to_string()));
        }
        self.shortages += 1;
        match self.shortages > AGAIN {
            true => Err(Trouble::Wrong(format!("for too long: {error}"))),
            false => Ok(true),
        }
    }

    /// Takes operations that have ended, the first ones first.
    fn take(&mut self) -> Result<usize, Trouble> {
        let mut moved = 0;
        while let Some(send) = self.sends.pop_front() {
            match send.test() {
                Ok(ended) => {
                    self.ended(ended.map(drop).map_err(Error::from))?;
                    self.sent += 1;
                }
                Err(open) => {
                    self.sends.push_front(open);
                    break;
                }
            }
            moved += 1;
        }
        while let Some(receive) = self.receives.pop_front() {
            match receive.test() {
                Ok(ended) => self.received(ended.map_err(Error::from))?,
                Err(open) => {
                    self.receives.push_front(open);
                    break;
                }
            }
            moved += 1;
        }
        Ok(moved)
    }

    /// Waits for the next message for a while.
    fn wait(&mut self, stage: &Stage) -> Result<(), Trouble> {
        let Some(receive) = self.receives.pop_front() else {
            return Ok(());
        };
        let before = (self.sent, self.arrived);
        match receive.wait_for(NAP) {
            Ok(ended) => self.received(ended.map_err(Error::from))?,
            Err(open) => self.receives.push_front(open),
        }
        self.tell(stage, before);
        Ok(())
    }

    fn received(
        &mut self,
        ended: Result<(tagwire::Status, Vec<u8>), Error>,
    ) -> Result<(), Trouble> {
        let Ok((status, data)) = ended else {
            return self.ended(ended.map(drop));
        };
        if self.lost {
            // A receive before this one may have failed: what comes here is not counted.
            return Ok(());
        }
        if status.source() != self.peer || status.tag() != self.inward.tag(self.arrived) {
            let text = format!("a receive from rank {} has taken {status:?}", self.peer);
            return Err(Trouble::Wrong(text));
        }
        let end = self
            .inward
            .check(self.arrived, &data[..status.bytes().min(data.len())])?;
        let changes = self.their_end != ENDLESS && end != self.their_end;
        if changes || end <= self.arrived {
            let text = format!("rank {} ends after {end}, at {}", self.peer, self.arrived);
            return Err(Trouble::Wrong(text));
        }
        self.their_end = end;
        self.arrived += 1;
        Ok(())
    }

    fn ended(&mut self, ended: Result<(), Error>) -> Result<(), Trouble> {
        match ended {
            Ok(()) => {}
            Err(error) if whose(&error) == Some(self.peer) => self.lost = true,
            Err(error) => return Err(Trouble::Wrong(format!("with rank {}: {error}", self.peer))),
        }
        Ok(())
    }
}
