//! Values in buffers: read from bytes, written to bytes, at any address.

use std::mem::offset_of;

use crate::x87::X87;

/// A value as the kernels take it from a buffer.
pub(crate) trait Value: Copy + 'static {
    /// The bytes of one value, with padding.
    type Bytes: Copy;

    /// Returns the bytes of each value in a buffer.
    fn each(buffer: &[u8]) -> &[Self::Bytes];

    /// Returns the same, to be written.
    fn each_mut(buffer: &mut [u8]) -> &mut [Self::Bytes];

    /// Returns the value that bytes stand for.
    fn load(bytes: Self::Bytes) -> Self;

    /// Returns the bytes of a value. Those of padding are 0.
    fn store(self) -> Self::Bytes;
}

/// The two functions of [`Value`] that are the same for all types.
macro_rules! chunks {
    ($length:expr) => {
        type Bytes = [u8; $length];

        #[inline(always)]
        fn each(buffer: &[u8]) -> &[Self::Bytes] {
            buffer.as_chunks().0
        }

        #[inline(always)]
        fn each_mut(buffer: &mut [u8]) -> &mut [Self::Bytes] {
            buffer.as_chunks_mut().0
        }
    };
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Value for $number {
            chunks!(size_of::<$number>());

            #[inline(always)]
            fn load(bytes: Self::Bytes) -> Self {
                Self::from_ne_bytes(bytes)
            }

            #[inline(always)]
            fn store(self) -> Self::Bytes {
                self.to_ne_bytes()
            }
        }
    )*};
}

numbers!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 X87);

/// A complex number.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Complex<T> {
    pub(crate) re: T,
    pub(crate) im: T,
}

/// A value and where it is: a pair of MPI (MPI-5.0, section 6.9.4), as C and Fortran lay it out. In Fortran's pairs the
/// index has the type of the value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Located<T, I = i32> {
    pub(crate) value: T,
    pub(crate) index: I,
}

/// Structs of two fields, read and written field by field.
macro_rules! structs {
    ($($name:ident<$($inner:ty),*> { $first:ident: $one:ty, $second:ident: $two:ty },)*) => {$(
        impl Value for $name<$($inner),*> {
            chunks!(size_of::<Self>());

            #[inline(always)]
            fn load(bytes: Self::Bytes) -> Self {
                const SECOND: usize = offset_of!($name<$($inner),*>, $second);
                let (mut first, mut second) = ([0; size_of::<$one>()], [0; size_of::<$two>()]);
                first.copy_from_slice(&bytes[..size_of::<$one>()]);
                second.copy_from_slice(&bytes[SECOND..SECOND + size_of::<$two>()]);
                Self { $first: <$one>::from_ne_bytes(first), $second: <$two>::from_ne_bytes(second) }
            }

            #[inline(always)]
            fn store(self) -> Self::Bytes {
                const SECOND: usize = offset_of!($name<$($inner),*>, $second);
                let mut bytes = [0; size_of::<Self>()];
                bytes[..size_of::<$one>()].copy_from_slice(&self.$first.to_ne_bytes());
                bytes[SECOND..SECOND + size_of::<$two>()].copy_from_slice(&self.$second.to_ne_bytes());
                bytes
            }
        }
    )*};
}

structs! {
    Complex<f32> { re: f32, im: f32 },
    Complex<f64> { re: f64, im: f64 },
    Complex<X87> { re: X87, im: X87 },
    Located<f32> { value: f32, index: i32 },
    Located<f64> { value: f64, index: i32 },
    Located<i64> { value: i64, index: i32 },
    Located<i32> { value: i32, index: i32 },
    Located<i16> { value: i16, index: i32 },
    Located<X87> { value: X87, index: i32 },
    Located<f32, f32> { value: f32, index: f32 },
    Located<f64, f64> { value: f64, index: f64 },
}
