//! Kernels: the loops of each operation over buffers of each type.
//!
//! A loop is written once, over bytes, and compiled for each level of the processor: the baseline of its architecture, and
//! AVX2. The compiler makes vector instructions of it. A call takes its loop from a table, once, and then runs straight.
#![allow(unsafe_code)]

use crate::function::{
    BitAnd, BitOr, BitXor, FloatMax, FloatMin, Function, LogicalAnd, LogicalOr, LogicalXor, Max,
    MaxLoc, Min, MinLoc, Product, Sum, Swapped, WrappingProduct, WrappingSum,
};
use crate::value::{Complex, Located, Value};
#[cfg(target_arch = "x86_64")]
use crate::x87::X87;
use crate::{Basic, Operation};

/// The loops of one operation for one type.
pub(crate) struct Kernel {
    baseline: Forms,
    #[cfg(target_arch = "x86_64")]
    avx2: Forms,
}

/// The three loops of one operation, one type and one level. They may be called where the processor has the level.
struct Forms {
    left: unsafe fn(&mut [u8], &[u8]),
    right: unsafe fn(&mut [u8], &[u8]),
    to: unsafe fn(&mut [u8], &[u8], &[u8]),
}

/// Shorter buffers have too little work for longer vectors.
#[cfg(target_arch = "x86_64")]
const VECTORS: usize = 64;

impl Kernel {
    /// Returns the loops of an operation for a type, if it has any.
    #[inline]
    pub(crate) fn of(operation: usize, basic: Basic) -> Option<&'static Self> {
        KERNELS.get(operation)?[basic as usize]
    }

    /// `into[i] = left[i] op into[i]`, for as many whole elements as both have.
    #[inline]
    pub(crate) fn left(&self, into: &mut [u8], left: &[u8]) {
        let forms = self.forms(into.len());
        // SAFETY: the processor has the level of these forms, which is all that their functions ask for.
        // JUSTIFICATION: 4 KiB take half the time of the baseline (bench `kernels`).
        unsafe { (forms.left)(into, left) }
    }

    /// `into[i] = into[i] op right[i]`, for as many whole elements as both have.
    #[inline]
    pub(crate) fn right(&self, into: &mut [u8], right: &[u8]) {
        let forms = self.forms(into.len());
        // SAFETY: the processor has the level of these forms. JUSTIFICATION: as in `left`.
        unsafe { (forms.right)(into, right) }
    }

    /// `out[i] = left[i] op right[i]`, for as many whole elements as all have.
    #[inline]
    pub(crate) fn to(&self, out: &mut [u8], left: &[u8], right: &[u8]) {
        let forms = self.forms(out.len());
        // SAFETY: the processor has the level of these forms. JUSTIFICATION: as in `left`.
        unsafe { (forms.to)(out, left, right) }
    }

    /// Returns the forms for buffers of a length. The processor has their level.
    #[inline]
    fn forms(&self, length: usize) -> &Forms {
        #[cfg(target_arch = "x86_64")]
        if length >= VECTORS && is_x86_feature_detected!("avx2") {
            return &self.avx2;
        }
        let _ = length;
        &self.baseline
    }

    const fn new<F: Function<T>, T: Value>() -> &'static Self {
        const {
            &Self {
                baseline: baseline::forms::<F, T>(),
                #[cfg(target_arch = "x86_64")]
                avx2: avx2::forms::<F, T>(),
            }
        }
    }
}

#[inline(always)]
fn in_place<F: Function<T>, T: Value>(into: &mut [u8], right: &[u8]) {
    for (into, right) in T::each_mut(into).iter_mut().zip(T::each(right)) {
        *into = F::apply(T::load(*into), T::load(*right)).store();
    }
}

#[inline(always)]
fn to_third<F: Function<T>, T: Value>(out: &mut [u8], left: &[u8], right: &[u8]) {
    let values = T::each(left).iter().zip(T::each(right));
    for (out, (left, right)) in T::each_mut(out).iter_mut().zip(values) {
        *out = F::apply(T::load(*left), T::load(*right)).store();
    }
}

