//! What the members of a window tell each other of what they want.

/// What a member says of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Told {
    /// The class of what is wrong with its arguments; 0 where they are good.
    pub(super) class: u64,
    /// The first rank of its host.
    pub(super) host: u64,
    pub(super) bytes: u64,
    pub(super) unit: u64,
    /// The flavor, and whether there are gaps.
    pub(super) kind: u64,
}

impl Told {
    /// Bytes of it.
    pub(super) const LEN: usize = 40;

    pub(super) fn encode(self) -> [u8; Self::LEN] {
        let words = [self.class, self.host, self.bytes, self.unit, self.kind];
        let mut bytes = [0; Self::LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        Self {
            class: word(0),
            host: word(1),
            bytes: word(2),
            unit: word(3),
            kind: word(4),
        }
    }
}
