//! Windows of messages from rank 0 to rank 1, each answered: what `bench message-rate` does.

use super::{Program, tag};

/// Messages of a window.
pub const WINDOW: u32 = 64;

pub(crate) const PROGRAM: Program = Program {
    name: "stream",
    about: "rank 0 sends windows of 64 messages to rank 1, which answers each; others do nothing",
    least: 2,
    peers: |_| 1,
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let own = rank.rank();
            if own > 1 {
                return Ok(());
            }
            for round in 0..arguments.rounds {
                rank.compute(arguments.compute).await;
                let mut window = Vec::with_capacity(WINDOW as usize);
                for _ in 0..WINDOW {
                    window.push(match own {
                        0 => rank.isend(1, tag(0), vec![0; arguments.bytes])?,
                        _ => rank.irecv(0, tag(0), arguments.bytes)?,
                    });
                }
                for request in window {
                    rank.wait(request).await?;
                }
                let answer = match own {
                    0 => rank.irecv(1, tag(1), 0)?,
                    _ => rank.isend(0, tag(1), Vec::new())?,
                };
                rank.wait(answer).await?;
                if own == 0 {
                    clockwork.note(rank, round);
                }
            }
            Ok(())
        })
    },
};
