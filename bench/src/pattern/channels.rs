//! Edges as partitioned operations.

use super::exchange::{Edge, Edges, Exchange};
use crate::error::Result;
use crate::port::partitioned::{PartitionedPort, Partner, RecvEnd, Rounds, SendEnd};
use crate::port::tags;

/// Each edge is a partitioned operation with a partition for each part.
pub(crate) struct Channels<'p, P: PartitionedPort + 'p> {
    port: &'p P,
    sends: Vec<P::Send<'p>>,
    receives: Vec<P::Recv<'p>>,
}

impl<'p, P: PartitionedPort> Channels<'p, P> {
    pub(crate) fn open(port: &'p P, edges: &Edges, policy: &str) -> Result<Self> {
        let (mut sends, mut receives) = (Vec::new(), Vec::new());
        let partner = |edge: &Edge| Partner {
            rank: edge.peer,
            tag: tags::thread(edge.number).0,
            partitions: edge.parts,
        };
        for edge in edges.ins() {
            receives.push(port.precv(edges.whole_incoming(edge), partner(edge), 1)?);
        }
        for edge in edges.outs() {
            sends.push(port.psend(edges.whole_outgoing(edge), partner(edge), policy)?);
        }
        Ok(Self {
            port,
            sends,
            receives,
        })
    }
}

impl<'p, P: PartitionedPort + 'p> Exchange for Channels<'p, P> {
    fn start(&self) -> Result<()> {
        self.receives.iter().try_for_each(Rounds::start)?;
        self.sends.iter().try_for_each(Rounds::start)
    }

    fn ready(&self, edge: usize, part: u32) -> Result<()> {
        self.sends[edge].ready(part)
    }

    fn arrive(&self, edge: usize, part: u32) -> Result<()> {
        self.receives[edge].arrive(part)
    }

    fn finish_out(&self, edge: usize) -> Result<()> {
        self.sends[edge].wait()
    }

    fn finish_in(&self, edge: usize) -> Result<()> {
        self.receives[edge].wait()
    }

    fn finish(&self) -> Result<()> {
        let sends: Vec<_> = self.sends.iter().collect();
        let receives: Vec<_> = self.receives.iter().collect();
        self.port.wait_ends(&sends, &receives)
    }
}
