//! The clock.

use std::time::Instant;

/// `MPI_Wtime`.
pub fn wtime() -> f64 {
    static BEGIN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// `MPI_Wtick`.
pub fn wtick() -> f64 {
    1e-9
}
