//! Windows as a C program makes and uses them.

use std::sync::Arc;

use tagwire_shim::abi::{Comm, Datatype, Errhandler, Group, Info, Request, Win};
use tagwire_shim::call::communicators::comm_size;
use tagwire_shim::call::complete;
use tagwire_shim::call::windows::{creation, queries, synchronization, transfers};
use tagwire_shim::raw::{Elements, In, Out, Place, Pointer};
use tagwire_shim::{Process, Result};

use super::{INT, WORLD, one_sided, out_at, result, room};

/// `MPI_LOCK_EXCLUSIVE`, `MPI_LOCK_SHARED`.
pub const EXCLUSIVE: i32 = 301;
pub const SHARED: i32 = 302;

/// How windows come by their memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Created,
    Allocated,
    Shared,
    Dynamic,
}

pub const ALL: [Made; 4] = [Made::Created, Made::Allocated, Made::Shared, Made::Dynamic];

/// A window of `int`s, with the memory of this rank.
pub struct Ints {
    pub process: Arc<Process>,
    pub win: Win,
    /// Where the memory of this rank is.
    pub base: Pointer,
    /// What a displacement of each rank begins with: its addresses, of a dynamic window.
    bases: Vec<i64>,
    made: Made,
    _memory: Vec<i32>,
}

/// Makes a window over `count` `int`s of each rank, all zero. Its errors are returned.
pub fn window(process: &Arc<Process>, made: Made, count: usize) -> Ints {
    window_on(process, WORLD, made, count)
}

pub fn window_on(process: &Arc<Process>, comm: Comm, made: Made, count: usize) -> Ints {
    let mut memory = match made {
        Made::Created | Made::Dynamic => vec![0_i32; count],
        _ => Vec::new(),
    };
    let (bytes, info) = (4 * count as i64, Info::NULL);
    let (mut win, mut base) = (Win::NULL, Pointer(std::ptr::null_mut()));
    let into = result(&mut win);
    match made {
        Made::Created => {
            let data = room(&mut memory);
            creation::win_create(process, data, bytes, 4, info, comm, into).unwrap();
        }
        Made::Allocated => {
            let start = result(&mut base);
            creation::win_allocate(process, bytes, 4, info, comm, start, into).unwrap();
        }
        Made::Shared => {
            let start = result(&mut base);
            creation::win_allocate_shared(process, bytes, 4, info, comm, start, into).unwrap();
        }
        Made::Dynamic => {
            creation::win_create_dynamic(process, info, comm, into).unwrap();
            let data = room(&mut memory);
            creation::win_attach(process, win, data, bytes).unwrap();
        }
    }
    if base.0.is_null() {
        base = Pointer(memory.as_mut_ptr().cast());
    }
    queries::win_set_errhandler(process, win, Errhandler::RETURN).unwrap();
    let mut size = 0;
    comm_size(process, comm, result(&mut size)).unwrap();
    let mut bases = vec![0_i64; size as usize];
    if made == Made::Dynamic {
        let own = base.0.expose_provenance() as i64;
        allgather(process, comm, own, &mut bases);
    }
    Ints {
        process: Arc::clone(process),
        win,
        base,
        bases,
        made,
        _memory: memory,
    }
}

fn allgather(process: &Arc<Process>, comm: Comm, own: i64, all: &mut [i64]) {
    use tagwire_shim::call::collectives::allgather;
    let long = Datatype(0x201);
    let own = [own];
    let (sent, received) = (super::data(&own).of(1, long), room(all).of(1, long));
    allgather(process, sent, received, comm).unwrap();
}

impl Ints {
    /// Returns `count` `int`s from number `at` on of a rank.
    pub fn place(&self, rank: i32, at: i64, count: i64) -> Place {
        self.elements(rank, at, count, INT)
    }

