//! What a rank meets by no fault of its peers: no descriptor left, peers that come late, a child that it forks.

use std::fs::File;
use std::time::{Duration, Instant};

use tagwire::Session;

use super::{Outcome, say};

/// Long enough for whatever is to happen, however busy the machine is.
const LONG: Duration = Duration::from_secs(60);

/// Rank 1 has heard of rank 0 and has no descriptor left when it first sends to it, and to rank 2, which it has not heard
/// of. Then it has some again. Rank 3 is killed by the test, having been in contact with nobody.
pub fn descriptors() -> Outcome {
    let session = Session::open()?;
    let world = session.world();
    let mut word = [0u8];
    match session.rank() {
        0 => {
            world.send(&[1u8], 1, 1)?;
            world.recv(&mut word, 1, 2)?;
            say(0, "heard of rank 1");
        }
        1 => {
            world.recv(&mut word, 0, 1)?;
            let mut files = Vec::new();
            while let Ok(file) = File::open("/dev/null") {
                files.push(file);
            }
            for to in [0, 2] {
                let refused = world.send(&[2u8], to, 2).unwrap_err();
                say(1, format!("could not send to rank {to}: {refused}"));
                assert_eq!(session.failed()?, [0u32; 0]);
            }
            drop(files);
            for to in [0, 2] {
                world.send(&[2u8], to, 2)?;
            }
            say(1, "ready");
            let lost = world.recv(&mut word, 3, 5).unwrap_err();
            say(1, format!("heard: {lost}"));
        }
        2 => {
            world.recv(&mut word, 1, 2)?;
            say(2, "heard of rank 1");
        }
        _ => super::sleep_until_killed(),
    }
    Ok(session.close()?)
}

/// Rank 0 opens later than the others.
pub fn late(arguments: &[String]) -> Outcome {
    let millis = arguments.first().map_or(Ok(0), |text| text.parse())?;
    if std::env::var("TAGWIRE_RANK").as_deref() == Ok("0") {
        std::thread::sleep(Duration::from_millis(millis));
    }
    match Session::open() {
        Ok(session) => {
            say(session.rank(), "is open");
            Ok(session.close()?)
        }
        Err(error) => Err(error.to_string().into()),
    }
}

/// Rank 1 forks a child, which uses the session and drops it. Its peers notice nothing.
#[allow(unsafe_code, reason = "fork is a system call that nothing wraps")]
pub fn fork() -> Outcome {
    let session = Session::open()?;
    let world = session.world();
    let mut word = [0u8];
    if session.rank() == 1 {
        world.send(&[1u8], 0, 1)?;
        // SAFETY: this process has one thread.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = [
                world.send(&[9u8], 0, 9).unwrap_err().to_string(),
                session.progress().unwrap_err().to_string(),
                session.close().unwrap_err().to_string(),
            ];
            let owner = rustix::process::getppid().unwrap();
            let named = |error: &String| error.contains(&format!("process {owner}"));
            let status = i32::from(!refused.iter().all(named));
            // SAFETY: ends the child, past everything that it inherited.
            unsafe { libc::_exit(status) };
        }
        let mut status = 0;
        // SAFETY: a child of this process, and room for its status.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        say(1, format!("the child ended with {status}"));
        world.send(&[2u8; 100_000], 0, 2)?;
        world.recv(&mut word, 0, 3)?;
    } else {
        world.recv(&mut word, 1, 1)?;
        let begin = Instant::now();
        let mut room = vec![0u8; 100_000];
        world.recv(&mut room, 1, 2)?;
        assert!(begin.elapsed() < LONG);
        world.send(&[3u8], 1, 3)?;
    }
    say(session.rank(), "went on");
    Ok(session.close()?)
}
