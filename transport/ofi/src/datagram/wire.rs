//! What is in a datagram.
//!
//! ```text
//!  0     "tdg3"
//!  4     source        u32   the sender's rank
//!  8     count         u64   of the sender's datagrams to this receiver, from 1 on
//! 16     words         2 x u64   the header of the layer above
//! 32     length        u8    of the address, 0 where there is none
//! 33     (zero)        7 bytes
//! 40     proof         16 bytes  that the sender knows the ranks' secret
//! 56     address       as the sender publishes it, until it has heard from the receiver
//! ..     payload
//! ```
//!
//! The proof is the first half of an HMAC-SHA-256 (RFC 2104, section 5, on shorter ones) over the sender's rank, the receiver's, the
//! address that the receiver publishes, what precedes the proof, and the address behind it. So a datagram is good for one endpoint of
//! one receiver, once, and none of its parts in another; from it nobody finds the secret. The payload is not in it: data reliability
//! has a checksum of that in `words`. Who changes the payload of a datagram on its way, and keeps its checksum, is not found.

use tagwire_base::Rank;
use tagwire_base::bootstrap::JobSecret;
use tagwire_transport::AmHeader;

use crate::wire::Address;

/// Bytes in front of the address.
pub(super) const HEADER: usize = PROVED + PROOF;

/// Bytes in front of the proof.
const PROVED: usize = 40;

/// Bytes of a proof.
const PROOF: usize = JobSecret::LEN / 2;

const MAGIC: [u8; 4] = *b"tdg3";

/// What proofs are over before all else.
const LABEL: &[u8] = b"tagwire.datagram\0";

/// Longest address that a datagram carries.
pub(super) const MAX_ADDRESS: usize = u8::MAX as usize;

/// What precedes the payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Front {
    pub(super) source: Rank,
    pub(super) count: u64,
    pub(super) words: AmHeader,
    pub(super) address: Option<Address>,
    /// Where the payload begins.
    pub(super) payload: usize,
}

/// Who sends a datagram, and to whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) from: Rank,
    pub(super) to: Rank,
    /// The receiver's address, as it publishes it: two endpoints of one rank do not take each other's datagrams.
    pub(super) at: &'a [u8],
}

impl Way<'_> {
    /// Returns the proof of what precedes it and the address behind it.
    fn prove(self, secret: &JobSecret, front: &[u8], address: &[u8]) -> [u8; JobSecret::LEN] {
        let ranks = [self.from, self.to].map(|rank| rank.as_u32().to_le_bytes());
        let length = (self.at.len() as u64).to_le_bytes();
        secret.prove(&[
            LABEL,
            ranks.as_flattened(),
            &length,
            self.at,
            front,
            address,
        ])
    }
}

/// Appends what precedes the payload. An address of more than [`MAX_ADDRESS`] bytes is left out.
pub(super) fn write(
    way: Way,
    count: u64,
    words: AmHeader,
    secret: &JobSecret,
    address: &[u8],
    out: &mut Vec<u8>,
) {
    let (length, address) = match u8::try_from(address.len()) {
        Ok(length) => (length, address),
        Err(_) => (0, &[][..]),
    };
    let begin = out.len();
    out.extend(MAGIC);
    out.extend(way.from.as_u32().to_le_bytes());
    out.extend(count.to_le_bytes());
    words
        .0
        .iter()
        .for_each(|word| out.extend(word.to_le_bytes()));
    out.extend([length, 0, 0, 0, 0, 0, 0, 0]);
    let proof = way.prove(secret, &out[begin..], address);
    out.extend(&proof[..PROOF]);
    out.extend(address);
}

