//! Computation over arrays that are longer than most caches.

use std::hint::black_box;

/// Integers in each array.
const LENGTH: usize = 1 << 20;

/// Three arrays and a sum.
pub(crate) struct Arrays {
    a: Vec<i32>,
    b: Vec<i32>,
    c: Vec<i32>,
    sum: i32,
}

impl Arrays {
    #[inline]
    pub(crate) fn new() -> Self {
        let numbers = |factor: i32| {
            (0..LENGTH as i32)
                .map(|place| (place * factor) | 1)
                .collect()
        };
        Self {
            a: numbers(3),
            b: numbers(5),
            c: numbers(7),
            sum: 0,
        }
    }

    /// `A = B * C`, `B = A + C`, `A = B * C`, `sum += A`.
    #[inline(never)]
    pub(crate) fn pass(&mut self) {
        let Self { a, b, c, sum } = self;
        for ((a, b), c) in a.iter_mut().zip(&*b).zip(&*c) {
            *a = b.wrapping_mul(*c);
        }
        black_box(&mut *a);
        for ((b, a), c) in b.iter_mut().zip(&*a).zip(&*c) {
            *b = a.wrapping_add(*c);
        }
        black_box(&mut *b);
        for ((a, b), c) in a.iter_mut().zip(&*b).zip(&*c) {
            *a = b.wrapping_mul(*c);
        }
        black_box(&mut *a);
        *sum = a.iter().fold(*sum, |sum, a| sum.wrapping_add(*a));
        black_box(sum);
    }
}
