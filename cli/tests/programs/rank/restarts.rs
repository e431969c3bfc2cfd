//! A program that opens its session again and again.

use std::error::Error;
use std::fmt;
use std::fs;
use std::os::unix::process::parent_id;
use std::thread::sleep;
use std::time::Duration;

use tagwire::{Result, Session};

use crate::exchange::pattern;
use crate::flood::figure_kib;
use crate::{Outcome, say};

/// Sessions after which everything is there that a program needs once.
const WARM: u32 = 50;
/// Its word comes so often.
const STEP: u32 = 50;
/// How often it looks, a hundredth of a second apart, whether the launcher has let go of what others had open there.
const LOOKS: u32 = 200;
/// One for each way that a message can take.
const LENGTHS: [usize; 3] = [8, 8 << 10, 1 << 20];

/// What a process has.
#[derive(Debug, Clone, Copy)]
struct Held {
    descriptors: usize,
    mappings: usize,
    kib: u64,
}

impl Held {
    fn by(process: u32) -> Result<Self, Box<dyn Error>> {
        let place = format!("/proc/{process}");
        Ok(Self {
            descriptors: fs::read_dir(format!("{place}/fd"))?.count(),
            mappings: fs::read_to_string(format!("{place}/maps"))?.lines().count(),
            kib: figure_kib(&place, "VmRSS:")?,
        })
    }

    /// Whether no more than this is held beyond `before`.
    fn is_within(self, more: Self, before: Self) -> bool {
        self.descriptors <= before.descriptors + more.descriptors
            && self.mappings <= before.mappings + more.mappings
            && self.kib <= before.kib + more.kib
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            descriptors,
            mappings,
            kib,
        } = self;
        write!(
            f,
            "{descriptors} descriptors, {mappings} mappings, {kib} KiB"
        )
    }
}

/// Opens so many sessions, one after the other, each of which exchanges messages with a neighbour. In the end this process holds what it held
/// after the first ones, and so does the launcher, which serves the store.
pub fn run(arguments: &[String]) -> Outcome {
    let count: u32 = arguments.first().ok_or("how many sessions?")?.parse()?;
    let (own, launcher_id) = (std::process::id(), parent_id());
    let mut before = None;
    let mut rank = 0;
    for number in 1..=count.max(WARM + 1) {
        rank = one(number)?;
        if number == WARM {
            before = Some((Held::by(own)?, Held::by(launcher_id)?));
        }
        if number % STEP == 0 {
            say(rank, format!("has had {number} sessions"));
        }
    }
    let (own_before, launcher_before) = before.ok_or("too few sessions")?;
    let more = Held {
        descriptors: 0,
        mappings: 2,
        kib: 1024,
    };
    let own = Held::by(own)?;
    // Other ranks may be about to come or to go there.
    let more_there = Held {
        descriptors: 2,
        ..more
    };
    let mut launcher = Held::by(launcher_id)?;
    for _ in 0..LOOKS {
        if launcher.is_within(more_there, launcher_before) {
            break;
        }
        sleep(Duration::from_millis(10));
        launcher = Held::by(launcher_id)?;
    }
    say(rank, format!("held {own_before} and holds {own}"));
    say(
        rank,
        format!("its launcher held {launcher_before} and holds {launcher}"),
    );
    match own.is_within(more, own_before) && launcher.is_within(more_there, launcher_before) {
        true => Ok(()),
        false => Err("sessions leave something behind".into()),
    }
}

/// One session. Returns this rank.
fn one(number: u32) -> Result<u32> {
    let session = Session::open()?;
    let world = session.world();
    let (me, size) = (session.rank(), session.size());
    let (left, right) = ((me + size - 1) % size, (me + 1) % size);
    for (tag, len) in (0..).zip(LENGTHS) {
        let mine = pattern(me, number.into(), len);
        let mut theirs = vec![0u8; len];
        session.scope(|scope| {
            let receive = world.irecv(scope, &mut theirs, left, tag)?;
            let send = world.isend(scope, &mine, right, tag)?;
            scope.wait_all([receive, send])
        })?;
        assert!(
            theirs == pattern(left, number.into(), len),
            "{len} wrong bytes"
        );
    }
    world.barrier()?;
    session.close()?;
    Ok(me)
}
