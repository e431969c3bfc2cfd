//! Threads by number.
//!
//! A number is never given twice in a process. The address of something of the thread's would not do: the system gives it to the
//! next thread once this one has ended.
#![allow(
    unsafe_code,
    reason = "a word of the thread, without a call of the loader"
)]

use std::sync::atomic::{AtomicU64, Ordering};

/// Returns the calling thread's number, or 0 where it has [taken](take_number) none.
#[inline(always)]
#[must_use]
pub fn number() -> u64 {
    word::get()
}

/// Returns the calling thread's number, which it gets with the first call.
pub fn take_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    if number() == 0 {
        word::set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    number()
}

/// Takes the calling thread's number away: in a forked child it is that of its parent's thread.
pub fn forget_number() {
    word::set(0);
}

/// The word in the memory that the loader lays out for each thread before it starts (`R_X86_64_GOTTPOFF`, "initial exec"): two
/// loads. A shared library otherwise asks the loader where its words are, by a call.
#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu",
    not(any(miri, loom))
))]
mod word {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss.tagwire_thread_number, \"awT\", @nobits",
        ".p2align 3",
        ".globl tagwire_thread_number",
        ".hidden tagwire_thread_number",
        ".type tagwire_thread_number, @object",
        ".size tagwire_thread_number, 8",
        "tagwire_thread_number:",
        ".zero 8",
        ".popsection",
    );

    #[inline(always)]
    pub(super) fn get() -> u64 {
        let number: u64;
        // SAFETY: the word is this thread's, eight bytes, zero or what `set` wrote.
        // JUSTIFICATION: each call of MPI asks twice; a call of the loader takes 13 instructions each.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + tagwire_thread_number@GOTTPOFF]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) number,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        number
    }

    pub(super) fn set(number: u64) {
        // SAFETY: as above; nothing else is written.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + tagwire_thread_number@GOTTPOFF]",
                "mov qword ptr fs:[{0}], {1}",
                out(reg) _,
                in(reg) number,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(not(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_env = "gnu",
    not(any(miri, loom))
)))]
mod word {
    use std::cell::Cell;

    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }

    #[inline(always)]
    pub(super) fn get() -> u64 {
        NUMBER.get()
    }

    pub(super) fn set(number: u64) {
        NUMBER.set(number);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn threads_have_numbers_of_their_own_which_stay() {
        let taken = || {
            assert_eq!(number(), 0);
            let number = take_number();
            assert!(number != 0 && number == super::number() && number == take_number());
            number
        };
        let one_by_one = (0..20).map(|_| std::thread::spawn(taken).join().unwrap());
        let mut all: HashSet<u64> = one_by_one.collect();
        let together: Vec<_> = (0..20).map(|_| std::thread::spawn(taken)).collect();
        all.extend(together.into_iter().map(|thread| thread.join().unwrap()));
        assert_eq!(all.len(), 40);
    }

    #[test]
    fn a_number_is_forgotten() {
        let thread = std::thread::spawn(|| {
            let first = take_number();
            forget_number();
            assert_eq!(number(), 0);
            assert_ne!(take_number(), first);
        });
        thread.join().unwrap();
    }
}
