//! The memory of windows as plain bytes, and what operations make of its values.

use tagwire_conformance::Chance;
use tagwire_shim::abi::Op;

use crate::shapes::Value;

/// A predefined operation on unsigned integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Sum,
    Product,
    Min,
    Max,
    And,
    Or,
    Xor,
    Replace,
    Nothing,
}

/// Those whose result does not depend on the order of several.
pub const COMMUTATIVE: [Change; 7] = [
    Change::Sum,
    Change::Product,
    Change::Min,
    Change::Max,
    Change::And,
    Change::Or,
    Change::Xor,
];

impl Change {
    /// Returns any.
    pub fn any(chance: &mut Chance) -> Self {
        match chance.below(3) {
            0 => chance.one_of(&[Self::Replace, Self::Nothing]),
            _ => chance.one_of(&COMMUTATIVE),
        }
    }

    /// Returns its handle in the standard's binary interface (MPI-5.0, section 20.5).
    pub const fn handle(self) -> Op {
        Op(match self {
            Self::Sum => 0x21,
            Self::Min => 0x22,
            Self::Max => 0x23,
            Self::Product => 0x24,
            Self::And => 0x28,
            Self::Or => 0x29,
            Self::Xor => 0x2a,
            Self::Replace => 0x3c,
            Self::Nothing => 0x3d,
        })
    }

    const fn of(self, left: u64, right: u64) -> u64 {
        match self {
            Self::Sum => left.wrapping_add(right),
            Self::Product => left.wrapping_mul(right),
            Self::Min if right < left => right,
            Self::Max if right > left => right,
            Self::Min | Self::Max | Self::Nothing => left,
            Self::And => left & right,
            Self::Or => left | right,
            Self::Xor => left ^ right,
            Self::Replace => right,
        }
    }
}

/// The memory of each member of a window.
#[derive(Debug, Clone)]
pub struct Memory(pub Vec<Vec<u8>>);

impl Memory {
    /// Returns the values of a member that are at some bytes.
    pub fn read(&self, member: usize, value: Value, at: &[usize]) -> Vec<u8> {
        let memory = &self.0[member];
        let values = at.iter().map(|at| &memory[*at..*at + value.size]);
        values.flatten().copied().collect()
    }

    /// Writes values.
    pub fn write(&mut self, member: usize, value: Value, at: &[usize], data: &[u8]) {
        for (at, bytes) in at.iter().zip(data.chunks_exact(value.size)) {
            self.0[member][*at..*at + value.size].copy_from_slice(bytes);
        }
    }

    /// Changes values.
    pub fn change(
        &mut self,
        member: usize,
        value: Value,
        at: &[usize],
        (change, data): (Change, &[u8]),
    ) {
        let old = self.read(member, value, at);
        let pairs = old
            .chunks_exact(value.size)
            .zip(data.chunks_exact(value.size));
        let changed = pairs.flat_map(|(left, right)| {
            let changed = change.of(number(left), number(right));
            bytes(changed, value.size)
        });
        let changed: Vec<u8> = changed.collect();
        self.write(member, value, at, &changed);
    }
}

/// Returns the number that a value's bytes are.
pub fn number(value: &[u8]) -> u64 {
    let mut word = [0; 8];
    if cfg!(target_endian = "big") {
        word[8 - value.len()..].copy_from_slice(value);
    } else {
        word[..value.len()].copy_from_slice(value);
    }
    u64::from_ne_bytes(word)
}

/// Returns the lowest bytes of a number.
pub fn bytes(number: u64, size: usize) -> Vec<u8> {
    let word = number.to_ne_bytes();
    match cfg!(target_endian = "big") {
        true => word[8 - size..].to_vec(),
        false => word[..size].to_vec(),
    }
}
