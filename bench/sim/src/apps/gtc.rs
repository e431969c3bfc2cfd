//! GTC, a code of particles in a torus: they move on to the next rank of a ring.

use std::time::Duration;

use super::App;
use crate::programs::tag;

pub(super) const APP: App = App {
    name: "gtc",
    about: "skeleton of GTC: 13 shifts in a ring, of 64 to 512 KiB, and a sum",
    ranks: 1024,
    least: 2,
    peers: 2,
    buffers: 2 * MOST,
    steps: 650,
    compute: Duration::from_micros(70_000),
    imbalance: 1.5,
    jitter: 0.4,
    body: |metered, case| {
        Box::pin(async move {
            let (rank, mut drawn) = (metered.rank(), case.drawn(metered.rank().rank()));
            let (own, size) = (rank.rank(), rank.size());
            let (next, last) = ((own + 1) % size, (own + size - 1) % size);
            metered.begin().await?;
            for step in 0..case.steps {
                // Charges are summed, and particles moved.
                rank.compute(drawn.computes()).await;
                metered.wait("allreduce", rank.sum(vec![0; 8])).await?;
                rank.compute(drawn.computes()).await;
                for _ in 0..SHIFTS {
                    let moved = vec![0; drawn.bytes(LEAST, MOST)];
                    let shift = metered.wait("sendrecv", async {
                        let came = rank.irecv(last, tag(0), MOST)?;
                        let sent = rank.isend(next, tag(0), moved)?;
                        rank.wait(sent).await?;
                        rank.wait(came).await
                    });
                    shift.await?;
                }
                if step % BETWEEN_BROADCASTS == 0 {
                    let told = metered.wait("bcast", async {
                        let told = rank.start_broadcast(rank.team(), vec![0; 8], 0)?;
                        rank.ended(&told).await
                    });
                    told.await?;
                }
            }
            metered.end()
        })
    },
};

/// Shifts in a step.
const SHIFTS: u32 = 13;

/// Bytes of a shift.
const LEAST: usize = 64 << 10;
const MOST: usize = 512 << 10;

/// Steps from one broadcast to the next.
const BETWEEN_BROADCASTS: u32 = 27;
