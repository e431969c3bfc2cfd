//! Remote memory access, by whatever brings it about.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_pml::error::Error;
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::{Messenger, Region, Target};
use tagwire_pml::rma::Atomic;
use tagwire_pml::types::{Failure, SendMode};
use tagwire_transport::fault::SplitMix64;

use super::Factory;
use super::failure::around_a_death;
use super::rig::{
    Checked, PATIENCE, Room, WORLD, accepted, ensure, from, on_threads, only, pattern, same, send,
    waiting,
};

/// Bytes of a region: more than several packets.
const BYTES: usize = 200_000;

/// The longest key that is sent here.
const LONGEST_KEY: usize = 1024;

/// Memory of both ranks that each other reaches.
struct Shared {
    room: Room,
    region: Region,
    target: Target,
}

impl Shared {
    /// Both ranks call it. `None` where the transport has messages alone, which is said.
    fn open(port: &Arc<Messenger>) -> Checked<Option<Self>> {
        let other = 1 - port.rank().as_u32();
        let room = Room::new(BYTES);
        room.write(0, &[0; BYTES]);
        let region = accepted("expose", port.window().expose(&room.lend()))?;
        let key = exchange(port, 1, region.key())?;
        Ok(match port.window().reach(Rank::new(other), &key) {
            Err(Error::BadRegion(_)) => None,
            reached => Some(Self {
                room,
                region,
                target: accepted("reach", reached)?,
            }),
        })
    }

    /// Where the first word is, in bytes from the start.
    fn word(&self) -> usize {
        let address = self
            .room
            .lend()
            .region()
            .map_or(0, |region| region.address());
        address.wrapping_neg() as usize % 8
    }
}

/// Receives what the other rank sends under `number`, and does `meanwhile` once the receive is posted.
fn take(
    port: &Arc<Messenger>,
    number: u32,
    meanwhile: impl FnOnce() -> Checked,
) -> Checked<Vec<u8>> {
    let (room, other) = (Room::new(LONGEST_KEY), 1 - port.rank().as_u32());
    let posted = port.irecv(room.lend(), from(other), only(number), WORLD);
    let posted = accepted("irecv", posted)?;
    meanwhile()?;
    let status = accepted("wait", port.wait(posted, PATIENCE))?;
    same("a receive's failure", status.failure, None)?;
    Ok(room.read(0..status.length))
}

/// Gives the other rank `bytes`, and returns what it has given.
fn exchange(port: &Arc<Messenger>, number: u32, bytes: &[u8]) -> Checked<Vec<u8>> {
    let other = 1 - port.rank().as_u32();
    take(port, number, || {
        send(port, other, number, bytes, SendMode::Standard)
    })
}

/// Tells the other rank to go on.
fn pass_on(port: &Arc<Messenger>, number: u32) -> Checked {
    let other = 1 - port.rank().as_u32();
    send(port, other, number, &[], SendMode::Standard)
}

/// Waits for that, and makes progress meanwhile.
fn await_turn(port: &Arc<Messenger>, number: u32) -> Checked {
    take(port, number, || Ok(())).map(drop)
}

pub(super) fn regions_are_written_and_read(factory: &Factory) -> Checked {
    on_threads(factory, 2, ThreadLevel::Single, waiting(), |port| {
        let Some(shared) = Shared::open(port)? else {
            return Ok(());
        };
        let window = port.window();
        same("the length", shared.target.len(), BYTES as u64)?;
        if port.rank() == Rank::new(1) {
            await_turn(port, 2)?;
            let expected = layout().concat();
            same(
                "what was put",
                shared.room.read(0..expected.len()),
                expected,
            )?;
            pass_on(port, 3)?;
            await_turn(port, 4)?;
        } else {
            let mut offset = 0;
            for bytes in layout() {
                let data = Room::new(bytes.len());
                data.write(0, &bytes);
                let put = window.put(data.lend_to_send(), &shared.target, offset);
                accepted("put", put)?;
                offset += bytes.len() as u64;
            }
            accepted("flush", window.flush(&[&shared.target], PATIENCE))?;
            pass_on(port, 2)?;
            await_turn(port, 3)?;
            let mut offset = 0;
            for bytes in layout() {
                let room = Room::new(bytes.len());
                let get = accepted("get", window.get(room.lend(), &shared.target, offset))?;
                accepted("wait", window.wait(get, PATIENCE))?;
                same("what was got", room.read(0..bytes.len()), bytes)?;
                offset += room.bytes().len() as u64;
            }
            pass_on(port, 4)?;
        }
        accepted("withdraw", window.withdraw(shared.region))
    })
}

