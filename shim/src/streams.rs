//! What the program prints, by C's library.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr;
use std::sync::mpsc::channel;
use std::time::Duration;

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

/// Has C's standard output written at the end of each line, as to a terminal: what a rank has printed is read where another one ends the
/// job, too. A program that has it written at once already keeps that.
pub(crate) fn write_each_line() {
    /// `_IOLBF` of `stdio.h`.
    const LINES: c_int = 1;
    /// What a stream without a buffer has.
    const UNBUFFERED: usize = 1;
    unsafe extern "C" {
        static stdout: *mut c_void;
        fn setvbuf(stream: *mut c_void, buffer: *mut c_char, mode: c_int, size: usize) -> c_int;
        fn __fbufsize(stream: *mut c_void) -> usize;
    }
    // SAFETY: the functions of C's library, from any thread, with its own stream, which lives as long as the process; without a buffer of
    // the caller's it keeps its own, and what is in it.
    unsafe {
        if __fbufsize(stdout) != UNBUFFERED {
            let _ = setvbuf(stdout, ptr::null_mut(), LINES, 0);
        }
    }
}

/// Writes out what the program has given to streams of C, or as much as is written within `limit`.
pub(crate) fn flush_streams(limit: Duration) {
    unsafe extern "C" {
        fn fflush(stream: *mut c_void) -> c_int;
    }
    let (sender, flushed) = channel();
    let flush = move || {
        // SAFETY: the function of C's library, which takes null for all streams, from any thread.
        let _ = unsafe { fflush(ptr::null_mut()) };
        // The caller may have gone on.
        let _ = sender.send(());
    };
    let thread = std::thread::Builder::new().name("tagwire-flush".to_owned());
    // What is left is written at the exit, unless the process is ended before.
    if thread.spawn(flush).is_ok() {
        let _ = flushed.recv_timeout(limit);
    }
}

/// Waits until whoever reads the pipes that the program prints into has taken what is in them: so many looks, a millisecond apart.
pub(crate) fn drain_pipes(looks: u32) {
    let (out, errors) = (std::io::stdout(), std::io::stderr());
    let is_pipe = |stream: &BorrowedFd<'_>| {
        let status = fstat(stream);
        status.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Fifo)
    };
    let streams = [out.as_fd(), errors.as_fd()].into_iter();
    let pipes: Vec<_> = streams.filter(is_pipe).collect();
    let holds_some = |pipe| ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0);
    for _ in 0..looks {
        if !pipes.iter().any(holds_some) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