/// Compiles the loops for a level: with the features that it names.
macro_rules! level {
    ($level:ident $(, $feature:literal)?) => {
        mod $level {
            use super::{Forms, Function, Swapped, Value};

            $(#[target_feature(enable = $feature)])?
            fn in_place<F: Function<T>, T: Value>(into: &mut [u8], right: &[u8]) {
                super::in_place::<F, T>(into, right);
            }

            $(#[target_feature(enable = $feature)])?
            fn to_third<F: Function<T>, T: Value>(out: &mut [u8], left: &[u8], right: &[u8]) {
                super::to_third::<F, T>(out, left, right);
            }

            pub(super) const fn forms<F: Function<T>, T: Value>() -> Forms {
                Forms {
                    // One loop for both, where there is no difference.
                    left: if F::SYMMETRIC { in_place::<F, T> } else { in_place::<Swapped<F>, T> },
                    right: in_place::<F, T>,
                    to: to_third::<F, T>,
                }
            }
        }
    };
}

level!(baseline);
#[cfg(target_arch = "x86_64")]
level!(avx2, "avx2");

/// The kernels by operation, in the order of [`Operation::PREDEFINED`], and by type, in that of [`Basic::ALL`].
static KERNELS: [[Option<&Kernel>; Basic::ALL.len()]; Operation::PREDEFINED.len()] = {
    let mut kernels = [[None; Basic::ALL.len()]; Operation::PREDEFINED.len()];
    let mut operation = 0;
    while operation < kernels.len() {
        let mut basic = 0;
        while basic < Basic::ALL.len() {
            kernels[operation][basic] = kernel(&PREDEFINED[operation], Basic::ALL[basic]);
            basic += 1;
        }
        operation += 1;
    }
    kernels
};

const PREDEFINED: &[Operation] = &Operation::PREDEFINED;

/// Returns the loops of an operation for a type, if it is defined (MPI-5.0, sections 6.9.2 and 6.9.4).
const fn kernel(operation: &Operation, basic: Basic) -> Option<&'static Kernel> {
    match (operation, basic) {
        #[cfg(target_arch = "x86_64")]
        (_, Basic::LongDouble | Basic::ComplexLongDouble | Basic::LongDoubleInt) => {
            long_doubles(operation, basic)
        }
        (Operation::Sum, Basic::Complex32) => Some(Kernel::new::<Sum, f32>()),
        (Operation::Sum, Basic::Complex64) => Some(Kernel::new::<Sum, f64>()),
        (Operation::Sum, Basic::F32 | Basic::F64) => floats::<Sum>(basic),
        (Operation::Sum, _) => words::<WrappingSum>(basic),
        (Operation::Product, Basic::Complex32) => Some(Kernel::new::<Product, Complex<f32>>()),
        (Operation::Product, Basic::Complex64) => Some(Kernel::new::<Product, Complex<f64>>()),
        (Operation::Product, Basic::F32 | Basic::F64) => floats::<Product>(basic),
        (Operation::Product, _) => words::<WrappingProduct>(basic),
        (Operation::Min, Basic::F32 | Basic::F64) => floats::<FloatMin>(basic),
        (Operation::Min, _) => integers::<Min>(basic),
        (Operation::Max, Basic::F32 | Basic::F64) => floats::<FloatMax>(basic),
        (Operation::Max, _) => integers::<Max>(basic),
        (Operation::LogicalAnd, _) => logicals::<LogicalAnd>(basic),
        (Operation::LogicalOr, _) => logicals::<LogicalOr>(basic),
        (Operation::LogicalXor, _) => logicals::<LogicalXor>(basic),
        (Operation::BitAnd, Basic::Byte) => words::<BitAnd>(Basic::U8),
        (Operation::BitAnd, _) => words::<BitAnd>(basic),
        (Operation::BitOr, Basic::Byte) => words::<BitOr>(Basic::U8),
        (Operation::BitOr, _) => words::<BitOr>(basic),
        (Operation::BitXor, Basic::Byte) => words::<BitXor>(Basic::U8),
        (Operation::BitXor, _) => words::<BitXor>(basic),
        (Operation::MinLoc, _) => pairs::<MinLoc>(basic),
        (Operation::MaxLoc, _) => pairs::<MaxLoc>(basic),
        (Operation::Replace | Operation::NoOp | Operation::User(_), _) => None,
    }
}

/// The loops for `long double`, its complex number and its pair.
#[cfg(target_arch = "x86_64")]
const fn long_doubles(operation: &Operation, basic: Basic) -> Option<&'static Kernel> {
    Some(match (operation, basic) {
        (Operation::Sum, Basic::LongDouble | Basic::ComplexLongDouble) => Kernel::new::<Sum, X87>(),
        (Operation::Product, Basic::LongDouble) => Kernel::new::<Product, X87>(),
        (Operation::Product, Basic::ComplexLongDouble) => Kernel::new::<Product, Complex<X87>>(),
        (Operation::Min, Basic::LongDouble) => Kernel::new::<FloatMin, X87>(),
        (Operation::Max, Basic::LongDouble) => Kernel::new::<FloatMax, X87>(),
        (Operation::MinLoc, Basic::LongDoubleInt) => Kernel::new::<MinLoc, Located<X87>>(),
        (Operation::MaxLoc, Basic::LongDoubleInt) => Kernel::new::<MaxLoc, Located<X87>>(),
        _ => return None,
    })
}

