//! The memory that the members of a window on one host share: who makes it, and where the parts of each are.

use tagwire_transport::SharedMemory;

use super::Making;
use crate::error::{Class, Error, Result};
use crate::object::window::{Flavor, locks};

/// Windows begin at pages, where they do not follow each other without a gap.
pub(crate) const PAGE: usize = 4096;

/// Most bytes of the key of a host's memory.
const KEY: usize = 63;

/// Where the parts of members are in the memory of their host.
pub(super) struct Layout {
    /// Of the member's control block, and of its window.
    pub(super) places: Vec<(usize, usize)>,
    pub(super) bytes: usize,
}

impl Making<'_> {
    /// Returns where parts are in the memory of this host.
    ///
    /// # Errors
    /// `MPI_ERR_SIZE` where no memory is so long.
    pub(super) fn layout(&self) -> Result<Layout> {
        let too_long = || Error::new(Class::Size, "the windows of a host are longer than memory");
        let block = self.block_bytes();
        let mut end = block.checked_mul(self.near.len()).ok_or_else(too_long)?;
        end = end.next_multiple_of(PAGE);
        let has_gaps = |member: usize| {
            self.wanted.flavor == Flavor::Allocate || self.told[member].kind % 2 == 1
        };
        let mut places = Vec::with_capacity(self.near.len());
        for (number, member) in self.near.iter().enumerate() {
            if has_gaps(*member) {
                end = end.checked_next_multiple_of(PAGE).ok_or_else(too_long)?;
            }
            places.push((number * block, end));
            let bytes = match self.is_allocated() {
                true => usize::try_from(self.told[*member].bytes).map_err(|_| too_long())?,
                false => 0,
            };
            end = end.checked_add(bytes).ok_or_else(too_long)?;
        }
        let bytes = end.checked_next_multiple_of(PAGE).ok_or_else(too_long)?;
        Ok(Layout { places, bytes })
    }

    /// Returns the memory that the members of this host share, `None` where there are no others, or they cannot share any; and whether
    /// each can have all others pass a barrier.
    pub(super) fn shared(&self, layout: &Layout) -> Result<(Option<SharedMemory>, bool)> {
        let is_first = self.near.first() == Some(&self.team.me());
        let made = match is_first && self.near.len() > 1 {
            true => self.agree(self.open(layout.bytes))?,
            false => self.agree(Ok(None))?,
        };
        let (memory, key) = match made {
            Some((memory, key)) => (Some(memory), key),
            None => (None, Vec::new()),
        };
        let keys = self.gathered(&key)?;
        let first = self.near.first().copied().unwrap_or_default();
        let mapped = match memory {
            Some(memory) => Some(memory),
            None => self.join(first, layout.bytes, &keys[first]),
        };
        // All of a host, or none.
        let own = [u8::from(mapped.is_some()), u8::from(locks::register())];
        let have = self.gathered(&own)?;
        let have_all = |what: usize| self.near.iter().all(|member| have[*member][what] == 1);
        let (all, has_barrier) = (have_all(0), have_all(1));
        let is_alone = self.near.len() == 1;
        if self.wanted.flavor == Flavor::Shared && !all && !is_alone {
            let text = "these ranks share no memory: the setting transport has to name shm, without data reliability around it, which carries messages alone (pml=dr, reliability=dr, and a fault that loses messages put it there)";
            return Err(Error::new(Class::RmaShared, text));
        }
        let shared = mapped.filter(|_| all).map(|mut memory| {
            memory.forget_descriptor();
            memory
        });
        Ok((shared, has_barrier))
    }

    /// Makes the memory of this host. `None` where the transport has none to share.
    fn open(&self, bytes: usize) -> Result<Option<(SharedMemory, Vec<u8>)>> {
        let no_memory = |why: String| {
            let text = format!("no shared memory of {bytes} bytes for the window: {why}");
            Error::new(Class::NoMem, text)
        };
        let Some(board) = SharedMemory::board_bytes(bytes) else {
            return Err(no_memory("no memory is so long".to_owned()));
        };
        let Some(with) = self
            .near
            .get(1)
            .and_then(|member| self.team.members().rank(*member))
        else {
            return Ok(None);
        };
        let opened = self
            .messenger()
            .with_boards(with, |boards, _| boards.open_board(board))?;
        let Some(opened) = opened else {
            return Ok(None);
        };
        let opened = opened.ok_or_else(|| no_memory("the system has none".to_owned()))?;
        let memory = SharedMemory::new(opened.memory);
        memory
            .reserve()
            .map_err(|error| no_memory(error.to_string()))?;
        Ok((opened.key.len() <= KEY).then_some((memory, opened.key)))
    }

    fn join(&self, first: usize, bytes: usize, key: &[u8]) -> Option<SharedMemory> {
        let board = SharedMemory::board_bytes(bytes).filter(|_| !key.is_empty())?;
        let from = self.team.members().rank(first)?;
        let joined = self
            .messenger()
            .with_boards(from, |boards, from| boards.join_board(from, board, key));
        // Where it cannot be mapped, the members reach each other by remote memory access.
        joined.ok().flatten()?.ok().map(SharedMemory::new)
    }
}
