//! Operations on C's `long double`, against values whose 80 bits are known.

#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

#[allow(dead_code, reason = "others use the rest")]
mod common;

use tagwire_layout::{Basic, Layout, Operation};

/// A value by its sign, its exponent and its significand, with a padding that operations must not look at.
fn bits(negative: bool, exponent: u16, significand: u64) -> Vec<u8> {
    let sign = u16::from(negative) << 15;
    let mut bytes = significand.to_le_bytes().to_vec();
    bytes.extend((sign | exponent).to_le_bytes());
    bytes.extend([0xa5; 6]);
    bytes
}

/// An integer of up to 64 bits, all of which the significand holds.
fn integer(value: i128) -> Vec<u8> {
    let magnitude = u64::try_from(value.unsigned_abs()).unwrap();
    match magnitude.leading_zeros() {
        64 => bits(false, 0, 0),
        zeros => bits(value < 0, 16383 + 63 - zeros as u16, magnitude << zeros),
    }
}

fn nan() -> Vec<u8> {
    bits(false, 0x7fff, 0xc000_0000_0000_0000)
}

/// A result as operations leave it.
fn padded(mut value: Vec<u8>) -> Vec<u8> {
    value.chunks_mut(16).for_each(|value| value[10..].fill(0));
    value
}

/// Sees to it that all forms give `wanted`, also in a buffer of several elements at an odd address.
fn assert_gives(operation: Operation, basic: Basic, left: &[u8], right: &[u8], wanted: &[u8]) {
    let layout = Layout::of(basic);
    for count in [1, 5] {
        let (left, right) = (left.repeat(count), right.repeat(count));
        for (form, found) in common::forms(&operation, &layout, [0, 1, 3], &left, &right) {
            assert_eq!(
                found,
                wanted.repeat(count),
                "{form} of {operation:?} of {basic:?}"
            );
        }
    }
}

#[test]
fn sums_and_products_have_64_bits_of_significand() {
    let most = i128::from(u64::MAX);
    for (operation, left, right, wanted) in [
        (Operation::Sum, 1 << 63, 1, (1 << 63) + 1),
        (Operation::Sum, most - 1, 1, most),
        (Operation::Sum, -most, most - 5, -5),
        (Operation::Sum, 0, 7, 7),
        (
            Operation::Product,
            (1 << 32) + 1,
            (1 << 31) + 1,
            ((1 << 32) + 1) * ((1 << 31) + 1),
        ),
        (Operation::Product, -3, 5, -15),
        (Operation::Product, 0, 5, 0),
    ] {
        let wanted = padded(integer(wanted));
        assert_gives(
            operation,
            Basic::LongDouble,
            &integer(left),
            &integer(right),
            &wanted,
        );
    }
}

#[test]
fn results_round_and_overflow_as_the_format_does() {
    let one = integer(1);
    // Half of the last place of 1, and just more than that.
    let half = bits(false, 16383 - 64, 1 << 63);
    let more = bits(false, 16383 - 64, (1 << 63) + 1);
    let next = padded(bits(false, 16383, (1 << 63) + 1));
    assert_gives(
        Operation::Sum,
        Basic::LongDouble,
        &one,
        &half,
        &padded(one.clone()),
    );
    assert_gives(Operation::Sum, Basic::LongDouble, &one, &more, &next);
    // Beyond the exponents of a double.
    let large = bits(false, 16383 + 10_000, 1 << 63);
    let huge = padded(bits(false, 16383 + 10_001, 1 << 63));
    let infinite = padded(bits(false, 0x7fff, 1 << 63));
    assert_gives(Operation::Sum, Basic::LongDouble, &large, &large, &huge);
    assert_gives(
        Operation::Product,
        Basic::LongDouble,
        &large,
        &large,
        &infinite,
    );
}

#[test]
fn the_right_value_is_taken_where_none_is_less() {
    let (zero, negative) = (integer(0), bits(true, 0, 0));
    for (left, right, least, greatest) in [
        (integer(-2), integer(1), integer(-2), integer(1)),
        (integer(5), integer(3), integer(3), integer(5)),
        (
            zero.clone(),
            negative.clone(),
            negative.clone(),
            negative.clone(),
        ),
        (negative, zero.clone(), zero.clone(), zero),
        (nan(), integer(1), integer(1), integer(1)),
        (integer(1), nan(), nan(), nan()),
    ] {
        assert_gives(
            Operation::Min,
            Basic::LongDouble,
            &left,
            &right,
            &padded(least),
        );
        assert_gives(
            Operation::Max,
            Basic::LongDouble,
            &left,
            &right,
            &padded(greatest),
        );
    }
}

#[test]
fn complex_numbers() {
    let complex = |re, im| [integer(re), integer(im)].concat();
    let (left, right) = (complex(2, 3), complex(5, -7));
    let (sum, product) = (padded(complex(7, -4)), padded(complex(31, 1)));
    assert_gives(
        Operation::Sum,
        Basic::ComplexLongDouble,
        &left,
        &right,
        &sum,
    );
    assert_gives(
        Operation::Product,
        Basic::ComplexLongDouble,
        &left,
        &right,
        &product,
    );
}

/// MPI-5.0, section 6.9.4.
#[test]
fn pairs() {
    let pair =
        |value: Vec<u8>, index: i32| [value, index.to_le_bytes().to_vec(), vec![0x5a; 12]].concat();
    let meant = |value: Vec<u8>, index: i32| {
        [padded(value), index.to_le_bytes().to_vec(), vec![0; 12]].concat()
    };
    let one = |index| pair(integer(1), index);
    for (left, right, least, greatest) in [
        (
            one(9),
            pair(integer(2), 4),
            meant(integer(1), 9),
            meant(integer(2), 4),
        ),
        (one(9), one(4), meant(integer(1), 4), meant(integer(1), 4)),
        (
            one(-3),
            one(4),
            meant(integer(1), -3),
            meant(integer(1), -3),
        ),
        (
            pair(nan(), 1),
            one(4),
            meant(integer(1), 4),
            meant(integer(1), 4),
        ),
        (one(1), pair(nan(), 2), meant(nan(), 2), meant(nan(), 2)),
    ] {
        assert_gives(
            Operation::MinLoc,
            Basic::LongDoubleInt,
            &left,
            &right,
            &least,
        );
        assert_gives(
            Operation::MaxLoc,
            Basic::LongDoubleInt,
            &left,
            &right,
            &greatest,
        );
    }
}
