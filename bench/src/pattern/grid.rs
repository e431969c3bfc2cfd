//! Grids of ranks, and the neighbours of a position.

use tagwire_base::Rank;

/// A grid of ranks without wrap-around. Rank `x + P (y + Q z)` is at (x, y, z).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid {
    sides: Vec<u32>,
}

/// A direction along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Down,
    Up,
}

impl Way {
    pub(crate) const fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }
}

impl Grid {
    pub(crate) fn new(sides: &[u32]) -> Self {
        Self {
            sides: sides.to_vec(),
        }
    }

    /// Returns the grid of so many dimensions whose sides differ least, the longest first.
    pub(crate) fn of_ranks(ranks: u32, dimensions: usize) -> Self {
        let mut sides = Vec::new();
        let mut rest = ranks.max(1);
        for left in (1..=dimensions as u32).rev() {
            let root = f64::from(rest).powf(1.0 / f64::from(left)).round() as u32;
            let side = (1..=rest).filter(|side| rest.is_multiple_of(*side));
            let side = side.min_by_key(|side| side.abs_diff(root)).unwrap_or(1);
            sides.push(side);
            rest /= side;
        }
        sides.sort_unstable_by(|a, b| b.cmp(a));
        Self { sides }
    }

    pub(crate) fn sides(&self) -> &[u32] {
        &self.sides
    }

    pub(crate) fn ranks(&self) -> u32 {
        self.sides.iter().product()
    }

    /// Returns the position of a rank along an axis.
    pub(crate) fn position(&self, rank: u32, axis: usize) -> u32 {
        let stride: u32 = self.sides[..axis].iter().product();
        rank / stride % self.sides[axis]
    }

    /// Returns the next rank along an axis; `None` at the edge.
    pub(crate) fn neighbour(&self, rank: u32, axis: usize, way: Way) -> Option<Rank> {
        let stride: u32 = self.sides[..axis].iter().product();
        let position = self.position(rank, axis);
        match way {
            Way::Down if position > 0 => Some(Rank::new(rank - stride)),
            Way::Up if position + 1 < self.sides[axis] => Some(Rank::new(rank + stride)),
            _ => None,
        }
    }

    /// Returns the rank at an offset, where the grid has no edges.
    pub(crate) fn around(&self, rank: u32, offset: [i32; 3]) -> Rank {
        let mut stride = 1;
        let mut other = 0;
        for (axis, &side) in self.sides.iter().enumerate() {
            let place = i64::from(self.position(rank, axis)) + i64::from(offset[axis]);
            other += stride * place.rem_euclid(i64::from(side)) as u32;
            stride *= side;
        }
        Rank::new(other)
    }

    /// Returns how many neighbours a rank has.
    pub(crate) fn neighbours(&self, rank: u32) -> usize {
        let axes = 0..self.sides.len();
        let ways = axes.flat_map(|axis| [(axis, Way::Down), (axis, Way::Up)]);
        ways.filter(|(axis, way)| self.neighbour(rank, *axis, *way).is_some())
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Down and up along each axis.
    fn all(grid: &Grid, rank: u32) -> Vec<Option<u32>> {
        let axes = 0..grid.sides().len();
        let ways = axes.flat_map(|axis| [(axis, Way::Down), (axis, Way::Up)]);
        ways.map(|(axis, way)| grid.neighbour(rank, axis, way).map(Rank::as_u32))
            .collect()
    }

    #[test]
    fn every_position_of_a_plane_has_its_neighbours() {
        // 0 1 2
        // 3 4 5
        // 6 7 8
        let grid = Grid::new(&[3, 3]);
        let (x, n) = (Some::<u32>, None);
        for (rank, wanted) in [
            (0, [n, x(1), n, x(3)]),
            (1, [x(0), x(2), n, x(4)]),
            (2, [x(1), n, n, x(5)]),
            (3, [n, x(4), x(0), x(6)]),
            (4, [x(3), x(5), x(1), x(7)]),
            (5, [x(4), n, x(2), x(8)]),
            (6, [n, x(7), x(3), n]),
            (7, [x(6), x(8), x(4), n]),
            (8, [x(7), n, x(5), n]),
        ] {
            assert_eq!(all(&grid, rank), wanted, "{rank}");
        }
    }

    #[test]
    fn every_position_of_a_box_has_its_neighbours() {
        let grid = Grid::new(&[2, 3, 2]);
        assert_eq!(grid.ranks(), 12);
        for rank in 0..12 {
            let (x, y, z) = (rank % 2, rank / 2 % 3, rank / 6);
            let wanted = [
                (x > 0).then(|| rank - 1),
                (x < 1).then(|| rank + 1),
                (y > 0).then(|| rank - 2),
                (y < 2).then(|| rank + 2),
                (z > 0).then(|| rank - 6),
                (z < 1).then(|| rank + 6),
            ];
            assert_eq!(all(&grid, rank), wanted, "{rank}");
            assert_eq!(grid.neighbours(rank), wanted.iter().flatten().count());
        }
    }

    #[test]
    fn a_periodic_grid_has_no_edges() {
        let grid = Grid::new(&[3, 2, 2]);
        for (rank, offset, other) in [
            (0, [-1, 0, 0], 2),
            (2, [1, 0, 0], 0),
            (0, [0, 1, 0], 3),
            (0, [0, -1, 0], 3),
            (5, [1, 1, 1], 6),
            (11, [1, 1, 1], 0),
        ] {
            assert_eq!(
                grid.around(rank, offset),
                Rank::new(other),
                "{rank} {offset:?}"
            );
        }
    }

    #[test]
    fn neighbours_are_mutual() {
        let grid = Grid::new(&[4, 2, 3]);
        for rank in 0..grid.ranks() {
            for (axis, way) in [(0, Way::Up), (1, Way::Down), (2, Way::Up)] {
                let Some(other) = grid.neighbour(rank, axis, way) else {
                    continue;
                };
                let back = grid.neighbour(other.as_u32(), axis, way.opposite());
                assert_eq!(back, Some(Rank::new(rank)));
            }
        }
    }

    #[test]
    fn the_grid_of_a_number_is_as_square_as_it_can_be() {
        for (ranks, dimensions, sides) in [
            (4, 2, &[2, 2][..]),
            (6, 2, &[3, 2]),
            (7, 2, &[7, 1]),
            (8, 3, &[2, 2, 2]),
            (12, 3, &[3, 2, 2]),
            (1, 3, &[1, 1, 1]),
        ] {
            assert_eq!(Grid::of_ranks(ranks, dimensions).sides(), sides, "{ranks}");
        }
    }
}
