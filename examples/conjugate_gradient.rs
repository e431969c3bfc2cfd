//! Solves Poisson's equation on a square plate by conjugate gradients: each rank has some rows, neighbours exchange their
//! outermost ones, and scalar products are summed over all ranks.
//!
//! ```text
//! tagwire run -n 4 -- target/release/examples/conjugate_gradient 200
//! ```

use tagwire::{Context, Result, Session, Sum};

const UP: i32 = 1;
const DOWN: i32 = 2;

/// The residual is to fall by so much.
const REDUCTION: f64 = 1e-8;

/// The rows of one rank.
struct Rows<'s> {
    world: Context<'s>,
    rank: u32,
    size: u32,
    /// Points of a row.
    width: usize,
    /// Rows of this rank.
    height: usize,
}

impl Rows<'_> {
    /// Sets the first and the last row of `field`, which are the neighbours'; beyond the plate they are zero.
    fn exchange(&self, field: &mut [f64]) -> Result<()> {
        let (above, rest) = field.split_at_mut(self.width);
        let (own, below) = rest.split_at_mut(self.width * self.height);
        let (first, last) = (&own[..self.width], &own[own.len() - self.width..]);
        // Upwards, then downwards; the outermost ranks have one neighbour.
        match (self.rank > 0, self.rank + 1 < self.size) {
            (true, true) => {
                let (up, down) = (self.rank - 1, self.rank + 1);
                self.world.sendrecv((first, up, UP), (below, down, UP))?;
                self.world.sendrecv((last, down, DOWN), (above, up, DOWN))?;
            }
            (true, false) => {
                self.world.send(first, self.rank - 1, UP)?;
                self.world.recv(above, self.rank - 1, DOWN)?;
            }
            (false, true) => {
                self.world.recv(below, self.rank + 1, UP)?;
                self.world.send(last, self.rank + 1, DOWN)?;
            }
            (false, false) => {}
        }
        Ok(())
    }

    /// Returns four times each point less its neighbours.
    fn apply(&self, field: &mut [f64], out: &mut [f64]) -> Result<()> {
        self.exchange(field)?;
        let width = self.width;
        for row in 0..self.height {
            for column in 0..width {
                let at = (row + 1) * width + column;
                let left = if column > 0 { field[at - 1] } else { 0.0 };
                let right = if column + 1 < width {
                    field[at + 1]
                } else {
                    0.0
                };
                out[row * width + column] =
                    4.0 * field[at] - left - right - field[at - width] - field[at + width];
            }
        }
        Ok(())
    }

    /// Returns the scalar product over all ranks.
    fn dot(&self, a: &[f64], b: &[f64]) -> Result<f64> {
        let mut sum = [a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>()];
        self.world.allreduce(&mut sum, Sum)?;
        Ok(sum[0])
    }
}

fn main() -> Result<()> {
    let width: usize = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let session = Session::open()?;
    let (rank, size) = (session.rank(), session.size());
    let share = |rank: u32| width * rank as usize / size as usize;
    let rows = Rows {
        world: session.world(),
        rank,
        size,
        width,
        height: share(rank + 1) - share(rank),
    };
    assert!(rows.height > 0, "more ranks than rows");
    let points = width * rows.height;
    // A load of one at each point; the plate is held at its edge.
    let (mut x, mut residual) = (vec![0.0; points], vec![1.0; points]);
    let mut direction = vec![0.0; points + 2 * width];
    direction[width..width + points].fill(1.0);
    let mut image = vec![0.0; points];
    let first = rows.dot(&residual, &residual)?;
    let (mut norm, mut steps) = (first, 0);
    while norm > first * REDUCTION * REDUCTION && steps < 10 * width {
        rows.apply(&mut direction, &mut image)?;
        let own = &direction[width..width + points];
        let step = norm / rows.dot(own, &image)?;
        for i in 0..points {
            x[i] += step * own[i];
            residual[i] -= step * image[i];
        }
        let next = rows.dot(&residual, &residual)?;
        for (own, residual) in direction[width..width + points].iter_mut().zip(&residual) {
            *own = residual + next / norm * *own;
        }
        norm = next;
        steps += 1;
    }
    let mut highest = [x.iter().copied().fold(0.0, f64::max)];
    session.world().reduce(&mut highest, tagwire::Max, 0)?;
    if rank == 0 {
        println!(
            "{size} ranks, {width} x {width} points: {steps} steps, the residual fell to {:.1e}, highest point {:.6}",
            (norm / first).sqrt(),
            highest[0]
        );
    }
    session.close()
}
