//! C's `long double` as the x87 has it: 80 bits in 16 bytes.
//!
//! ```text
//!  0                        8         10         16
//!  | significand, 64 bits   | sign and | padding |
//!  | with the leading one   | exponent |         |
//! ```
//!
//! Rust has no such type. On x86-64 the x87 itself computes; elsewhere values are only copied and converted.
#![allow(unsafe_code)]

/// A value of 80 bits. The padding of results is 0.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct X87([u8; 16]);

impl X87 {
    /// How many bytes have a meaning.
    const MEANT: usize = 10;

    #[inline(always)]
    pub(crate) const fn from_ne_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes, with a padding of 0.
    #[inline(always)]
    pub(crate) fn to_ne_bytes(self) -> [u8; 16] {
        let mut bytes = self.0;
        bytes[Self::MEANT..].fill(0);
        bytes
    }
}

/// The arithmetic of the x87, which rounds to 64 bits of significand unless a program has told it otherwise.
#[cfg(target_arch = "x86_64")]
mod arithmetic {
    use std::arch::asm;
    use std::cmp::Ordering;
    use std::ops::{Add, Mul, Sub};

    use super::X87;

    macro_rules! operators {
        ($($operator:ident $method:ident $instruction:literal,)*) => {$(
            impl $operator for X87 {
                type Output = Self;

                #[inline(always)]
                fn $method(self, right: Self) -> Self {
                    let mut result = Self([0; 16]);
                    // SAFETY: both operands and the result are 16 bytes of this function, of which ten are read or
                    // written. All registers of the x87 are named as changed, so the stack is empty before, and the
                    // instructions leave it so.
                    unsafe {
                        asm!(
                            "fld tbyte ptr [{left}]",
                            "fld tbyte ptr [{right}]",
                            $instruction,
                            "fstp tbyte ptr [{result}]",
                            left = in(reg) &raw const self.0,
                            right = in(reg) &raw const right.0,
                            result = in(reg) &raw mut result.0,
                            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                            options(nostack),
                        );
                    }
                    result
                }
            }
        )*};
    }

    operators! {
        Add add "faddp st(1), st",
        Sub sub "fsubp st(1), st",
        Mul mul "fmulp st(1), st",
    }

    impl X87 {
        /// Returns whether `self` is greater than `right`, and whether they are equal. With a NaN neither holds.
        #[inline(always)]
        fn compare(self, right: Self) -> (bool, bool) {
            let (greater, equal, unordered): (u8, u8, u8);
            // SAFETY: as for the operators; only flags and three byte registers are written.
            unsafe {
                asm!(
                    "fld tbyte ptr [{right}]",
                    "fld tbyte ptr [{left}]",
                    "fucomip st, st(1)",
                    "seta {greater}",
                    "sete {equal}",
                    "setp {unordered}",
                    "fstp st(0)",
                    left = in(reg) &raw const self.0,
                    right = in(reg) &raw const right.0,
                    greater = out(reg_byte) greater,
                    equal = out(reg_byte) equal,
                    unordered = out(reg_byte) unordered,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack, readonly),
                );
            }
            (greater != 0, equal != 0 && unordered == 0)
        }
    }

    impl PartialEq for X87 {
        #[inline(always)]
        fn eq(&self, right: &Self) -> bool {
            self.compare(*right).1
        }
    }

    impl PartialOrd for X87 {
        fn partial_cmp(&self, right: &Self) -> Option<Ordering> {
            match (self.compare(*right), *right > *self) {
                ((true, _), _) => Some(Ordering::Greater),
                (_, true) => Some(Ordering::Less),
                ((_, true), _) => Some(Ordering::Equal),
                _ => None,
            }
        }

        #[inline(always)]
        fn lt(&self, right: &Self) -> bool {
            right.compare(*self).0
        }

        #[inline(always)]
        fn gt(&self, right: &Self) -> bool {
            self.compare(*right).0
        }
    }
}
