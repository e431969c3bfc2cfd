//! What messages contain: every byte follows from the seed, the sender, the receiver and the number.

use tagwire_conformance::Chance;

/// The messages from one rank to another.
#[derive(Debug, Clone, Copy)]
pub struct Stream {
    /// The seed of the trial.
    pub seed: u64,
    /// Who sends.
    pub from: u32,
    /// Who receives.
    pub to: u32,
}

/// In front of each message of a stream: its number, and how many the stream has in all where its sender knows that.
pub const HEADER: usize = 16;
/// How many messages a stream has while its sender does not know.
pub const ENDLESS: u64 = u64::MAX;

impl Stream {
    /// Returns numbers that are the stream's and this message's own.
    fn chance(self, number: u64) -> Chance {
        let pair = u64::from(self.from) << 32 | u64::from(self.to);
        Chance::new(self.seed ^ pair.wrapping_mul(0x9e37_79b9) ^ number.rotate_left(40))
    }

    /// Returns how many bytes a message has, its header included: of each length that messages are told apart by.
    pub fn len(self, number: u64) -> usize {
        let mut chance = self.chance(number);
        let most = match chance.below(64) {
            0 => 1 << 20,
            1..4 => 100 << 10,
            4..16 => 9 << 10,
            16..40 => 400,
            _ => 40,
        };
        HEADER + chance.below(most) as usize
    }

    /// Returns the tag of a message: streams have several, so that order among tags is tested too.
    pub fn tag(self, number: u64) -> i32 {
        1 + (self.chance(!number).below(3) as i32)
    }

    /// Returns a message.
    pub fn message(self, number: u64, end: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.len(number)];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes[8..HEADER].copy_from_slice(&end.to_le_bytes());
        fill(
            self.chance(number.wrapping_add(1 << 60)).word(),
            &mut bytes[HEADER..],
        );
        bytes
    }

    /// Checks a message that must be this one. Returns how many the stream has.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn check(self, number: u64, bytes: &[u8]) -> Result<u64, String> {
        let what = || format!("message {number} of rank {} to rank {}", self.from, self.to);
        if bytes.len() != self.len(number) {
            let (is, was) = (bytes.len(), self.len(number));
            return Err(format!("{}: {is} bytes have arrived of {was}", what()));
        }
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        if word(0) != number {
            return Err(format!(
                "{}: number {} has come in its place",
                what(),
                word(0)
            ));
        }
        let mut expected = vec![0; bytes.len() - HEADER];
        fill(
            self.chance(number.wrapping_add(1 << 60)).word(),
            &mut expected,
        );
        if let Some(at) = (0..expected.len()).find(|at| bytes[HEADER + at] != expected[*at]) {
            return Err(format!(
                "{}: byte {} of {} is wrong",
                what(),
                HEADER + at,
                bytes.len()
            ));
        }
        Ok(word(8))
    }
}

/// Fills memory with what follows from a word.
pub fn fill(seed: u64, bytes: &mut [u8]) {
    let mut word = seed;
    for chunk in bytes.chunks_mut(8) {
        word = word
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(seed | 1);
        chunk.copy_from_slice(&word.to_be_bytes()[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream = Stream {
        seed: 7,
        from: 1,
        to: 2,
    };

    #[test]
    fn a_message_is_recognised() {
        for number in 0..300 {
            let message = STREAM.message(number, 12);
            assert_eq!(STREAM.check(number, &message), Ok(12));
        }
    }

    #[test]
    fn what_is_not_the_message_is_told() {
        let number = (0..).find(|number| STREAM.len(*number) > 100).unwrap();
        let message = STREAM.message(number, ENDLESS);
        for at in [0, HEADER, 60, message.len() - 1] {
            let mut changed = message.clone();
            changed[at] ^= 4;
            assert!(STREAM.check(number, &changed).is_err(), "byte {at}");
        }
        assert!(STREAM.check(number, &message[1..]).is_err());
        let other = Stream {
            from: 2,
            to: 1,
            ..STREAM
        };
        let mut turned = other.message(number, ENDLESS);
        turned.resize(message.len(), 0);
        assert!(STREAM.check(number, &turned).is_err());
    }
}
