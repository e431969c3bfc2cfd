//! Reading and writing (MPI-5.0, sections 14.4.2 to 14.4.4).

use super::on_file;
use crate::abi::{self, Comm, Request};
use crate::error::{On, Result};
use crate::object::file::memory::Memory;
use crate::object::file::{Call, Ended, From};
use crate::object::pending::{End, Pending};
use crate::process::Process;
use crate::raw::{Elements, In, Out, Ref, StatusRef};

/// Makes an access, and returns when it is over.
fn run(process: &Process, handle: abi::File, call: Call, status: StatusRef) -> Result {
    on_file(process, handle, |file| {
        let Ended { status: now, error } = file.access(&process.types, call)?;
        status.set(now);
        error.map_or(Ok(()), Err)
    })
}

/// Makes an access, whose request has ended. Errors of the access are those of the request.
fn start(process: &Process, handle: abi::File, call: Call, request: Ref<Request>) -> Result {
    request.set(Request::NULL);
    on_file(process, handle, |file| {
        if call.is_collective {
            file.check_no_split()?;
        }
        // Others are not waited for in a call that starts something.
        let call = Call {
            is_collective: false,
            ..call
        };
        let Ended { status, error } = file.access(&process.types, call)?;
        let error = error.map(|error| error.on(On::File(handle)));
        let pending = Pending::Ended(Box::new(End { status, error }));
        request.set(process.requests.enter(pending, Comm::SELF)?);
        Ok(())
    })
}

/// Makes calls with a blocking and a nonblocking form: `name, nonblocking name[offset](data: elements), "Name": memory, from, collective`.
macro_rules! accesses {
    ($($name:ident, $iname:ident$([$offset:ident: $Offset:ty])?(data: $Data:ty), $Name:literal:
        $Memory:ident, $from:expr, $is_collective:literal;)*) => {$(
        #[doc = concat!("`MPI_File_", $Name, "`.")]
        pub fn $name(
            process: &Process,
            file: abi::File,
            $($offset: $Offset,)?
            data: $Data,
            status: StatusRef,
        ) -> Result {
            let (memory, from) = (Memory::$Memory(data), $from);
            let call = Call { memory, from, is_collective: $is_collective };
            run(process, file, call, status)
        }

        #[doc = concat!("The nonblocking form of `MPI_File_", $Name, "`.")]
        pub fn $iname(
            process: &Process,
            file: abi::File,
            $($offset: $Offset,)?
            data: $Data,
            request: Ref<Request>,
        ) -> Result {
            let (memory, from) = (Memory::$Memory(data), $from);
            let call = Call { memory, from, is_collective: $is_collective };
            start(process, file, call, request)
        }
    )*};
}

accesses! {
    file_read_at, file_iread_at[offset: i64](data: Elements<Out>), "read_at":
        Read, From::At(offset), false;
    file_read_at_all, file_iread_at_all[offset: i64](data: Elements<Out>), "read_at_all":
        Read, From::At(offset), true;
    file_write_at, file_iwrite_at[offset: i64](data: Elements<In>), "write_at":
        Write, From::At(offset), false;
    file_write_at_all, file_iwrite_at_all[offset: i64](data: Elements<In>), "write_at_all":
        Write, From::At(offset), true;
    file_read, file_iread(data: Elements<Out>), "read": Read, From::Own, false;
    file_read_all, file_iread_all(data: Elements<Out>), "read_all": Read, From::Own, true;
    file_write, file_iwrite(data: Elements<In>), "write": Write, From::Own, false;
    file_write_all, file_iwrite_all(data: Elements<In>), "write_all": Write, From::Own, true;
    file_read_shared, file_iread_shared(data: Elements<Out>), "read_shared":
        Read, From::Shared, false;
    file_write_shared, file_iwrite_shared(data: Elements<In>), "write_shared":
        Write, From::Shared, false;
}

/// `MPI_File_read_ordered`.
pub fn file_read_ordered(
    process: &Process,
    file: abi::File,
    data: Elements<Out>,
    status: StatusRef,
) -> Result {
    run(process, file, ordered(Memory::Read(data)), status)
}

/// `MPI_File_write_ordered`.
pub fn file_write_ordered(
    process: &Process,
    file: abi::File,
    data: Elements<In>,
    status: StatusRef,
) -> Result {
    run(process, file, ordered(Memory::Write(data)), status)
}

/// Returns an access of all processes in their order.
const fn ordered(memory: Memory) -> Call {
    Call {
        memory,
        from: From::Ordered,
        is_collective: true,
    }
}
