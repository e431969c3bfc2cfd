//! What is left when a rank dies. Rank 1 is the one that the test kills.

use std::time::Duration;

use tagwire::{ANY_SOURCE, Context, Error, Failure, Request, Scope, Session};

use crate::bystander::{self, ASK, ECHO, STOP};
use crate::{Outcome, meet, say, sleep_until_killed};

const VICTIM: u32 = 1;
const TAG: i32 = 7;
/// After this, an operation counts as one that does not end.
const LIMIT: Duration = Duration::from_secs(20);

/// Checks that an operation failed because the victim did.
fn check_failed<T>(what: &str, ended: Result<T, Error>) -> Outcome {
    match ended {
        Ok(_) => Err(format!("{what}: ended well").into()),
        Err(error) => match error.failure() {
            Some(Failure::PeerFailed(rank)) if rank.as_u32() == VICTIM => Ok(()),
            _ => Err(format!("{what}: {error}").into()),
        },
    }
}

/// As [`check_failed`], of an operation that may have been refused at once.
fn check_request(what: &str, request: Result<Request<'_, '_>, Error>) -> Outcome {
    match request.map(|request| request.wait_for(LIMIT)) {
        Err(error) => check_failed::<()>(what, Err(error)),
        Ok(Ok(ended)) => check_failed(what, ended),
        Ok(Err(request)) => {
            // Taken back, or leaving the scope would wait for ever.
            let _ = request.cancel();
            eprintln!("test_rank: {what} does not end");
            std::process::exit(1);
        }
    }
}

/// Operations that are posted when everybody knows of the death.
fn check_later(session: &Session) -> Outcome {
    let world = session.world();
    let (small, large) = ([1u64], vec![1u64; 128 << 10]);
    let (mut from_it, mut from_any) = ([0u64], [0u64]);
    session.scope(|scope| {
        check_request("later send", world.isend(scope, &small, VICTIM, TAG))?;
        check_request("later rendezvous", world.isend(scope, &large, VICTIM, TAG))?;
        check_request(
            "later receive",
            world.irecv(scope, &mut from_it, VICTIM, TAG),
        )?;
        check_request(
            "later receive from any source",
            world.irecv(scope, &mut from_any, ANY_SOURCE, TAG),
        )
    })?;
    check_failed("later blocking send", world.send(&small, VICTIM, TAG))?;
    check_failed(
        "later blocking receive",
        world.recv(&mut [0u64], VICTIM, TAG),
    )?;
    check_failed("later probe", world.wait_probe(VICTIM, TAG, Some(LIMIT)))
}

/// Takes note of the death; then receives from any source work again, with rank `living`.
fn check_acknowledged(session: &Session, living: u32) -> Outcome {
    let world = session.world();
    assert_eq!(session.failed()?, [VICTIM]);
    assert_eq!(session.acknowledge_failures()?, [VICTIM]);
    world.send(&[0u64], living, ASK)?;
    let status = world.recv(&mut [0u64], ANY_SOURCE, ECHO)?;
    assert_eq!(status.source(), living);
    check_failed(
        "a receive from it, after the acknowledgement",
        world.recv(&mut [0u64], VICTIM, TAG),
    )
}

/// Rank 0 has operations of every kind under way with a rank in contact that computes.
pub fn posted() -> Outcome {
    let session = Session::open()?;
    meet(&session)?;
    match session.rank() {
        0 => observe(&session)?,
        VICTIM => sleep_until_killed(),
        rank => {
            // It has met the rank that dies, and expects nothing more of it.
            say(rank, "ready");
            bystander::go_on(&session, 5 - rank)?;
        }
    }
    Ok(session.close()?)
}

fn observe(session: &Session) -> Outcome {
    let world = session.world();
    let large = vec![1u64; 128 << 10];
    let (mut from_it, mut from_any) = ([0u64], [0u64]);
    session.scope(|scope| {
        let requests = [
            ("receive", world.irecv(scope, &mut from_it, VICTIM, TAG)),
            (
                "receive from any source",
                world.irecv(scope, &mut from_any, ANY_SOURCE, TAG),
            ),
            ("rendezvous", world.isend(scope, &large, VICTIM, TAG)),
        ];
        say(0, "ready");
        for (what, request) in requests {
            check_request(what, request)?;
        }
        Outcome::Ok(())
    })?;
    say(0, "saw it fail");
    check_later(session)?;
    say(0, "saw later operations fail");
    check_acknowledged(session, 2)?;
    say(0, "received again");
    Ok(session.world().send(&[0u64], 2, STOP)?)
}

/// Nobody was ever in contact with the rank that dies.
pub fn silent() -> Outcome {
    let session = Session::open()?;
    match session.rank() {
        0 => observe_stranger(&session)?,
        VICTIM => {
            say(VICTIM, "ready");
            sleep_until_killed()
        }
        _ => answer_once(&session)?,
    }
    Ok(session.close()?)
}

