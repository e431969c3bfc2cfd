//! What is in a datagram.
//!
//! ```text
//!  0     "tdg1"
//!  4     source        u32   the sender's rank
//!  8     length        u8    of the address, 0 where there is none
//!  9     (zero)        7 bytes
//! 16     words         2 x u64   the header of the layer above
//! 32     secret        32 bytes  the job's
//! 64     address       as the sender publishes it, until it has heard from the receiver
//! ..     payload
//! ```

use tagwire_base::Rank;
use tagwire_base::bootstrap::JobSecret;
use tagwire_transport::AmHeader;

use crate::wire::Address;

/// Bytes in front of the address.
pub(super) const HEADER: usize = 32 + JobSecret::LEN;

const MAGIC: [u8; 4] = *b"tdg1";

/// Longest address that a datagram carries.
pub(super) const MAX_ADDRESS: usize = u8::MAX as usize;

/// What precedes the payload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Front {
    pub(super) source: Rank,
    pub(super) words: AmHeader,
    pub(super) address: Option<Address>,
    /// Where the payload begins.
    pub(super) payload: usize,
}

/// Appends what precedes the payload. An address of more than [`MAX_ADDRESS`] bytes is left out.
pub(super) fn write(
    source: Rank,
    words: AmHeader,
    secret: &JobSecret,
    address: &[u8],
    out: &mut Vec<u8>,
) {
    let (length, address) = match u8::try_from(address.len()) {
        Ok(length) => (length, address),
        Err(_) => (0, &[][..]),
    };
    out.extend(MAGIC);
    out.extend(source.as_u32().to_le_bytes());
    out.extend([length, 0, 0, 0, 0, 0, 0, 0]);
    words
        .0
        .iter()
        .for_each(|word| out.extend(word.to_le_bytes()));
    out.extend(secret.as_bytes());
    out.extend(address);
}

/// Returns the front of a datagram of the job; `None` of any other.
pub(super) fn read(bytes: &[u8], secret: &JobSecret) -> Option<Front> {
    let (fixed, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (front, proof) = fixed.split_first_chunk::<32>()?;
    if front[..4] != MAGIC || front[9..16] != [0; 7] || !secret.matches(proof) {
        return None;
    }
    let (words, _) = front.as_chunks::<8>();
    let source = u32::from_le_bytes([front[4], front[5], front[6], front[7]]);
    let length = usize::from(front[8]);
    let address = match length {
        0 => None,
        _ => Some(Address::decode(rest.get(..length)?)?),
    };
    let source = (source <= Rank::MAX).then(|| Rank::new(source))?;
    let is_own = address
        .as_ref()
        .is_none_or(|address| address.rank == source);
    is_own.then(|| Front {
        source,
        words: AmHeader([u64::from_le_bytes(words[2]), u64::from_le_bytes(words[3])]),
        address,
        payload: HEADER + length,
    })
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
        let words = AmHeader([1, u64::MAX - 1]);
        for address in [None, Some(address)] {
            let encoded = address.as_ref().map(Address::encode).unwrap_or_default();
            let mut bytes = Vec::new();
            write(Rank::new(9), words, &secret, &encoded, &mut bytes);
            bytes.extend(b"payload");
            let front = read(&bytes, &secret).unwrap();
            assert_eq!(&bytes[front.payload..], b"payload");
            assert_eq!((front.source, front.words), (Rank::new(9), words));
            assert_eq!(front.address, address);
            for bit in 0..8 * (HEADER + encoded.len()) {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                // Ranks, words and the name itself are anything, and what is left of a name that is cut off may be one: data
                // reliability above finds what was changed.
                let is_free = matches!(bit / 8, 4..9 | 16..32 | 68..);
                assert!(read(&changed, &secret).is_none() || is_free, "bit {bit}");
            }
            for len in 0..front.payload {
                assert_eq!(read(&bytes[..len], &secret), None, "{len} bytes");
            }
        }
        let other = JobSecret::from_bytes([8; JobSecret::LEN]);
        let mut bytes = Vec::new();
        write(Rank::new(1), words, &other, &[], &mut bytes);
        assert_eq!(read(&bytes, &secret), None, "another job's");
    }
}