    pub fn elements(&self, rank: i32, at: i64, count: i64, datatype: Datatype) -> Place {
        let base = usize::try_from(rank)
            .ok()
            .and_then(|rank| self.bases.get(rank));
        let displacement = match base {
            Some(base) if *base != 0 => base + 4 * at,
            _ => at,
        };
        Place {
            rank,
            displacement,
            count,
            datatype,
        }
    }

    pub fn put(&self, values: &[i32], rank: i32, at: i64) -> Result {
        let count = values.len() as i64;
        let origin: Elements<In> = super::data(values).of(count, INT);
        one_sided::put(&self.process, origin, self.place(rank, at, count), self.win)
    }

    pub fn get(&self, values: &mut [i32], rank: i32, at: i64) -> Result {
        let count = values.len() as i64;
        let origin: Elements<Out> = room(values).of(count, INT);
        one_sided::get(&self.process, origin, self.place(rank, at, count), self.win)
    }

    /// Reads a value by a request of its own, and waits for that.
    pub fn get_and_wait(&self, rank: i32, at: i64) -> Result {
        let (mut value, mut request) = ([0], Request::NULL);
        let origin: Elements<Out> = room(&mut value).of(1, INT);
        let place = self.place(rank, at, 1);
        transfers::rget(&self.process, origin, place, self.win, result(&mut request))?;
        complete::wait(&self.process, result(&mut request), super::ignore())
    }

    pub fn add(&self, values: &[i32], rank: i32, at: i64) -> Result {
        let count = values.len() as i64;
        let origin: Elements<In> = super::data(values).of(count, INT);
        let place = self.place(rank, at, count);
        one_sided::accumulate(&self.process, origin, place, super::SUM, self.win)
    }

    /// Adds 1 to a value. Returns what it was, once the window is flushed.
    pub fn fetch_add(&self, old: &mut i32, rank: i32, at: i64) -> Result {
        let one = [1_i32];
        let place = self.place(rank, at, 1);
        one_sided::fetch_and_op(
            &self.process,
            super::data(&one),
            room(std::slice::from_mut(old)),
            INT,
            rank,
            place.displacement,
            super::SUM,
            self.win,
        )
    }

    pub fn fence(&self) -> Result {
        synchronization::win_fence(&self.process, 0, self.win)
    }

    pub fn lock(&self, kind: i32, rank: i32) -> Result {
        synchronization::win_lock(&self.process, kind, rank, 0, self.win)
    }

    pub fn unlock(&self, rank: i32) -> Result {
        synchronization::win_unlock(&self.process, rank, self.win)
    }

    pub fn flush(&self, rank: i32) -> Result {
        one_sided::win_flush(&self.process, rank, self.win)
    }

    pub fn lock_all(&self) -> Result {
        synchronization::win_lock_all(&self.process, 0, self.win)
    }

    pub fn unlock_all(&self) -> Result {
        synchronization::win_unlock_all(&self.process, self.win)
    }

    pub fn post(&self, group: Group) -> Result {
        synchronization::win_post(&self.process, group, 0, self.win)
    }

    pub fn start(&self, group: Group) -> Result {
        synchronization::win_start(&self.process, group, 0, self.win)
    }

    pub fn complete(&self) -> Result {
        synchronization::win_complete(&self.process, self.win)
    }

    pub fn wait(&self) -> Result {
        synchronization::win_wait(&self.process, self.win)
    }

    /// Returns the first values of this rank's memory.
    pub fn own(&self, count: usize) -> Vec<i32> {
        let bytes = out_at(self.base).read().to_vec(4 * count);
        let words = bytes.chunks_exact(4);
        words
            .map(|word| i32::from_ne_bytes(word.try_into().unwrap()))
            .collect()
    }

    pub fn free(mut self) -> Result {
        if self.made == Made::Dynamic {
            // Others may still access it up to here.
            super::barrier(&self.process);
            creation::win_detach(&self.process, self.win, out_at(self.base).read())?;
        }
        creation::win_free(&self.process, result(&mut self.win))
    }
}
