//! Sizes of basic types and of contiguous layouts.

use tagwire_layout::{Basic, Element, Error, Layout};

/// The pairs as C has them.
#[repr(C)]
struct Pair<T>(T, i32);

#[test]
fn basic_types_have_the_sizes_of_c() {
    fn pair<T>() -> (usize, usize, usize) {
        (
            size_of::<T>() + 4,
            size_of::<Pair<T>>(),
            align_of::<Pair<T>>(),
        )
    }
    for (basic, shape) in [
        (Basic::Byte, (1, 1, 1)),
        (Basic::Char, (1, 1, 1)),
        (Basic::Bool, (1, 1, 1)),
        (Basic::I16, (2, 2, 2)),
        (Basic::I128, (16, 16, 16)),
        (Basic::Complex32, (8, 8, 4)),
        (Basic::Complex64, (16, 16, 8)),
        (Basic::F32Int, pair::<f32>()),
        (Basic::F64Int, pair::<f64>()),
        (Basic::LongInt, pair::<i64>()),
        (Basic::TwoInt, pair::<i32>()),
        (Basic::ShortInt, pair::<i16>()),
        (Basic::Long, (8, 8, 8)),
        (Basic::WideChar, (4, 4, 4)),
        (Basic::LongDouble, (16, 16, 16)),
        (Basic::ComplexLongDouble, (32, 32, 16)),
        (Basic::LongDoubleInt, (20, 32, 16)),
        (Basic::TwoF32, (8, 8, 4)),
        (Basic::TwoF64, (16, 16, 8)),
        (Basic::Logical8, (1, 1, 1)),
        (Basic::Logical128, (16, 16, 16)),
    ] {
        assert_eq!(
            (basic.size(), basic.extent(), basic.alignment()),
            shape,
            "{basic:?}"
        );
    }
    for basic in Basic::ALL {
        assert!(basic.size() <= basic.extent() && basic.extent() % basic.alignment() == 0);
        assert!(!basic.name().is_empty());
    }
    assert_eq!(
        (<f64 as Element>::BASIC, <u8 as Element>::BASIC),
        (Basic::F64, Basic::U8)
    );
}

#[test]
fn contiguous_layouts_are_multiples() {
    let pair = Layout::from(Basic::F64Int);
    assert!(!pair.is_contiguous());
    let pairs = pair
        .contiguous(10)
        .expect("short")
        .contiguous(3)
        .expect("short");
    assert_eq!(
        (pairs.size(), pairs.extent(), pairs.basic()),
        (360, 480, Some(Basic::F64Int))
    );
    assert!(
        Layout::of(Basic::F32)
            .contiguous(7)
            .expect("short")
            .is_contiguous()
    );
    assert_eq!(
        Layout::of(Basic::F32)
            .contiguous(0)
            .expect("empty")
            .extent(),
        0
    );
    assert_eq!(
        Layout::of(Basic::I8).contiguous(1),
        Ok(Layout::of(Basic::I8))
    );
}

#[test]
fn a_layout_longer_than_memory_is_refused() {
    let most = isize::MAX.unsigned_abs();
    let word = Layout::of(Basic::U64);
    assert!(word.contiguous(most / 8).is_ok());
    for count in [most / 8 + 1, most, usize::MAX] {
        assert_eq!(
            word.contiguous(count),
            Err(Error::TooLong { count, extent: 8 })
        );
    }
    assert!(
        Layout::of(Basic::Byte)
            .contiguous(most)
            .is_ok_and(|all| all.contiguous(2).is_err())
    );
}
