//! Predefined handles and constants, which differ between binary interfaces.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

use crate::error::{Error, Result};

/// `MPI_Comm`, `MPI_Datatype`, `MPI_Errhandler`: pointers to incomplete types.
pub(super) type Handle = *mut c_void;

/// Those that the benchmarks use, by the standard's binary interface (MPI-5.0, chapter 20) or by that of Open MPI 4 and 5,
/// which have no other. Signatures, null statuses and `MPI_SUCCESS` are the same in both.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handles {
    pub world: Handle,
    pub byte: Handle,
    pub uint8: Handle,
    pub double: Handle,
    pub int32: Handle,
    pub uint64: Handle,
    pub sum: Handle,
    pub max: Handle,
    pub errors_return: Handle,
    pub info_null: Handle,
    pub thread_multiple: c_int,
}

// SAFETY: nothing here looks behind a handle; the library may be given it by any thread that may call the library.
unsafe impl Send for Handles {}
// SAFETY: as above.
unsafe impl Sync for Handles {}

/// In both.
pub(super) const THREAD_SINGLE: c_int = 0;

/// The same.
pub(super) const ANY_SOURCE: c_int = -1;

impl Handles {
    /// Returns those of the library at `file`.
    ///
    /// # Errors
    /// [`Error::Library`] when it has an interface that is not known here, as those of other libraries of before the standard.
    #[inline]
    pub(super) fn of(library: &Library, file: &Path) -> Result<Self> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // A library of the standard's interface may stand on one of Open MPI's, whose symbols it then has too.
        if name.contains("mpi_abi") || has(library, b"MPI_Abi_get_version") {
            return Ok(Self::standard());
        }
        Self::of_open_mpi(library).ok_or_else(|| Error::Library {
            file: file.to_path_buf(),
            reason: "it has neither the binary interface of the MPI standard nor that of Open MPI"
                .to_owned(),
        })
    }

    /// Small numbers, which the standard fixes (MPI-5.0, appendix A).
    #[inline]
    const fn standard() -> Self {
        #[inline]
        const fn handle(number: usize) -> Handle {
            ptr::without_provenance_mut(number)
        }
        Self {
            world: handle(0x101),
            byte: handle(0x247),
            uint8: handle(0x241),
            double: handle(0x214),
            int32: handle(0x250),
            uint64: handle(0x259),
            sum: handle(0x21),
            max: handle(0x23),
            errors_return: handle(0x143),
            info_null: handle(0x130),
            thread_multiple: 4096,
        }
    }

    /// Addresses of objects that the library exports.
    #[inline]
    fn of_open_mpi(library: &Library) -> Option<Self> {
        Some(Self {
            world: address(library, b"ompi_mpi_comm_world")?,
            byte: address(library, b"ompi_mpi_byte")?,
            uint8: address(library, b"ompi_mpi_uint8_t")?,
            double: address(library, b"ompi_mpi_double")?,
            int32: address(library, b"ompi_mpi_int32_t")?,
            uint64: address(library, b"ompi_mpi_uint64_t")?,
            sum: address(library, b"ompi_mpi_op_sum")?,
            max: address(library, b"ompi_mpi_op_max")?,
            errors_return: address(library, b"ompi_mpi_errors_return")?,
            info_null: address(library, b"ompi_mpi_info_null")?,
            thread_multiple: 3,
        })
    }
}

#[inline]
fn has(library: &Library, name: &[u8]) -> bool {
    address(library, name).is_some()
}

#[inline]
fn address(library: &Library, name: &[u8]) -> Option<Handle> {
    // SAFETY: only the address is taken, whatever is there.
    let found = unsafe { library.get::<Handle>(name) };
    found.ok().map(|found| *found)
}