/// What is put, one behind the other.
fn layout() -> Vec<Vec<u8>> {
    let mut random = SplitMix64::new(7);
    let lengths = [1, 0, 8, 3, 4096, 70_000, 13, 8192, 60_001];
    let random = (0..20).map(|_| random.below(2000) as usize);
    let lengths = lengths.into_iter().chain(random);
    lengths
        .enumerate()
        .map(|(seed, len)| pattern(seed, len))
        .collect()
}

pub(super) fn words_are_changed_in_one_step(factory: &Factory) -> Checked {
    const TIMES: u64 = 200;
    on_threads(factory, 2, ThreadLevel::Single, waiting(), |port| {
        let Some(shared) = Shared::open(port)? else {
            return Ok(());
        };
        let window = port.window();
        let own = accepted("reach", window.reach(port.rank(), shared.region.key()))?;
        let change = |target: &Target, atomic, word: usize| -> Checked<u64> {
            let started = accepted("atomic", window.atomic(atomic, target, word as u64))?;
            accepted("wait", window.wait(started, PATIENCE))
        };
        // Rank 1's word, which both count up.
        let word = match port.rank() == Rank::new(1) {
            true => shared.word(),
            false => {
                let place = take(port, 5, || Ok(()))?;
                place.first().copied().map_or(0, usize::from)
            }
        };
        if port.rank() == Rank::new(1) {
            send(port, 0, 5, &[word as u8], SendMode::Standard)?;
        }
        let target = if port.rank() == Rank::new(1) {
            &own
        } else {
            &shared.target
        };
        let mut last = None;
        for _ in 0..TIMES {
            let before = change(target, Atomic::Sum(1), word)?;
            ensure!(
                last.is_none_or(|last| before > last),
                "{before} after {last:?}"
            );
            last = Some(before);
        }
        exchange(port, 6, &[])?;
        if port.rank() == Rank::new(0) {
            let swap = |compare, swap| Atomic::CompareSwap { compare, swap };
            let steps = [
                (swap(3, 9), 2 * TIMES),
                (swap(2 * TIMES, 0b1100), 2 * TIMES),
                (Atomic::And(0b0110), 0b1100),
                (Atomic::Or(0b0011), 0b0100),
                (Atomic::Xor(0b0101), 0b0111),
                (Atomic::Min(5), 0b0010),
                (Atomic::Max(5), 2),
                (Atomic::Replace(u64::MAX), 5),
                (Atomic::Sum(3), u64::MAX),
                (Atomic::Sum(0), 2),
            ];
            for (atomic, before) in steps {
                same(
                    &format!("{atomic:?}"),
                    change(target, atomic, word)?,
                    before,
                )?;
            }
            pass_on(port, 7)
        } else {
            await_turn(port, 7)
        }
    })
}

