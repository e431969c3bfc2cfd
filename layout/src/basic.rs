//! The basic types, of which all layouts are made.

use crate::value::Located;

/// The type of one value, as C and Fortran programs have it.
///
/// The pairs are structs of C: the value, then an `int` as the index, with the padding that alignment asks for.
///
/// ```text
///            0       2       4       8      12      16
///  ShortInt  | value |  pad  | index |
///  TwoInt    |     value     | index |
///  F32Int    |     value     | index |
///  LongInt   |         value         | index | pad  |
///  F64Int    |         value         | index | pad  |
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Basic {
    /// Eight bits without a meaning.
    Byte,
    /// A printable character. No arithmetic is defined for it.
    Char,
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// A signed integer of 128 bits.
    I128,
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A floating-point number of 32 bits.
    F32,
    /// A floating-point number of 64 bits.
    F64,
    /// A complex number: two of [`F32`](Self::F32), the real part first.
    Complex32,
    /// A complex number: two of [`F64`](Self::F64), the real part first.
    Complex64,
    /// C's `bool`: a byte that is 0 or 1.
    Bool,
    /// A pair of `float` and `int`.
    F32Int,
    /// A pair of `double` and `int`.
    F64Int,
    /// A pair of `long` (64 bits) and `int`.
    LongInt,
    /// A pair of `int` and `int`.
    TwoInt,
    /// A pair of `short` and `int`.
    ShortInt,
}

impl Basic {
    /// All basic types, in the order of their declaration.
    pub const ALL: &'static [Self] = &[
        Self::Byte,
        Self::Char,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::I128,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::Complex32,
        Self::Complex64,
        Self::Bool,
        Self::F32Int,
        Self::F64Int,
        Self::LongInt,
        Self::TwoInt,
        Self::ShortInt,
    ];

    /// Returns how many bytes of data a value has: those of padding do not count, as in `MPI_Type_size`.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::ShortInt => 6,
            Self::F64Int | Self::LongInt => 12,
            other => other.extent(),
        }
    }

    /// Returns how many bytes lie between the beginnings of two neighbours in an array. It is a power of two.
    #[must_use]
    pub const fn extent(self) -> usize {
        match self {
            Self::Byte | Self::Char | Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 | Self::Complex32 => 8,
            Self::I128 | Self::Complex64 => 16,
            Self::F32Int => size_of::<Located<f32>>(),
            Self::F64Int => size_of::<Located<f64>>(),
            Self::LongInt => size_of::<Located<i64>>(),
            Self::TwoInt => size_of::<Located<i32>>(),
            Self::ShortInt => size_of::<Located<i16>>(),
        }
    }

    /// Returns what addresses of values are multiples of in C and Rust programs. The operations do not ask for it.
    #[must_use]
    pub const fn alignment(self) -> usize {
        match self {
            Self::Byte | Self::Char | Self::I8 | Self::U8 | Self::Bool => 1,
            Self::I16 | Self::U16 => 2,
            Self::I32 | Self::U32 => 4,
            Self::I64 | Self::U64 => align_of::<i64>(),
            Self::I128 => align_of::<i128>(),
            Self::F32 | Self::Complex32 => 4,
            Self::F64 | Self::Complex64 => align_of::<f64>(),
            Self::F32Int | Self::TwoInt | Self::ShortInt => 4,
            Self::F64Int => align_of::<Located<f64>>(),
            Self::LongInt => align_of::<Located<i64>>(),
        }
    }

    /// Returns the name, as errors print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char => "char",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::I128 => "i128",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Complex32 => "complex32",
            Self::Complex64 => "complex64",
            Self::Bool => "bool",
            Self::F32Int => "(f32, i32)",
            Self::F64Int => "(f64, i32)",
            Self::LongInt => "(i64, i32)",
            Self::TwoInt => "(i32, i32)",
            Self::ShortInt => "(i16, i32)",
        }
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
