//! Core: waiting, by one, any, some and all, with timeouts. And the tier of sleeping.

use std::time::{Duration, Instant};

use tagwire_base::Rank;

use super::Factory;
use super::rig::{
    ANYONE, ANYTHING, Checked, PATIENCE, Room, WORLD, accepted, ensure, from, lend, on_threads,
    only, pattern, recv, same, send, tag, waiting,
};
use tagwire_pml::error::Error;
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::types::{RequestId, SendMode};
use tagwire_pml::wait::{WaitMode, WaitPolicy};

const SHORT: Option<Duration> = Some(Duration::from_millis(20));

fn pair(factory: &Factory, body: impl Fn(&Messenger, u32) -> Checked + Sync) -> Checked {
    on_threads(factory, 2, ThreadLevel::Single, waiting(), |port| {
        body(port, 1 - port.rank().as_u32())
    })
}

fn post(port: &Messenger, value: u32, room: &Room) -> Checked<RequestId> {
    accepted("irecv", port.irecv(room.lend(), ANYONE, only(value), WORLD))
}

/// Tells the other rank to go on.
fn go(port: &Messenger, peer: u32) -> Checked {
    send(port, peer, 999, &[], SendMode::Standard)
}

fn wait_for_go(port: &Messenger, peer: u32) -> Checked {
    recv(port, from(peer), only(999), 0, 0).map(drop)
}

pub(super) fn waits_time_out_and_the_operation_goes_on(factory: &Factory) -> Checked {
    pair(factory, |port, peer| {
        if port.rank() == Rank::new(1) {
            wait_for_go(port, peer)?;
            for value in 1..3 {
                send(
                    port,
                    peer,
                    value,
                    &pattern(value as usize, 64),
                    SendMode::Standard,
                )?;
            }
            return Ok(());
        }
        let rooms = [Room::new(64), Room::new(64)];
        let requests = [post(port, 1, &rooms[0])?, post(port, 2, &rooms[1])?];
        let timed_out = |result: Result<(), Error>, what: &str| match result {
            Err(Error::TimedOut(_)) => Ok(()),
            other => Err(format!("{what} of nothing: {other:?}")),
        };
        timed_out(port.wait(requests[0], SHORT).map(drop), "wait")?;
        timed_out(
            port.wait(requests[0], Some(Duration::ZERO)).map(drop),
            "wait for no time",
        )?;
        timed_out(port.wait_all(&requests, SHORT).map(drop), "wait_all")?;
        timed_out(port.wait_any(&requests, SHORT).map(drop), "wait_any")?;
        timed_out(port.wait_some(&requests, SHORT).map(drop), "wait_some")?;
        timed_out(
            port.wait_probe(ANYONE, ANYTHING, WORLD, SHORT).map(drop),
            "wait_probe",
        )?;
        timed_out(
            port.wait_claim(ANYONE, ANYTHING, WORLD, SHORT).map(drop),
            "wait_claim",
        )?;
        same(
            "test of nothing",
            accepted("test", port.test(requests[0]))?,
            None,
        )?;
        go(port, peer)?;
        let ends = accepted("wait_all", port.wait_all(&requests, PATIENCE))?;
        for (place, status) in ends.iter().enumerate() {
            same(
                "the end",
                (status.failure, status.tag),
                (None, tag(place as u32 + 1)),
            )?;
            ensure!(
                rooms[place].bytes() == pattern(place + 1, 64),
                "wrong bytes"
            );
        }
        ensure!(
            matches!(port.wait(requests[0], SHORT), Err(Error::StaleRequest)),
            "an end was taken twice"
        );
        Ok(())
    })
}

