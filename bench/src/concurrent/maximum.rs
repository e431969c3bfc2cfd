//! Allreduces of integers: the greatest of all members at each place.

use crate::buffer::{Difference, Memory};
use crate::error::Result;
use crate::port::group::Group;

/// The buffers of a caller in its group.
pub(crate) struct Maximum<'g> {
    group: Box<dyn Group + 'g>,
    out: Memory,
    into: Memory,
    rank: u32,
    /// The members, where results are checked.
    checked: Option<Vec<u32>>,
    done: u64,
}

impl<'g> Maximum<'g> {
    /// For up to `largest` bytes. With `checked`, results are held against what these members gave.
    pub(crate) fn new(
        group: Box<dyn Group + 'g>,
        largest: usize,
        rank: u32,
        checked: Option<Vec<u32>>,
    ) -> Result<Self> {
        Ok(Self {
            group,
            out: Memory::new(largest)?,
            into: Memory::new(largest)?,
            rank,
            checked,
            done: 0,
        })
    }

    /// One allreduce of `size` bytes.
    pub(crate) fn call(&mut self, size: usize) -> Result<()> {
        if self.checked.is_some() {
            let own = numbers(size, |place| number(self.rank, place, self.done));
            self.out.write(&own);
            self.into.write(&vec![0; size]);
        }
        let (out, into) = (self.out.outgoing(0..size), self.into.incoming(0..size));
        self.group.maximum(out, into)?;
        if let Some(members) = &self.checked {
            let greatest = |place| {
                let all = members.iter().map(|&rank| number(rank, place, self.done));
                all.max().unwrap_or(0)
            };
            self.check(&numbers(size, greatest))?;
        }
        self.done += 1;
        Ok(())
    }

    fn check(&self, expected: &[u8]) -> Result<()> {
        let found = self.into.bytes(0..expected.len());
        let compared = Difference::between(expected, &found);
        compared.map_err(|found| found.of_message(self.rank, self.rank, self.done, expected.len()))
    }
}

/// What a rank gives at a place of its operation number `done`.
const fn number(rank: u32, place: usize, done: u64) -> i32 {
    // Each member has the greatest at some places; half are negative.
    let mixed = (rank as u64 + 1) * 7_919 + place as u64 * 104_729 + done * 31;
    (mixed % 2_003) as i32 - 1_001
}

fn numbers(size: usize, number: impl Fn(usize) -> i32) -> Vec<u8> {
    (0..size / 4)
        .flat_map(|place| number(place).to_ne_bytes())
        .collect()
}
