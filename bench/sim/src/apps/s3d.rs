//! S3D, a code of combustion: the faces of a block go to six neighbours, again and again.

use std::time::Duration;

use super::App;
use crate::error::Result;
use crate::profile::Metered;
use crate::programs::{halo3d, tag};

pub(super) const APP: App = App {
    name: "s3d",
    about: "skeleton of S3D: 6 faces of 48 to 256 KiB, each waited for by itself; at times a sum or a barrier",
    ranks: 1024,
    least: 1,
    peers: 6,
    buffers: 4 * ((48 + 128 + 256) << 10),
    steps: 37_500,
    compute: Duration::from_micros(20_500),
    imbalance: 0.6,
    jitter: 3.4,
    body: |metered, case| {
        Box::pin(async move {
            let (rank, mut drawn) = (metered.rank(), case.drawn(metered.rank().rank()));
            let cube = halo3d::neighbours(rank.rank(), crate::grid(rank.size()));
            let cube: Vec<_> = cube.into_iter().zip(FACES).collect();
            // Buffers come back from what is complete.
            let mut rooms: Vec<_> = FACES.map(|bytes| vec![0; bytes]).into();
            let mut faces: Vec<_> = FACES.map(|bytes| vec![0; bytes]).into();
            metered.begin().await?;
            for step in 0..case.steps {
                rank.compute(drawn.computes()).await;
                (rooms, faces) = exchange(metered, &cube, rooms, faces).await?;
                if step % BETWEEN == BETWEEN / 4 {
                    metered.wait("allreduce", rank.sum(vec![0; 8])).await?;
                }
                if step % BETWEEN == BETWEEN * 3 / 4 {
                    metered.wait("barrier", rank.barrier()).await?;
                }
            }
            metered.end()
        })
    },
};

/// Bytes of the faces, by direction.
const FACES: [usize; 6] = [
    48 << 10,
    48 << 10,
    128 << 10,
    128 << 10,
    256 << 10,
    256 << 10,
];

/// Exchanges from one sum to the next, and from one barrier to the next.
const BETWEEN: u32 = 800;

type Buffers = Vec<Vec<u8>>;

/// Exchanges with neighbours, `(to, from)` and bytes, and waits for one message after the other.
async fn exchange(
    metered: &Metered,
    neighbours: &[((u32, u32), usize)],
    rooms: Buffers,
    faces: Buffers,
) -> Result<(Buffers, Buffers)> {
    let rank = metered.rank();
    let (mut coming, mut going) = (Vec::with_capacity(6), Vec::with_capacity(6));
    for (direction, (((_, from), _), room)) in neighbours.iter().zip(rooms).enumerate() {
        let post = || rank.irecv_into(*from, tag(direction as u32), room);
        coming.push(metered.call("irecv", post)?);
    }
    for (direction, (((to, _), _), face)) in neighbours.iter().zip(faces).enumerate() {
        let send = || rank.isend(*to, tag(direction as u32), face);
        going.push(metered.call("isend", send)?);
    }
    let (mut rooms, mut faces) = (Vec::with_capacity(6), Vec::with_capacity(6));
    for (requests, buffers) in [(coming, &mut rooms), (going, &mut faces)] {
        for request in requests {
            let done = metered.wait("wait", rank.wait(request)).await?;
            buffers.push(done.into_vec());
        }
    }
    Ok((rooms, faces))
}