/// A wait for all that times out takes no end, also not of those that are complete; a wait for some
/// takes these and leaves the rest; what is left ends as if nobody had waited before.
pub(super) fn waits_for_all_and_some_keep_what_timed_out(factory: &Factory) -> Checked {
    let lengths = factory.protocols();
    pair(factory, |port, peer| {
        for (round, len) in lengths.iter().enumerate() {
            if port.rank() == Rank::new(1) {
                for value in [1, 0, 2] {
                    wait_for_go(port, peer)?;
                    send(
                        port,
                        peer,
                        value,
                        &pattern(round, *len),
                        SendMode::Synchronous,
                    )?;
                }
                continue;
            }
            let rooms: Vec<_> = (0..3).map(|_| Room::new(*len)).collect();
            let mut requests = Vec::new();
            for (value, room) in rooms.iter().enumerate() {
                requests.push(post(port, value as u32, room)?);
            }
            go(port, peer)?;
            for _ in 0..2 {
                let all = port.wait_all(&requests, SHORT);
                ensure!(matches!(all, Err(Error::TimedOut(_))), "all: {all:?}");
                let quiet = port.wait_all_quiet(&requests, SHORT);
                ensure!(matches!(quiet, Err(Error::TimedOut(_))), "all: {quiet:?}");
            }
            let some = accepted("wait_some", port.wait_some(&requests, PATIENCE))?;
            let seen: Vec<_> = some.iter().map(|(place, end)| (*place, end.tag)).collect();
            same("what is complete", seen, vec![(1, tag(1))])?;
            requests.remove(1);
            let some = port.wait_some(&requests, SHORT);
            ensure!(matches!(some, Err(Error::TimedOut(_))), "some: {some:?}");
            go(port, peer)?;
            go(port, peer)?;
            let all = accepted("wait_all", port.wait_all(&requests, PATIENCE))?;
            let tags: Vec<_> = all.iter().map(|status| status.tag).collect();
            same("the ends", tags, vec![tag(0), tag(2)])?;
            for room in &rooms {
                ensure!(room.bytes() == pattern(round, *len), "wrong bytes");
            }
        }
        Ok(())
    })
}

pub(super) fn waits_for_any_and_some(factory: &Factory) -> Checked {
    pair(factory, |port, peer| {
        if port.rank() == Rank::new(1) {
            for value in [2, 0, 3, 1] {
                wait_for_go(port, peer)?;
                send(
                    port,
                    peer,
                    value,
                    &pattern(value as usize, 5000),
                    SendMode::Synchronous,
                )?;
            }
            return Ok(());
        }
        same(
            "any of none",
            accepted("wait_any", port.wait_any(&[], SHORT))?,
            None,
        )?;
        same(
            "some of none",
            accepted("wait_some", port.wait_some(&[], SHORT))?,
            Vec::new(),
        )?;
        same(
            "all of none",
            accepted("wait_all", port.wait_all(&[], SHORT))?,
            Vec::new(),
        )?;
        let rooms: Vec<_> = (0..4).map(|_| Room::new(5000)).collect();
        let mut requests = Vec::new();
        for (value, room) in rooms.iter().enumerate() {
            requests.push(post(port, value as u32, room)?);
        }
        go(port, peer)?;
        let any = accepted("wait_any", port.wait_any(&requests, PATIENCE))?;
        same(
            "the place",
            any.map(|(place, status)| (place, status.tag)),
            Some((2, tag(2))),
        )?;
        requests[2] = RequestId::COMPLETE;
        let some = accepted("wait_some", port.wait_some(&requests, PATIENCE))?;
        same("what is complete", some.len(), 1)?;
        same("its place", some[0].0, 2)?;
        requests.remove(2);
        go(port, peer)?;
        let some = accepted("wait_some", port.wait_some(&requests, PATIENCE))?;
        same("the first", some.first().map(|(place, _)| *place), Some(0))?;
        requests.remove(0);
        go(port, peer)?;
        go(port, peer)?;
        let all = accepted("wait_all", port.wait_all(&requests, PATIENCE))?;
        let tags: Vec<_> = all.iter().map(|status| status.tag).collect();
        same("the ends", tags, vec![tag(1), tag(3)])?;
        for (value, room) in rooms.iter().enumerate() {
            ensure!(
                room.bytes() == pattern(value, 5000),
                "wrong bytes with tag {value}"
            );
        }
        Ok(())
    })
}

pub(super) fn waits_for_probes_and_claims(factory: &Factory) -> Checked {
    pair(factory, |port, peer| {
        let lengths = [9, 4500, 60_000];
        if port.rank() == Rank::new(1) {
            for len in lengths {
                wait_for_go(port, peer)?;
                send(port, peer, 1, &pattern(1, len), SendMode::Standard)?;
                send(port, peer, 2, &pattern(2, len), SendMode::Synchronous)?;
            }
            return Ok(());
        }
        for len in lengths {
            go(port, peer)?;
            let seen = accepted(
                "wait_probe",
                port.wait_probe(from(1), ANYTHING, WORLD, PATIENCE),
            )?;
            same("what is seen", (seen.tag, seen.length), (tag(1), len))?;
            recv(port, from(1), only(1), 1, len)?;
            let claimed = port.wait_claim(ANYONE, only(2), WORLD, PATIENCE);
            let (message, seen) = accepted("wait_claim", claimed)?;
            same("what is claimed", (seen.tag, seen.length), (tag(2), len))?;
            let room = Room::new(len);
            let request = accepted("irecv_claimed", port.irecv_claimed(room.lend(), message))?;
            let status = accepted("wait", port.wait(request, PATIENCE))?;
            same("the failure", status.failure, None)?;
            ensure!(room.bytes() == pattern(2, len), "wrong bytes");
        }
        Ok(())
    })
}

