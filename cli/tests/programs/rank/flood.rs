//! Many unexpected messages towards a rank that wants another one first.

use std::time::Instant;

use tagwire::Session;

use crate::{Outcome, say};

const FLOOD: i32 = 1;
const LAST: i32 = 2;
/// Elements of a message: 4 KiB.
const LEN: usize = 512;

/// Rank 1 sends the given number of messages to rank 0, and then the one that rank 0 waits for.
pub fn run(arguments: &[String]) -> Outcome {
    let count: usize = arguments.first().ok_or("how many messages?")?.parse()?;
    let session = Session::open()?;
    if session.rank() == 0 {
        receive(&session, count)?;
    } else {
        send(&session, count)?;
    }
    Ok(session.close()?)
}

/// Every message has its number in front: all are windows of one long row of numbers.
fn send(session: &Session, count: usize) -> Outcome {
    let world = session.world();
    let numbers: Vec<u64> = (0..(count + LEN) as u64).collect();
    let last = [u64::MAX];
    session.scope(|scope| {
        for number in 0..count {
            world.isend(scope, &numbers[number..number + LEN], 0, FLOOD)?;
        }
        world.isend(scope, &last, 0, LAST)?;
        Outcome::Ok(())
    })
}

fn receive(session: &Session, count: usize) -> Outcome {
    let world = session.world();
    let start = Instant::now();
    // One message ahead, so that what first contact costs is there before.
    let before = figure_kib("/proc/self", "VmRSS:")?;
    let mut last = [0u64];
    world.recv(&mut last, 1, LAST)?;
    assert_eq!(last, [u64::MAX]);
    let (flooded, resident) = (start.elapsed(), figure_kib("/proc/self", "VmRSS:")?);
    let mut message = [0u64; LEN];
    for number in 0..count as u64 {
        let status = world.recv(&mut message, 1, FLOOD)?;
        assert_eq!(status.bytes(), size_of_val(&message));
        assert!(
            message.iter().copied().eq(number..number + LEN as u64),
            "message {number} is lost, late or wrong: it begins with {}",
            message[0]
        );
    }
    let peak = figure_kib("/proc/self", "VmHWM:")?;
    say(
        0,
        format!(
            "grew {} KiB until the last tag, {} KiB at most; {flooded:?} until the last tag, {:?} in all",
            resident.saturating_sub(before),
            peak.saturating_sub(before),
            start.elapsed()
        ),
    );
    Ok(())
}

/// A figure of a process's memory, as the kernel counts it in its folder of `/proc`.
pub fn figure_kib(process: &str, name: &str) -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string(format!("{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|rest| rest.split_whitespace().next());
    Ok(figure.ok_or("no such figure")?.parse()?)
}

/// Scopes with few and with many requests, to this rank itself: what each request costs, in
/// microseconds, in the best of several scopes.
pub fn requests() -> Outcome {
    let session = Session::open()?;
    for count in [2_000, 100_000] {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            many_requests(&session, count)?;
            best = best.min(start.elapsed().as_secs_f64() * 1e6 / count as f64);
        }
        say(
            session.rank(),
            format!("needed for one of {count}: {best:.3}"),
        );
    }
    Ok(session.close()?)
}

fn many_requests(session: &Session, count: u64) -> Outcome {
    let (world, me) = (session.world(), session.rank());
    let sent: Vec<u64> = (0..count).collect();
    let mut received = vec![0u64; sent.len()];
    session.scope(|scope| {
        let mut requests = Vec::new();
        for place in received.chunks_mut(1) {
            requests.push(world.irecv(scope, place, me, FLOOD)?);
        }
        for number in sent.chunks(1) {
            world.isend(scope, number, me, FLOOD)?;
        }
        scope.wait_all(requests)
    })?;
    assert!(received == sent, "messages are lost or out of order");
    Ok(())
}
