//! Boards in shared memory: one memfd for each, which its members map.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use memmap2::MmapOptions;

use super::NAME;
use super::contact;
use super::memfd;
use super::peer::PeerState;
use super::rank::Shm;
use super::segment::HeaderMap;
use super::waiter;
use crate::allocation::PeerAllocations;
use crate::board::{BoardMemory, BoardWaker, Boards, MemberMemory, OpenBoard};
use crate::error::{Error, Result};
use crate::message::EndpointId;

impl Boards for Shm {
    fn open_board(&mut self, bytes: usize) -> Option<OpenBoard> {
        match create(bytes) {
            Ok(mut board) => {
                board.memory.stream(self.options.stream);
                Some(board)
            }
            Err(error) => {
                tracing::debug!(%error, bytes, "no memory for a board");
                None
            }
        }
    }

    fn join_board(&mut self, from: EndpointId, bytes: usize, key: &[u8]) -> Result<BoardMemory> {
        let unsupported = Error::Unsupported {
            transport: NAME,
            what: "a board of a rank that is in another namespace",
        };
        let peer = self.peers.get(from.index());
        let peer = peer.filter(|peer| peer.state == PeerState::Alive);
        let known = peer.and_then(|peer| peer.identity.map(|identity| (identity, peer.rank)));
        let known = known.filter(|(identity, _)| identity.shares_namespace(&self.identity));
        let (identity, rank) = known.ok_or(unsupported)?;
        let broken = |reason| Error::Protocol {
            transport: NAME,
            peer: rank,
            reason,
        };
        let key = Key::from_bytes(key).ok_or_else(|| broken("a board's key".to_owned()))?;
        let mut memory = join(identity.pid, key, bytes).map_err(broken)?;
        memory.stream(self.options.stream);
        Ok(memory)
    }

    fn waker(&mut self, to: EndpointId) -> Option<Arc<dyn BoardWaker>> {
        let header = contact::met(self, to)?.header.clone()?;
        Some(Arc::new(Sleeper(header)))
    }

    fn memory(&mut self, of: EndpointId) -> Option<Arc<dyn MemberMemory>> {
        let partner = self.partner(of)?;
        partner.pid().is_some().then_some(partner as _)
    }

    fn name_of(&self, address: usize, len: usize) -> Option<u64> {
        self.arena.span.offset(address as u64, len)
    }

    fn allocations(&mut self, of: EndpointId) -> Option<Arc<dyn PeerAllocations>> {
        let arena = contact::met(self, of)?.arena.clone()?;
        Some(arena)
    }
}

/// A rank that may sleep on the word in its header.
struct Sleeper(HeaderMap);

impl BoardWaker for Sleeper {
    #[inline]
    fn wake(&self) {
        waiter::wake_sleeper(&self.0);
    }
}

/// What a member needs to map a board.
#[derive(Debug, Clone, Copy)]
struct Key {
    /// The number of the descriptor in its maker's process.
    descriptor: u32,
    /// The number on the board: the descriptor may stand for something else by now.
    nonce: u64,
}

impl Key {
    const LEN: usize = 12;

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.descriptor.to_le_bytes().to_vec();
        bytes.extend(self.nonce.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::LEN] = bytes.try_into().ok()?;
        let (descriptor, nonce) = bytes.split_first_chunk()?;
        Some(Self {
            descriptor: u32::from_le_bytes(*descriptor),
            nonce: u64::from_le_bytes(nonce.try_into().ok()?),
        })
    }
}

fn create(bytes: usize) -> io::Result<OpenBoard> {
    let file = memfd::create("tagwire-board", bytes as u64)?;
    let key = Key {
        descriptor: file.as_raw_fd().unsigned_abs(),
        nonce: memfd::nonce()?,
    };
    let memory = map(file, bytes)?;
    memory.nonce().store(key.nonce, Relaxed);
    Ok(OpenBoard {
        key: key.to_bytes(),
        memory,
    })
}

/// Maps the board that process `pid` has made, or reports what is wrong with it.
fn join(pid: u32, key: Key, bytes: usize) -> Result<BoardMemory, String> {
    let what = format!("board of {bytes} bytes");
    let file = memfd::open(pid, key.descriptor, bytes as u64, &what)?;
    let path = memfd::path(pid, key.descriptor);
    let mut memory = map(file, bytes).map_err(|error| format!("{path}: {error}"))?;
    memory.forget_descriptor();
    match memory.nonce().load(Relaxed) == key.nonce {
        true => Ok(memory),
        false => Err(format!("{path} is another board")),
    }
}

fn map(file: File, bytes: usize) -> io::Result<BoardMemory> {
    let options = MmapOptions::new().len(bytes).map_raw(&file)?;
    // A dump of this process would make every page of it exist. It is the same without the advice.
    let _ = options.advise(memmap2::Advice::DontDump);
    BoardMemory::new(options, Some(file)).ok_or_else(|| io::Error::other("no memory for a board"))
}
