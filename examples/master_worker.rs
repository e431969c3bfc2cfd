//! Rank 0 hands out work to whoever asks, with receives from any source; the tag says what a
//! message is.
//!
//! ```text
//! tagwire run -n 4 -- target/release/examples/master_worker 200
//! ```

use tagwire::{ANY_SOURCE, ANY_TAG, Context, Result, Session};

const READY: i32 = 1;
const RESULT: i32 = 2;
const WORK: i32 = 3;
const STOP: i32 = 4;

/// Counts the primes below `limit` the slow way.
fn primes_below(limit: u64) -> u64 {
    (2..limit)
        .filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
        .count() as u64
}

fn master(world: &Context<'_>, tasks: u64) -> Result<()> {
    let workers = world.session().size() - 1;
    let (mut next, mut stopped, mut sum) = (0, 0, 0);
    let mut done_by = vec![0u64; workers as usize + 1];
    while stopped < workers {
        let mut message = [0u64; 2];
        let status = world.recv(&mut message, ANY_SOURCE, ANY_TAG)?;
        if status.tag() == RESULT {
            let [limit, primes] = message;
            assert_eq!(
                primes,
                primes_below(limit),
                "rank {} miscounted",
                status.source()
            );
            sum += primes;
            done_by[status.source() as usize] += 1;
        }
        if next < tasks {
            world.send(&[next % 100], status.source(), WORK)?;
            next += 1;
        } else {
            world.send(&[0u64; 0], status.source(), STOP)?;
            stopped += 1;
        }
    }
    println!("{tasks} tasks, sum {sum}, done by {:?}", &done_by[1..]);
    Ok(())
}

fn worker(world: &Context<'_>) -> Result<()> {
    world.send(&[0u64; 0], 0, READY)?;
    loop {
        let mut limit = [0u64];
        let status = world.recv(&mut limit, 0, ANY_TAG)?;
        if status.tag() == STOP {
            return Ok(());
        }
        world.send(&[limit[0], primes_below(limit[0])], 0, RESULT)?;
    }
}

fn main() -> Result<()> {
    let tasks: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(200);
    let session = Session::open()?;
    if session.size() == 1 {
        println!("a master needs workers: tagwire run -n 3 -- ...");
    } else if session.rank() == 0 {
        master(&session.world(), tasks)?;
    } else {
        worker(&session.world())?;
    }
    session.close()
}
