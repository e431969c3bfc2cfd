//! What a scope does that cannot wait for its operations.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use tagwire_base::{ContextId, SourceSelector, TagSelector};

use super::*;
use crate::Session;

const SIGABRT: i32 = 6;

/// A scope that another thread than the session's has to end. No buffer is lent: the test lives.
#[test]
#[ignore = "ends the process: `a_scope_that_cannot_wait_ends_the_process` runs it in one of its own"]
fn ended_by_the_wrong_thread() {
    let session = Session::open().unwrap();
    let buffer = RecvBuffer::EMPTY;
    let (from, tag) = (SourceSelector::ANY, TagSelector::ANY);
    let posted = session
        .shared
        .messenger
        .irecv(buffer, from, tag, ContextId::WORLD);
    let scope = Scope {
        shared: &session.shared,
        open: Mutex::new(Open {
            places: vec![Operation::Message {
                numbers: Numbers::OF_JOB,
                id: posted.unwrap(),
                room: 0,
            }],
            free: Vec::new(),
        }),
        scope: PhantomData,
        env: PhantomData,
    };
    std::thread::scope(|threads| {
        let _ = threads.spawn(|| scope.drain(Body::Returned)).join();
    });
}

/// Also where it cannot say why: nothing unwinds past the buffers.
#[test]
fn a_scope_that_cannot_wait_ends_the_process() {
    let nowhere = || std::fs::File::options().write(true).open("/dev/full");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["scope::tests::ended_by_the_wrong_thread"])
        .args(["--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::null())
        .stderr(nowhere().unwrap())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(SIGABRT), "{status}");
}
