//! Numbers in messages: words, and lists of extents.
//!
//! A list has for each extent the gap before it, counted from the end of the one before, and its length. Both are in groups of seven
//! bits, the lower ones first, with the upper bit set in all but the last: extents of a few bytes are told in two.

use crate::{Error, Extent, Result};

/// Returns words as bytes.
pub(crate) fn words<const N: usize>(words: [u64; N]) -> Vec<u8> {
    words.into_iter().flat_map(u64::to_ne_bytes).collect()
}

/// Returns the word at an index of an array of words.
pub(crate) fn word(bytes: &[u8], index: usize) -> u64 {
    let chunk = bytes.get(index * 8..).and_then(<[u8]>::first_chunk);
    chunk.map_or(0, |chunk| u64::from_ne_bytes(*chunk))
}

/// Adds a list of extents that begin at `start` or behind, with their number before.
pub(crate) fn encode(extents: impl Iterator<Item = Extent>, start: u64, out: &mut Vec<u8>) {
    let place = out.len();
    out.extend([0; 8]);
    let (mut end, mut count) = (start, 0_u64);
    for extent in extents {
        debug_assert!(extent.offset >= end, "in order");
        put(extent.offset - end, out);
        put(extent.len, out);
        end = extent.end();
        count += 1;
    }
    out[place..place + 8].copy_from_slice(&count.to_ne_bytes());
}

fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// A list that a member has sent: all of it is checked as it is read.
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    left: u64,
    end: u64,
    limit: u64,
    member: usize,
}

impl<'a> Decoder<'a> {
    /// Reads a list of extents between `start` and `limit` from the beginning of a member's bytes.
    pub(crate) fn new(bytes: &'a [u8], start: u64, limit: u64, member: usize) -> Result<Self> {
        let (count, rest) = bytes.split_first_chunk().ok_or(Error::Protocol {
            member,
            what: "its list of extents has no length",
        })?;
        Ok(Self {
            rest,
            left: u64::from_ne_bytes(*count),
            end: start,
            limit,
            member,
        })
    }

    /// Returns the next extent; `None` behind the last.
    pub(crate) fn extent(&mut self) -> Result<Option<Extent>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let (gap, len) = (self.number()?, self.number()?);
        let offset = self.end.checked_add(gap);
        let end = offset.and_then(|offset| offset.checked_add(len));
        match (offset, end) {
            (Some(offset), Some(end)) if end <= self.limit && len > 0 => {
                self.end = end;
                Ok(Some(Extent { offset, len }))
            }
            _ => self.broken("an extent is not in the part of the file"),
        }
    }

    /// Returns what follows the list, once all of it was read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn broken<T>(&self, what: &'static str) -> Result<T> {
        let member = self.member;
        Err(Error::Protocol { member, what })
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let Some((first, rest)) = self.rest.split_first() else {
                break;
            };
            self.rest = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
        }
        self.broken("its list of extents is cut off")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    fn all(bytes: &[u8], start: u64, limit: u64) -> Result<Vec<Extent>> {
        let mut decoder = Decoder::new(bytes, start, limit, 3)?;
        let mut found = Vec::new();
        while let Some(extent) = decoder.extent()? {
            found.push(extent);
        }
        Ok(found)
    }

    #[test]
    fn lists_come_as_they_were() {
        let of = |offset, len| Extent { offset, len };
        let list = [
            of(100, 1),
            of(101, 127),
            of(1 << 40, 1 << 20),
            of(1 << 62, 3),
        ];
        let mut out = Vec::new();
        encode(list.into_iter(), 100, &mut out);
        assert_eq!(all(&out, 100, u64::MAX).unwrap(), list);
        assert!(all(&out, 100, 1 << 50).is_err(), "outside");
        for end in 0..out.len() {
            assert!(all(&out[..end], 100, u64::MAX).is_err(), "cut off at {end}");
        }
        let mut none = Vec::new();
        encode(std::iter::empty(), 0, &mut none);
        assert_eq!(all(&none, 0, 0).unwrap(), []);
    }

    #[test]
    fn numbers_that_are_too_long_are_refused() {
        let mut bytes = words([1]);
        bytes.extend([0xff; 12]);
        assert!(matches!(
            all(&bytes, 0, u64::MAX),
            Err(Error::Protocol { member: 3, .. })
        ));
        // Beyond the end of all files, and without bytes.
        let mut bytes = words([1]);
        put(u64::MAX, &mut bytes);
        put(1, &mut bytes);
        assert!(all(&bytes, 1, u64::MAX).is_err());
        let mut bytes = words([1]);
        bytes.extend([0, 0]);
        assert!(all(&bytes, 1, u64::MAX).is_err());
    }
}
