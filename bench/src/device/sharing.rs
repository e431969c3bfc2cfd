//! How ranks of a host share an engine: its computations take turns, and so do its copies.
//!
//! ```text
//!     rank 0   | copy |                 | copy |
//!     rank 1           | copy |                 | copy |
//!     file      locked: read when the engine is free, take a step from then on, write when that ends
//! ```
//!
//! A file has the time at which the engine is free, by the clock that all ranks of a host read. The rank that has locked it has the
//! turn. The others sleep in the kernel.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use tagwire_base::{Rank, host};
use tempfile::TempDir;

use crate::buffer::Memory;
use crate::error::{Error, Result};
use crate::port::{Endpoint, barrier, tags};

/// The turns of an engine's computations, and those of its copies.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub compute: Turn,
    pub copy: Turn,
}

impl Turns {
    /// Shares an engine among so many neighbouring ranks. All ranks call it.
    ///
    /// # Errors
    /// Where these are not on one host.
    pub(super) fn share(port: &dyn Endpoint, ranks: u32) -> Result<Self> {
        if ranks == 1 {
            return Ok(Self::default());
        }
        let me = port.rank().as_u32();
        let first = Rank::new(me - me % ranks);
        let mut memory = Memory::new(ROOM)?;
        let mut folder = None;
        if port.rank() == first {
            let made = make_files()?;
            memory.write(&place(made.path())?);
            folder = Some(made);
            for peer in (me + 1..me + ranks).map(Rank::new) {
                port.send(memory.outgoing(0..ROOM), peer, tags::CONTROL)?;
            }
        } else {
            port.recv(memory.incoming(0..ROOM), first, tags::CONTROL)?;
        }
        let turns = Self::open(&memory.bytes(0..ROOM), first)?;
        // All have the files open, which lose their names with the folder.
        barrier(port)?;
        drop(folder);
        Ok(turns)
    }

    /// Opens the files at a [place] that the first rank of those that share has sent.
    fn open(place: &[u8], first: Rank) -> Result<Self> {
        let text = String::from_utf8_lossy(place);
        let (theirs, path) = text
            .trim_end_matches('\0')
            .split_once('\n')
            .unwrap_or_default();
        if theirs != here() {
            return Err(Error::Usage(format!(
                "--engine-sharing is for ranks of one host, and rank {first} is on another: fewer share an engine, or all run here"
            )));
        }
        let open = |name| {
            let path = Path::new(path).join(name);
            let file = File::options().read(true).write(true).open(&path);
            let file = file.map_err(|source| {
                Error::system(
                    format!("open {} of a shared engine", path.display()),
                    source,
                )
            });
            file.map(|file| Turn { free: Some(file) })
        };
        Ok(Self {
            compute: open(COMPUTE)?,
            copy: open(COPY)?,
        })
    }
}

/// What one rank at a time does; at once where the engine is its own.
#[derive(Debug, Default)]
pub(super) struct Turn {
    /// Has the time at which the engine is free, in nanoseconds.
    free: Option<File>,
}

impl Turn {
    /// Takes a step, which gets the time at which it begins, `ready` or later, and returns the one at which it ends. Returns that.
    pub(super) fn take(&self, ready: f64, step: impl FnOnce(f64) -> f64) -> Result<f64> {
        let Some(file) = &self.free else {
            return Ok(step(ready));
        };
        let failed = |source| Error::system("take the turn of a shared engine", source);
        flock(file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        let mut free = [0; 8];
        file.read_exact_at(&mut free, 0).map_err(failed)?;
        let end = step(ready.max(f64::from_ne_bytes(free)));
        file.write_all_at(&end.to_ne_bytes(), 0).map_err(failed)?;
        flock(file, FlockOperation::Unlock).map_err(|errno| failed(errno.into()))?;
        Ok(end)
    }
}

/// Makes the files of an engine that is free, in a folder that goes when it is dropped.
fn make_files() -> Result<TempDir> {
    let failed = |source| {
        let parent = std::env::temp_dir();
        Error::system(
            format!("make files of a shared engine in {}", parent.display()),
            source,
        )
    };
    let folder = tempfile::Builder::new().prefix("tagwire-engine-").tempdir();
    let folder = folder.map_err(failed)?;
    for name in [COMPUTE, COPY] {
        std::fs::write(folder.path().join(name), 0_f64.to_ne_bytes()).map_err(failed)?;
    }
    Ok(folder)
}

/// Returns the name of this host.
fn here() -> String {
    host::name().unwrap_or_default()
}

/// Returns where a folder is: the host, and its path.
fn place(folder: &Path) -> Result<Vec<u8>> {
    let text = format!("{}\n{}", here(), folder.display());
    let mut bytes = text.into_bytes();
    match bytes.len() {
        ..=ROOM => {
            // What follows is no part of it.
            bytes.resize(ROOM, 0);
            Ok(bytes)
        }
        _ => Err(Error::Usage(format!(
            "the path {} is too long: set TMPDIR to a shorter one",
            folder.display()
        ))),
    }
}

/// Bytes for a place.
const ROOM: usize = 4096;
/// The files of an engine.
const COMPUTE: &str = "compute";
const COPY: &str = "copy";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_two_ranks_take_turns() {
        let folder = make_files().unwrap();
        let place = place(folder.path()).unwrap();
        let open = || Turns::open(&place, Rank::new(0)).unwrap();
        let (one, two) = (open(), open());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        let step = |turn: &Turn, ready: f64| {
            let mut begun = None;
            let end = turn.take(ready, |start| {
                begun = Some(start);
                start + 10.0
            });
            (begun.unwrap(), end.unwrap())
        };
        assert_eq!(step(&one.copy, 100.0), (100.0, 110.0));
        // The engine is busy until then.
        assert_eq!(step(&two.copy, 95.0), (110.0, 120.0));
        assert_eq!(step(&one.copy, 130.0), (130.0, 140.0));
        // Computations have turns of their own.
        assert_eq!(step(&two.compute, 95.0), (95.0, 105.0));
        // So has an engine that is not shared.
        let own = Turns::default();
        assert_eq!(step(&own.copy, 1.0), (1.0, 11.0));
        assert_eq!(step(&own.copy, 2.0), (2.0, 12.0));
    }

    #[test]
    fn no_two_steps_are_under_way_at_once() {
        let folder = make_files().unwrap();
        let place = place(folder.path()).unwrap();
        let inside = std::sync::atomic::AtomicU32::new(0);
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let turns = Turns::open(&place, Rank::new(0)).unwrap();
                    for _ in 0..100 {
                        let step = |start: f64| {
                            assert_eq!(inside.fetch_add(1, order), 0);
                            std::thread::yield_now();
                            assert_eq!(inside.fetch_sub(1, order), 1);
                            start + 1.0
                        };
                        turns.copy.take(0.0, step).unwrap();
                    }
                });
            }
        });
        let turns = Turns::open(&place, Rank::new(0)).unwrap();
        assert_eq!(turns.copy.take(0.0, |start| start).unwrap(), 400.0);
    }

    #[test]
    fn ranks_of_another_host_are_refused() {
        let other = format!("elsewhere {}\n/tmp", here());
        let error = Turns::open(other.as_bytes(), Rank::new(2)).unwrap_err();
        assert!(matches!(error, Error::Usage(_)), "{error}");
        assert!(
            error.to_string().contains("rank 2 is on another"),
            "{error}"
        );
    }
}
