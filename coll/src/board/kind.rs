//! The operations that take a board.

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Barrier,
    Broadcast,
    Reduce,
    Allreduce,
    Allgather,
    Alltoall,
    Gather,
    Scatter,
}

impl Kind {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Barrier, "a barrier"),
        (Self::Broadcast, "a broadcast"),
        (Self::Reduce, "a reduction"),
        (Self::Allreduce, "an allreduce"),
        (Self::Allgather, "an allgather"),
        (Self::Alltoall, "an alltoall"),
        (Self::Gather, "a gather"),
        (Self::Scatter, "a scatter"),
    ];

    pub(super) fn name(number: u64) -> &'static str {
        let mut all = Self::ALL.iter();
        let found = all.find(|(kind, _)| *kind as u64 == number);
        found.map_or("something unknown", |(_, name)| name)
    }
}
