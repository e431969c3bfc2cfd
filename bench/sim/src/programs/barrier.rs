//! Barriers of all ranks.

use super::{Program, doublings};

pub(super) const PROGRAM: Program = Program {
    name: "barrier",
    about: "all ranks meet at a barrier",
    least: 1,
    peers: |ranks| 2 * doublings(ranks),
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            for round in 0..arguments.rounds {
                rank.compute(arguments.compute).await;
                rank.barrier().await?;
                clockwork.note(rank, round);
            }
            Ok(())
        })
    },
};
