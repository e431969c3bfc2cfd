//! Three small kernels of applications, whose threads arrive as their work and the machine have it.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::noise::unit;
use crate::stats::{Seeded, mix};

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kernel {
    /// A sparse matrix times a vector.
    SparseProduct,
    /// Forces between particles that are near each other.
    Particles,
    /// Random walks, whose number and length vary.
    MonteCarlo,
}

impl fmt::Display for Kernel {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SparseProduct => "spmv",
            Self::Particles => "particles",
            Self::MonteCarlo => "monte-carlo",
        })
    }
}

impl FromStr for Kernel {
    type Err = String;

    #[inline]
    fn from_str(text: &str) -> Result<Self, String> {
        let all = [Self::SparseProduct, Self::Particles, Self::MonteCarlo];
        let found = all.into_iter().find(|kernel| kernel.to_string() == text);
        found.ok_or_else(|| {
            format!("'{text}' is no kernel: expected spmv, particles or monte-carlo")
        })
    }
}

/// Rows of a thread's part of the matrix, and entries of each.
const ROWS: usize = 8_000;
const ENTRIES: usize = 27;
/// Particles of a thread, in a box of this side with forces up to a distance of 1.
const PARTICLES: usize = 400;
const SIDE: f64 = 6.0;
/// Walks of a step at most, and steps of a walk at most.
const WALKS: u64 = 200;
const STEPS: u64 = 200;

/// A thread's part of a kernel.
#[derive(Debug)]
pub(crate) enum Part {
    SparseProduct(Matrix),
    Particles(Vec<[f64; 3]>),
    MonteCarlo(Seeded),
}

/// Rows of a sparse matrix, and a vector.
#[derive(Debug)]
pub(crate) struct Matrix {
    columns: Vec<u32>,
    values: Vec<f64>,
    vector: Vec<f64>,
}

impl Part {
    #[inline]
    pub(crate) fn new(kernel: Kernel, seed: u64) -> Self {
        let mut random = Seeded::new(mix(seed));
        match kernel {
            Kernel::SparseProduct => Self::SparseProduct(Matrix {
                columns: (0..ROWS * ENTRIES)
                    .map(|_| (random.next() % ROWS as u64) as u32)
                    .collect(),
                values: (0..ROWS * ENTRIES)
                    .map(|_| unit(&mut random) / ENTRIES as f64)
                    .collect(),
                vector: (0..ROWS).map(|_| unit(&mut random)).collect(),
            }),
            Kernel::Particles => {
                let mut place = || [0; 3].map(|_| SIDE * unit(&mut random));
                Self::Particles((0..PARTICLES).map(|_| place()).collect())
            }
            Kernel::MonteCarlo => Self::MonteCarlo(random),
        }
    }

    /// Does a step, and returns a number that depends on all of it.
    #[inline]
    pub(crate) fn step(&mut self) -> f64 {
        black_box(match self {
            Self::SparseProduct(matrix) => matrix.product(),
            Self::Particles(places) => forces(places),
            Self::MonteCarlo(random) => walks(random),
        })
    }
}

impl Matrix {
    /// Replaces the vector by its product.
    #[inline]
    fn product(&mut self) -> f64 {
        let rows = self
            .columns
            .chunks(ENTRIES)
            .zip(self.values.chunks(ENTRIES));
        let row = |(columns, values): (&[u32], &[f64])| {
            let terms = columns.iter().zip(values);
            terms
                .map(|(column, value)| value * self.vector[*column as usize])
                .sum()
        };
        let product: Vec<f64> = rows.map(row).collect();
        // Scaled, so that repeated products neither vanish nor overflow.
        let norm: f64 = product.iter().sum::<f64>() / ROWS as f64;
        self.vector = product.into_iter().map(|value| value / norm).collect();
        norm
    }
}

/// Moves particles a little by the forces of Lennard-Jones between those that are near, and returns the potential.
#[inline]
fn forces(places: &mut [[f64; 3]]) -> f64 {
    let mut moves = vec![[0.0; 3]; places.len()];
    let mut potential = 0.0;
    for (one, a) in places.iter().enumerate() {
        for (other, b) in places.iter().enumerate().skip(one + 1) {
            let between = [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
            let square: f64 = between.iter().map(|it| it * it).sum();
            if square >= 1.0 {
                continue;
            }
            // No closer than this, where the force would throw a particle out.
            let inverse = (0.2 / square.max(0.1)).powi(3);
            potential += inverse * (inverse - 1.0);
            for axis in 0..3 {
                let force = 1e-6 * inverse * (inverse - 0.5) * between[axis];
                moves[one][axis] += force;
                moves[other][axis] -= force;
            }
        }
    }
    for (place, by) in places.iter_mut().zip(moves) {
        for axis in 0..3 {
            place[axis] = (place[axis] + by[axis]).rem_euclid(SIDE);
        }
    }
    potential
}

/// Walks at random, each until it leaves an interval or its steps are up.
#[inline]
fn walks(random: &mut Seeded) -> f64 {
    let count = WALKS / 2 + random.next() % (WALKS / 2);
    let mut sum = 0.0;
    for _ in 0..count {
        let mut place: f64 = 0.0;
        for _ in 0..STEPS {
            place += unit(random) - 0.5;
            if place.abs() > 4.0 {
                break;
            }
        }
        sum += (place * place).sqrt().exp();
    }
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_depend_on_their_seed_and_stay_finite() {
        for name in ["spmv", "particles", "monte-carlo"] {
            let kernel: Kernel = name.parse().unwrap();
            let steps = |seed| {
                let mut part = Part::new(kernel, seed);
                (0..5).map(|_| part.step()).collect::<Vec<_>>()
            };
            let found = steps(1);
            assert!(
                found.iter().all(|value| value.is_finite()),
                "{name}: {found:?}"
            );
            assert_eq!(found, steps(1), "{name}");
            assert_ne!(found, steps(2), "{name}");
        }
        assert!("miniFE".parse::<Kernel>().unwrap_err().contains("spmv"));
    }

    #[test]
    fn a_product_is_that_of_its_rows() {
        let mut matrix = Matrix {
            columns: (0..ROWS * ENTRIES)
                .map(|place| (place / ENTRIES) as u32)
                .collect(),
            values: vec![2.0 / ENTRIES as f64; ROWS * ENTRIES],
            vector: (0..ROWS).map(|row| 1.0 + (row % 3) as f64).collect(),
        };
        let before = matrix.vector.clone();
        let mean = before.iter().sum::<f64>() / ROWS as f64;
        assert!((matrix.product() - 2.0 * mean).abs() < 1e-9);
        let ratio = |(after, before): (&f64, &f64)| after / before * mean;
        let mut ratios = matrix.vector.iter().zip(&before).map(ratio);
        assert!(ratios.all(|ratio| (ratio - 1.0).abs() < 1e-9));
    }
}
