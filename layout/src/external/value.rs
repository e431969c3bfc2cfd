//! Values in external32, type by type.

use super::binary128;
use crate::{Basic, Error, Result};

/// What is between a value in memory and in external32.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    kind: Kind,
    /// How many bytes a part has in memory, and in external32.
    native: usize,
    external: usize,
    /// A complex number has two parts.
    parts: usize,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The order of the bytes. Where lengths differ, values are cut off or filled up with 0.
    Unsigned,
    /// The same, filled up with the sign.
    Signed,
    /// The format of `long double` too.
    LongDouble,
}

impl Form {
    /// Returns the form of a type, by the table of the standard.
    pub(super) fn of(basic: Basic) -> Result<Self> {
        let (kind, external, parts) = match basic {
            Basic::Long => (Kind::Signed, 4, 1),
            Basic::UnsignedLong => (Kind::Unsigned, 4, 1),
            Basic::WideChar => (Kind::Unsigned, 2, 1),
            Basic::LongDouble => (Kind::LongDouble, 16, 1),
            Basic::ComplexLongDouble => (Kind::LongDouble, 32, 2),
            Basic::Complex32 | Basic::Complex64 => (Kind::Unsigned, basic.size(), 2),
            _ if basic.pair().is_some() => {
                let basic = basic.name();
                return Err(Error::NotExternal { basic });
            }
            _ => (Kind::Unsigned, basic.size(), 1),
        };
        Ok(Self {
            kind,
            native: basic.size() / parts,
            external: external / parts,
            parts,
        })
    }

    /// Returns how many bytes a value has in memory.
    pub(super) const fn native(self) -> usize {
        self.native * self.parts
    }

    /// Returns how many bytes a value has in external32.
    pub(super) const fn external(self) -> usize {
        self.external * self.parts
    }

    /// Converts a value from memory.
    pub(super) fn encode(self, value: &[u8], external: &mut [u8]) {
        let parts = value.chunks_exact(self.native);
        for (part, external) in parts.zip(external.chunks_exact_mut(self.external)) {
            let mut little = self.little(part);
            if let Kind::LongDouble = self.kind {
                little = binary128::of_long_double(little);
            }
            external.copy_from_slice(&little[..self.external]);
            external.reverse();
        }
    }

    /// Converts a value for memory.
    pub(super) fn decode(self, external: &[u8], value: &mut [u8]) {
        let parts = value.chunks_exact_mut(self.native);
        for (part, external) in parts.zip(external.chunks_exact(self.external)) {
            let is_negative = external[0] >= 0x80 && matches!(self.kind, Kind::Signed);
            let mut little = [if is_negative { 0xff } else { 0 }; 16];
            little[..self.external].copy_from_slice(external);
            little[..self.external].reverse();
            if let Kind::LongDouble = self.kind {
                little = binary128::to_long_double(little);
            }
            part.copy_from_slice(&little[..self.native]);
            if cfg!(target_endian = "big") {
                part.reverse();
            }
        }
    }

    /// Returns a part with its lowest byte first.
    fn little(self, part: &[u8]) -> [u8; 16] {
        let mut little = [0; 16];
        little[..self.native].copy_from_slice(part);
        if cfg!(target_endian = "big") {
            little[..self.native].reverse();
        }
        little
    }
}
