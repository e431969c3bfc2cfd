//! The clock (MPI-5.0, section 9.7).

use tagwire_base::Clock;

/// `MPI_Wtime`: seconds by the clock of the ranks of this machine.
#[must_use]
pub fn wtime() -> f64 {
    Clock::default().now().as_nanos() as f64 * 1e-9
}

/// `MPI_Wtick`.
#[must_use]
pub const fn wtick() -> f64 {
    1e-9
}
