//! Every operation with every type, against the oracle.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::Arc;

use common::{assert_same, defined, expected, forms, is_defined};
use proptest::prelude::*;
use tagwire_layout::{Basic, Error, Layout, Operation, UserOperation};

/// A byte that makes equal values, zeros, ones and the ends of ranges likely.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => Just(0),
        1 => prop::sample::select(vec![1, 0x3f, 0x7f, 0x80, 0xff]),
        3 => any::<u8>(),
    ]
}

/// Bytes of as many elements as the longest test has.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(byte(), 300 * 16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_three_forms_do_what_the_oracle_does(
        count in 0_usize..300, offsets in prop::array::uniform3(0_usize..16), left in bytes(), right in bytes(),
    ) {
        for (operation, basic) in defined() {
            let length = count * basic.extent();
            let (left, right) = (&left[..length], &right[..length]);
            let wanted = expected(&operation, basic, left, right);
            for (form, found) in forms(&operation, &Layout::of(basic), offsets, left, right) {
                assert_same(&operation, basic, &found, &wanted, form);
            }
        }
    }

    /// Short pieces take the plain loops, long ones those with vectors.
    #[test]
    fn pieces_of_any_length_give_the_same(
        piece in 1_usize..40, left in bytes(), right in bytes(),
    ) {
        for (operation, basic) in defined() {
            let layout = Layout::of(basic);
            let whole = forms(&operation, &layout, [0; 3], &left, &right);
            let length = piece * basic.extent();
            let mut pieces = [const { Vec::new() }; 3];
            for (left, right) in left.chunks(length).zip(right.chunks(length)) {
                let found = forms(&operation, &layout, [0; 3], left, right);
                pieces.iter_mut().zip(found).for_each(|(all, (_, piece))| all.extend(piece));
            }
            for ((form, whole), pieces) in whole.iter().zip(pieces) {
                assert_same(&operation, basic, &pieces, whole, form);
            }
        }
    }
}

/// Each of some values with each, in every place of a long buffer.
fn products_of(values: &[Vec<u8>]) -> (Vec<u8>, Vec<u8>) {
    let pairs = values
        .iter()
        .flat_map(|left| values.iter().map(move |right| (left, right)));
    let (left, right): (Vec<_>, Vec<_>) = pairs
        .map(|(left, right)| (left.clone(), right.clone()))
        .unzip();
    (left.concat(), right.concat())
}

#[test]
fn infinities_nans_and_zeros_of_both_signs() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::MAX,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        -f64::NAN,
        5e-324,
    ];
    let narrow: Vec<_> = values
        .iter()
        .map(|value| (*value as f32).to_le_bytes().to_vec())
        .collect();
    let values: Vec<_> = values
        .iter()
        .map(|value| value.to_le_bytes().to_vec())
        .collect();
    for (basic, values) in [(Basic::F32, narrow), (Basic::F64, values)] {
        let (left, right) = products_of(&values);
        for operation in [
            Operation::Sum,
            Operation::Product,
            Operation::Min,
            Operation::Max,
        ] {
            let wanted = expected(&operation, basic, &left, &right);
            for (form, found) in forms(&operation, &Layout::of(basic), [0, 3, 8], &left, &right) {
                assert_same(&operation, basic, &found, &wanted, form);
            }
        }
    }
}

/// MPI-5.0, section 6.9.4.
#[test]
fn of_equal_values_the_lower_index_is_taken() {
    let pair = |value: f64, index: i32, padding: u8| {
        [
            &value.to_le_bytes()[..],
            &index.to_le_bytes(),
            &[padding; 4],
        ]
        .concat()
    };
    let layout = Layout::of(Basic::F64Int);
    let nan = f64::NAN;
    for (left, right, lesser) in [
        (pair(1.0, 7, 1), pair(1.0, 3, 2), pair(1.0, 3, 0)),
        (pair(1.0, -7, 1), pair(1.0, 3, 2), pair(1.0, -7, 0)),
        (pair(0.0, 2, 1), pair(-0.0, 1, 2), pair(-0.0, 1, 0)),
        (pair(2.0, 0, 1), pair(1.0, 9, 2), pair(1.0, 9, 0)),
        (pair(nan, 0, 1), pair(1.0, 9, 2), pair(1.0, 9, 0)),
        (pair(1.0, 0, 1), pair(nan, 9, 2), pair(nan, 9, 0)),
    ] {
        for (form, found) in forms(&Operation::MinLoc, &layout, [0, 1, 2], &left, &right) {
            assert_eq!(found, lesser, "{form} of {left:?} and {right:?}");
        }
    }
}

