//! Time of a sum by type and length: a kernel, a loop over slices of the type, and a copy of the same bytes.
//!
//! The loop is what a program would write by hand, compiled for AVX2 where the processor has it. The copy has one stream
//! less to read. `cargo bench -p tagwire-layout-bench`.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::slice;

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use tagwire_layout::{Element, Layout, Operation};

const SUM: Operation = Operation::Sum;
const LENGTHS: [usize; 6] = [8, 64, 512, 4096, 64 << 10, 1 << 20];

/// A number with the loop that a program would write for it.
trait Number: Element {
    fn from_small(value: u8) -> Self;
    fn by_hand(left: &[Self], into: &mut [Self]);
}

macro_rules! numbers {
    ($($number:ty: |$left:ident, $into:ident| $sum:expr;)*) => {$(
        impl Number for $number {
            fn from_small(value: u8) -> Self {
                value.into()
            }

            fn by_hand(left: &[Self], into: &mut [Self]) {
                #[cfg_attr(target_arch = "x86_64", target_feature(enable = "avx2"))]
                fn sum(left: &[$number], into: &mut [$number]) {
                    for ($into, $left) in into.iter_mut().zip(left) {
                        *$into = $sum;
                    }
                }
                // SAFETY: `main` has seen to it that the processor has AVX2, where it is an x86-64.
                #[allow(unused_unsafe)]
                unsafe { sum(left, into) }
            }
        }
    )*};
}

numbers! {
    f64: |left, into| *left + *into;
    f32: |left, into| *left + *into;
    i32: |left, into| left.wrapping_add(*into);
}

fn sums<T: Number>(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group(format!("sum of {}", T::BASIC.name()));
    for length in LENGTHS {
        group.throughput(Throughput::Bytes(length as u64));
        compare::<T>(&mut group, length);
    }
    group.finish();
}

fn compare<T: Number>(group: &mut BenchmarkGroup<'_, WallTime>, length: usize) {
    let layout = Layout::of(T::BASIC);
    let [mut left, mut into, mut out] = [0, 1, 2].map(|value| Memory::new::<T>(value, length));
    // All of them take the same memory: a loop's time depends on where its cache lines begin.
    group.bench_function(BenchmarkId::new("by hand", length), |bencher| {
        let (left, into) = (left.values::<T>(), into.values::<T>());
        bencher.iter(|| T::by_hand(black_box(left), black_box(into)));
    });
    let (left, into, out) = (left.bytes(), into.bytes(), out.bytes());
    group.bench_function(BenchmarkId::new("combine", length), |bencher| {
        bencher.iter(|| SUM.combine(black_box(&layout), black_box(left), black_box(into)));
    });
    group.bench_function(BenchmarkId::new("combine_to", length), |bencher| {
        bencher.iter(|| {
            SUM.combine_to(
                black_box(&layout),
                black_box(left),
                black_box(into),
                black_box(out),
            )
        });
    });
    group.bench_function(BenchmarkId::new("memcpy", length), |bencher| {
        bencher.iter(|| black_box(&mut *into).copy_from_slice(black_box(left)));
    });
}

/// Values at the beginning of a cache line.
struct Memory {
    lines: Vec<Line>,
    first: usize,
    length: usize,
}

#[derive(Clone, Copy, Default)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u64; 8]);

impl Memory {
    /// Buffers are a quarter of a page apart: a processor takes a load for one of an earlier store at the same place of
    /// another page, and waits.
    const APART: usize = 1024 / 64;

    fn new<T: Number>(value: u8, length: usize) -> Self {
        let first = usize::from(value) * Self::APART;
        let lines = vec![Line::default(); length.div_ceil(64) + 2 * Self::APART];
        let mut memory = Self {
            lines,
            first,
            length,
        };
        memory.values::<T>().fill(T::from_small(value));
        memory
    }

    fn bytes(&mut self) -> &mut [u8] {
        self.values()
    }

    fn values<T: Element>(&mut self) -> &mut [T] {
        let lines = &mut self.lines[self.first..];
        assert!(size_of_val(lines) >= self.length);
        // SAFETY: `lines` are `length` initialised bytes and more, aligned for any element, and any bytes are one.
        unsafe {
            slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), self.length / size_of::<T>())
        }
    }
}

fn all(criterion: &mut Criterion) {
    #[cfg(target_arch = "x86_64")]
    assert!(
        is_x86_feature_detected!("avx2"),
        "the loops by hand are compiled for AVX2"
    );
    sums::<f64>(criterion);
    sums::<f32>(criterion);
    sums::<i32>(criterion);
}

criterion_group!(kernels, all);
criterion_main!(kernels);
