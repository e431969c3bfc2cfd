//! System calls until all is done: they are interrupted, and read or write less than they were asked for.

use std::path::Path;

use rustix::io::Errno;

use crate::{Error, Handle, Outcome};

/// Bytes of one system call at most: Linux takes no more than a page less than 2 GiB.
const LONGEST: usize = 1 << 30;

/// An open file with its name, for errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calls<'f> {
    pub(crate) handle: &'f dyn Handle,
    pub(crate) path: &'f Path,
}

impl Calls<'_> {
    /// Reads from an offset on until the memory is full or the file ends.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) -> Outcome {
        let mut done = 0;
        while done < into.len() {
            let end = into.len().min(done + LONGEST);
            match self.handle.read(offset + done as u64, &mut into[done..end]) {
                Ok(0) => break,
                Ok(bytes) => done += bytes.min(end - done),
                Err(Errno::INTR) => {}
                Err(errno) => return self.failed("pread", done, errno),
            }
        }
        Outcome::good(done as u64)
    }

    /// Writes all of the data from an offset on.
    pub(crate) fn write(&self, offset: u64, data: &[u8]) -> Outcome {
        let mut done = 0;
        while done < data.len() {
            let end = data.len().min(done + LONGEST);
            match self.handle.write(offset + done as u64, &data[done..end]) {
                // A system that writes nothing and says no error never will.
                Ok(0) => return self.failed("pwrite", done, Errno::IO),
                Ok(bytes) => done += bytes.min(end - done),
                Err(Errno::INTR) => {}
                Err(errno) => return self.failed("pwrite", done, errno),
            }
        }
        Outcome::good(done as u64)
    }

    /// Makes a call until nothing interrupts it.
    pub(crate) fn repeat<T>(
        &self,
        call: &'static str,
        body: impl Fn(&dyn Handle) -> Result<T, Errno>,
    ) -> Result<T, Error> {
        loop {
            match body(self.handle) {
                Err(Errno::INTR) => {}
                other => return other.map_err(|errno| self.error(call, errno)),
            }
        }
    }

    pub(crate) fn error(&self, call: &'static str, errno: Errno) -> Error {
        Error::system(call, self.path, errno)
    }

    fn failed(&self, call: &'static str, done: usize, errno: Errno) -> Outcome {
        Outcome::failed(done as u64, self.error(call, errno))
    }
}
