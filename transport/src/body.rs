//! What a packet carries behind its header.

use std::fmt;
use std::ops::Range;

use crate::data::{Pack, SendBuffer};

/// Bytes of the pieces in which a body is appended.
const PIECE: usize = 1024;

/// The bytes of a packet: some of the sender's own, and a range of data behind them. Making one copies nothing.
#[derive(Debug, Clone)]
pub struct Body<'a> {
    prefix: &'a [u8],
    data: Source<'a>,
    range: Range<usize>,
}

/// Where the bytes of a body lie.
#[derive(Clone, Copy)]
enum Source<'a> {
    Buffer(&'a SendBuffer),
    Packed(&'a dyn Pack),
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Buffer(data) => data.fmt(f),
            Self::Packed(data) => f.debug_tuple("Packed").field(&data.len()).finish(),
        }
    }
}

impl<'a> Body<'a> {
    /// Returns the bytes of `data` in `range`, cut to what there is.
    #[inline]
    #[must_use]
    pub fn of(data: &'a SendBuffer, range: Range<usize>) -> Self {
        let end = range.end.min(data.len());
        Self {
            prefix: &[],
            data: Source::Buffer(data),
            range: range.start.min(end)..end,
        }
    }

    /// Returns all that `data` packs.
    #[inline]
    #[must_use]
    pub fn packed(data: &'a dyn Pack) -> Self {
        Self {
            prefix: &[],
            data: Source::Packed(data),
            range: 0..data.len(),
        }
    }

    /// Returns `prefix` and all of `data`.
    #[inline]
    #[must_use]
    pub fn with_prefix(prefix: &'a [u8], data: &'a SendBuffer) -> Self {
        Self {
            prefix,
            data: Source::Buffer(data),
            range: 0..data.len(),
        }
    }

    /// Returns its length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.prefix.len() + self.range.len()
    }

    /// Whether it has no bytes.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes, where they lie in one piece.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match (self.prefix.is_empty(), self.range.is_empty(), self.data) {
            (_, true, _) => Some(self.prefix),
            (true, false, Source::Buffer(data)) => data.bytes(self.range.clone()),
            _ => None,
        }
    }

    /// Writes the bytes from `offset` on into `out`, as many as there are and it has room for.
    pub fn copy_out(&self, offset: usize, out: &mut [u8]) {
        let own = self.prefix.get(offset..).unwrap_or_default();
        let own = &own[..own.len().min(out.len())];
        let (first, rest) = out.split_at_mut(own.len());
        first.copy_from_slice(own);
        let start = self.range.start + offset.saturating_sub(self.prefix.len());
        let count = rest.len().min(self.range.end.saturating_sub(start));
        match self.data {
            _ if count == 0 => {}
            Source::Buffer(data) => {
                data.copy_out(start, &mut rest[..count]);
            }
            Source::Packed(data) => data.pack(start, &mut rest[..count]),
        }
    }

    /// Appends the bytes to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        if let Some(bytes) = self.bytes() {
            return out.extend_from_slice(bytes);
        }
        let mut piece = [0; PIECE];
        for offset in (0..self.len()).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(self.len() - offset)];
            self.copy_out(offset, piece);
            out.extend_from_slice(piece);
        }
    }

    /// Returns a copy of the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.append_to(&mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Pack;

    /// So many bytes, each of which follows from its position.
    struct Numbers(usize);

    impl Pack for Numbers {
        fn len(&self) -> usize {
            self.0
        }

        fn pack(&self, offset: usize, out: &mut [u8]) {
            assert!(offset + out.len() <= self.0);
            for (place, byte) in out.iter_mut().enumerate() {
                *byte = ((offset + place) % 251) as u8;
            }
        }
    }

    #[test]
    fn a_body_is_the_same_in_one_copy_and_in_pieces() {
        let data = SendBuffer::packed(Box::new(Numbers(3000)));
        let numbers: Vec<u8> = (0..3000).map(|number| (number % 251) as u8).collect();
        let pack = Numbers(3000);
        for (prefix, body) in [
            (&[][..], Body::with_prefix(&[], &data)),
            (&[7; 9], Body::with_prefix(&[7; 9], &data)),
            (&[], Body::packed(&pack)),
        ] {
            let whole = [prefix, &numbers].concat();
            assert_eq!((body.len(), body.to_vec()), (whole.len(), whole.clone()));
            for (offset, len) in [(0, 5), (4, 8), (9, 2000), (1308, 3), (2990, 50)] {
                let mut out = vec![1; len];
                body.copy_out(offset, &mut out);
                let there = whole.len().saturating_sub(offset).min(len);
                assert_eq!(out[..there], whole[offset..offset + there]);
                assert!(out[there..].iter().all(|byte| *byte == 1));
            }
        }
    }

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        let data = SendBuffer::packed(Box::new(Numbers(6)));
        assert_eq!(Body::of(&data, 4..9).to_vec(), [4, 5]);
        assert_eq!(Body::of(&data, 1..3).to_vec(), [1, 2]);
        assert!(Body::of(&data, 7..9).is_empty());
        let told = Body::with_prefix(b"xy", &SendBuffer::EMPTY);
        assert_eq!(told.bytes(), Some(&b"xy"[..]));
    }
}