#[test]
fn what_has_no_meaning_is_refused_with_both_names() {
    let mut refused = 0;
    for operation in Operation::PREDEFINED {
        for basic in Basic::ALL.iter().copied() {
            let layout = Layout::of(basic).contiguous(2).unwrap();
            assert_eq!(
                operation.check(&layout).is_ok(),
                is_defined(&operation, basic),
                "{operation:?} {basic:?}"
            );
            let Err(error) = operation.check(&layout) else {
                continue;
            };
            refused += 1;
            let message = error.to_string();
            assert!(
                message.contains(operation.name()) && message.contains(basic.name()),
                "{message}"
            );
            let (some, mut buffer) = ([1; 64], [2; 64]);
            assert_eq!(operation.combine(&layout, &some, &mut buffer), Err(error));
            assert_eq!(
                operation.combine_right(&layout, &mut buffer, &some),
                Err(error)
            );
            assert_eq!(
                operation.combine_to(&layout, &some, &some, &mut buffer),
                Err(error)
            );
            assert_eq!(buffer, [2; 64]);
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn buffers_that_do_not_agree_are_refused() {
    let layout = Layout::of(Basic::F32);
    let user = Operation::User(Arc::new(UserOperation::new("none", true, |_, _, _| {
        panic!("called")
    })));
    for operation in [Operation::Sum, Operation::Replace, Operation::NoOp, user] {
        for (left, right) in [(8, 4), (4, 8), (6, 6), (0, 4)] {
            let (left, mut right) = (vec![0; left], vec![0; right]);
            let lengths = Error::Lengths {
                first: left.len(),
                second: right.len(),
                element: 4,
            };
            assert_eq!(operation.combine(&layout, &left, &mut right), Err(lengths));
            assert_eq!(
                operation
                    .combine_right(&layout, &mut right, &left)
                    .unwrap_err()
                    .code(),
                701
            );
            assert_eq!(
                operation
                    .combine_to(&layout, &left, &left.clone(), &mut right)
                    .unwrap_err()
                    .code(),
                701
            );
        }
    }
}

/// A product of 2 x 2 matrices, which is associative and not commutative.
fn matrices() -> (Operation, Layout) {
    let product = |layout: &Layout, left: &[u8], into: &mut [u8]| {
        assert_eq!((layout.extent(), left.len()), (16, into.len()));
        let matrix = |bytes: &[u8]| -> [u32; 4] {
            std::array::from_fn(|at| {
                u32::from_ne_bytes(bytes[at * 4..at * 4 + 4].try_into().unwrap())
            })
        };
        for (left, into) in left.chunks(16).zip(into.chunks_mut(16)) {
            let ([a, b, c, d], [e, f, g, h]) = (matrix(left), matrix(into));
            let dot =
                |a: u32, b: u32, c: u32, d: u32| a.wrapping_mul(b).wrapping_add(c.wrapping_mul(d));
            let result = [
                dot(a, e, b, g),
                dot(a, f, b, h),
                dot(c, e, d, g),
                dot(c, f, d, h),
            ];
            into.copy_from_slice(&result.map(u32::to_ne_bytes).concat());
        }
    };
    let user = UserOperation::new("matrix product", false, product);
    (
        Operation::User(Arc::new(user)),
        Layout::of(Basic::U32).contiguous(4).unwrap(),
    )
}

#[test]
fn a_users_operation_has_the_lower_rank_on_its_left() {
    let (operation, layout) = matrices();
    assert!(!operation.is_commutative());
    assert_eq!(operation.name(), "matrix product");
    assert_eq!(operation.check(&layout), Ok(()));
    let matrix = |values: [u32; 4]| values.map(u32::to_ne_bytes).concat();
    let (left, right) = (matrix([1, 2, 3, 4]), matrix([5, 6, 7, 8]));
    // Longer than the pieces in which `combine_right` copies.
    for count in [0, 1, 3, 5000] {
        let (left, right) = (left.repeat(count), right.repeat(count));
        for (form, found) in forms(&operation, &layout, [0, 4, 8], &left, &right) {
            assert!(
                found == matrix([19, 22, 43, 50]).repeat(count),
                "{form} of {count}"
            );
        }
    }
}

#[test]
fn a_users_element_may_be_longer_than_a_piece() {
    let layout = Layout::of(Basic::U8).contiguous(100_000).unwrap();
    let last = |layout: &Layout, left: &[u8], into: &mut [u8]| {
        assert_eq!(into.len() % layout.extent(), 0);
        into.copy_from_slice(left);
    };
    let operation = Operation::User(Arc::new(UserOperation::new("left", false, last)));
    let (left, right) = (vec![1; 300_000], vec![2; 300_000]);
    for (form, found) in forms(&operation, &layout, [0; 3], &left, &right) {
        assert!(found == left, "{form}");
    }
}
