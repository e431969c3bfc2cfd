//! The basic types, of which all layouts are made.

use crate::value::{Complex, Located};
use crate::x87::X87;

/// Makes the enum of a table: `name: the Rust type that lies alike in memory, bytes of data, "name in errors"`.
macro_rules! basic_types {
    ($(#[$doc:meta])* pub enum Basic { $($(#[$about:meta])* $basic:ident: $alike:ty, $size:literal, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Basic {
            $($(#[$about])* $basic,)*
        }

        impl Basic {
            /// All basic types, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$basic,)*];

            /// Returns how many bytes of data a value has: those of padding do not count, as in `MPI_Type_size`.
            #[must_use]
            pub const fn size(self) -> usize {
                match self {
                    $(Self::$basic => $size,)*
                }
            }

            /// Returns how many bytes lie between the beginnings of two neighbours in an array: a power of two.
            #[must_use]
            pub const fn extent(self) -> usize {
                match self {
                    $(Self::$basic => size_of::<$alike>(),)*
                }
            }

            /// Returns what addresses of values are multiples of in programs. The operations do not ask for it.
            #[must_use]
            pub const fn alignment(self) -> usize {
                match self {
                    $(Self::$basic => align_of::<$alike>(),)*
                }
            }

            /// Returns the name, as errors print it.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$basic => $name,)*
                }
            }
        }
    };
}

basic_types! {
    /// The type of one value, as C and Fortran programs have it.
    ///
    /// The pairs are structs of C: the value, then an `int` as the index, with the padding that alignment asks for.
    /// The pairs of Fortran are two values of one type; `2INTEGER` is [`TwoInt`](Self::TwoInt).
    ///
    /// ```text
    ///                 0       2       4       8      12      16      20        32
    ///  ShortInt       | value |  pad  | index |
    ///  TwoInt, TwoF32 |     value     | index |
    ///  F32Int         |     value     | index |
    ///  LongInt        |         value         | index | pad  |
    ///  F64Int         |         value         | index | pad  |
    ///  TwoF64         |         value         |     index    |
    ///  LongDoubleInt  |                value                 | index |   pad   |
    /// ```
    ///
    /// Some types lie alike in memory and differ in what they mean: `Long` is `I64` but for external32, and a logical is
    /// an integer that is false where it is 0.
    pub enum Basic {
        /// Eight bits without a meaning.
        Byte: u8, 1, "byte";
        /// A printable character. No arithmetic is defined for it.
        Char: u8, 1, "char";
        /// A signed integer of 8 bits.
        I8: i8, 1, "i8";
        /// A signed integer of 16 bits.
        I16: i16, 2, "i16";
        /// A signed integer of 32 bits.
        I32: i32, 4, "i32";
        /// A signed integer of 64 bits.
        I64: i64, 8, "i64";
        /// A signed integer of 128 bits.
        I128: i128, 16, "i128";
        /// An unsigned integer of 8 bits.
        U8: u8, 1, "u8";
        /// An unsigned integer of 16 bits.
        U16: u16, 2, "u16";
        /// An unsigned integer of 32 bits.
        U32: u32, 4, "u32";
        /// An unsigned integer of 64 bits.
        U64: u64, 8, "u64";
        /// A floating-point number of 32 bits.
        F32: f32, 4, "f32";
        /// A floating-point number of 64 bits.
        F64: f64, 8, "f64";
        /// A complex number: two of [`F32`](Self::F32), the real part first.
        Complex32: Complex<f32>, 8, "complex32";
        /// A complex number: two of [`F64`](Self::F64), the real part first.
        Complex64: Complex<f64>, 16, "complex64";
        /// C's `bool`: a byte that is 0 or 1.
        Bool: u8, 1, "bool";
        /// A pair of `float` and `int`.
        F32Int: Located<f32>, 8, "(f32, i32)";
        /// A pair of `double` and `int`.
        F64Int: Located<f64>, 12, "(f64, i32)";
        /// A pair of `long` (64 bits) and `int`.
        LongInt: Located<i64>, 12, "(i64, i32)";
        /// A pair of `int` and `int`.
        TwoInt: Located<i32>, 8, "(i32, i32)";
        /// A pair of `short` and `int`.
        ShortInt: Located<i16>, 6, "(i16, i32)";
        /// C's `long` of 64 bits, which has 32 in external32.
        Long: i64, 8, "long";
        /// C's `unsigned long` of 64 bits, which has 32 in external32.
        UnsignedLong: u64, 8, "unsigned long";
        /// C's `wchar_t`, of 32 bits. No arithmetic is defined for it.
        WideChar: i32, 4, "wchar_t";
        /// C's `long double`: on x86-64 80 bits, and padding that counts as data.
        LongDouble: X87, 16, "long double";
        /// A complex number: two of [`LongDouble`](Self::LongDouble), the real part first.
        ComplexLongDouble: Complex<X87>, 32, "complex long double";
        /// A pair of `long double` and `int`.
        LongDoubleInt: Located<X87>, 20, "(long double, i32)";
        /// A pair of Fortran's `REAL`.
        TwoF32: Located<f32, f32>, 8, "(f32, f32)";
        /// A pair of Fortran's `DOUBLE PRECISION`.
        TwoF64: Located<f64, f64>, 16, "(f64, f64)";
        /// Fortran's `LOGICAL*1`.
        Logical8: u8, 1, "logical8";
        /// Fortran's `LOGICAL*2`.
        Logical16: u16, 2, "logical16";
        /// Fortran's `LOGICAL*4`, which `LOGICAL` is as a rule.
        Logical32: u32, 4, "logical32";
        /// Fortran's `LOGICAL*8`.
        Logical64: u64, 8, "logical64";
        /// Fortran's `LOGICAL*16`.
        Logical128: u128, 16, "logical128";
    }
}