/// Every rank its own thread, in a ring and all to all, with more ranks than cores.
pub(super) fn blocking_calls_get_on(factory: &Factory) -> Checked {
    let size = factory.most_ranks.min(4);
    let lengths = factory.protocols();
    on_threads(factory, size, ThreadLevel::Single, waiting(), |port| {
        let rank = port.rank().as_u32();
        let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
        for round in 0..20_usize {
            let len = lengths[round % lengths.len()];
            let room = Room::new(len);
            let posted = post(port, 1, &room)?;
            send(
                port,
                next,
                1,
                &pattern(rank as usize, len),
                SendMode::Standard,
            )?;
            let status = accepted("wait", port.wait(posted, PATIENCE))?;
            same("the source", status.source, Rank::new(last))?;
            ensure!(room.bytes() == pattern(last as usize, len), "wrong bytes");
        }
        let mut sends = Vec::new();
        for peer in 0..size {
            let data = lend(&pattern(rank as usize, 300));
            let sent = port.isend(data, Rank::new(peer), tag(2), WORLD, SendMode::Standard);
            sends.push(accepted("isend", sent)?);
        }
        for peer in 0..size {
            recv(port, from(peer), only(2), peer as usize, 300)?;
        }
        accepted("wait_all_quiet", port.wait_all_quiet(&sends, PATIENCE))
    })
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

pub(super) fn a_rank_that_waits_for_long_sleeps(factory: &Factory) -> Checked {
    const PAUSE: Duration = Duration::from_millis(400);
    for mode in [WaitMode::Adaptive, WaitMode::Sleep] {
        let policy = WaitPolicy { mode, ..waiting() };
        on_threads(factory, 2, ThreadLevel::Single, policy, |port| {
            // Contact first: that is not free.
            let peer = 1 - port.rank().as_u32();
            go(port, peer)?;
            wait_for_go(port, peer)?;
            if port.rank() == Rank::new(1) {
                std::thread::sleep(PAUSE);
                return send(port, peer, 1, &pattern(1, 8), SendMode::Standard);
            }
            let (clock, cpu) = (Instant::now(), cpu_time());
            recv(port, from(1), only(1), 1, 8)?;
            let (clock, cpu) = (clock.elapsed(), cpu_time() - cpu);
            ensure!(clock >= PAUSE / 2, "the message came before it was sent");
            ensure!(
                cpu < PAUSE / 3,
                "{cpu:?} of processor time in a wait of {clock:?} ({mode:?})"
            );
            Ok(())
        })?;
    }
    Ok(())
}

/// A lost wake-up costs a whole sleep; no call may take as long as that.
pub(super) fn sleepers_are_woken_by_messages(factory: &Factory) -> Checked {
    const NAP: Duration = Duration::from_secs(8);
    let policy = WaitPolicy {
        mode: WaitMode::Sleep,
        sleep: NAP,
        ..waiting()
    };
    on_threads(factory, 2, ThreadLevel::Single, policy, |port| {
        let peer = 1 - port.rank().as_u32();
        for round in 0..60_usize {
            // Now one of them sleeps for sure, now they meet at the door.
            if round % 2 == port.rank().index() && round % 3 != 0 {
                std::thread::sleep(Duration::from_millis(round as u64 % 5));
            }
            let len = [8, 4500, 40_000][round % 3];
            // Each call waits for one message, or for one reply to it. All of them together take as
            // long as a busy machine makes them, but no single one as long as a sleep, unless it slept
            // on.
            let calls: [&dyn Fn() -> Checked; 2] = match port.rank().as_u32() {
                0 => [
                    &|| send(port, peer, 1, &pattern(round, len), SendMode::Standard),
                    &|| recv(port, from(1), only(2), round, len).map(drop),
                ],
                _ => [
                    &|| recv(port, from(0), only(1), round, len).map(drop),
                    &|| send(port, peer, 2, &pattern(round, len), SendMode::Synchronous),
                ],
            };
            for call in calls {
                let start = Instant::now();
                call()?;
                let took = start.elapsed();
                ensure!(
                    took < NAP,
                    "a call of round {round} took {took:?}: a wake-up was lost"
                );
            }
        }
        Ok(())
    })
}
