//! One-sided operations by the transport's own.

use tagwire_base::Rank;
use tagwire_transport::{Capabilities, EndpointId, Outcome, Post, RemoteMemory, Token};

use super::{Core, LANE, RawPort};
use crate::buffer::{Incoming, Memory, Outgoing};
use crate::error::{Error, Result};
use crate::port::remote::{Access, RemotePort};
use crate::port::{Endpoint, tags};

/// The bit of tokens of one-sided operations. Those of messages do not reach it.
const REMOTE: u64 = 1 << 63;

/// Room for an address, the length of a key, and the key.
const ROOM: usize = 1024;

/// The one-sided operations of a port.
#[derive(Default)]
pub(super) struct Remote {
    /// Those that are not over.
    open: u64,
    /// What the last atomic operation brought.
    fetched: u64,
    /// Something was put since the last flush.
    has_put: bool,
}

/// Memory of the other rank.
pub(crate) struct Region {
    rank: Rank,
    endpoint: EndpointId,
    address: u64,
    key: Vec<u8>,
}

impl Region {
    #[inline]
    fn from(&self, offset: usize) -> RemoteMemory<'_> {
        RemoteMemory {
            address: self.address + offset as u64,
            key: &self.key,
        }
    }
}

impl Core {
    /// Takes note of the end of a one-sided operation; returns whether it is one.
    #[inline]
    pub(super) fn end_remote(&mut self, token: Token, outcome: &Outcome) -> bool {
        if token.0 & REMOTE == 0 {
            return false;
        }
        self.remote.open -= 1;
        match outcome {
            Outcome::Done(value) => self.remote.fetched = *value,
            other => {
                let reason = format!("a one-sided operation failed: {other:?}");
                self.failure.get_or_insert(Error::Peer(reason));
            }
        }
        true
    }
}

impl RawPort {
    /// Posts a one-sided operation.
    #[inline]
    fn start(
        &self,
        region: &Region,
        what: &str,
        mut post: impl FnMut(&mut dyn tagwire_transport::ByteTransport, Token) -> Post,
    ) -> Result<()> {
        let posted = self.insist(region.rank, |driver| {
            let posted = post(&mut *driver.rail, Token(REMOTE));
            // It is over at a later call of progress.
            driver.core.remote.open += u64::from(posted == Post::Posted);
            posted
        })?;
        match posted {
            true => Ok(()),
            false => Err(self.lacks(what)),
        }
    }

    #[cold]
    fn lacks(&self, what: &str) -> Error {
        let name = self.driver.borrow().rail.name();
        Error::Usage(format!(
            "transport {name} has no {what}; 'tagwire info' says what transports have"
        ))
    }

    /// Exchanges what is needed to reach memory.
    #[inline]
    fn exchange(&self, address: u64, key: &[u8], peer: Rank) -> Result<(u64, Vec<u8>)> {
        let (mut out, into) = (Memory::new(ROOM)?, Memory::new(ROOM)?);
        if 16 + key.len() > ROOM {
            return Err(Error::Peer(format!("a key of {} bytes", key.len())));
        }
        out.write_words(&[address, key.len() as u64]);
        out.write_at(16, key);
        let send = || self.send(out.outgoing(0..ROOM), peer, tags::DATA);
        let recv = || self.recv(into.incoming(0..ROOM), peer, tags::DATA);
        match self.rank().as_u32() {
            0 => send().and_then(|()| recv())?,
            _ => recv().and_then(|()| send())?,
        }
        let words = into.words(2);
        let len = usize::try_from(words[1]).unwrap_or(ROOM).min(ROOM - 16);
        Ok((words[0], into.bytes(16..16 + len)))
    }
}

impl RemotePort for RawPort {
    type Region<'p> = Region;

    #[inline]
    fn share(&self, room: Incoming, access: Access) -> Result<Region> {
        let capabilities = self.driver.borrow().rail.capabilities();
        let has = |one| capabilities.contains(one);
        match access {
            Access::Put if !has(Capabilities::PUT) => return Err(self.lacks("put")),
            Access::Get if !has(Capabilities::GET) => return Err(self.lacks("get")),
            // What it has is seen at the first one.
            _ => {}
        }
        let peer = Rank::new(1 - self.rank().as_u32());
        let buffer = room.buffer();
        let address = buffer.region().map_or(0, |region| region.address());
        let registration = self.driver.borrow_mut().rail.register(&buffer)?;
        let (address, key) = self.exchange(address, &registration.key, peer)?;
        Ok(Region {
            rank: peer,
            endpoint: self.endpoint(peer)?,
            address,
            key,
        })
    }

    #[inline]
    fn put(&self, data: Outgoing, region: &Region, offset: usize) -> Result<()> {
        let (buffer, target) = (data.buffer(), region.from(offset));
        self.driver.borrow_mut().core.remote.has_put = true;
        self.start(region, "put", |rail, token| {
            rail.put(LANE, region.endpoint, &buffer, target, None, token)
        })
    }

    #[inline]
    fn get(&self, room: Incoming, region: &Region, offset: usize) -> Result<()> {
        let (buffer, source) = (room.buffer(), region.from(offset));
        self.start(region, "get", |rail, token| {
            rail.get(LANE, region.endpoint, &buffer, source, token)
        })
    }

    #[inline]
    fn add_one(&self, region: &Region) -> Result<u64> {
        let target = region.from(0);
        self.start(
            region,
            "atomic operations on this memory (--memory arena has them on shm)",
            |rail, token| rail.fetch_add(LANE, region.endpoint, target, 1, token),
        )?;
        self.wait(|core| core.remote.open == 0)?;
        Ok(self.driver.borrow().core.remote.fetched)
    }

    #[inline]
    fn flush(&self, region: &Region) -> Result<()> {
        let has_put = {
            let remote = &mut self.driver.borrow_mut().core.remote;
            std::mem::take(&mut remote.has_put)
        };
        if has_put {
            self.start(region, "flush", |rail, token| {
                rail.flush(LANE, region.endpoint, token)
            })?;
        }
        self.wait(|core| core.remote.open == 0)
    }
}