impl Basic {
    /// Returns the types of the value and of the index, if it is a pair (MPI-5.0, section 6.9.4).
    #[must_use]
    pub const fn pair(self) -> Option<(Self, Self)> {
        Some(match self {
            Self::F32Int => (Self::F32, Self::I32),
            Self::F64Int => (Self::F64, Self::I32),
            Self::LongInt => (Self::Long, Self::I32),
            Self::TwoInt => (Self::I32, Self::I32),
            Self::ShortInt => (Self::I16, Self::I32),
            Self::LongDoubleInt => (Self::LongDouble, Self::I32),
            Self::TwoF32 => (Self::F32, Self::F32),
            Self::TwoF64 => (Self::F64, Self::F64),
            _ => return None,
        })
    }
}

// Operations take a length for whole elements by a mask, where a division would be the longest step of a short call.
const _: () = {
    let mut index = 0;
    while index < Basic::ALL.len() {
        let basic = Basic::ALL[index];
        assert!(
            basic as usize == index,
            "ALL is in the order of declaration"
        );
        assert!(basic.extent().is_power_of_two(), "a mask takes the rest");
        index += 1;
    }
};

/// A Rust type whose values are those of a basic type.
///
/// All of its bytes are data, and any bytes are a value. `bool` is therefore none: a byte from a peer may be 2.
/// The trait is sealed.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The basic type.
    const BASIC: Basic;
}

mod sealed {
    /// Keeps others from implementing [`Element`](super::Element).
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty: $basic:ident,)*) => {$(
        impl sealed::Sealed for $element {}
        impl Element for $element {
            const BASIC: Basic = Basic::$basic;
        }
        const _: () = assert!(
            size_of::<$element>() == Basic::$basic.extent()
                && align_of::<$element>() == Basic::$basic.alignment()
        );
    )*};
}

elements! {
    i8: I8,
    i16: I16,
    i32: I32,
    i64: I64,
    i128: I128,
    u8: U8,
    u16: U16,
    u32: U32,
    u64: U64,
    f32: F32,
    f64: F64,
}
