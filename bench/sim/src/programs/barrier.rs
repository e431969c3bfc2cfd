//! Barriers of all ranks.

use super::{Program, doublings, rounds};

pub(super) const PROGRAM: Program = Program {
    name: "barrier",
    about: "all ranks meet at a barrier",
    least: 1,
    peers: |ranks| 2 * doublings(ranks),
    body: |rank, arguments, clockwork| {
        Box::pin(
            async move { rounds(rank, arguments, clockwork, async || rank.barrier().await).await },
        )
    },
};
