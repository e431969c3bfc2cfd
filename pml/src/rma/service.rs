//! Remote memory access as a service of a rank.

use std::collections::{HashMap, VecDeque};

use tagwire_base::Clock;
use tagwire_transport::{Outcome, Payload};

use super::access::Fault;
use super::initiator::Rma;
use super::owner::Regions;
use super::wire;
use crate::packet::{ControlHeader, Kind, PacketKinds};
use crate::peers::PeerIndex;
use crate::service::{Out, Service, Tokens, Wire, Wrong};
use crate::slab::{Handle, Slab};
use crate::types::Failure;

impl Service for Rma {
    fn new(_: &Clock, tokens: Tokens) -> Self {
        Self {
            tokens,
            regions: Regions::default(),
            accesses: Slab::default(),
            ready: VecDeque::new(),
            towards: HashMap::new(),
        }
    }

    fn kinds(&self) -> PacketKinds {
        wire::KINDS
    }

    fn is_called(&self) -> bool {
        !self.ready.is_empty()
    }

    fn drive(&mut self, wire: &mut Wire<'_>) -> usize {
        let mut done = 0;
        for _ in 0..self.ready.len() {
            if let Some(handle) = self.ready.pop_front() {
                done += usize::from(self.advance(handle, wire));
            }
        }
        done
    }

    fn packet(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
        out: &mut dyn Out,
    ) -> Result<(), Wrong> {
        match header.kind {
            Kind::RMA_PUT | Kind::RMA_GET | Kind::RMA_ATOMIC => {
                self.regions.serve(from, header, payload, out)
            }
            _ => self.replied(from, header, payload),
        }
    }

    fn complete(&mut self, operation: Handle, outcome: Outcome, _: &mut dyn Out) {
        let Some(access) = self.accesses.get_mut(operation) else {
            return;
        };
        match outcome {
            Outcome::Done(value) => self.end(operation, Ok(value)),
            // To a peer that is gone nothing goes by packets.
            Outcome::Impossible if access.lost.is_none() => match access.go_by_packets() {
                true => self.ready.push_back(operation),
                false => self.end(operation, Err(Fault::Refused)),
            },
            _ => {
                let failure = access.failure();
                self.end(operation, Err(Fault::Failed(failure)));
            }
        }
    }

    fn lose(&mut self, peer: PeerIndex, failure: Failure) {
        let all = self.accesses.iter_mut();
        let concerned =
            all.filter(|(_, access)| access.target.peer == peer && access.end.is_none());
        let by_packets: Vec<Handle> = concerned
            .filter_map(|(handle, access)| {
                access.lost = Some(failure);
                // The transport still has the buffers of the others, and says when it has not.
                (!access.is_with_transport()).then_some(handle)
            })
            .collect();
        for handle in by_packets {
            self.end(handle, Err(Fault::Failed(failure)));
        }
    }

    fn unfinished(&self) -> usize {
        self.towards.values().map(|towards| towards.under_way).sum()
    }
}
