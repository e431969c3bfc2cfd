//! Cartesian grids: members with coordinates.

use crate::error::{Error, Result};

/// A Cartesian grid (MPI-5.0, section 8.5.1). Members are numbered row by row: the last coordinate changes from one to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    dimensions: Box<[Dimension]>,
    size: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Dimension {
    extent: usize,
    /// Behind the last one comes the first.
    is_periodic: bool,
    /// From a member to the next one in this dimension.
    stride: usize,
}

impl Grid {
    /// Returns the grid with `extents` in its dimensions, of which those in `periods` go around the end. One without dimensions
    /// has one member.
    ///
    /// # Errors
    /// [`Error::Argument`] when the two have different lengths, an extent is 0, or there are too many members to count.
    pub fn new(extents: &[usize], periods: &[bool]) -> Result<Self> {
        if extents.len() != periods.len() {
            return Err(Error::Argument(format!(
                "{} dimensions of a grid were given, and {} periods",
                extents.len(),
                periods.len()
            )));
        }
        let mut size = 1_usize;
        let mut dimensions = Vec::with_capacity(extents.len());
        for (extent, is_periodic) in extents.iter().zip(periods).rev() {
            let larger = size.checked_mul(*extent).filter(|size| *size > 0);
            dimensions.push(Dimension {
                extent: *extent,
                is_periodic: *is_periodic,
                stride: size,
            });
            size = larger
                .ok_or_else(|| Error::Argument(format!("there is no grid of {extents:?} ranks")))?;
        }
        dimensions.reverse();
        Ok(Self {
            dimensions: dimensions.into(),
            size,
        })
    }

    /// Returns how many members there are.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.size
    }

    /// Returns the extents of the dimensions.
    pub fn extents(&self) -> impl Iterator<Item = usize> + '_ {
        self.dimensions.iter().map(|dimension| dimension.extent)
    }

    /// Returns the coordinates of a member (MPI-5.0, section 8.5.5, `MPI_Cart_coords`), or `None` if it is not in the grid.
    #[must_use]
    pub fn coords(&self, member: usize) -> Option<Vec<usize>> {
        let of = |dimension: &Dimension| dimension.coordinate(member);
        (member < self.size).then(|| self.dimensions.iter().map(of).collect())
    }

    /// Returns the member at `coords` (MPI-5.0, section 8.5.5, `MPI_Cart_rank`): in periodic dimensions any coordinate is one of
    /// the grid's. `None` where that is outside of the grid, or there are not as many coordinates as dimensions.
    #[must_use]
    pub fn member(&self, coords: &[isize]) -> Option<usize> {
        if coords.len() != self.dimensions.len() {
            return None;
        }
        let mut places = self.dimensions.iter().zip(coords);
        places.try_fold(0, |member, (dimension, coordinate)| {
            Some(member + dimension.place(*coordinate as i128)? * dimension.stride)
        })
    }

    /// Returns whom a shift by `displacement` along a dimension brings data from to `member`, and to whom data from it
    /// (MPI-5.0, section 8.5.6); `None` is beyond the end of a dimension that is not periodic.
    ///
    /// # Errors
    /// [`Error::Argument`] when there is no such member or dimension.
    pub fn shift(
        &self,
        member: usize,
        dimension: usize,
        displacement: isize,
    ) -> Result<(Option<usize>, Option<usize>)> {
        self.check(member)?;
        let along = self.dimensions.get(dimension).ok_or_else(|| {
            Error::Argument(format!(
                "there is no dimension {dimension} in a grid of {}",
                self.dimensions.len()
            ))
        })?;
        let distance = displacement as i128;
        Ok((
            along.moved(member, -distance),
            along.moved(member, distance),
        ))
    }

    /// Checks that all members of a group of `size` are in the grid, and nobody else.
    ///
    /// # Errors
    /// [`Error::Argument`] when there are fewer or more.
    pub fn check_size(&self, size: usize) -> Result<()> {
        match self.size == size {
            true => Ok(()),
            false => Err(Error::Argument(format!(
                "a grid of {} ranks was given for a group of {size}",
                self.size
            ))),
        }
    }

    /// Checks that `member` is in the grid.
    pub(crate) fn check(&self, member: usize) -> Result<()> {
        match member < self.size {
            true => Ok(()),
            false => Err(Error::Argument(format!(
                "there is no rank {member} in a grid of {}",
                self.size
            ))),
        }
    }

    /// Returns the neighbours of `member`, dimension by dimension, and in each first in the negative direction (MPI-5.0, section 8.6).
    pub(crate) fn around(&self, member: usize) -> impl Iterator<Item = Option<usize>> + '_ {
        let both = move |it: &Dimension| [-1, 1].map(|step| it.moved(member, step));
        self.dimensions.iter().flat_map(both)
    }
}