/// The loops for what is true or false: logicals by their width, and integers.
const fn logicals<F>(basic: Basic) -> Option<&'static Kernel>
where
    F: Function<u8> + Function<u16> + Function<u32> + Function<u64> + Function<u128>,
{
    words::<F>(match basic {
        Basic::Bool | Basic::Logical8 => Basic::U8,
        Basic::Logical16 => Basic::U16,
        Basic::Logical32 => Basic::U32,
        Basic::Logical64 => Basic::U64,
        Basic::Logical128 => Basic::I128,
        integer => integer,
    })
}

/// The loops for integers of which the sign makes no difference.
const fn words<F>(basic: Basic) -> Option<&'static Kernel>
where
    F: Function<u8> + Function<u16> + Function<u32> + Function<u64> + Function<u128>,
{
    Some(match basic {
        Basic::I8 | Basic::U8 => Kernel::new::<F, u8>(),
        Basic::I16 | Basic::U16 => Kernel::new::<F, u16>(),
        Basic::I32 | Basic::U32 => Kernel::new::<F, u32>(),
        Basic::I64 | Basic::U64 | Basic::Long | Basic::UnsignedLong => Kernel::new::<F, u64>(),
        Basic::I128 => Kernel::new::<F, u128>(),
        _ => return None,
    })
}

/// The loops for integers of which the sign makes one.
const fn integers<F>(basic: Basic) -> Option<&'static Kernel>
where
    F: Function<i8> + Function<i16> + Function<i32> + Function<i64> + Function<i128>,
    F: Function<u8> + Function<u16> + Function<u32> + Function<u64>,
{
    Some(match basic {
        Basic::I8 => Kernel::new::<F, i8>(),
        Basic::I16 => Kernel::new::<F, i16>(),
        Basic::I32 => Kernel::new::<F, i32>(),
        Basic::I64 | Basic::Long => Kernel::new::<F, i64>(),
        Basic::I128 => Kernel::new::<F, i128>(),
        Basic::U8 => Kernel::new::<F, u8>(),
        Basic::U16 => Kernel::new::<F, u16>(),
        Basic::U32 => Kernel::new::<F, u32>(),
        Basic::U64 | Basic::UnsignedLong => Kernel::new::<F, u64>(),
        _ => return None,
    })
}

const fn floats<F: Function<f32> + Function<f64>>(basic: Basic) -> Option<&'static Kernel> {
    Some(match basic {
        Basic::F32 => Kernel::new::<F, f32>(),
        Basic::F64 => Kernel::new::<F, f64>(),
        _ => return None,
    })
}

const fn pairs<F>(basic: Basic) -> Option<&'static Kernel>
where
    F: Function<Located<f32>> + Function<Located<f64>>,
    F: Function<Located<i64>> + Function<Located<i32>> + Function<Located<i16>>,
    F: Function<Located<f32, f32>> + Function<Located<f64, f64>>,
{
    Some(match basic {
        Basic::F32Int => Kernel::new::<F, Located<f32>>(),
        Basic::F64Int => Kernel::new::<F, Located<f64>>(),
        Basic::LongInt => Kernel::new::<F, Located<i64>>(),
        Basic::TwoInt => Kernel::new::<F, Located<i32>>(),
        Basic::ShortInt => Kernel::new::<F, Located<i16>>(),
        Basic::TwoF32 => Kernel::new::<F, Located<f32, f32>>(),
        Basic::TwoF64 => Kernel::new::<F, Located<f64, f64>>(),
        _ => return None,
    })
}