pub(super) fn accesses_are_refused_by_what_they_name(factory: &Factory) -> Checked {
    on_threads(factory, 2, ThreadLevel::Single, waiting(), |port| {
        let Some(shared) = Shared::open(port)? else {
            return Ok(());
        };
        let window = port.window();
        if port.rank() == Rank::new(1) {
            await_turn(port, 2)?;
            accepted("withdraw", window.withdraw(shared.region))?;
            pass_on(port, 3)?;
            return await_turn(port, 4);
        }
        let (data, target) = (Room::new(8), &shared.target);
        let end = BYTES as u64;
        for offset in [end - 7, end, end + 1, u64::MAX] {
            let put = window.put(data.lend_to_send(), target, offset);
            ensure!(
                matches!(put, Err(Error::OutsideRegion { .. })),
                "{offset}: {put:?}"
            );
            let got = window.get(data.lend(), target, offset);
            ensure!(
                matches!(got, Err(Error::OutsideRegion { .. })),
                "{offset}: {got:?}"
            );
        }
        let reached = window.reach(Rank::new(1), b"no key");
        ensure!(matches!(reached, Err(Error::BadRegion(_))), "{reached:?}");
        let reached = window.reach(Rank::new(2), shared.region.key());
        ensure!(
            matches!(reached, Err(Error::NoSuchRank { .. })),
            "{reached:?}"
        );
        pass_on(port, 2)?;
        await_turn(port, 3)?;
        accepted("put", window.put(data.lend_to_send(), target, 0))?;
        let flushed = window.flush(&[target], PATIENCE);
        ensure!(
            matches!(flushed, Err(Error::NoSuchRegion(_))),
            "{flushed:?}"
        );
        accepted("flush", window.flush(&[target], PATIENCE))?;
        // An error at one target comes once the accesses to others have ended.
        let own = accepted("reach", window.reach(port.rank(), shared.region.key()))?;
        let many = Room::new(BYTES);
        let put = accepted("put", window.put(data.lend_to_send(), target, 0))?;
        let long = accepted("put", window.put(many.lend_to_send(), &own, 0))?;
        let flushed = window.flush(&[target, &own], PATIENCE);
        ensure!(
            matches!(flushed, Err(Error::NoSuchRegion(_))),
            "{flushed:?}"
        );
        for put in [put, long] {
            let has_ended = accepted("has_ended", window.has_ended(put))?;
            ensure!(has_ended, "an access is under way after a flush");
        }
        // One that is kept is there after a flush of its target.
        let kept = window.keeping().put(data.lend_to_send(), &own, 0);
        let kept = accepted("put", kept)?;
        accepted("flush", window.flush(&[&own], PATIENCE))?;
        accepted("wait", window.wait(kept, PATIENCE))?;
        let got = accepted("get", window.get(data.lend(), target, 0))?;
        let ended = window.wait(got, PATIENCE);
        ensure!(matches!(ended, Err(Error::NoSuchRegion(_))), "{ended:?}");
        let again = window.test(got);
        ensure!(matches!(again, Err(Error::StaleRequest)), "{again:?}");
        pass_on(port, 4)
    })
}

pub(super) fn accesses_end_with_the_peer(factory: &Factory) -> Checked {
    let dead = Rank::new(1);
    around_a_death(
        factory,
        dead,
        |port| {
            let shared = Shared::open(port)?;
            // Until the other has reached it.
            await_turn(port, 2)?;
            std::mem::forget(shared);
            Ok(())
        },
        |port, doomed| {
            let shared = Shared::open(port)?;
            pass_on(port, 2)?;
            doomed.kill(doomed.take()?);
            let Some(shared) = shared else {
                return accepted("close", port.close(Duration::from_secs(20)));
            };
            let (window, room) = (port.window(), Room::new(BYTES));
            // What was copied before anybody knew of the death is done.
            let mut ended = Ok(0);
            while ended.is_ok() {
                let get = accepted("get", window.get(room.lend(), &shared.target, 0))?;
                ended = window.wait(get, PATIENCE);
            }
            match ended {
                Err(Error::Failed(Failure::PeerFailed(rank))) => same("who failed", rank, dead)?,
                other => return Err(format!("a get from the dead: {other:?}")),
            }
            accepted("put", window.put(room.lend_to_send(), &shared.target, 0))?;
            let flushed = window.flush(&[&shared.target], PATIENCE);
            ensure!(matches!(flushed, Err(Error::Failed(_))), "{flushed:?}");
            accepted("close", port.close(Duration::from_secs(20)))
        },
    )
}
