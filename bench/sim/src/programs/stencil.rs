//! Exchanges with the eight neighbours in a plane, then a barrier.

use super::{Program, doublings, exchange, grid, rounds};

pub(super) const PROGRAM: Program = Program {
    name: "stencil",
    about: "ranks in a plane exchange messages with their 8 neighbours, and meet at a barrier",
    least: 1,
    peers: |ranks| 8 + 2 * doublings(ranks),
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let neighbours = neighbours(rank.rank(), grid(rank.size()));
            rounds(rank, arguments, clockwork, async || {
                exchange(rank, &neighbours, arguments.bytes).await?;
                rank.barrier().await
            })
            .await
        })
    },
};

/// Returns to whom a rank sends in each direction of a plane that is closed in itself, and from whom it receives.
pub(crate) fn neighbours(own: u32, [width, height]: [u32; 2]) -> Vec<(u32, u32)> {
    let (x, y) = (own % width, own / width);
    let at = |dx: u32, dy: u32| (x + dx) % width + (y + dy) % height * width;
    let back = |step: u32, extent: u32| (extent - step % extent) % extent;
    let steps = |extent: u32| [0, 1, extent - 1];
    let mut all = Vec::with_capacity(8);
    for (row, dy) in steps(height).into_iter().enumerate() {
        for (column, dx) in steps(width).into_iter().enumerate() {
            if (row, column) != (0, 0) {
                all.push((at(dx, dy), at(back(dx, width), back(dy, height))));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_sends_is_received_from() {
        for grid in [[1, 1], [2, 1], [2, 2], [4, 3], [5, 5]] {
            let size = grid[0] * grid[1];
            for own in 0..size {
                for (direction, (to, _)) in neighbours(own, grid).into_iter().enumerate() {
                    assert_eq!(neighbours(to, grid)[direction].1, own, "{grid:?}");
                }
            }
        }
        let mut eight: Vec<_> = neighbours(6, [5, 3])
            .into_iter()
            .map(|(to, _)| to)
            .collect();
        eight.sort_unstable();
        assert_eq!(eight, [0, 1, 2, 5, 7, 10, 11, 12]);
    }
}
