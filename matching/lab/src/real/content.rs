//! What messages carry: their numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tagwire_transport::data::{Pack, Unpack};
use tagwire_transport::{RecvBuffer, SendBuffer};

/// Bytes of a number; no message is shorter.
pub(crate) const NUMBER: usize = size_of::<u64>();

/// A message of a number, and zeros behind it.
#[derive(Debug)]
struct Message {
    number: [u8; NUMBER],
    bytes: usize,
}

impl Pack for Message {
    fn len(&self) -> usize {
        self.bytes
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        out.fill(0);
        let number = self.number.iter().skip(offset);
        out.iter_mut()
            .zip(number)
            .for_each(|(to, from)| *to = *from);
    }
}

/// Returns a message that carries a number.
pub(crate) fn message(number: u64, bytes: usize) -> SendBuffer {
    let number = number.to_le_bytes();
    SendBuffer::packed(Box::new(Message { number, bytes }))
}

/// Where the number of a message is put.
#[derive(Debug, Default)]
pub(crate) struct Room {
    number: Arc<AtomicU64>,
}

/// The same, as a receive has it.
#[derive(Debug)]
struct Taker {
    number: Arc<AtomicU64>,
    bytes: usize,
}

impl Unpack for Taker {
    fn capacity(&self) -> usize {
        self.bytes
    }

    fn unpack(&self, offset: usize, bytes: &[u8]) {
        let places = (offset..NUMBER).zip(bytes);
        let part = places.fold(0, |part, (place, byte)| {
            part | u64::from(*byte) << (8 * place)
        });
        self.number.fetch_or(part, Ordering::Relaxed);
    }
}

impl Room {
    /// Returns room for a message of at most so many bytes.
    pub(super) fn buffer(&self, bytes: usize) -> RecvBuffer {
        RecvBuffer::unpacked(Box::new(Taker {
            number: Arc::clone(&self.number),
            bytes,
        }))
    }

    /// Returns the number of the message that has come.
    pub(crate) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_comes_through_in_whatever_pieces() {
        let number: u64 = 0x0102_0304_0506_0708;
        let message = Message {
            number: number.to_le_bytes(),
            bytes: 20,
        };
        for step in [1, 3, 8, 20] {
            let room = Room::default();
            let taker = Taker {
                number: Arc::clone(&room.number),
                bytes: 20,
            };
            for offset in (0..20).step_by(step) {
                let mut piece = vec![0xff; step.min(20 - offset)];
                message.pack(offset, &mut piece);
                taker.unpack(offset, &piece);
            }
            assert_eq!(room.number(), number, "{step}");
        }
    }
}
