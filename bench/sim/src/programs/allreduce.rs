//! Sums over all ranks.

use super::{Program, doublings};
use crate::error::Error;

pub(super) const PROGRAM: Program = Program {
    name: "allreduce",
    about: "64-bit numbers are summed over all ranks; every sum is checked",
    least: 1,
    peers: |ranks| 2 * doublings(ranks),
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let (own, size) = (u64::from(rank.rank()), u64::from(rank.size()));
            let words = (arguments.bytes / 8).max(1);
            for round in 0..arguments.rounds {
                rank.compute(arguments.compute).await;
                let word = (own + u64::from(round)).to_le_bytes();
                let sums = rank.sum(word.repeat(words)).await?;
                let sum = size * (size - 1) / 2 + size * u64::from(round);
                if *sums != *sum.to_le_bytes().repeat(words) {
                    return Err(Error::Wrong {
                        rank: rank.rank(),
                        what: "a sum",
                    });
                }
                clockwork.note(rank, round);
            }
            Ok(())
        })
    },
};
