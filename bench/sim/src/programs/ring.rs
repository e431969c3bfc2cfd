//! One message round all ranks.

use super::{Program, tag};
use crate::error::Error;

pub(super) const PROGRAM: Program = Program {
    name: "ring",
    about: "one message goes round all ranks; each adds 1 to it",
    least: 2,
    peers: |_| 2,
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let (own, size) = (rank.rank(), rank.size());
            let (before, after) = ((own + size - 1) % size, (own + 1) % size);
            let len = arguments.bytes.max(8);
            for round in 0..arguments.rounds {
                let mut token = u64::from(round);
                if own > 0 {
                    let message = rank.irecv(before, tag(0), len)?;
                    token = number(&rank.wait(message).await?) + 1;
                }
                rank.compute(arguments.compute).await;
                let mut bytes = token.to_le_bytes().to_vec();
                bytes.resize(len, 0);
                let sent = rank.isend(after, tag(0), bytes)?;
                rank.wait(sent).await?;
                if own == 0 {
                    let message = rank.irecv(before, tag(0), len)?;
                    let token = number(&rank.wait(message).await?);
                    if token != u64::from(round) + u64::from(size) - 1 {
                        let what = "a token that not all ranks have added to";
                        return Err(Error::Wrong { rank: own, what });
                    }
                    clockwork.note(rank, round);
                }
            }
            Ok(())
        })
    },
};

fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}
