//! The oracle: every operation in the plainest way, one element after the other.

use tagwire_layout::{Basic, Layout, Operation};

/// What a type is to the table of MPI-5.0, section 6.9.2.
#[derive(Debug, Clone, Copy)]
pub enum Class {
    Integer {
        signed: bool,
    },
    Float,
    Complex(Basic),
    Logical,
    Byte,
    Pair(Basic, Basic),
    Character,
    /// What the x87 computes has tests of its own: these say only what is defined.
    LongDouble(&'static [Operation]),
}

pub fn class(basic: Basic) -> Class {
    use Operation as O;
    match basic {
        Basic::I8 | Basic::I16 | Basic::I32 | Basic::I64 | Basic::I128 | Basic::Long => {
            Class::Integer { signed: true }
        }
        Basic::U8 | Basic::U16 | Basic::U32 | Basic::U64 | Basic::UnsignedLong => {
            Class::Integer { signed: false }
        }
        Basic::F32 | Basic::F64 => Class::Float,
        Basic::Complex32 => Class::Complex(Basic::F32),
        Basic::Complex64 => Class::Complex(Basic::F64),
        Basic::Bool
        | Basic::Logical8
        | Basic::Logical16
        | Basic::Logical32
        | Basic::Logical64
        | Basic::Logical128 => Class::Logical,
        Basic::Byte => Class::Byte,
        Basic::Char | Basic::WideChar => Class::Character,
        Basic::F32Int => Class::Pair(Basic::F32, Basic::I32),
        Basic::F64Int => Class::Pair(Basic::F64, Basic::I32),
        Basic::LongInt => Class::Pair(Basic::I64, Basic::I32),
        Basic::TwoInt => Class::Pair(Basic::I32, Basic::I32),
        Basic::ShortInt => Class::Pair(Basic::I16, Basic::I32),
        Basic::TwoF32 => Class::Pair(Basic::F32, Basic::F32),
        Basic::TwoF64 => Class::Pair(Basic::F64, Basic::F64),
        Basic::LongDouble => Class::LongDouble(&[O::Sum, O::Product, O::Min, O::Max]),
        Basic::ComplexLongDouble => Class::LongDouble(&[O::Sum, O::Product]),
        Basic::LongDoubleInt => Class::LongDouble(&[O::MinLoc, O::MaxLoc]),
        other => panic!("{other:?} has no class"),
    }
}

pub fn is_defined(operation: &Operation, basic: Basic) -> bool {
    use Operation as O;
    let class = class(basic);
    let integer = matches!(class, Class::Integer { .. });
    if let (Class::LongDouble(those), false) = (class, matches!(operation, O::Replace | O::NoOp)) {
        let names = |other: &Operation| other.name() == operation.name();
        return cfg!(target_arch = "x86_64") && those.iter().any(names);
    }
    match operation {
        O::Sum | O::Product => integer || matches!(class, Class::Float | Class::Complex(_)),
        O::Min | O::Max => integer || matches!(class, Class::Float),
        O::LogicalAnd | O::LogicalOr | O::LogicalXor => integer || matches!(class, Class::Logical),
        O::BitAnd | O::BitOr | O::BitXor => integer || matches!(class, Class::Byte),
        O::MinLoc | O::MaxLoc => matches!(class, Class::Pair(..)),
        _ => true,
    }
}

/// All predefined operations with all types for which they are defined, but for those of the x87.
pub fn defined() -> impl Iterator<Item = (Operation, Basic)> {
    let operations = Operation::PREDEFINED.into_iter();
    operations.flat_map(|operation| {
        let types = Basic::ALL.iter().copied();
        let types = types.filter(|basic| !matches!(class(*basic), Class::LongDouble(_)));
        let types = types.filter(|basic| is_defined(&operation, *basic));
        types
            .map(|basic| (operation.clone(), basic))
            .collect::<Vec<_>>()
    })
}

/// `left[i] op right[i]` of whole buffers.
pub fn expected(operation: &Operation, basic: Basic, left: &[u8], right: &[u8]) -> Vec<u8> {
    let extent = basic.extent();
    let pairs = left.chunks(extent).zip(right.chunks(extent));
    pairs
        .flat_map(|(left, right)| element(operation, basic, left, right))
        .collect()
}

fn element(operation: &Operation, basic: Basic, left: &[u8], right: &[u8]) -> Vec<u8> {
    match (operation, class(basic)) {
        (Operation::Replace, _) => right.to_vec(),
        (Operation::NoOp, _) => left.to_vec(),
        (_, Class::Integer { signed }) => integer(operation, signed, left, right),
        (_, Class::Logical | Class::Byte) => integer(operation, false, left, right),
        (_, Class::Float) => float(operation, basic, left, right),
        (_, Class::Complex(part)) => complex(operation, part, left, right),
        (_, Class::Pair(value, index)) => pair(operation, (value, index), left, right),
        (_, Class::Character | Class::LongDouble(_)) => panic!("{operation:?} of {basic:?}"),
    }
}

/// An integer of any width, in the widest.
fn wide(signed: bool, bytes: &[u8]) -> i128 {
    let is_negative = signed && bytes.last().is_some_and(|last| *last >= 0x80);
    let mut all = [if is_negative { 0xff } else { 0 }; 16];
    all[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(all)
}

fn integer(operation: &Operation, signed: bool, left: &[u8], right: &[u8]) -> Vec<u8> {
    let length = left.len();
    let (left, right) = (wide(signed, left), wide(signed, right));
    let result = match operation {
        Operation::Sum => left.wrapping_add(right),
        Operation::Product => left.wrapping_mul(right),
        Operation::Min => left.min(right),
        Operation::Max => left.max(right),
        Operation::LogicalAnd => i128::from(left != 0 && right != 0),
        Operation::LogicalOr => i128::from(left != 0 || right != 0),
        Operation::LogicalXor => i128::from((left != 0) != (right != 0)),
        Operation::BitAnd => left & right,
        Operation::BitOr => left | right,
        Operation::BitXor => left ^ right,
        other => panic!("{other:?} of integers"),
    };
    result.to_le_bytes()[..length].to_vec()
}

/// A number of any type, for comparison: exact for all but long integers, which are compared apart.
fn number(basic: Basic, bytes: &[u8]) -> f64 {
    match basic {
        Basic::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()),
    }
}

fn float(operation: &Operation, basic: Basic, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (a, b) = (number(basic, left), number(basic, right));
    // The sum and the product of two f32 in f64, rounded once more, are those in f32.
    let narrow = |result: f64| match basic {
        Basic::F32 => (result as f32).to_le_bytes().to_vec(),
        _ => result.to_le_bytes().to_vec(),
    };
    match operation {
        Operation::Sum => narrow(a + b),
        Operation::Product => narrow(a * b),
        Operation::Min => if a < b { left } else { right }.to_vec(),
        Operation::Max => if a > b { left } else { right }.to_vec(),
        other => panic!("{other:?} of floating-point numbers"),
    }
}

fn complex(operation: &Operation, part: Basic, left: &[u8], right: &[u8]) -> Vec<u8> {
    let (sum, product) = (Operation::Sum, Operation::Product);
    let (a, b) = left.split_at(part.extent());
    let (c, d) = right.split_at(part.extent());
    match operation {
        Operation::Sum => [float(&sum, part, a, c), float(&sum, part, b, d)].concat(),
        Operation::Product => {
            let times = |left: &[u8], right: &[u8]| float(&product, part, left, right);
            let mut negative = times(b, d);
            *negative.last_mut().unwrap() ^= 0x80;
            let re = float(&sum, part, &times(a, c), &negative);
            [re, float(&sum, part, &times(a, d), &times(b, c))].concat()
        }
        other => panic!("{other:?} of complex numbers"),
    }
}

/// Which of two numbers is less; none where one is a NaN.
fn order(basic: Basic, left: &[u8], right: &[u8]) -> Option<std::cmp::Ordering> {
    match basic {
        Basic::F32 | Basic::F64 => number(basic, left).partial_cmp(&number(basic, right)),
        _ => Some(wide(true, left).cmp(&wide(true, right))),
    }
}

fn pair(
    operation: &Operation,
    (value, index): (Basic, Basic),
    left: &[u8],
    right: &[u8],
) -> Vec<u8> {
    use std::cmp::Ordering::{Equal, Less};

    let place = value.extent().max(index.extent());
    let index_of = |pair: &'_ [u8]| pair[place..place + index.extent()].to_vec();
    let order_of_values = order(value, &left[..value.extent()], &right[..value.extent()]);
    let order_of_values = match operation {
        Operation::MinLoc => order_of_values,
        _ => order_of_values.map(std::cmp::Ordering::reverse),
    };
    let is_left = match order_of_values {
        Some(Equal) => order(index, &index_of(left), &index_of(right)) == Some(Less),
        other => other == Some(Less),
    };
    let taken = if is_left { left } else { right };
    let mut result = vec![0; left.len()];
    result[..value.extent()].copy_from_slice(&taken[..value.extent()]);
    result[place..place + index.extent()].copy_from_slice(&index_of(taken));
    result
}

/// Sees to it that the bytes are the same, or both a NaN where a sum or product may give any.
pub fn assert_same(operation: &Operation, basic: Basic, found: &[u8], expected: &[u8], what: &str) {
    let part = match class(basic) {
        Class::Complex(part) => part,
        _ => basic,
    };
    let any_nan = matches!(part, Basic::F32 | Basic::F64)
        && matches!(operation, Operation::Sum | Operation::Product);
    assert_eq!(found.len(), expected.len());
    let parts = found
        .chunks(part.extent())
        .zip(expected.chunks(part.extent()));
    for (at, (found, expected)) in parts.enumerate() {
        let same = found == expected
            || any_nan && number(part, found).is_nan() && number(part, expected).is_nan();
        let name = basic.name();
        assert!(
            same,
            "{operation:?} of {name}, {what}, part {at}: {found:x?}, not {expected:x?}"
        );
    }
}

/// The three forms of an operation on copies of the buffers that begin `offsets` bytes after an aligned place.
pub fn forms(
    operation: &Operation,
    layout: &Layout,
    offsets: [usize; 3],
    left: &[u8],
    right: &[u8],
) -> [(&'static str, Vec<u8>); 3] {
    let placed = |offset: usize, bytes: &[u8]| {
        let mut memory = vec![0; bytes.len() + 64];
        let start = memory.as_ptr().addr().wrapping_neg() % 16 + offset;
        memory[start..start + bytes.len()].copy_from_slice(bytes);
        (memory, start..start + bytes.len())
    };
    let (lefts, l) = placed(offsets[0], left);
    let (rights, r) = placed(offsets[1], right);
    let (mut third, t) = placed(offsets[2], &vec![0xa5; left.len()]);
    operation
        .combine_to(
            layout,
            &lefts[l.clone()],
            &rights[r.clone()],
            &mut third[t.clone()],
        )
        .unwrap();
    let (mut into_left, mut into_right) = (lefts.clone(), rights.clone());
    operation
        .combine_right(layout, &mut into_left[l.clone()], &rights[r.clone()])
        .unwrap();
    operation
        .combine(layout, &lefts[l.clone()], &mut into_right[r.clone()])
        .unwrap();
    // Nothing beside the buffers is touched.
    for (memory, range, before) in [(&into_left, &l, &lefts), (&into_right, &r, &rights)] {
        assert_eq!(memory[..range.start], before[..range.start]);
        assert_eq!(memory[range.end..], before[range.end..]);
    }
    [
        ("combine_to", third[t].to_vec()),
        ("combine_right", into_left[l].to_vec()),
        ("combine", into_right[r].to_vec()),
    ]
}
