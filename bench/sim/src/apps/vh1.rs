//! VH-1, a code of hydrodynamics: sweeps over a grid that is turned between them.

use super::App;
use std::time::Duration;

pub(super) const APP: App = App {
    name: "vh1",
    about: "skeleton of VH-1: 8 exchanges of all with all in groups of 16, of 64 KiB, and sums",
    ranks: 256,
    least: 16,
    peers: GROUP - 1,
    buffers: 2 * GROUP as usize * BLOCK,
    steps: 25,
    compute: Duration::from_micros(6400),
    imbalance: 1.0,
    jitter: 1.5,
    body: |metered, case| {
        Box::pin(async move {
            let rank = metered.rank();
            let group = rank.part(rank.rank() / GROUP).await?;
            let mut drawn = case.drawn(rank.rank());
            let mut blocks = vec![0; group.size() * BLOCK];
            metered.begin().await?;
            for step in 0..case.steps {
                for _ in 0..TURNS {
                    rank.compute(drawn.computes()).await;
                    let turned = metered.wait("alltoall", async {
                        let exchange = rank.start_alltoall(&group, blocks)?;
                        rank.ended(&exchange).await
                    });
                    blocks = turned.await?.into_vec();
                }
                // 30 in 25 steps.
                for _ in 0..1 + u32::from(step % 5 == 0) {
                    let sum = rank.sum(vec![0; 8]);
                    metered.wait("allreduce", sum).await?;
                }
            }
            metered.end()
        })
    },
};

/// Ranks that exchange.
const GROUP: u32 = 16;

/// What each gives each of the others.
const BLOCK: usize = 64 << 10;

/// Exchanges in a step.
const TURNS: u32 = 8;
