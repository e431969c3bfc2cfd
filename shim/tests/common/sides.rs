//! Intercommunicators of the even and the odd ranks of a job.

use std::sync::Arc;

use tagwire_shim::abi::{Comm, PROC_NULL, ROOT, Request};
use tagwire_shim::call::{communicators, complete, intercommunicators as inter};
use tagwire_shim::{Process, Result};

use super::{WORLD, ignore, ranks, result};

/// Sizes of jobs, whose even ranks are one group and whose odd ones the other: 1 + 1, 2 + 1, 3 + 2.
pub const SIZES: [u32; 3] = [2, 3, 5];

/// What a rank knows of an intercommunicator of even and odd ranks.
pub struct Sides {
    pub local: Comm,
    pub comm: Comm,
    /// This process in its group, the size of that, and of the other.
    pub me: i32,
    pub size: i32,
    pub remote: i32,
    /// The rank in the world of this one, and of a rank of the other group.
    pub world: i32,
}

impl Sides {
    /// The even group is led by its last rank, the odd one by its first.
    pub fn of(process: &Process, world: i32, total: u32, tag: i32) -> Self {
        let (mut local, mut comm) = (Comm::NULL, Comm::WORLD);
        let odd = world % 2;
        communicators::comm_split(process, WORLD, odd, 0, result(&mut local)).unwrap();
        let total = total as i32;
        let (even_size, odd_size) = ((total + 1) / 2, total / 2);
        let (leader, remote_leader) = match odd {
            0 => (even_size - 1, 1),
            _ => (0, (even_size - 1) * 2),
        };
        let new = result(&mut comm);
        inter::intercomm_create(process, local, leader, WORLD, remote_leader, tag, new).unwrap();
        let (size, remote) = if odd == 0 {
            (even_size, odd_size)
        } else {
            (odd_size, even_size)
        };
        Self {
            local,
            comm,
            me: world / 2,
            size,
            remote,
            world,
        }
    }

    pub fn free(mut self, process: &Process) {
        communicators::comm_free(process, result(&mut self.comm)).unwrap();
        communicators::comm_free(process, result(&mut self.local)).unwrap();
    }

    /// The rank in the world of a rank of the remote group.
    pub fn world_of(&self, remote: i32) -> i32 {
        2 * remote + 1 - self.world % 2
    }

    /// Runs what has a root with each of both groups as the root: `body` gets the argument, and which rank of which group it is.
    pub fn roots(&self, mut body: impl FnMut(i32, Root)) {
        let is_even = self.world % 2 == 0;
        for even_root in [true, false] {
            let is_mine = even_root == is_even;
            let last = if is_mine { self.size } else { self.remote } - 1;
            match (is_mine, self.me == last) {
                (true, true) => body(ROOT, Root::Here),
                (true, false) => body(PROC_NULL, Root::Beside),
                (false, _) => body(last, Root::There(self.world_of(last))),
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Root {
    Here,
    Beside,
    /// Its rank in the world.
    There(i32),
}

pub fn each(body: impl Fn(&Arc<Process>, &Sides) + Sync) {
    for size in SIZES {
        ranks(size, |process, me| {
            let sides = Sides::of(process, me, size, 12);
            body(process, &sides);
            sides.free(process);
        });
    }
}

pub fn ask(body: impl Fn(super::Ref<i32>) -> Result) -> i32 {
    let mut value = -1;
    body(result(&mut value)).unwrap();
    value
}

pub fn wait(process: &Process, request: &mut Request) {
    complete::wait(process, result(request), ignore()).unwrap();
}
