//! Heat on a square plate, cut into tiles: each rank exchanges the rim of its tile with its
//! neighbours, four sends and four receives at a time, lent for a scope.
//!
//! ```text
//! tagwire run -n 4 -- target/release/examples/halo 200
//! ```

use tagwire::{Result, Session};

/// Cells along one side of a rank's tile.
const SIDE: usize = 64;

/// The tags say which way a rim travels.
const TO_NORTH: i32 = 0;
const TO_SOUTH: i32 = 1;
const TO_WEST: i32 = 2;
const TO_EAST: i32 = 3;

/// The grid of ranks, as square as their number allows.
struct Grid {
    columns: u32,
    rows: u32,
    column: u32,
    row: u32,
}

impl Grid {
    fn new(rank: u32, size: u32) -> Self {
        let columns = (1..=size)
            .filter(|columns| size.is_multiple_of(*columns))
            .min_by_key(|columns| columns.abs_diff(size / columns))
            .unwrap_or(1);
        Self {
            columns,
            rows: size / columns,
            column: rank % columns,
            row: rank / columns,
        }
    }

    /// The rank that lies so many columns and rows away, if any.
    fn neighbour(&self, right: i64, down: i64) -> Option<u32> {
        let column = u32::try_from(i64::from(self.column) + right).ok()?;
        let row = u32::try_from(i64::from(self.row) + down).ok()?;
        (column < self.columns && row < self.rows).then(|| row * self.columns + column)
    }
}

/// A tile with a rim of one cell around it.
struct Tile(Vec<f64>);

impl Tile {
    const WIDTH: usize = SIDE + 2;

    fn new(value: f64) -> Self {
        Self(vec![value; Self::WIDTH * Self::WIDTH])
    }

    fn row(&self, row: usize) -> Vec<f64> {
        self.0[row * Self::WIDTH + 1..][..SIDE].to_vec()
    }

    fn column(&self, column: usize) -> Vec<f64> {
        (1..=SIDE)
            .map(|row| self.0[row * Self::WIDTH + column])
            .collect()
    }

    fn set_row(&mut self, row: usize, values: &[f64]) {
        self.0[row * Self::WIDTH + 1..][..SIDE].copy_from_slice(values);
    }

    fn set_column(&mut self, column: usize, values: &[f64]) {
        for (row, value) in values.iter().enumerate() {
            self.0[(row + 1) * Self::WIDTH + column] = *value;
        }
    }

    /// One step of the heat equation; returns the largest change of a cell.
    fn relax(&mut self) -> f64 {
        let old = self.0.clone();
        let mut largest: f64 = 0.0;
        for row in 1..=SIDE {
            for column in 1..=SIDE {
                let i = row * Self::WIDTH + column;
                let mean =
                    (old[i - 1] + old[i + 1] + old[i - Self::WIDTH] + old[i + Self::WIDTH]) / 4.0;
                largest = largest.max((mean - old[i]).abs());
                self.0[i] = mean;
            }
        }
        largest
    }
}

fn main() -> Result<()> {
    let steps: u32 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let session = Session::open()?;
    let world = session.world();
    let grid = Grid::new(session.rank(), session.size());
    let mut tile = Tile::new(0.0);
    if grid.row == 0 {
        tile.set_row(0, &[100.0; SIDE]); // the plate's hot edge
    }
    let mut change = 0.0;
    for _ in 0..steps {
        // Neighbour, the way there, the way back, the rim that goes.
        let sides = [
            (grid.neighbour(0, -1), TO_NORTH, TO_SOUTH, tile.row(1)),
            (grid.neighbour(0, 1), TO_SOUTH, TO_NORTH, tile.row(SIDE)),
            (grid.neighbour(-1, 0), TO_WEST, TO_EAST, tile.column(1)),
            (grid.neighbour(1, 0), TO_EAST, TO_WEST, tile.column(SIDE)),
        ];
        let mut halos = [[0.0; SIDE]; 4];
        session.try_scope(|scope| {
            for ((neighbour, there, back, rim), halo) in sides.iter().zip(&mut halos) {
                if let Some(rank) = *neighbour {
                    world.irecv(scope, halo, rank, *back)?;
                    world.isend(scope, rim, rank, *there)?;
                }
            }
            Ok(()) // the scope waits for all of them
        })?;
        for (way, (neighbour, ..)) in sides.iter().enumerate() {
            match (way, neighbour) {
                (_, None) => {}
                (0, _) => tile.set_row(0, &halos[0]),
                (1, _) => tile.set_row(SIDE + 1, &halos[1]),
                (2, _) => tile.set_column(0, &halos[2]),
                _ => tile.set_column(SIDE + 1, &halos[3]),
            }
        }
        change = tile.relax();
    }
    let heat: f64 = (1..=SIDE).flat_map(|row| tile.row(row)).sum();
    if session.rank() == 0 {
        let mut total = heat;
        for rank in 1..session.size() {
            let mut part = [0.0];
            world.recv(&mut part, rank, TO_NORTH)?;
            total += part[0];
        }
        println!(
            "{} x {} tiles, {steps} steps: mean {:.6}, last change {change:.6}",
            grid.columns,
            grid.rows,
            total / (session.size() as usize * SIDE * SIDE) as f64
        );
    } else {
        world.send(&[heat], 0, TO_NORTH)?;
    }
    session.close()
}
