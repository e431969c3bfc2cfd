//! Ranks that wait on a descriptor, beside others.

use std::io::Write;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tagwire::Session;

use crate::{Outcome, say};

const TAG: i32 = 5;
const ROUNDS: usize = 100;
/// Words of a message by rendezvous.
const LONG: usize = 100_000;

/// Two ranks send each other messages of many lengths. Each waits on its descriptor and on a pipe, which a thread of its own
/// writes to.
pub fn run() -> Outcome {
    let session = Session::open()?;
    let (own, descriptor) = (session.rank(), session.wait_fd()?);
    let (heard, said) = std::io::pipe()?;
    let speaker = std::thread::spawn(move || (&said).write_all(b"spoken"));
    let mut is_heard = false;
    for round in 0..ROUNDS {
        let words = if round % 10 == 9 { LONG } else { round };
        let out = vec![u64::from(own) + round as u64; words];
        let mut room = vec![0u64; words];
        session.try_scope(|scope| {
            let world = session.world();
            let mut receive = world.irecv(scope, &mut room[..], 1 - own, TAG)?;
            let send = world.isend(scope, &out[..], 1 - own, TAG)?;
            while let Err(open) = receive.test() {
                receive = open;
                if !descriptor.arm()? {
                    continue;
                }
                let heard = heard.as_fd();
                let mut all = [
                    PollFd::new(&descriptor, PollFlags::IN),
                    PollFd::from_borrowed_fd(heard, PollFlags::IN),
                ];
                let all = if is_heard { &mut all[..1] } else { &mut all };
                let limit = Timespec {
                    tv_sec: 20,
                    tv_nsec: 0,
                };
                let ready = poll(all, Some(&limit)).expect("both are open");
                assert!(ready > 0, "nothing has come within 20 s");
                is_heard |= all.len() > 1 && !all[1].revents().is_empty();
            }
            send.wait().map(drop)
        })?;
        let expected = u64::from(1 - own) + round as u64;
        assert!(room.iter().all(|word| *word == expected), "round {round}");
    }
    speaker.join().expect("it writes")?;
    drop(descriptor);
    say(own, format!("waited {ROUNDS} times"));
    Ok(session.close()?)
}
