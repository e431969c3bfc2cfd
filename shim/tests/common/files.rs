//! Files as a C program opens and uses them.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use tagwire_shim::abi::{self, Comm, Datatype, Info};
use tagwire_shim::call::files::{management, pointers, views};
use tagwire_shim::call::infos;
use tagwire_shim::functions::FileErrorFunction;
use tagwire_shim::{Process, Result};

use super::{WORLD, library, result, said, text, text_out};

pub mod amode {
    pub const APPEND: i32 = 1;
    pub const CREATE: i32 = 2;
    pub const DELETE_ON_CLOSE: i32 = 4;
    pub const EXCL: i32 = 8;
    pub const RDONLY: i32 = 16;
    pub const RDWR: i32 = 32;
    pub const SEQUENTIAL: i32 = 64;
    pub const WRONLY: i32 = 256;
}

pub mod whence {
    pub const CUR: i32 = 401;
    pub const END: i32 = 402;
    pub const SET: i32 = 403;
}

/// `MPI_DISPLACEMENT_CURRENT`.
pub const CURRENT: i64 = -1;

/// An open file.
pub struct File {
    process: Arc<Process>,
    pub handle: abi::File,
}

pub fn try_open(
    process: &Process,
    comm: Comm,
    path: &Path,
    mode: i32,
    file: &mut abi::File,
) -> Result {
    let name = CString::new(path.as_os_str().as_bytes()).unwrap();
    management::file_open(process, comm, text(&name), mode, Info::NULL, result(file))
}

/// Opens a file with all ranks.
pub fn open(process: &Arc<Process>, path: &Path, mode: i32) -> File {
    File::open(process, WORLD, path, mode)
}

impl File {
    pub fn open(process: &Arc<Process>, comm: Comm, path: &Path, mode: i32) -> Self {
        let mut handle = abi::File::NULL;
        try_open(process, comm, path, mode, &mut handle).unwrap();
        let process = Arc::clone(process);
        Self { process, handle }
    }

    pub fn close(mut self) -> Result {
        let closed = management::file_close(&self.process, result(&mut self.handle));
        assert_eq!(self.handle, abi::File::NULL);
        closed
    }

    /// Sets the view.
    pub fn view(
        &self,
        displacement: i64,
        etype: Datatype,
        filetype: Datatype,
        datarep: &str,
    ) -> Result {
        let (process, name) = (&self.process, CString::new(datarep).unwrap());
        let (file, name) = (self.handle, text(&name));
        views::file_set_view(
            process,
            file,
            displacement,
            etype,
            filetype,
            name,
            Info::NULL,
        )
    }

    /// Returns the displacement of the view. Its datatypes are predefined ones.
    pub fn displacement(&self) -> i64 {
        let (mut displacement, mut types) = (-1, [Datatype::NULL; 2]);
        let ([etype, filetype], mut name) = (&mut types, [0; 128]);
        let (etype, filetype, name) = (result(etype), result(filetype), text_out(&mut name));
        let into = result(&mut displacement);
        views::file_get_view(&self.process, self.handle, into, etype, filetype, name).unwrap();
        displacement
    }

    pub fn seek(&self, offset: i64, whence: i32) -> Result {
        pointers::file_seek(&self.process, self.handle, offset, whence)
    }

    pub fn position(&self) -> i64 {
        let mut position = -1;
        pointers::file_get_position(&self.process, self.handle, result(&mut position)).unwrap();
        position
    }

    pub fn shared_position(&self) -> i64 {
        let mut position = -1;
        let into = result(&mut position);
        pointers::file_get_position_shared(&self.process, self.handle, into).unwrap();
        position
    }

    /// Gives it a hint.
    pub fn hint(&self, key: &str, value: &str) {
        let (library, mut info) = (library(&self.process), Info::NULL);
        let (key, value) = (CString::new(key).unwrap(), CString::new(value).unwrap());
        infos::info_create(&library, result(&mut info)).unwrap();
        infos::info_set(&library, info, text(&key), text(&value)).unwrap();
        management::file_set_info(&self.process, self.handle, info).unwrap();
        infos::info_free(&library, result(&mut info)).unwrap();
    }

    /// Returns the value of a hint.
    pub fn hint_of(&self, key: &str) -> Option<String> {
        let (library, mut info, mut flag) = (library(&self.process), Info::NULL, 0);
        management::file_get_info(&self.process, self.handle, result(&mut info)).unwrap();
        let (key, mut value) = (CString::new(key).unwrap(), [0; 256]);
        let into = text_out(&mut value);
        infos::info_get(&library, info, text(&key), 255, into, result(&mut flag)).unwrap();
        infos::info_free(&library, result(&mut info)).unwrap();
        (flag != 0).then(|| said(&value).to_owned())
    }
}

/// A function of an error handler.
pub fn error_function(
    function: extern "C-unwind" fn(*mut abi::File, *mut i32),
) -> FileErrorFunction {
    // SAFETY: in the calling conventions of the platforms that the tests run on, a variadic call with no further arguments is one
    // of a function without them.
    unsafe {
        std::mem::transmute::<extern "C-unwind" fn(*mut abi::File, *mut i32), FileErrorFunction>(
            function,
        )
    }
}
