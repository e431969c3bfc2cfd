//! Exchanges of faces with the up to six neighbours in a space that is not closed: what `bench halo3d --mode single` does.

use super::{Program, grid, rounds, tag};
use crate::error::Result;
use crate::rank::SimRank;

pub(super) const PROGRAM: Program = Program {
    name: "faces",
    about: "ranks in an open space exchange messages with their up to 6 neighbours",
    least: 1,
    peers: |_| 6,
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let neighbours = neighbours(rank.rank(), grid(rank.size()));
            rounds(rank, arguments, clockwork, async || {
                exchange(rank, &neighbours, arguments.bytes).await
            })
            .await
        })
    },
};

/// Exchanges a face with each neighbour. It has the number of the sender's direction, which is the opposite of the receiver's.
async fn exchange(rank: &SimRank, neighbours: &[Option<u32>; 6], bytes: usize) -> Result<()> {
    let there = || {
        (0..)
            .zip(neighbours)
            .filter_map(|(face, peer)| Some((face, (*peer)?)))
    };
    let mut requests = Vec::with_capacity(12);
    for (face, peer) in there() {
        requests.push(rank.irecv(peer, tag(face ^ 1), bytes)?);
    }
    for (face, peer) in there() {
        requests.push(rank.isend(peer, tag(face), vec![0; bytes])?);
    }
    for request in requests {
        rank.wait(request).await?;
    }
    Ok(())
}

/// Returns the neighbours of a rank, up and down in each direction, where there are such.
fn neighbours(own: u32, extents: [u32; 3]) -> [Option<u32>; 6] {
    let mut all = [None; 6];
    let mut stride = 1;
    for (axis, extent) in extents.into_iter().enumerate() {
        let place = own / stride % extent;
        all[2 * axis] = (place + 1 < extent).then(|| own + stride);
        all[2 * axis + 1] = (place > 0).then(|| own - stride);
        stride *= extent;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_lie_between_neighbours() {
        let extents = [3, 2, 2];
        for own in 0..12 {
            for (face, to) in neighbours(own, extents).into_iter().enumerate() {
                let back = to.map(|to| neighbours(to, extents)[face ^ 1]);
                assert!(back.is_none_or(|back| back == Some(own)), "{own} {to:?}");
            }
        }
        let of = |own| neighbours(own, extents).into_iter().flatten().count();
        assert_eq!((of(0), of(1), of(11)), (3, 4, 3));
        assert_eq!(neighbours(0, [2, 1, 1]).into_iter().flatten().count(), 1);
    }
}
