//! POP, a code of ocean circulation: a solver that exchanges halos and sums in each of many iterations.

use std::time::Duration;

use super::App;
use crate::error::Result;
use crate::profile::Metered;
use crate::programs::{halo3d, stencil, tag};

pub(super) const APP: App = App {
    name: "pop",
    about: "skeleton of POP: 8 short messages to neighbours in a plane and a sum; at times 6 of 64 KiB",
    ranks: 256,
    least: 1,
    peers: 8 + 6,
    buffers: 2 * 6 * LONG,
    steps: 342_000,
    compute: Duration::from_micros(44),
    imbalance: 4.2,
    jitter: 6.0,
    body: |metered, case| {
        Box::pin(async move {
            let (rank, mut drawn) = (metered.rank(), case.drawn(metered.rank().rank()));
            let plane = stencil::neighbours(rank.rank(), crate::grid(rank.size()));
            let plane: Vec<_> = plane.into_iter().zip(HALOS).collect();
            let cube = halo3d::neighbours(rank.rank(), crate::grid(rank.size()));
            let cube: Vec<_> = cube.into_iter().map(|both| (both, LONG)).collect();
            metered.begin().await?;
            for step in 0..case.steps {
                rank.compute(drawn.computes()).await;
                if step % BETWEEN_LONG == BETWEEN_LONG / 2 {
                    rank.compute(drawn.computes() * OTHERS).await;
                    exchange(metered, &cube).await?;
                }
                exchange(metered, &plane).await?;
                metered.wait("allreduce", rank.sum(vec![0; 8])).await?;
            }
            metered.end()
        })
    },
};

/// Bytes of the halos, row by row: those of edges and of corners.
const HALOS: [usize; 8] = [1024, 4096, 1024, 4096, 4096, 1024, 4096, 1024];

/// Bytes of a long message.
const LONG: usize = 64 << 10;

/// Iterations from one exchange of long messages to the next: 941 of 6 in all.
const BETWEEN_LONG: u32 = 363;

/// How much longer ranks compute before those: what of a time step is not the solver. Assumed.
const OTHERS: u32 = 20;

/// Exchanges with neighbours, `(to, from)` and bytes, and waits for all.
async fn exchange(metered: &Metered, neighbours: &[((u32, u32), usize)]) -> Result<()> {
    let rank = metered.rank();
    let mut requests = Vec::with_capacity(2 * neighbours.len());
    for (direction, ((_, from), bytes)) in neighbours.iter().enumerate() {
        let post = || rank.irecv(*from, tag(direction as u32), *bytes);
        requests.push(metered.call("irecv", post)?);
    }
    for (direction, ((to, _), bytes)) in neighbours.iter().enumerate() {
        let send = || rank.isend(*to, tag(direction as u32), vec![0; *bytes]);
        requests.push(metered.call("isend", send)?);
    }
    let all = metered.wait("waitall", async {
        for request in requests {
            rank.wait(request).await?;
        }
        Ok(())
    });
    all.await
}
