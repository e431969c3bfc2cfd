//! `coll-reduction=fixed`: sums of floating-point numbers have the bits of one tree, whatever algorithm is asked for.

use crate::common::{FIXED, ranks, rounds};

use tagwire_coll::{ALGORITHMS, Reduction, Team};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_transport::fault::SplitMix64;

/// In elements: one, few, more than a piece of a message, and past the lengths where the table changes.
const COUNTS: [usize; 4] = [1, 13, 2_500, 20_000];

/// Numbers whose sum depends on how it is made.
fn numbers(rank: usize, count: usize) -> Vec<f64> {
    let mut draws = SplitMix64::stream(count as u64, rank as u64);
    let number = |_| {
        let scale = [1e-8, 1.0, 1e8][draws.below(3) as usize];
        (draws.below(2_000_001) as f64 - 1e6) * scale / 3.0
    };
    (0..count).map(number).collect()
}

/// A number of either length.
trait Number: Copy + std::ops::Add<Output = Self> {
    const BASIC: Basic;
    fn of(number: f64) -> Self;
    fn put(self, out: &mut Vec<u8>);
}

impl Number for f64 {
    const BASIC: Basic = Basic::F64;
    fn of(number: f64) -> Self {
        number
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_ne_bytes());
    }
}

impl Number for f32 {
    const BASIC: Basic = Basic::F32;
    fn of(number: f64) -> Self {
        number as f32
    }
    fn put(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_ne_bytes());
    }
}

fn bytes<T: Number>(numbers: &[T]) -> Vec<u8> {
    let mut out = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| number.put(&mut out));
    out
}

fn own<T: Number>(rank: usize, count: usize) -> Vec<T> {
    numbers(rank, count).into_iter().map(T::of).collect()
}

/// The tree: neighbours first, until a power of two of values is left, then by twos.
fn sum<T: Number>(size: usize, count: usize) -> Vec<u8> {
    let plus = |pair: &[Vec<T>]| match pair {
        [left, right] => left.iter().zip(right).map(|(a, b)| *a + *b).collect(),
        one => one[0].clone(),
    };
    let mut values: Vec<Vec<T>> = (0..size).map(|rank| own(rank, count)).collect();
    let paired = 2 * (size - (1 << size.ilog2()));
    let rest = values.split_off(paired);
    values = values.chunks(2).map(plus).chain(rest).collect();
    while values.len() > 1 {
        values = values.chunks(2).map(plus).collect();
    }
    bytes(&values[0])
}

/// Compares all reductions with the sums of the tree, one for each count.
fn check<T: Number>(team: &Team, sums: &[Vec<u8>]) {
    let (me, size) = (team.me(), team.size());
    let (operation, layout) = (Operation::Sum, Layout::of(T::BASIC));
    let reduction = Reduction {
        operation: &operation,
        layout: &layout,
    };
    for (count, expected) in COUNTS.into_iter().zip(sums) {
        let input = bytes(&own::<T>(me, count));
        let mut data = input.clone();
        team.allreduce(reduction, &mut data).unwrap();
        assert!(data == *expected, "allreduce of {count}, {size} ranks");
        for root in [0, size / 2, size - 1] {
            let mut out = (me == root).then(|| vec![0; input.len()]);
            team.reduce(reduction, &input, out.as_deref_mut(), root)
                .unwrap();
            assert!(
                out.is_none_or(|out| out == *expected),
                "reduce of {count}, {size} ranks"
            );
        }
        let extent = layout.extent();
        let end = |rank: usize| count * rank / size * extent;
        let lengths: Vec<_> = (0..size).map(|rank| end(rank + 1) - end(rank)).collect();
        let mut part = vec![0; lengths[me]];
        team.reduce_scatter(reduction, &input, &lengths, &mut part)
            .unwrap();
        assert!(
            part == expected[end(me)..end(me + 1)],
            "reduce_scatter of {count}, {size} ranks"
        );
    }
}

/// How many ranks there are: of the larger groups one of each kind, and all where properties have more cases than usual.
fn sizes() -> impl Iterator<Item = usize> {
    let all = rounds(1) > 1;
    (1..=17).filter(move |size| all || *size < 9 || [12, 13, 16, 17].contains(size))
}

/// All algorithms are asked for. Odd sizes send their messages in pieces.
#[test]
fn sums_have_the_bits_of_one_tree() {
    let reductions = ALGORITHMS.iter().filter(|it| it.collective.reduces());
    let asked = reductions.map(|it| format!("{FIXED}{it}"));
    let selections: Vec<_> = asked.chain([FIXED.to_owned()]).collect();
    for size in sizes() {
        let long = COUNTS.map(|count| sum::<f64>(size, count));
        let short = COUNTS.map(|count| sum::<f32>(size, count));
        for selection in &selections {
            ranks(size, selection, |team| {
                check::<f64>(team, &long);
                check::<f32>(team, &short);
            });
        }
    }
}

/// Without the setting, the numbers of this test tell trees apart.
#[test]
fn other_algorithms_give_other_bits() {
    let differ = ranks(6, "allreduce:ring", |team| {
        let (operation, layout) = (Operation::Sum, Layout::of(Basic::F64));
        let reduction = Reduction {
            operation: &operation,
            layout: &layout,
        };
        let mut data = bytes(&own::<f64>(team.me(), 2_500));
        team.allreduce(reduction, &mut data).unwrap();
        data != sum::<f64>(6, 2_500)
    });
    assert!(differ.iter().all(|differ| *differ));
}
