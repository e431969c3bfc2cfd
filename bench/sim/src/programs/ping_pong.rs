//! Messages to and fro between ranks 0 and 1.

use super::{Program, tag};

pub(crate) const PROGRAM: Program = Program {
    name: "ping-pong",
    about: "ranks 0 and 1 send a message to and fro; others do nothing",
    least: 2,
    peers: |_| 1,
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let peer = match rank.rank() {
                0 => 1,
                1 => 0,
                _ => return Ok(()),
            };
            for round in 0..arguments.rounds {
                rank.compute(arguments.compute).await;
                if peer == 0 {
                    let message = rank.irecv(peer, tag(0), arguments.bytes)?;
                    rank.wait(message).await?;
                }
                let sent = rank.isend(peer, tag(0), vec![0; arguments.bytes])?;
                rank.wait(sent).await?;
                if peer == 1 {
                    let message = rank.irecv(peer, tag(0), arguments.bytes)?;
                    rank.wait(message).await?;
                    clockwork.note(rank, round);
                }
            }
            Ok(())
        })
    },
};