impl Dimension {
    const fn coordinate(&self, member: usize) -> usize {
        member / self.stride % self.extent
    }

    /// Returns the coordinate within the grid that `coordinate` stands for.
    const fn place(&self, coordinate: i128) -> Option<usize> {
        let extent = self.extent as i128;
        if self.is_periodic {
            Some(coordinate.rem_euclid(extent) as usize)
        } else if 0 <= coordinate && coordinate < extent {
            Some(coordinate as usize)
        } else {
            None
        }
    }

    /// Returns who is `distance` after `member`.
    fn moved(&self, member: usize, distance: i128) -> Option<usize> {
        let from = self.coordinate(member);
        let to = self.place(from as i128 + distance)?;
        Some(member - from * self.stride + to * self.stride)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_numbered_row_by_row() {
        let grid = Grid::new(&[2, 3, 4], &[false, true, false]).unwrap();
        assert_eq!(grid.size(), 24);
        assert!(grid.extents().eq([2, 3, 4]));
        assert_eq!(grid.coords(0), Some(vec![0, 0, 0]));
        assert_eq!(grid.coords(23), Some(vec![1, 2, 3]));
        assert_eq!(grid.coords(24), None);
        for member in 0..24 {
            let coords = grid.coords(member).unwrap();
            assert_eq!(member, (coords[0] * 3 + coords[1]) * 4 + coords[2]);
            let coords: Vec<_> = coords.iter().map(|it| *it as isize).collect();
            assert_eq!(grid.member(&coords), Some(member));
        }
        // The second dimension goes around.
        assert_eq!(grid.member(&[1, -1, 0]), grid.member(&[1, 2, 0]));
        assert_eq!(grid.member(&[1, isize::MIN, 0]), grid.member(&[1, 1, 0]));
        assert_eq!(grid.member(&[0, 0, -1]), None);
        assert_eq!(grid.member(&[2, 0, 0]), None);
        assert_eq!(grid.member(&[0, 0]), None);
    }

    #[test]
    fn shifts_end_where_a_dimension_does_not_go_around() {
        let grid = Grid::new(&[3, 4], &[false, true]).unwrap();
        assert_eq!(grid.shift(0, 0, 1).unwrap(), (None, Some(4)));
        assert_eq!(grid.shift(4, 0, -1).unwrap(), (Some(8), Some(0)));
        assert_eq!(grid.shift(4, 0, 2).unwrap(), (None, None));
        assert_eq!(grid.shift(4, 1, 1).unwrap(), (Some(7), Some(5)));
        assert_eq!(grid.shift(4, 1, 6).unwrap(), (Some(6), Some(6)));
        assert_eq!(grid.shift(4, 1, isize::MIN).unwrap(), (Some(4), Some(4)));
        assert_eq!(grid.shift(4, 0, isize::MAX).unwrap(), (None, None));
        assert_eq!(grid.shift(4, 0, 0).unwrap(), (Some(4), Some(4)));
        assert!(grid.shift(12, 0, 1).is_err());
        assert!(grid.shift(0, 2, 1).is_err());
        let around: Vec<_> = grid.around(4).collect();
        assert_eq!(around, [Some(0), Some(8), Some(7), Some(5)]);
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        for (extents, periods) in [
            (&[2, 0][..], &[true, true][..]),
            (&[2], &[]),
            (&[usize::MAX, 2], &[true, true]),
        ] {
            assert!(Grid::new(extents, periods).is_err(), "{extents:?}");
        }
        let grid = Grid::new(&[2, 3], &[true, true]).unwrap();
        assert!(grid.check_size(6).is_ok());
        assert!(grid.check_size(5).is_err() && grid.check_size(7).is_err());
        let point = Grid::new(&[], &[]).unwrap();
        assert_eq!((point.size(), point.coords(0)), (1, Some(Vec::new())));
        assert_eq!(point.around(0).count(), 0);
    }
}