/// The rank that dies never even opened its session, for which the others wait.
pub fn unborn() -> Outcome {
    if std::env::var("TAGWIRE_RANK")? == VICTIM.to_string() {
        say(VICTIM, "ready");
        sleep_until_killed()
    }
    match Session::open() {
        Ok(_) => Err("opened without it".into()),
        Err(error) => {
            say(
                std::env::var("TAGWIRE_RANK")?,
                format!("could not open: {error}"),
            );
            Ok(())
        }
    }
}

fn answer_once(session: &Session) -> Outcome {
    let world = session.world();
    world.recv(&mut [0u64], 0, ASK)?;
    Ok(world.send(&[0u64], 0, ECHO)?)
}

fn observe_stranger(session: &Session) -> Outcome {
    let world = session.world();
    let (mut from_it, mut from_any) = ([0u64], [0u64]);
    session.scope(|scope| {
        let from_it = world.irecv(scope, &mut from_it, VICTIM, TAG);
        let from_any = world.irecv(scope, &mut from_any, ANY_SOURCE, TAG);
        say(0, "ready");
        check_request("receive", from_it)?;
        check_request("receive from any source", from_any)
    })?;
    say(0, "saw it fail");
    check_later(session)?;
    check_acknowledged(session, 2)
}

/// Rank 0 sends 64 MiB to the victim, which sends 64 MiB to rank 2, again and again.
pub fn transfer() -> Outcome {
    const LEN: usize = 8 << 20;
    let session = Session::open()?;
    meet(&session)?;
    let world = session.world();
    match session.rank() {
        0 => repeat(&session, |scope, round, buffer| {
            if round == 3 {
                say(0, "ready");
            }
            world.isend(scope, buffer, VICTIM, TAG)
        })?,
        VICTIM => {
            let (mut incoming, outgoing) = (vec![0u64; LEN], vec![3u64; LEN]);
            loop {
                session.scope(|scope| {
                    let receive = world.irecv(scope, &mut incoming, 0, TAG)?;
                    let send = world.isend(scope, &outgoing, 2, TAG)?;
                    scope.wait_all([receive, send])
                })?;
            }
        }
        _ => repeat(&session, |scope, _, buffer| {
            world.irecv(scope, buffer, VICTIM, TAG)
        })?,
    }
    say(session.rank(), "saw it fail");
    reuse(&world, LEN)?;
    Ok(session.close()?)
}

/// Starts operations on a buffer of 64 MiB until one fails, which it does because of the victim.
/// The buffer is then this rank's again: writes all of it.
fn repeat(
    session: &Session,
    start: impl for<'s, 'e> Fn(&'s Scope<'s, 'e>, u64, &'e mut [u64]) -> Result<Request<'s, 'e>, Error>,
) -> Outcome {
    let mut buffer = vec![1u64; 8 << 20];
    for round in 0.. {
        let ended =
            session.scope(
                |scope| match start(scope, round, &mut buffer)?.wait_for(LIMIT) {
                    Ok(ended) => ended.map(Some),
                    Err(_) => Ok(None),
                },
            );
        match ended {
            Ok(Some(_)) => {}
            Ok(None) => return Err("the transfer does not end".into()),
            Err(error) => {
                check_failed::<()>("transfer", Err(error))?;
                break;
            }
        }
    }
    buffer.fill(2);
    Ok(())
}

/// Ranks 0 and 2 exchange as much between each other.
fn reuse(world: &Context<'_>, len: usize) -> Outcome {
    const AFTER: i32 = 8;
    let mut buffer = vec![0u64; len];
    if world.session().rank() == 0 {
        let pattern: Vec<u64> = (0..len as u64).collect();
        world.send(&pattern, 2, AFTER)?;
        world.recv(&mut buffer, 2, AFTER)?;
        assert!(buffer == pattern, "what came back is not what was sent");
    } else {
        world.recv(&mut buffer, 0, AFTER)?;
        world.send(&buffer, 0, AFTER)?;
    }
    Ok(())
}

/// The victim panics, and its session is dropped on the way out.
pub fn panic() -> Outcome {
    let session = Session::open()?;
    meet(&session)?;
    if session.rank() == VICTIM {
        panic!("rank {VICTIM} does not know what to do");
    }
    let ended = session.world().recv(&mut [0u64], VICTIM, TAG);
    check_failed("the receive", ended)?;
    check_later(&session)?;
    say(session.rank(), "saw it fail");
    Ok(session.close()?)
}

/// Everybody sleeps in a receive when the victim, which sleeps too, dies.
pub fn asleep() -> Outcome {
    let session = Session::open()?;
    meet(&session)?;
    let (world, rank) = (session.world(), session.rank());
    say(rank, "ready");
    let mut message = [0u64];
    let ended = match rank {
        VICTIM => world.recv(&mut message, 0, TAG),
        3 => world.recv(&mut message, ANY_SOURCE, TAG),
        _ => world.recv(&mut message, VICTIM, TAG),
    };
    check_failed("the receive it slept in", ended)?;
    say(rank, "saw it fail");
    Ok(session.close()?)
}

