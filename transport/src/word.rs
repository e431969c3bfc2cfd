//! Atomic words behind a trait, so that rings, wake-ups and claims are model-checked by loom as
//! they are compiled: shared memory holds std's atomics, a model holds loom's.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// An atomic word.
pub(crate) trait Word<T> {
    /// Reads it.
    fn load(&self, order: Ordering) -> T;
    /// Writes it.
    fn store(&self, value: T, order: Ordering);
    /// Replaces it; returns what it was.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Replaces `current` by `new`, or reports what it is instead.
    fn compare_exchange(&self, current: T, new: T, ok: Ordering, no: Ordering) -> Result<T, T>;
    /// Adds; returns what it was.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Sets bits; returns what it was.
    fn fetch_or(&self, value: T, order: Ordering) -> T;
}

macro_rules! word {
    ($($atomic:ty, $value:ty;)*) => {$(
        impl Word<$value> for $atomic {
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                <$atomic>::load(self, order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                <$atomic>::store(self, value, order);
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                <$atomic>::swap(self, value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                ok: Ordering,
                no: Ordering,
            ) -> Result<$value, $value> {
                <$atomic>::compare_exchange(self, current, new, ok, no)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                <$atomic>::fetch_add(self, value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                <$atomic>::fetch_or(self, value, order)
            }
        }
    )*};
}

word! {
    AtomicU32, u32;
    AtomicU64, u64;
}

#[cfg(loom)]
word! {
    loom::sync::atomic::AtomicU32, u32;
    loom::sync::atomic::AtomicU64, u64;
}
