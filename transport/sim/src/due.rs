//! What another network has this one carry, and what this one tells it.

use std::any::Any;
use std::fmt;

use tagwire_base::Rank;

/// Something that travels for the other network.
pub(crate) struct Load {
    /// How many bytes occupy the NICs.
    pub(crate) len: usize,
    /// How many of them its sender copies.
    pub(crate) copied: usize,
    /// Whether its sender sends it; else NICs do, whatever their ranks do.
    pub(crate) is_sent: bool,
    /// Its name in pictures.
    pub(crate) name: &'static str,
    /// What it is, to be handed back.
    pub(crate) what: Box<dyn Any + Send>,
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Load({} bytes)", self.len)
    }
}

/// What this network has to do for the other.
#[derive(Debug)]
pub(crate) enum Due {
    /// Something has come for a rank.
    Wake(Rank),
    /// Something is to be carried.
    Carry { from: Rank, to: Rank, load: Load },
    /// A rank receives a message of so many bytes that are copied.
    Receive {
        own: Rank,
        from: Rank,
        copied: usize,
    },
}

/// A network that has its messages carried. It is locked under this one, or alone. Each call returns what is due then.
pub(crate) trait Carried: fmt::Debug + Send + Sync {
    /// A load has come to `to`.
    fn landed(&self, from: Rank, to: Rank, load: Load) -> Vec<Due>;

    /// A rank has left, or died.
    fn ended(&self, rank: Rank, has_left: bool) -> Vec<Due>;

    /// The death of a rank is found by its peers.
    fn found(&self, rank: Rank);

    /// Returns what is due.
    fn due(&self) -> Vec<Due>;
}
