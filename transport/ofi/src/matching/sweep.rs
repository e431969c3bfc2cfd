//! What a peer that is gone leaves behind in the provider's matching.

use std::time::Duration;

use tagwire_transport::EndpointId;

use super::incoming::Incoming;
use super::{Collect, Happening, OfiMatch};
use crate::fabric::{Completion, Net, OpId, Pattern, Place, Took};

/// How long a step of a sweep may take.
const SWEEP: Duration = Duration::from_millis(5);

/// How a step of a sweep went.
#[derive(Debug)]
pub(super) enum Step {
    Found(Completion),
    Nothing,
    /// The provider has not ended it in time.
    Late,
}

impl OfiMatch {
    /// Takes out of matching what a peer that is gone has announced and nobody received: its bytes
    /// cannot be had any more. What it sent whole stays.
    pub(super) fn sweep(&mut self, gone: EndpointId) {
        if self.bytes.engine.peers.is_broken() {
            // Nothing is matched any more.
            return;
        }
        let pattern = self
            .tags
            .announced_by(self.bytes.engine.peers.links[gone].rank);
        let slot = self.incoming.enter(Incoming::Sweeping);
        loop {
            let seen = self.sweep_step(slot, |net, _, op| net.peek(pattern, op));
            let step = match seen {
                Step::Found(seen) => self.sweep_step(slot, |net, waste, op| {
                    net.receive_tagged_at(Pattern::exact(seen.tag), waste.0, waste.1, op)
                }),
                other => other,
            };
            match step {
                Step::Found(_) => {}
                Step::Nothing => break,
                // The slot is free once the provider lets go.
                Step::Late => return,
            }
        }
        self.incoming.take(slot);
    }

    /// Posts an operation and waits for its end, a little while: it needs nobody else. What else
    /// happens meanwhile is told later.
    pub(super) fn sweep_step(
        &mut self,
        slot: u32,
        post: impl Fn(&mut Net, (Place, usize), OpId) -> Took,
    ) -> Step {
        let number = slot << 1;
        let waste = Place {
            block: self.waste,
            offset: 0,
        };
        let room = (waste, self.rooms.longest);
        let deadline = self.bytes.engine.peers.clock.now() + SWEEP;
        let mut took = Took::Busy;
        while self.bytes.engine.peers.clock.now() < deadline {
            if took == Took::Busy {
                let started = self
                    .bytes
                    .engine
                    .peers
                    .start_tagged(number, |net, op| post(net, room, op));
                took = started.err().unwrap_or(Took::Yes);
            }
            let told = &mut Collect(&mut self.happenings);
            self.bytes.engine.progress(told);
            let is_it = |one: &Happening| matches!(one, Happening::End(of, _) if *of == number);
            if let Some(place) = self.happenings.iter().position(is_it)
                && let Happening::End(_, end) = self.happenings.remove(place)
            {
                return end.map_or(Step::Nothing, Step::Found);
            }
        }
        match took {
            Took::Yes => Step::Late,
            _ => Step::Nothing,
        }
    }
}
