//! Ranks in a Cartesian grid.

use tagwire_coll::{Grid, Neighbours};

use super::neighbourhood::Neighbourhood;
use crate::context::Context;
use crate::error::Result;

/// The ranks of a context in a Cartesian grid, row by row: the last coordinate changes from one rank to the next
/// (MPI-5.0, section 8.5.1). Made by [`Context::cartesian`]; ranks keep their numbers.
///
/// In its [neighbourhood](Self::neighbourhood) each rank has two neighbours for each dimension, in the negative and in the positive
/// direction. What is sent in one direction comes from the other, also where both are the same rank. Beyond the end of a dimension
/// that is not periodic there is nobody: what is sent there goes nowhere, and what would come from there stays as it is.
///
/// ```
/// let session = tagwire::Session::open()?;
/// let (rank, size) = (session.rank(), session.size());
/// let grid = session.world().cartesian(&[size, 1], &[true, false])?;
/// assert_eq!(grid.coords(rank), Some(vec![rank, 0]));
/// assert_eq!(grid.rank(&[-1, 0]), Some(size - 1));
/// let (source, destination) = grid.shift(0, 1)?;
/// // A halo exchange: up, down, left, right.
/// let mut halo = [u32::MAX; 4];
/// grid.neighbourhood().alltoall(&[rank; 4], &mut halo)?;
/// assert_eq!((Some(halo[0]), Some(halo[1])), (source, destination));
/// assert_eq!(halo[2..], [u32::MAX; 2]);
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cartesian<'s> {
    grid: Grid,
    rank: usize,
    neighbourhood: Neighbourhood<'s>,
}

impl<'s> Cartesian<'s> {
    fn of(context: Context<'s>, extents: &[u32], periods: &[bool]) -> Result<Self> {
        let (size, rank) = (context.size()? as usize, context.rank()? as usize);
        let extents: Vec<_> = extents.iter().map(|extent| *extent as usize).collect();
        let grid = Grid::new(&extents, periods)?;
        grid.check_size(size)?;
        let neighbours = Neighbours::cartesian(&grid, rank)?;
        Ok(Self {
            grid,
            rank,
            neighbourhood: Neighbourhood::new(context, neighbours),
        })
    }

    /// Returns this rank's neighbours, with the collectives among them.
    #[must_use]
    pub const fn neighbourhood(&self) -> &Neighbourhood<'s> {
        &self.neighbourhood
    }

    /// Returns the coordinates of a rank (MPI-5.0, section 8.5.5, `MPI_Cart_coords`), or `None` if there is no such rank.
    #[must_use]
    pub fn coords(&self, rank: u32) -> Option<Vec<u32>> {
        let coords = self.grid.coords(rank as usize)?;
        Some(coords.into_iter().map(|it| it as u32).collect())
    }

    /// Returns the rank at `coords` (MPI-5.0, section 8.5.5, `MPI_Cart_rank`). In a periodic dimension they go around the end;
    /// `None` where that is outside of the grid, or there are not as many coordinates as dimensions.
    #[must_use]
    pub fn rank(&self, coords: &[i32]) -> Option<u32> {
        let coords: Vec<_> = coords.iter().map(|it| *it as isize).collect();
        self.grid.member(&coords).map(|rank| rank as u32)
    }

    /// Returns whom a shift by `displacement` along a dimension brings data from to this rank, and to whom data from it
    /// (MPI-5.0, section 8.5.6).
    ///
    /// # Errors
    /// When there is no such dimension.
    pub fn shift(&self, dimension: usize, displacement: i32) -> Result<(Option<u32>, Option<u32>)> {
        let shifted = self
            .grid
            .shift(self.rank, dimension, displacement as isize)?;
        let rank = |member: Option<usize>| member.map(|rank| rank as u32);
        Ok((rank(shifted.0), rank(shifted.1)))
    }
}

impl<'s> Context<'s> {
    /// Returns the ranks in a grid with `extents` in its dimensions, of which those in `periods` go around the end
    /// (MPI-5.0, section 8.5.1). Nothing is sent: every rank makes it of the same arguments.
    ///
    /// # Errors
    /// When the grid has not as many ranks as the context, or the two arguments have different lengths.
    pub fn cartesian(&self, extents: &[u32], periods: &[bool]) -> Result<Cartesian<'s>> {
        Cartesian::of(*self, extents, periods)
    }
}
