//! Stores that go past the caches.
#![allow(unsafe_code)]

pub(super) use here::stream;

/// Whether there are such stores.
pub(crate) const CAN_STREAM: bool = cfg!(target_arch = "x86_64");

#[cfg(target_arch = "x86_64")]
mod here {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    use crate::data::copy_bytes;

    /// Copies `len` bytes past the caches.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
    #[inline(never)]
    pub(in super::super) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
        // Up to the first whole line of the target.
        let head = to.align_offset(64).min(len);
        let whole = (len - head) / 64 * 64;
        let tail = head + whole;
        // SAFETY: all offsets are below `len`, for which the caller promises; the target of a streaming store is aligned to 64
        // bytes. Such stores are not ordered with others: the fence comes before anything that the caller stores.
        // JUSTIFICATION: between processors that share no cache a copy takes a quarter of the time (see the module).
        unsafe {
            copy_bytes(from, to, head);
            for line in (head..tail).step_by(64) {
                let source: *const __m128i = from.add(line).cast();
                let target: *mut __m128i = to.add(line).cast();
                let words = [0, 1, 2, 3].map(|word| _mm_loadu_si128(source.add(word)));
                for (word, value) in words.into_iter().enumerate() {
                    _mm_stream_si128(target.add(word), value);
                }
            }
            _mm_sfence();
            copy_bytes(from.add(tail), to.add(tail), len - tail);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod here {
    use crate::data::copy_bytes;

    /// # Safety
    /// As [`copy_bytes`].
    pub(in super::super) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: as the caller promises.
        unsafe { copy_bytes(from, to, len) }
    }
}
