//! What a machine is like: the costs of its links, and how ranks lie on its nodes.

use crate::time::{PerByte, Span};

/// A link by the parameters of LogGP (Alexandrov, Ionescu, Schauser, Scheiman: *LogGP: incorporating long messages into the
/// LogP model*, SPAA 1995), and what copies cost.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// L: from the moment at which a byte leaves until it arrives.
    pub latency: Span,
    /// o of the sender: how long its core is busy with a message.
    pub send: Span,
    /// How long the sender's core is busy with a message that has left: it returns from the call that has carried the message, or takes
    /// over memory for the next one. The core does nothing else meanwhile, be it to receive.
    pub after_send: Span,
    /// o of the receiver.
    pub recv: Span,
    /// g: the least time between the beginnings of two messages on one NIC.
    pub gap: Span,
    /// G: how long each byte occupies a NIC.
    pub per_byte: PerByte,
    /// How long the sender's core copies each byte of a message that is sent by copy.
    pub copy_out: PerByte,
    /// The same of the receiver's.
    pub copy_in: PerByte,
    /// Bytes of the longest message that its receiver copies, as longer ones come where they belong; 0 where it copies all.
    pub copy_in_up_to: u32,
    /// How far apart the bytes of messages from one rank to another are at least: nothing where the NICs alone decide. Reads and writes
    /// of memory are not bound by it.
    pub stream: PerByte,
    /// The same of all messages together that one rank sends, but those that its core writes into the NIC, while many of their bytes have
    /// yet to leave.
    pub process: PerByte,
    /// How many these are at least.
    pub process_from: u32,
    /// How much longer the receiver's core is busy with each byte of a short message, for each other message of its sender that is under
    /// way to it or waits: those of one peer fill its buffers, and are sent again.
    pub crowding: PerByte,
    /// The same for each message of anybody that waits for the receiver.
    pub crowding_beside: PerByte,
    /// Bytes of the longest such message. The sender's core writes it into the NIC, which fetches longer ones.
    pub crowding_up_to: u32,
    /// How much further apart the bytes that leave a rank are while some to other ranks have yet to leave: those of messages, and of what
    /// others read.
    pub beside: PerByte,
    /// The same of those that it writes into others' memory.
    pub beside_put: PerByte,
}

/// A machine. Ranks 0 to `ranks_per_node - 1` are on its first node, and so on.
///
/// ```text
///   rank -- o_s --> NIC, out: max(g, kG) -- L --> NIC, in: max(g, kG) -- o_r --> rank
///                   shared by a node's ranks       shared by a node's ranks
/// ```
///
/// Between ranks of a node a message takes the `local` link, which each rank has to itself, or all share.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Between nodes.
    pub network: Link,
    /// Between ranks of one node.
    pub local: Link,
    /// How many ranks are on a node, 1 at least.
    pub ranks_per_node: u32,
    /// Whether the ranks of a node share one local link, in both directions: their cores copy, and have one memory. Else each rank has one
    /// to itself.
    pub shares_local: bool,
    /// How many threads of its ranks compute at once on a node: one on each core, or as many as each core runs; 0 where each thread has a
    /// core to itself.
    pub cores: u32,
    /// How long a thread that computes keeps its core while others wait for one.
    pub slice: Span,
    /// By how much a thread that sleeps goes on too late at the most, as the seed has it: by the timers of its kernel.
    pub wake: Span,
    /// What it takes until a thread of a rank that waits has the library, after another has left it.
    pub handover: Span,
    /// How many cores a socket has; 0 where it is not told apart from the node.
    pub socket: u32,
    /// The handover where a rank has more threads than a socket has cores.
    pub far_handover: Span,
    /// What receiving a message takes the core of a rank more where the rank matches it, and no network has.
    pub matching: Span,
    /// The least time between the beginnings of two such messages on one NIC, where that is more than g of the link.
    pub matching_gap: Span,
    /// Bytes of the longest message that the machine's library sends before it is matched; 0 where that is not known: 64 KiB.
    pub eager: u32,
    /// Bytes of a message that a NIC sends before messages to other ranks have their turn; 0 where it sends each as a whole.
    pub turn: u32,
    /// From the death of a rank until its peers find out.
    pub detection: Span,
}

impl Machine {
    /// Returns the node of a rank.
    pub(crate) fn node(&self, rank: u32) -> u32 {
        rank / self.ranks_per_node.max(1)
    }

    /// Returns how many bytes of a message a NIC sends at most before another has its turn; nothing where it sends each as a whole.
    pub(crate) fn turn(&self) -> Option<usize> {
        (self.turn > 0).then_some(self.turn as usize)
    }

    /// Returns g of a link for a message, which ranks match where no network does.
    pub(crate) fn gap(&self, link: &Link, is_matched_by_ranks: bool) -> Span {
        match is_matched_by_ranks {
            true => link.gap.max(self.matching_gap),
            false => link.gap,
        }
    }

    /// Returns what it takes until another of so many threads of a rank has the library.
    pub(crate) const fn handover_of(&self, threads: u32) -> Span {
        match self.socket > 0 && threads > self.socket {
            true => self.far_handover,
            false => self.handover,
        }
    }

    /// Returns the link between two ranks, and the numbers of their nodes where these are two.
    pub(crate) fn way(&self, from: u32, to: u32) -> (Link, Option<(u32, u32)>) {
        let (link, is_far) = self.link(from, to);
        let nodes = is_far.then(|| (self.node(from), self.node(to)));
        (*link, nodes)
    }

    /// Returns the link between two ranks, and whether it is that between nodes.
    pub(crate) fn link(&self, from: u32, to: u32) -> (&Link, bool) {
        match self.node(from) == self.node(to) {
            true => (&self.local, false),
            false => (&self.network, true),
        }
    }
}
