//! Split collective accesses (MPI-5.0, section 14.4.5): the call that begins one makes it, and the one that ends it tells how it
//! ended.

use super::on_file;
use crate::abi;
use crate::error::Result;
use crate::object::file::memory::Memory;
use crate::object::file::{Call, Ended, From};
use crate::process::Process;
use crate::raw::{Elements, In, Out, StatusRef};

fn begin(process: &Process, handle: abi::File, name: &'static str, call: Call) -> Result {
    on_file(process, handle, |file| {
        file.begin_split(name, || file.access(&process.types, call))
    })
}

fn end(process: &Process, handle: abi::File, name: &'static str, status: StatusRef) -> Result {
    on_file(process, handle, |file| {
        let Ended { status: now, error } = file.end_split(name)?;
        status.set(now);
        error.map_or(Ok(()), Err)
    })
}

/// Makes calls that begin and end an access: `begin[offset](data: elements), end(buffer), "name": memory, from`.
macro_rules! splits {
    ($($begin:ident$([$offset:ident: $Offset:ty])?(data: $Data:ty), $end:ident($Buffer:ty), $name:literal:
        $Memory:ident, $from:expr;)*) => {$(
        #[doc = concat!("`MPI_File_", $name, "_begin`.")]
        pub fn $begin(
            process: &Process,
            file: abi::File,
            $($offset: $Offset,)?
            data: $Data,
        ) -> Result {
            let (memory, from) = (Memory::$Memory(data), $from);
            begin(process, file, $name, Call { memory, from, is_collective: true })
        }

        #[doc = concat!("`MPI_File_", $name, "_end`.")]
        pub fn $end(
            process: &Process,
            file: abi::File,
            _buffer: $Buffer,
            status: StatusRef,
        ) -> Result {
            end(process, file, $name, status)
        }
    )*};
}

splits! {
    file_read_at_all_begin[offset: i64](data: Elements<Out>), file_read_at_all_end(Out), "read_at_all":
        Read, From::At(offset);
    file_write_at_all_begin[offset: i64](data: Elements<In>), file_write_at_all_end(In), "write_at_all":
        Write, From::At(offset);
    file_read_all_begin(data: Elements<Out>), file_read_all_end(Out), "read_all": Read, From::Own;
    file_write_all_begin(data: Elements<In>), file_write_all_end(In), "write_all": Write, From::Own;
    file_read_ordered_begin(data: Elements<Out>), file_read_ordered_end(Out), "read_ordered":
        Read, From::Ordered;
    file_write_ordered_begin(data: Elements<In>), file_write_ordered_end(In), "write_ordered":
        Write, From::Ordered;
}
