//! Texts: of a known length and padded with blanks in Fortran, ended by a null in C (MPI-5.0, section 19.1.6).

use std::ffi::c_char;

/// A text of Fortran for C.
#[derive(Debug)]
pub(crate) struct In(Vec<u8>);

impl In {
    /// Takes a text without the blanks behind it.
    ///
    /// # Safety
    ///
    /// So many bytes may be read.
    pub(crate) unsafe fn new(from: *const u8, length: usize) -> Self {
        if length == 0 {
            return Self::of(&[]);
        }
        // SAFETY: as for this function.
        let text = unsafe { std::slice::from_raw_parts(from, length) };
        let end = text.iter().rposition(|byte| *byte != b' ');
        Self::of(&text[..end.map_or(0, |last| last + 1)])
    }

    /// Takes a text without blanks on either side, as keys and values of info have them.
    ///
    /// # Safety
    ///
    /// So many bytes may be read.
    pub(crate) unsafe fn trimmed(from: *const u8, length: usize) -> Self {
        // SAFETY: as for this function.
        let mut text = unsafe { Self::new(from, length) };
        let blanks = text.0.iter().take_while(|byte| **byte == b' ').count();
        text.0.drain(..blanks);
        text
    }

    /// Returns whether there is nothing but blanks.
    pub(crate) fn is_blank(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns the text for C.
    pub(crate) fn pointer(&self) -> *const c_char {
        self.0.as_ptr().cast()
    }

    fn of(text: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(text.len() + 1);
        bytes.extend_from_slice(text);
        bytes.push(0);
        Self(bytes)
    }
}

/// Room for a text of C.
#[derive(Debug)]
pub(crate) struct Out(Vec<u8>);

/// The longest text of a known length: that of `MPI_Get_library_version`.
const LONGEST: usize = 8192;

impl Out {
    /// Makes room for every text whose length the standard limits.
    pub(crate) fn new() -> Self {
        Self::of(LONGEST)
    }

    /// Makes room for a text of so many bytes, and for its end.
    pub(crate) fn of(length: usize) -> Self {
        Self(vec![0; length + 1])
    }

    /// Returns the room for C.
    pub(crate) fn pointer(&mut self) -> *mut c_char {
        self.0.as_mut_ptr().cast()
    }

    /// Writes the text for Fortran: cut, or padded with blanks.
    ///
    /// # Safety
    ///
    /// So many bytes may be written.
    pub(crate) unsafe fn write(&self, to: *mut u8, length: usize) {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        if length == 0 {
            return;
        }
        // SAFETY: as for this function.
        let to = unsafe { std::slice::from_raw_parts_mut(to, length) };
        let shown = text.len().min(length);
        to[..shown].copy_from_slice(&text[..shown]);
        to[shown..].fill(b' ');
    }
}
