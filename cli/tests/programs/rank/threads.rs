//! Sessions that several threads call, and scopes that end in bad ways.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tagwire::{Context, Error, SendMode, Session, ThreadLevel};

use crate::exchange::pattern;
use crate::{Outcome, say};

const THREADS: u32 = 4;
const ROUNDS: u64 = 100;
const LENGTHS: [usize; 4] = [8, 3000, 20_000, 300_000];
const MODES: [SendMode; 3] = [
    SendMode::Standard,
    SendMode::Synchronous,
    SendMode::Buffered,
];

/// Four threads of each of two ranks exchange, in a context of their own and in the world, with a
/// tag of their own, in all modes.
pub fn multiple() -> Outcome {
    let session = Session::builder().threads(ThreadLevel::Multiple).open()?;
    let contexts: Vec<Context<'_>> = (0..THREADS)
        .map(|_| session.create_context())
        .collect::<Result<_, _>>()?;
    std::thread::scope(|threads| {
        let running: Vec<_> = (0..THREADS)
            .zip(&contexts)
            .map(|(thread, own)| {
                let world = session.world();
                threads.spawn(move || -> Result<(), Error> {
                    for round in 0..ROUNDS {
                        exchange(*own, thread, round)?;
                        exchange(world, thread, round)?;
                        exchange_ready(*own, thread, round)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in running {
            thread.join().unwrap()?;
        }
        Result::<_, Error>::Ok(())
    })?;
    for context in contexts {
        context.free()?;
    }
    let rank = session.rank();
    session.close()?;
    say(rank, "exchanged all");
    Ok(())
}

/// Messages that only differ in thread and round.
fn exchange(context: Context<'_>, thread: u32, round: u64) -> Result<(), Error> {
    let session = context.session();
    let (me, other, tag) = (session.rank(), 1 - session.rank(), thread as i32);
    let len = LENGTHS[(round % 4) as usize];
    let mode = MODES[(round % 3) as usize];
    let mine = pattern(me * THREADS + thread, round, len);
    let mut theirs = vec![0u8; len];
    session.scope(|scope| {
        let receive = context.irecv(scope, &mut theirs, other, tag)?;
        let send = context.isend_with(mode, scope, &mine, other, tag)?;
        // Waits of several kinds, in several threads at once.
        if round.is_multiple_of(2) {
            send.wait()?;
            receive.wait()?;
        } else {
            scope.wait_all([receive, send])?;
        }
        Ok::<(), Error>(())
    })?;
    let expected = pattern(other * THREADS + thread, round, len);
    assert!(theirs == expected, "{mode:?}, {len} bytes: wrong bytes");
    Ok(())
}

/// A ready send, for which the other side says first that its receive is posted.
fn exchange_ready(context: Context<'_>, thread: u32, round: u64) -> Result<(), Error> {
    const POSTED: i32 = 100;
    let session = context.session();
    let (me, other, tag) = (session.rank(), 1 - session.rank(), thread as i32);
    let len = LENGTHS[(round % 3) as usize];
    let mine = pattern(me * THREADS + thread, round, len);
    let mut theirs = vec![0u8; len];
    session.scope(|scope| {
        let receive = context.irecv(scope, &mut theirs, other, tag)?;
        context.send(&[0u8; 0], other, POSTED + tag)?;
        context.recv(&mut [0u8; 0], other, POSTED + tag)?;
        context.send_with(SendMode::Ready, &mine, other, tag)?;
        receive.wait()
    })?;
    let expected = pattern(other * THREADS + thread, round, len);
    assert!(theirs == expected, "ready, {len} bytes: wrong bytes");
    Ok(())
}

/// Whether a call was refused for its thread.
fn is_wrong_thread<T>(answer: Result<T, Error>) -> bool {
    matches!(answer, Err(error) if error.code() == 318)
}

/// At the level of one thread another one is refused, and harms nothing.
pub fn wrong() -> Outcome {
    for level in [ThreadLevel::Single, ThreadLevel::Funneled] {
        let session = Session::builder().threads(level).open()?;
        let me = session.rank();
        std::thread::scope(|threads| {
            let refused = threads.spawn(|| {
                let world = session.world();
                assert!(is_wrong_thread(world.send(&[1u8], me, 0)));
                assert!(is_wrong_thread(world.recv(&mut [0u8], me, 0)));
                assert!(is_wrong_thread(world.probe(me, 0)));
                assert!(is_wrong_thread(session.create_context()));
                assert!(is_wrong_thread(session.world().barrier()));
                assert!(is_wrong_thread(session.progress()));
                assert!(is_wrong_thread(session.scope(|scope| {
                    world.isend(scope, &[1u8], me, 0).map(|_| ())
                })));
            });
            refused.join().unwrap();
        });
        let world = session.world();
        assert!(world.probe(me, 0)?.is_none(), "a refused send has sent");
        world.isend_owned(vec![3u8], me, 0)?.wait()?;
        let mut message = [0u8];
        world.recv(&mut message, me, 0)?;
        assert_eq!(message, [3]);
        session.close()?;
        say(me, format!("refused others at level {level:?}"));
        if session_is_job_of_one() {
            continue;
        }
        break;
    }
    Ok(())
}

/// A rank of a job joins it once; alone it may open again.
fn session_is_job_of_one() -> bool {
    std::env::var("TAGWIRE_SIZE").is_ok_and(|size| size == "1")
}

/// A scope that panics takes its receives back; receives that own their buffer may be dropped.
pub fn scopes() -> Outcome {
    let session = Session::open()?;
    let (world, other) = (session.world(), 1 - session.rank());
    panic_in_scope(&session);
    for (tag, len) in [(2, 100), (3, 1 << 20)] {
        // Dropped before anything could match it: the message goes to the next one.
        drop(world.irecv_owned(vec![0u8; len], other, tag)?);
        agree(&session)?;
        let mine = world.isend_owned(vec![tag as u8; len], other, tag)?;
        let (status, theirs) = world.irecv_owned(vec![0u8; len], other, tag)?.wait()?;
        assert_eq!((status.bytes(), theirs), (len, vec![tag as u8; len]));
        mine.wait()?;
    }
    for round in 0..100 {
        drop_in_the_middle(&session, round)?;
    }
    let rank = session.rank();
    session.close()?;
    say(rank, "left all scopes");
    Ok(())
}

/// The message goes to the receive that is posted after the panic.
fn panic_in_scope(session: &Session) {
    const TAG: i32 = 1;
    let (world, other) = (session.world(), 1 - session.rank());
    let mut never = [0u64; 4];
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        session.scope(|scope| {
            world.irecv(scope, &mut never, other, TAG).unwrap();
            std::panic::resume_unwind(Box::new("as planned"));
        })
    }));
    let reason = panicked.unwrap_err();
    assert_eq!(*reason.downcast::<&str>().unwrap(), "as planned");
    assert_eq!(never, [0; 4]);
    let mut message = [0u64; 4];
    session
        .scope(|scope| {
            let receive = world.irecv(scope, &mut message, other, TAG)?;
            // Each reports to the other that its first receive is gone, before anything is sent to it.
            world.send(&[0u8; 0], other, TAG + 100)?;
            world.recv(&mut [0u8; 0], other, TAG + 100)?;
            world.send(&[5u64; 4], other, TAG)?;
            receive.wait()
        })
        .unwrap();
    assert_eq!((message, never), ([5; 4], [0; 4]));
}

/// A receive is dropped when its message may be here already: it takes all of it, or none.
fn drop_in_the_middle(session: &Session, round: u8) -> Result<(), Error> {
    const TAG: i32 = 4;
    const LENGTHS: [usize; 3] = [8, 12_000, 200_000];
    let (world, other) = (session.world(), 1 - session.rank());
    let len = LENGTHS[usize::from(round) % 3];
    let mine = world.isend_owned(vec![round; len], other, TAG)?;
    drop(world.irecv_owned(vec![0u8; len], other, TAG)?);
    // What this one says comes behind the message, so that a message that was not taken is here.
    agree(session)?;
    if let Some(message) = world.claim(other, TAG)? {
        let mut theirs = vec![0u8; len];
        let status = world.recv_claimed(&mut theirs, message)?;
        assert_eq!((status.bytes(), theirs), (len, vec![round; len]));
    }
    assert_eq!(mine.wait()?, vec![round; len]);
    agree(session)
}

/// Both ranks have come here when either returns.
fn agree(session: &Session) -> Result<(), Error> {
    const AGREE: i32 = 5;
    let (world, other) = (session.world(), 1 - session.rank());
    let mine = world.isend_owned(vec![1u8], other, AGREE)?;
    world.recv(&mut [0u8], other, AGREE)?;
    mine.wait()?;
    Ok(())
}
