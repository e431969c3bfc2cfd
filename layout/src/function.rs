//! What the predefined operations do with two values (MPI-5.0, sections 6.9.2 and 6.9.4).

use crate::value::{Complex, Located};
#[cfg(target_arch = "x86_64")]
use crate::x87::X87;

/// A function of two values.
pub(crate) trait Function<T>: 'static {
    /// Whether the order of the arguments makes no difference to the bytes of a result that is no NaN.
    const SYMMETRIC: bool;

    /// Returns `left` combined with `right`.
    fn apply(left: T, right: T) -> T;
}

/// A function with its arguments in the other order.
pub(crate) struct Swapped<F>(F);

impl<T, F: Function<T>> Function<T> for Swapped<F> {
    const SYMMETRIC: bool = F::SYMMETRIC;

    #[inline(always)]
    fn apply(left: T, right: T) -> T {
        F::apply(right, left)
    }
}

/// `Name, symmetric or not: (left, right) -> result, for types`.
macro_rules! functions {
    ($($(#[$doc:meta])* $name:ident, $symmetric:literal: |$left:ident, $right:ident| $result:expr, for $($number:ty)*;)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;

        $(impl Function<$number> for $name {
            const SYMMETRIC: bool = $symmetric;

            #[inline(always)]
            fn apply($left: $number, $right: $number) -> $number {
                $result
            }
        })*
    )*};
}

// Two's complement has one sum, product and bit pattern for signed and unsigned integers: the unsigned stand for both.
functions! {
    /// The sum of integers, which wraps.
    WrappingSum, true: |left, right| left.wrapping_add(right), for u8 u16 u32 u64 u128;
    /// The product of integers, which wraps.
    WrappingProduct, true: |left, right| left.wrapping_mul(right), for u8 u16 u32 u64 u128;
    /// The sum of floating-point numbers.
    Sum, true: |left, right| left + right, for f32 f64;
    /// The product of floating-point numbers.
    Product, true: |left, right| left * right, for f32 f64;
    /// The lesser of two integers.
    Min, true: |left, right| if left < right { left } else { right }, for i8 i16 i32 i64 i128 u8 u16 u32 u64;
    /// The greater of two integers.
    Max, true: |left, right| if left > right { left } else { right }, for i8 i16 i32 i64 i128 u8 u16 u32 u64;
    /// The lesser of two floating-point numbers; the right one where none is less, as with a NaN or zeros of both signs.
    FloatMin, false: |left, right| if left < right { left } else { right }, for f32 f64;
    /// The greater of two floating-point numbers; the right one where none is greater.
    FloatMax, false: |left, right| if left > right { left } else { right }, for f32 f64;
    /// 1 if both are true, else 0.
    LogicalAnd, true: |left, right| ((left != 0) & (right != 0)).into(), for u8 u16 u32 u64 u128;
    /// 1 if one of both is true, else 0.
    LogicalOr, true: |left, right| (left | right != 0).into(), for u8 u16 u32 u64 u128;
    /// 1 if exactly one is true, else 0.
    LogicalXor, true: |left, right| ((left != 0) ^ (right != 0)).into(), for u8 u16 u32 u64 u128;
    /// The bits that both have.
    BitAnd, true: |left, right| left & right, for u8 u16 u32 u64 u128;
    /// The bits that one of both has.
    BitOr, true: |left, right| left | right, for u8 u16 u32 u64 u128;
    /// The bits that exactly one has.
    BitXor, true: |left, right| left ^ right, for u8 u16 u32 u64 u128;
}

/// The functions of `long double`, for which the x87 has the arithmetic.
#[cfg(target_arch = "x86_64")]
macro_rules! long_doubles {
    ($($name:ident, $symmetric:literal: |$left:ident, $right:ident| $result:expr;)*) => {$(
        impl Function<X87> for $name {
            const SYMMETRIC: bool = $symmetric;

            #[inline(always)]
            fn apply($left: X87, $right: X87) -> X87 {
                $result
            }
        }
    )*};
}

#[cfg(target_arch = "x86_64")]
long_doubles! {
    Sum, true: |left, right| left + right;
    Product, true: |left, right| left * right;
    FloatMin, false: |left, right| if left < right { left } else { right };
    FloatMax, false: |left, right| if left > right { left } else { right };
}

/// Products of complex numbers by the formula of schoolbooks, without C's search for infinities behind a NaN (annex G).
macro_rules! complex {
    ($($part:ty)*) => {$(
        impl Function<Complex<$part>> for Product {
            const SYMMETRIC: bool = true;

            #[inline(always)]
            fn apply(left: Complex<$part>, right: Complex<$part>) -> Complex<$part> {
                Complex {
                    re: left.re * right.re - left.im * right.im,
                    im: left.re * right.im + left.im * right.re,
                }
            }
        }
    )*};
}

complex!(f32 f64);
#[cfg(target_arch = "x86_64")]
complex!(X87);

/// The lesser value with its index; of equal values the lower index.
pub(crate) struct MinLoc;

/// The greater value with its index; of equal values the lower index.
pub(crate) struct MaxLoc;

/// Not symmetric for floating-point values: the right one stays where a NaN is neither less nor equal, and of zeros of
/// both signs, which are equal.
macro_rules! located {
    ($($name:ident $before:tt, $value:ty $(, $index:ty)?;)*) => {$(
        impl Function<Located<$value $(, $index)?>> for $name {
            const SYMMETRIC: bool = false;

            #[inline(always)]
            fn apply(
                left: Located<$value $(, $index)?>,
                right: Located<$value $(, $index)?>,
            ) -> Located<$value $(, $index)?> {
                let is_tie = left.value == right.value;
                if left.value $before right.value || is_tie && left.index < right.index {
                    left
                } else {
                    right
                }
            }
        }
    )*};
}

located! {
    MinLoc <, f32; MinLoc <, f64; MinLoc <, i64; MinLoc <, i32; MinLoc <, i16;
    MaxLoc >, f32; MaxLoc >, f64; MaxLoc >, i64; MaxLoc >, i32; MaxLoc >, i16;
    MinLoc <, f32, f32; MinLoc <, f64, f64; MaxLoc >, f32, f32; MaxLoc >, f64, f64;
}

#[cfg(target_arch = "x86_64")]
located! {
    MinLoc <, X87; MaxLoc >, X87;
}
