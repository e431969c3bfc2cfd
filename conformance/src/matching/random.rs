//! Random runs against the naive lists.

use std::collections::VecDeque;

use super::rig::{Checked, Receiving, Rig, Sending, exact, from};
use super::{Factory, Wanted};
use crate::common::ensure;
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::matching::{Found, MatchEnvelope, MatchPattern, ReceiveEnd};

/// A message that no receive has taken.
struct Message {
    envelope: MatchEnvelope,
    seed: u64,
}

/// What the lists of rank 0 should be. All is at rest between two steps, so that there is but
/// one right outcome of each.
struct Model {
    rig: Rig,
    random: SplitMix64,
    posted: VecDeque<(MatchPattern, Receiving)>,
    unexpected: VecDeque<Message>,
    claimed: Vec<(Found, u64)>,
    sends: Vec<Sending>,
    next_seed: u64,
}

impl Model {
    fn open(factory: &Factory, seed: u64) -> Checked<Self> {
        let wanted = if seed.is_multiple_of(2) {
            Wanted::PLENTY
        } else {
            Wanted {
                unexpected_bytes: 2000,
                unexpected_messages: 10,
            }
        };
        Ok(Self {
            rig: Rig::open(factory, 3, wanted)?,
            random: SplitMix64::new(seed),
            posted: VecDeque::new(),
            unexpected: VecDeque::new(),
            claimed: Vec::new(),
            sends: Vec::new(),
            next_seed: 0,
        })
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random.below(limit)
    }

    fn pattern(&mut self) -> MatchPattern {
        let pattern = if self.below(3) == 0 {
            self.rig.wild(0)
        } else {
            exact(self.below(4))
        };
        if self.below(2) == 0 {
            let source = 1 + self.below(2) as usize;
            from(source, pattern)
        } else {
            pattern
        }
    }

    fn send(&mut self) -> Checked {
        let (source, bits) = (1 + self.below(2) as usize, self.below(4));
        let len = [0, 8, 100, 700, 5000, 100_000][self.below(6) as usize];
        let seed = self.next_seed;
        self.next_seed += 1;
        let synchronous = self.below(4) == 0;
        let sending = self.rig.send_as(source, 0, bits, seed, len, synchronous)?;
        self.sends.push(sending);
        let envelope = MatchEnvelope {
            source: tagwire_base::Rank::new(source as u32),
            bits,
            length: len as u64,
        };
        let place = self
            .posted
            .iter()
            .position(|(pattern, _)| pattern.accepts(&envelope));
        match place.and_then(|place| self.posted.remove(place)) {
            Some((_, receiving)) => self.rig.got(&receiving, source, bits, seed, len),
            None => {
                self.unexpected.push_back(Message { envelope, seed });
                Ok(())
            }
        }
    }

    fn take(&mut self, pattern: &MatchPattern) -> Option<Message> {
        // Among sources any order is right; the transport says which it took.
        let place = self
            .unexpected
            .iter()
            .position(|message| pattern.accepts(&message.envelope))?;
        self.unexpected.remove(place)
    }

    fn post(&mut self) -> Checked {
        let pattern = self.pattern();
        let room = if self.below(5) == 0 { 50 } else { 100_000 };
        let receiving = self.rig.post(0, pattern, room)?;
        let waits = self
            .unexpected
            .iter()
            .any(|message| pattern.accepts(&message.envelope));
        if !waits {
            self.posted.push_back((pattern, receiving));
            return Ok(());
        }
        let ReceiveEnd::Matched(envelope, _) = self.rig.end(&receiving)? else {
            return Err("a receive was cancelled though nobody asked".to_owned());
        };
        let narrowed = from(envelope.source.index(), pattern);
        let message = self
            .take(&narrowed)
            .ok_or_else(|| format!("{envelope:?} is nowhere, and {pattern:?} took it"))?;
        let MatchEnvelope {
            source,
            bits,
            length,
        } = message.envelope;
        self.rig.got(
            &receiving,
            source.index(),
            bits,
            message.seed,
            length as usize,
        )
    }

    fn probe(&mut self) -> Checked {
        let (pattern, claim) = (self.pattern(), self.below(2) == 0);
        let waits = self
            .unexpected
            .iter()
            .any(|message| pattern.accepts(&message.envelope));
        let found = if waits {
            Some(self.rig.see(0, pattern, claim)?)
        } else {
            self.rig.probe(0, pattern, claim)?
        };
        let Some(found) = found else {
            return Ok(());
        };
        let narrowed = from(found.envelope.source.index(), pattern);
        let right = self
            .unexpected
            .iter()
            .position(|message| narrowed.accepts(&message.envelope))
            .filter(|place| self.unexpected[*place].envelope == found.envelope)
            .ok_or_else(|| format!("{pattern:?} found {found:?}, which is not the earliest"))?;
        if claim && let Some(message) = self.unexpected.remove(right) {
            self.claimed.push((found, message.seed));
        }
        Ok(())
    }

    fn receive_claimed(&mut self) -> Checked {
        if self.claimed.is_empty() {
            return Ok(());
        }
        let place = self.random.below(self.claimed.len() as u64) as usize;
        let (found, seed) = self.claimed.swap_remove(place);
        let MatchEnvelope {
            source,
            bits,
            length,
        } = found.envelope;
        let receiving = self.rig.receive(0, found, length as usize)?;
        self.rig
            .got(&receiving, source.index(), bits, seed, length as usize)
    }

    fn cancel(&mut self) -> Checked {
        if self.posted.is_empty() {
            return Ok(());
        }
        let place = self.random.below(self.posted.len() as u64) as usize;
        if let Some((_, receiving)) = self.posted.remove(place) {
            let cancelled = self.rig.cancel(&receiving)?;
            ensure(cancelled, || {
                "a waiting receive could not be cancelled".to_owned()
            })?;
        }
        Ok(())
    }

    fn step(&mut self) -> Checked {
        match self.below(12) {
            0..=4 => self.send()?,
            5..=8 => self.post()?,
            9 => self.probe()?,
            10 => self.receive_claimed()?,
            _ => self.cancel()?,
        }
        // Whatever was sent is at its receiver before the next step.
        let mut quiet = 0;
        while quiet < 4 {
            quiet = if self.rig.round() == 0 { quiet + 1 } else { 0 };
        }
        for (pattern, receiving) in &self.posted {
            ensure(!self.rig.is_received(receiving), || {
                format!("{pattern:?} took a message that is not its own")
            })?;
        }
        Ok(())
    }

    fn wind_up(&mut self) -> Checked {
        while !self.posted.is_empty() {
            self.cancel()?;
        }
        while !self.claimed.is_empty() {
            self.receive_claimed()?;
        }
        while let Some(message) = self.unexpected.pop_front() {
            let MatchEnvelope {
                source,
                bits,
                length,
            } = message.envelope;
            let receiving = self
                .rig
                .post(0, from(source.index(), exact(bits)), length as usize)?;
            self.rig.got(
                &receiving,
                source.index(),
                bits,
                message.seed,
                length as usize,
            )?;
        }
        for sending in std::mem::take(&mut self.sends) {
            self.rig.sent_well(sending)?;
        }
        self.rig.is_empty()
    }
}

pub(super) fn random_runs_match_the_lists(factory: &Factory) -> Checked {
    for seed in 0..12 {
        let mut model = Model::open(factory, seed)?;
        for step in 0..250 {
            model
                .step()
                .map_err(|error| format!("seed {seed}, step {step}: {error}"))?;
        }
        model
            .wind_up()
            .map_err(|error| format!("seed {seed}, at the end: {error}"))?;
    }
    Ok(())
}