/// Returns the front of a datagram of the job to rank `own`, which publishes that it is `at`; `None` of any other.
pub(super) fn read(bytes: &[u8], secret: &JobSecret, own: Rank, at: &[u8]) -> Option<Front> {
    let (fixed, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (front, proof) = fixed.split_first_chunk::<PROVED>()?;
    if front[..4] != MAGIC || front[33..] != [0; 7] {
        return None;
    }
    let address = rest.get(..usize::from(front[32]))?;
    let source = u32::from_le_bytes([front[4], front[5], front[6], front[7]]);
    let source = (source <= Rank::MAX).then(|| Rank::new(source))?;
    let way = Way {
        from: source,
        to: own,
        at,
    };
    if !is_equal(&way.prove(secret, front, address)[..PROOF], proof) {
        return None;
    }
    let payload = HEADER + address.len();
    let address = match address {
        [] => None,
        _ => Some(Address::decode(address)?),
    };
    let is_own = address
        .as_ref()
        .is_none_or(|address| address.rank == source);
    let (words, _) = front.as_chunks::<8>();
    let word = |place: usize| u64::from_le_bytes(words[place]);
    is_own.then(|| Front {
        source,
        count: word(1),
        words: AmHeader([word(2), word(3)]),
        address,
        payload,
    })
}

/// Compares in a time that does not depend on where the first difference lies.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).map(|(a, b)| a ^ b);
    let difference = differences.fold(0, |all, one| all | one);
    // Without this a compiler may leave the loop at the first difference.
    std::hint::black_box(difference) == 0 && a.len() == b.len()
}

/// Which datagrams of a peer have come: none is taken twice, and none that is older than the newest by more than [`Counts::KEPT`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    newest: u64,
    /// Bit n is that the one n before the newest has come.
    come: u128,
}

impl Counts {
    /// How far back they are told apart.
    const KEPT: u64 = u128::BITS as u64;

    /// Takes note of datagram `count`; returns whether it is new.
    pub(super) fn take(&mut self, count: u64) -> bool {
        if count > self.newest {
            let step = count - self.newest;
            self.come = match step {
                step if step < Self::KEPT => self.come << step,
                _ => 0,
            };
            self.newest = count;
        }
        let age = self.newest - count;
        if age >= Self::KEPT || self.come >> age & 1 == 1 {
            return false;
        }
        self.come |= 1 << age;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fronts_come_back_and_nothing_else_does() {
        let secret = JobSecret::from_bytes([7; JobSecret::LEN]);
        let address = Address {
            rank: Rank::new(9),
            format: 3,
            name: vec![5; 16],
        };
        let way = Way {
            from: Rank::new(9),
            to: Rank::new(4),
            at: &[4; 20],
        };
        let words = AmHeader([1, u64::MAX - 1]);
        for address in [None, Some(address)] {
            let encoded = address.as_ref().map(Address::encode).unwrap_or_default();
            let mut bytes = Vec::new();
            write(way, 1 << 40, words, &secret, &encoded, &mut bytes);
            bytes.extend(b"payload");
            let front = read(&bytes, &secret, way.to, way.at).unwrap();
            assert_eq!(&bytes[front.payload..], b"payload");
            assert_eq!((front.source, front.count), (way.from, 1 << 40));
            assert_eq!((front.words, &front.address), (words, &address));
            for bit in 0..8 * front.payload {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read(&changed, &secret, way.to, way.at), None, "bit {bit}");
            }
            for len in 0..front.payload {
                assert_eq!(
                    read(&bytes[..len], &secret, way.to, way.at),
                    None,
                    "{len} bytes"
                );
            }
            let of_another = read(&bytes, &secret, way.from, way.at);
            assert_eq!(of_another, None, "for another rank");
            let elsewhere = read(&bytes, &secret, way.to, &[5; 20]);
            assert_eq!(elsewhere, None, "for another endpoint of the rank");
            let other = JobSecret::from_bytes([8; JobSecret::LEN]);
            assert_eq!(read(&bytes, &other, way.to, way.at), None, "of another job");
        }
    }

    #[test]
    fn a_datagram_has_no_secret_in_it() {
        let secret = JobSecret::from_bytes(std::array::from_fn(|place| place as u8 + 100));
        let way = Way {
            from: Rank::new(1),
            to: Rank::new(2),
            at: &[],
        };
        let mut bytes = Vec::new();
        write(way, 1, AmHeader::default(), &secret, &[], &mut bytes);
        for part in secret.as_bytes().windows(4) {
            assert!(!bytes.windows(4).any(|window| window == part));
        }
    }

    #[test]
    fn none_is_taken_twice() {
        let mut counts = Counts::default();
        let taken = [1, 2, 2, 5, 4, 4, 3, 1, 300, 172, 173, 173, 5, 299, 300];
        let expected = [
            true, true, false, true, true, false, true, false, true, false, true, false, false,
            true, false,
        ];
        assert_eq!(taken.map(|count| counts.take(count)), expected);
        assert!(counts.take(u64::MAX));
        assert!(!counts.take(0) && !counts.take(u64::MAX));
    }
}
