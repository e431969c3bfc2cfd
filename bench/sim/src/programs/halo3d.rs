//! Exchanges with the six neighbours in space.

use super::{Program, exchange, grid, rounds};

pub(super) const PROGRAM: Program = Program {
    name: "halo3d",
    about: "ranks in a closed space exchange messages with their 6 neighbours",
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

/// Returns to whom a rank sends in each direction, and from whom it receives.
pub(crate) fn neighbours(own: u32, extents: [u32; 3]) -> [(u32, u32); 6] {
    let mut all = [(0, 0); 6];
    let mut stride = 1;
    for (direction, extent) in extents.into_iter().enumerate() {
        let place = own / stride % extent;
        let at = |place: u32| own - own / stride % extent * stride + place * stride;
        let (up, down) = (at((place + 1) % extent), at((place + extent - 1) % extent));
        all[2 * direction] = (up, down);
        all[2 * direction + 1] = (down, up);
        stride *= extent;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_is_received_from() {
        for extents in [[1, 1, 1], [2, 2, 1], [4, 3, 2], [3, 3, 3]] {
            for own in 0..extents.iter().product() {
                for (direction, (to, _)) in neighbours(own, extents).into_iter().enumerate() {
                    assert_eq!(neighbours(to, extents)[direction].1, own, "{extents:?}");
                }
            }
        }
        let to = neighbours(13, [3, 3, 3]).map(|(to, _)| to);
        assert_eq!(to, [14, 12, 16, 10, 22, 4]);
    }
}
