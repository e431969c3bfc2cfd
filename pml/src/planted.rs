//! Faults that tests plant, in order to find them.

use std::cell::Cell;

thread_local! {
    /// A grant of credit is sent twice, so that its receiver believes to have twice the credit.
    pub(crate) static GRANTS_TWICE: Cell<bool> = const { Cell::new(false) };
    /// The flag of a partition is not held back behind the partition's bytes.
    pub(crate) static UNFENCED_FLAGS: Cell<bool> = const { Cell::new(false) };
    /// There is no room for the envelope of a message that fills an exposed receive, before all of it is there.
    pub(crate) static LATE_NOTES: Cell<bool> = const { Cell::new(false) };
    /// A thread that does what another of its rank waits for does not tell it.
    pub(crate) static UNTOLD_WAITERS: Cell<bool> = const { Cell::new(false) };
}
