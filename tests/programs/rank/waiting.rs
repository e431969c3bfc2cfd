//! Ranks that wait, and are asked for what.

use std::path::Path;
use std::time::Duration;

use tagwire::{ANY_SOURCE, Session};

use crate::{Outcome, say};

const TAG: i32 = 5;
const NEVER: i32 = 6;

/// Every rank waits for ever, in a receive with a tag of its own.
pub fn hang() -> Outcome {
    let session = Session::open()?;
    let rank = session.rank();
    say(rank, "ready");
    session
        .world()
        .recv(&mut [0u64], ANY_SOURCE, NEVER + rank as i32)?;
    Err("the receive ended".into())
}

/// Rank 1 waits in a receive. Rank 0 sends once the file named by the argument is there.
pub fn for_file(arguments: &[String]) -> Outcome {
    let path = Path::new(arguments.first().ok_or("which file?")?);
    let session = Session::open()?;
    let world = session.world();
    if session.rank() == 0 {
        world.isend_owned(vec![9u16; 9], 1, NEVER)?.wait()?;
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        world.send(&[42u64], 1, TAG)?;
    } else {
        world.wait_probe(0, NEVER, None)?;
        say(1, "ready");
        let mut message = [0u64; 4];
        let status = world.recv(&mut message, 0, TAG)?;
        say(1, format!("received {} of {:?}", status.bytes(), message));
        world.recv(&mut [0u16; 9], 0, NEVER)?;
    }
    Ok(session.close()?)
}