/// Rank 0 is never idle when the victim dies: it talks to rank 2 all the time, and looks now and
/// then what became of a receive from the victim.
pub fn busy() -> Outcome {
    let session = Session::open()?;
    meet(&session)?;
    let world = session.world();
    match session.rank() {
        0 => {
            let mut from_it = [0u64];
            session.scope(|scope| {
                let mut receive = world.irecv(scope, &mut from_it, VICTIM, TAG)?;
                say(0, "ready");
                loop {
                    world.send(&[0u64], 2, PING)?;
                    world.recv(&mut [0u64], 2, PING)?;
                    // A program's own work, of which one may expect that it matters little.
                    std::thread::sleep(Duration::from_micros(200));
                    match receive.test() {
                        Err(request) => receive = request,
                        Ok(ended) => return check_failed("the receive", ended),
                    }
                }
            })?;
            say(0, "saw it fail");
            world.send(&[DONE], 2, PING)?;
        }
        VICTIM => sleep_until_killed(),
        _ => {
            say(session.rank(), "ready");
            echo(&world)?;
        }
    }
    Ok(session.close()?)
}

const PING: i32 = 9;
const DONE: u64 = u64::MAX;

/// Sends back what comes from rank 0, until that says that it is done.
fn echo(world: &Context<'_>) -> Outcome {
    let mut ping = [0u64];
    while ping[0] != DONE {
        let count = world.recv(&mut ping, 0, PING)?.count::<u64>()?;
        if ping[0] != DONE {
            world.send(&ping[..count], 0, PING)?;
        }
    }
    Ok(())
}

/// Rank 0 never waits: it computes, and tests a receive from the victim every millisecond.
pub fn tested() -> Outcome {
    let session = Session::open()?;
    meet(&session)?;
    match session.rank() {
        0 => {
            let mut from_it = [0u64];
            session.scope(|scope| {
                let mut receive = session.world().irecv(scope, &mut from_it, VICTIM, TAG)?;
                say(0, "ready");
                loop {
                    std::thread::sleep(Duration::from_millis(1));
                    match receive.test() {
                        Err(request) => receive = request,
                        Ok(ended) => return check_failed("the receive", ended),
                    }
                }
            })?;
            say(0, "saw it fail");
        }
        VICTIM => sleep_until_killed(),
        other => say(other, "ready"),
    }
    Ok(session.close()?)
}

/// Rank 0 waits for the victim or for rank 2, which always replies soon.
pub fn served() -> Outcome {
    let session = Session::open()?;
    meet(&session)?;
    let world = session.world();
    match session.rank() {
        0 => {
            session.scope(|scope| {
                let mut requests = vec![world.irecv(scope, &mut [0u64; 0], VICTIM, TAG)?];
                say(0, "ready");
                loop {
                    world.send(&[0u64; 0], 2, PING)?;
                    requests.push(world.irecv(scope, &mut [0u64; 0], 2, PING)?);
                    if let Err(error) = scope.wait_any(&mut requests) {
                        return check_failed::<()>("the receive", Err(error));
                    }
                }
            })?;
            say(0, "saw it fail");
            world.send(&[DONE], 2, PING)?;
        }
        VICTIM => sleep_until_killed(),
        _ => {
            say(session.rank(), "ready");
            echo(&world)?;
        }
    }
    Ok(session.close()?)
}

/// Ranks 0 and 1 send each other short and long messages until the victim is dead, which it is after so many
/// messages as its transport was told.
pub fn anywhere() -> Outcome {
    let session = Session::open()?;
    let (world, peer) = (session.world(), 1 - session.rank());
    for round in 0..10_000u64 {
        for len in [1, 700, 40_000] {
            let (out, mut into) = (vec![round; len], vec![0; len]);
            let ended = session.scope(|scope| -> Result<_, Error> {
                let received = world.irecv(scope, &mut into, peer, TAG)?;
                let sent = world.isend(scope, &out, peer, TAG);
                let sent = sent.and_then(|request| request.wait());
                received.wait().and(sent)
            });
            if ended.is_err() {
                check_failed("an exchange", ended)?;
                check_failed("a later send", world.send(&[0u64], VICTIM, TAG))?;
                say(0, format!("saw it fail in round {round}"));
                return Ok(session.close()?);
            }
            if into.iter().any(|word| *word != round) {
                return Err(format!("round {round}: other bytes than were sent").into());
            }
        }
    }
    Err("nobody died".into())
}

/// Rank 1 aborts the job with status 7 while the others wait in a receive.
pub fn abort() -> Outcome {
    let session = ends_at_rank_1()?;
    session.abort(7)
}

/// Rank 1 ends with status 3 and does not close, while the others wait in a receive.
pub fn exit() -> Outcome {
    let _session = ends_at_rank_1()?;
    std::process::exit(3)
}

/// Returns at rank 1, once all have met. The others wait for ever in a receive from it.
fn ends_at_rank_1() -> Result<Session, Box<dyn std::error::Error>> {
    let session = Session::open()?;
    crate::meet(&session)?;
    if session.rank() != 1 {
        session.world().recv(&mut [0u64], 1, 77)?;
        return Err("the receive ended".into());
    }
    say(1, "ends");
    // A launcher that is told to end the job drops what it has not passed on.
    std::thread::sleep(Duration::from_millis(200));
    Ok(session)
}
