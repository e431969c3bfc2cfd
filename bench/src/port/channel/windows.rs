//! Windows between ranks that are threads of this process.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use tagwire_base::Rank;
use tagwire_transport::Payload;

use super::ChannelPort;
use crate::buffer::{Incoming, Outgoing};
use crate::error::{Error, Result};
use crate::port::peer_gone;
use crate::port::window::{Exchange, Window, Windows};

/// Bytes of a flag, which is no message that can be spoiled.
const FLAG: usize = 8;

struct ChannelWindow<'p> {
    port: &'p ChannelPort,
    room: Incoming,
    /// Places in the list of all rooms.
    targets: HashMap<Rank, usize>,
}

impl Windows for ChannelPort {
    fn open(&self, room: Incoming, exchange: Exchange<'_>) -> Result<Box<dyn Window + '_>> {
        let place = {
            let mut rooms = self.rooms.lock().unwrap();
            rooms.push(room);
            rooms.len() as u64 - 1
        };
        let word = |bytes: Vec<u8>| u64::from_le_bytes(bytes.try_into().unwrap()) as usize;
        let keys = exchange(&place.to_le_bytes())?.into_iter();
        Ok(Box::new(ChannelWindow {
            port: self,
            room,
            targets: keys.map(|(rank, key)| (rank, word(key))).collect(),
        }))
    }
}

impl Window for ChannelWindow<'_> {
    fn put(&self, data: Outgoing, to: Rank, offset: usize) -> Result<()> {
        // Whoever looks at a room holds the list, too.
        let rooms = self.port.rooms.lock().unwrap();
        let target = rooms[self.targets[&to]].part(offset..offset + data.len());
        if data.len() == FLAG {
            target.set_shared_word(0, data.incoming().shared_word(0));
            return Ok(());
        }
        let mut bytes = data.bytes().to_vec();
        self.port.spoil(&mut bytes);
        target.buffer().write(0, Payload::from_slice(&bytes));
        Ok(())
    }

    fn flush(&self, _: &[Rank]) -> Result<()> {
        Ok(())
    }

    fn has_reached(&self, offset: usize, value: u64) -> Result<bool> {
        let reached = || {
            let _rooms = self.port.rooms.lock().unwrap();
            self.room.shared_word(offset) >= value
        };
        let gone = |rank: &&Rank| self.port.ended[rank.index()].load(Ordering::Acquire);
        let gone = self.targets.keys().find(gone);
        match (reached(), gone) {
            (true, _) => Ok(true),
            (false, None) => Ok(false),
            (false, Some(rank)) => Err::<bool, Error>(peer_gone(*rank)),
        }
    }
}
