//! The values of Fortran's `LOGICAL`, which a binding of Fortran tells (MPI-5.0, section 20.4).

use crate::error::{Class, Error, Result};
use crate::lock::Lock;

/// Those of true and of false, once they are known.
#[derive(Debug, Default)]
pub(crate) struct Booleans(Lock<Option<[Vec<u8>; 2]>>);

impl Booleans {
    pub(crate) fn get(&self) -> Option<[Vec<u8>; 2]> {
        let known = self.0.lock();
        known.clone()
    }

    /// Sets them, once.
    ///
    /// # Errors
    /// `MPI_ERR_ABI` where others were set before.
    pub(crate) fn set(&self, given: [Vec<u8>; 2]) -> Result {
        let mut known = self.0.lock();
        match &*known {
            Some(before) if *before != given => {
                let text = "the values of LOGICAL were set before";
                Err(Error::new(Class::Abi, text))
            }
            _ => {
                *known = Some(given);
                Ok(())
            }
        }
    }
}
