//! Runs a program with fewer rights: `test_confine [user] [no-attach] [no-membarrier] -- PROGRAM
//! [ARGUMENTS]`.
//!
//! - `user`: as an ordinary user, where this one is an administrator.
//! - `no-attach`: system calls that reach into the memory of another process are not permitted, as
//!   in many containers.
//! - `no-membarrier`: neither is the barrier for all processes.

#![allow(unsafe_code, reason = "system calls that no crate wraps")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use libc::{SYS_membarrier, SYS_process_vm_readv, SYS_process_vm_writev, c_long, sock_filter};

/// The user and group that have no rights, on every Linux.
const NOBODY: u32 = 65534;

fn main() -> ExitCode {
    let error = run().expect_err("a program that runs does not return");
    eprintln!("test_confine: {error}");
    ExitCode::FAILURE
}

/// Returns only errors.
fn run() -> io::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let mut denied = Vec::new();
    for word in arguments.by_ref() {
        match word.to_str() {
            Some("user") => become_nobody()?,
            Some("no-attach") => denied.extend([SYS_process_vm_readv, SYS_process_vm_writev]),
            Some("no-membarrier") => denied.push(SYS_membarrier),
            Some("--") => break,
            _ => return Err(io::Error::other(format!("what is {word:?}?"))),
        }
    }
    if !denied.is_empty() {
        deny(&denied)?;
    }
    let program = arguments
        .next()
        .ok_or_else(|| io::Error::other("which program?"))?;
    Err(Command::new(program).args(arguments).exec())
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn become_nobody() -> io::Result<()> {
    // SAFETY: no pointer is given but a null one, with the length 0.
    unsafe {
        if libc::geteuid() != 0 {
            return Ok(());
        }
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
        check(libc::setresuid(NOBODY, NOBODY, NOBODY))
    }
}

/// Has the kernel fail these system calls with EPERM, from now on and in all children.
fn deny(calls: &[c_long]) -> io::Result<()> {
    const NUMBER_OF_CALL: u32 = 0;
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const JUMP_IF_EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, jt, k| sock_filter {
        code: code as u16,
        jt,
        jf: 0,
        k,
    };
    let mut program = vec![step(LOAD, 0, NUMBER_OF_CALL)];
    for (place, call) in calls.iter().enumerate() {
        // Over the calls that follow and the permission.
        let over = (calls.len() - place) as u8;
        program.push(step(JUMP_IF_EQUAL, over, *call as u32));
    }
    program.push(step(RETURN, 0, libc::SECCOMP_RET_ALLOW));
    program.push(step(
        RETURN,
        0,
        libc::SECCOMP_RET_ERRNO | libc::EPERM as u32,
    ));
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the first call takes numbers only; the second reads the filter, which lives until
    // after it.
    unsafe {
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        check(libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const filter,
        ))
    }
}
