//! Hints to the processor: which lines are read or written soon.
#![allow(unsafe_code)]

/// Asks for the line of `place`. A hint, as [`for_write`].
#[inline]
pub fn for_read<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch cannot fault, and every processor of the architecture has it.
    // JUSTIFICATION: the consumer that fetches slots ahead takes 26 instead of 21 million messages a second
    // (docs/performance.md, what was tried).
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(place).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// The same as [`for_write`], of the lines of `len` bytes.
#[inline]
pub fn range_for_write(start: *const u8, len: usize) {
    let lines = (0..len).step_by(64);
    lines.for_each(|line| for_write(start.wrapping_add(line)));
}

/// Asks for the line of `place` with the right to write it. A hint: it cannot fault and changes
/// nothing but caches.
#[inline]
pub fn for_write<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `prefetchw` neither reads nor writes memory as far as the program can tell, and is
    // a no-operation on processors that lack it. Written as assembly since the compiler emits a
    // plain prefetch for its own intrinsic unless told of a newer processor.
    // JUSTIFICATION: half of the latency of 2 KiB is the wait for lines that the consumer has read
    // (docs/performance.md: 0.71 us without, 0.47 with it).
    unsafe {
        std::arch::asm!(
            "prefetchw [{place}]",
            place = in(reg) place,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}
