//! Tasks of an asynchronous runtime, here tokio: rank 0 asks all others at once, and does something else while their answers
//! are under way.
//!
//! ```text
//! tagwire run -n 3 -- target/release/examples/tasks 100
//! ```

use std::error::Error;
use std::time::Duration;

use tagwire::{OwnedRecv, Session};
use tokio::time::timeout;

const QUESTION: i32 = 1;
const ANSWER: i32 = 2;

/// How long rank 0 waits for an answer before it does something else.
const PATIENCE: Duration = Duration::from_millis(1);

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(100);
    let session = Session::open()?;
    // One thread: the session is that of the thread that opened it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(session.drive(async {
        match session.rank() {
            0 => ask(&session, rounds).await,
            _ => answer(&session, rounds).await,
        }
    }))??;
    Ok(session.close()?)
}

async fn ask(session: &Session, rounds: u64) -> tagwire::Result<()> {
    let (world, others) = (session.world(), 1..session.size());
    let (mut sum, mut idle) = (0, 0_u64);
    for round in 0..rounds {
        let mut answers = Vec::new();
        for rank in others.clone() {
            answers.push(world.irecv_owned(vec![0u64], rank, ANSWER)?);
            world.isend_owned(vec![round], rank, QUESTION)?.await?;
        }
        for answer in answers {
            sum += patiently(answer, &mut idle).await?;
        }
    }
    println!("{} ranks, {rounds} rounds, sum {sum}", session.size());
    eprintln!("did something else {idle} times");
    Ok(())
}

/// Returns what was received. The receive goes on where the patience ends.
async fn patiently(mut receive: OwnedRecv<'_, u64>, idle: &mut u64) -> tagwire::Result<u64> {
    loop {
        match timeout(PATIENCE, &mut receive).await {
            Ok(ended) => return Ok(ended?.1[0]),
            Err(_) => *idle += 1,
        }
    }
}

async fn answer(session: &Session, rounds: u64) -> tagwire::Result<()> {
    let world = session.world();
    let mut buffer = vec![0u64];
    for _ in 0..rounds {
        (_, buffer) = world.irecv_owned(buffer, 0, QUESTION)?.await?;
        buffer[0] = buffer[0].pow(2) * u64::from(session.rank());
        buffer = world.isend_owned(buffer, 0, ANSWER)?.await?;
    }
    Ok(())
}
