//! Asking for memory and for addresses (MPI-5.0, sections 5.1.5 and 9.2).

use crate::abi::Info;
use crate::error::{Class, Error, Result};
use crate::process::Process;
use crate::raw::{In, Pointer, Ref};

/// The info key of the least alignment.
pub(crate) const MINIMUM_ALIGNMENT: &str = "mpi_minimum_memory_alignment";

/// `MPI_Alloc_mem`. `start` is where the program wants the pointer.
pub fn alloc_mem(process: &Process, size: i64, info: Info, start: Ref<Pointer>) -> Result {
    let bytes = usize::try_from(size);
    let bytes = bytes.map_err(|_| Error::new(Class::Arg, format!("the size is {size}")))?;
    let alignment = alignment(process, info)?;
    let memory = process
        .memory
        .allocate(&process.messenger, bytes, alignment)?;
    start.set(memory);
    Ok(())
}

/// Returns the least alignment that an info asks for: 1 where it asks for none.
///
/// # Errors
/// `MPI_ERR_INFO` where there is no such info.
pub(crate) fn alignment(process: &Process, info: Info) -> Result<usize> {
    if info == Info::NULL {
        return Ok(1);
    }
    process.early.infos.read(info, |entries| {
        let wanted = entries.get(MINIMUM_ALIGNMENT);
        let wanted = wanted.and_then(|wanted| wanted.parse().ok());
        // What is no alignment is ignored, as hints are.
        let wanted = wanted.filter(|wanted: &usize| wanted.is_power_of_two());
        Ok(wanted.unwrap_or(1))
    })
}

/// `MPI_Free_mem`.
pub fn free_mem(process: &Process, start: Pointer) -> Result {
    process.memory.free(start)
}

/// `MPI_Get_address`.
pub fn get_address(_: &Process, location: In, address: Ref<i64>) -> Result {
    address.set(location.address().expose_provenance() as i64);
    Ok(())
}
