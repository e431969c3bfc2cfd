//! Thread levels: who may call, and what that costs. [`Guarded`] serves layers above, too.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU64};
use std::time::Duration;

use rustix::thread::Pid;
use tagwire_base::sync::{AtomicBool, AtomicU32, Ordering, spin_loop};
use tagwire_base::{Owner, thread};

use crate::error::{Error, Result};

/// From which threads a rank may be called (MPI-5.0, section 11.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadLevel {
    /// The process has one thread. Checked: another thread is refused.
    Single,
    /// Only the thread that opened the rank calls. Checked.
    Funneled,
    /// Any thread calls, one at a time. Kept by a lock, so that a mistake does no harm.
    Serialized,
    /// Any thread calls at any time.
    Multiple,
}

impl ThreadLevel {
    const fn is_shared(self) -> bool {
        matches!(self, Self::Serialized | Self::Multiple)
    }
}

/// How often this process was forked off by the library's `fork`, its parents' times included: a child has one more than its
/// parent.
static FORKS: AtomicU64 = AtomicU64::new(0);

#[inline]
fn forks() -> u64 {
    FORKS.load(std::sync::atomic::Ordering::Relaxed)
}

/// Has every child that this process forks know that it is one.
fn count_forks() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    extern "C" fn in_child() {
        FORKS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // The only thread there is: no rank that its parent opened takes it for its owner.
        thread::forget_number();
    }
    ONCE.call_once(|| {
        // SAFETY: the handler changes an atomic and a word of the thread, which is sound in a child of a process with
        // several threads, and it stays loaded as long as the process runs. Where the system lacks the memory to
        // note it, children are only refused where they close.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// A value that one caller at a time gets at. At the levels of one thread that is checked with a
/// compare and a flag; at the others a lock keeps it.
///
/// The lock is biased: until a second thread comes, the thread that opened the rank enters by a
/// flag of its own and pays no locked instruction. The second thread takes the bias away
/// and pays for closing the race, with a barrier on all threads of the process (`membarrier(2)`,
/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`). The owner gets it back when it has long been the only one to enter,
/// and so does another thread where the owner has ended.
pub struct Guarded<T> {
    shared: bool,
    /// The number of the thread that has the bias: the one that opened the rank, at first. Written under the lock.
    owner: AtomicU64,
    /// The kernel's name for that thread. Used under the lock.
    owner_id: AtomicI32,
    /// Its process, and what that had of [`FORKS`].
    process: Owner,
    forks: u64,
    bias: Bias,
    streak: Streak,
    lock: Lock,
    /// What takes the bias away; another one in tests.
    barrier: fn(Pid) -> bool,
    value: UnsafeCell<T>,
}

// SAFETY: `enter` hands out the value to one caller at a time: either the owner, by the bias, or
// whoever holds `lock`, after the bias was revoked. A value that may move between threads may so
// be reached from them.
// JUSTIFICATION: a mutex takes two locked instructions for each call; with the bias level `multiple` costs one
// thread nothing that can be measured (docs/performance.md, the row of the levels).
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T: fmt::Debug> fmt::Debug for Guarded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

impl<T> Guarded<T> {
    /// Guards `value` at `level`; the calling thread is the owner.
    pub fn new(level: ThreadLevel, value: T) -> Self {
        count_forks();
        let has_barrier = !level.is_shared() || register_barrier();
        Self {
            shared: level.is_shared(),
            owner: AtomicU64::new(thread::take_number()),
            owner_id: AtomicI32::new(rustix::thread::gettid().as_raw_nonzero().get()),
            process: Owner::here(),
            forks: forks(),
            bias: Bias::new(!has_barrier),
            streak: Streak::new(has_barrier),
            lock: Lock::new(),
            barrier,
            value: UnsafeCell::new(value),
        }
    }

    /// Whether several threads may call.
    pub(crate) const fn is_shared(&self) -> bool {
        self.shared
    }

    /// The value, for this caller alone.
    ///
    /// # Errors
    /// [`Error::WrongThread`] at a level of one thread, and when the owner enters twice. In a forked child
    /// [`OtherProcess`](tagwire_base::Error::OtherProcess).
    /// [`Error::NoBarrier`] when the bias cannot be taken away now.
    #[inline]
    pub fn enter(&self) -> Result<Entered<'_, T>> {
        if self.is_owner() {
            match self.bias.enter() {
                Bid::Inside => return Ok(Entered::new(self, false)),
                Bid::Twice => return Err(Error::WrongThread),
                Bid::Revoked => {}
            }
        } else if self.forks != forks() {
            // The lock may have been held by a thread that is not here.
            return Err(self.process.refusal().into());
        } else if !self.shared {
            return Err(Error::WrongThread);
        }
        self.lock.lock();
        let entered = Entered::new(self, true);
        if !self.bias.is_closed() {
            self.close_bias()?;
        }
        Ok(entered)
    }

    /// The value, for its owner, who enters by the bias: the short way. `None` for anybody else, and
    /// whenever there is more to be looked at; [`Guarded::enter`] does that.
    #[inline(always)]
    pub fn enter_by_bias(&self) -> Option<Biased<'_, T>> {
        if !self.is_owner() || self.bias.enter() != Bid::Inside {
            return None;
        }
        Some(Biased {
            guarded: self,
            stays: PhantomData,
        })
    }

    /// The value, if this caller may have it and nobody else has it now. Waits for nobody.
    pub fn try_enter(&self) -> Option<Entered<'_, T>> {
        if self.is_owner() {
            match self.bias.enter() {
                Bid::Inside => return Some(Entered::new(self, false)),
                Bid::Twice => return None,
                Bid::Revoked => {}
            }
        } else if !self.shared || self.forks != forks() {
            return None;
        }
        if !self.lock.try_lock() {
            return None;
        }
        let entered = Entered::new(self, true);
        let is_free = self.bias.is_closed() || self.try_close_bias();
        is_free.then_some(entered)
    }

    /// Takes the bias away, under the lock, if its owner is not inside. Where it is, it comes by the lock the next time.
    #[cold]
    fn try_close_bias(&self) -> bool {
        if self.is_owner() {
            self.bias.close();
            return true;
        }
        self.bias.try_revoke(|| (self.barrier)(self.owner_id()))
    }

    /// Takes the bias away, under the lock.
    #[cold]
    fn close_bias(&self) -> Result<()> {
        if self.is_owner() {
            // It saw that somebody wants in, and came by the lock itself: no race is left.
            self.bias.close();
            return Ok(());
        }
        if self.bias.revoke(|| (self.barrier)(self.owner_id())) {
            Ok(())
        } else {
            self.streak.forbid();
            Err(Error::NoBarrier)
        }
    }

    #[inline(always)]
    fn is_owner(&self) -> bool {
        self.owner.load(Relaxed) == thread::number()
    }

    fn owner_id(&self) -> Pid {
        Pid::from_raw(self.owner_id.load(Relaxed)).unwrap_or(Pid::INIT)
    }

    /// Counts an entry by the lock, which this thread is about to give back, and gives the thread the bias where it has long been
    /// the only one to enter.
    fn count_entry(&self) {
        if self.streak.count(thread::number()) {
            self.take_bias();
        }
    }

    /// Gives the bias to this thread, which has the lock and does not touch the value any more.
    #[cold]
    #[inline(never)]
    fn take_bias(&self) {
        let may_take = self.is_owner() || has_ended(self.owner_id());
        if !may_take || self.forks != forks() {
            return;
        }
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        self.owner.store(thread::take_number(), Relaxed);
        self.owner_id.store(own, Relaxed);
        self.streak.reward();
        self.bias.open();
    }
}

/// The value of a [`Guarded`], until dropped.
#[derive(Debug)]
pub struct Entered<'a, T> {
    guarded: &'a Guarded<T>,
    locked: bool,
    /// Neither sent nor shared: the bias is left by the thread that entered, and a value that is
    /// only `Send` must not be seen by two threads.
    stays: PhantomData<*const T>,
}

impl<'a, T> Entered<'a, T> {
    #[inline]
    const fn new(guarded: &'a Guarded<T>, locked: bool) -> Self {
        Self {
            guarded,
            locked,
            stays: PhantomData,
        }
    }
}

impl<T> Deref for Entered<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `enter` made this the only way to the value.
        unsafe { &*self.guarded.value.get() }
    }
}

impl<T> DerefMut for Entered<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and this guard is borrowed exclusively.
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.locked {
            self.guarded.count_entry();
            self.guarded.lock.unlock();
        } else {
            self.guarded.bias.leave();
        }
    }
}

/// The value of a [`Guarded`] that its owner entered by the bias, until dropped.
#[derive(Debug)]
pub struct Biased<'a, T> {
    guarded: &'a Guarded<T>,
    /// As in [`Entered`].
    stays: PhantomData<*const T>,
}

impl<T> Biased<'_, T> {
    /// The value.
    #[inline(always)]
    pub fn value(&mut self) -> &mut T {
        // SAFETY: the owner is inside by the bias, which keeps everybody else out and does not let
        // the owner in twice; this guard is borrowed exclusively.
        unsafe { &mut *self.guarded.value.get() }
    }
}

impl<T> Drop for Biased<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.guarded.bias.leave();
    }
}

/// How the owner's wish to enter by the bias came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bid {
    Inside,
    /// It is inside already: a call from within a callback.
    Twice,
    /// The lock has to be taken.
    Revoked,
}

/// How often in a row one thread was the only one to enter by the lock. Used under the lock.
struct Streak {
    /// The number of that thread, and its entries in the lower [`BITS`](Self::BITS).
    word: AtomicU64,
    /// The entries after which the thread gets the bias. It doubles with each bias that is given: what the next second thread pays
    /// for its barrier stays small beside what was gained.
    wanted: AtomicU64,
}

impl Streak {
    const BITS: u32 = 24;

    /// The entries after which a bias is given the first time: some 20 us of them, as long as a barrier takes.
    const FIRST: u64 = 512;

    /// The most entries that are counted.
    const MOST: u64 = (1 << Self::BITS) - 1;

    /// No bias is given any more.
    const NEVER: u64 = u64::MAX;

    fn new(has_barrier: bool) -> Self {
        let wanted = if has_barrier {
            Self::FIRST
        } else {
            Self::NEVER
        };
        Self {
            word: AtomicU64::new(0),
            wanted: AtomicU64::new(wanted),
        }
    }

    /// Counts an entry. Returns whether this thread has earned the bias.
    #[inline]
    fn count(&self, thread: u64) -> bool {
        let word = self.word.load(Relaxed);
        let entries = match word >> Self::BITS == thread {
            true => (word & Self::MOST) + 1,
            false => 1,
        };
        let is_earned = entries >= self.wanted.load(Relaxed);
        // One that cannot have it is looked at again after as many.
        let counted = if is_earned {
            0
        } else {
            entries.min(Self::MOST - 1)
        };
        self.word.store(thread << Self::BITS | counted, Relaxed);
        is_earned
    }

    /// The next bias takes longer to earn.
    fn reward(&self) {
        let wanted = self.wanted.load(Relaxed);
        self.wanted.store((2 * wanted).min(Self::MOST), Relaxed);
    }

    /// There is no barrier by which a bias could be taken away.
    #[cold]
    fn forbid(&self) {
        self.wanted.store(Self::NEVER, Relaxed);
    }
}

/// The owner's own way in, for as long as nobody else comes.
///
/// ```text
///     owner                        second thread, holding the lock
///     inside = true                revoked = true
///     (compiler barrier)           barrier on all threads
///     revoked?  no: enter          wait while inside
/// ```
///
/// Either the owner's store was made before the barrier, and the second thread sees it; or its
/// load comes after the barrier, and sees the revocation.
///
/// Where the barrier is refused the second thread goes away again, and `revoked` stays: the owner
/// takes the lock on its next way in, and closes the bias there.
///
/// A closed bias is opened by the thread that is to have it, under the lock: by the owner itself, or where the owner has ended.
/// So no thread that had it before is on its way in.
struct Bias {
    inside: AtomicBool,
    revoked: AtomicBool,
    /// Nobody is inside by the bias, and nobody comes before it is [opened](Bias::open). Written under the lock.
    closed: AtomicBool,
}

impl Bias {
    fn new(revoked: bool) -> Self {
        Self {
            inside: AtomicBool::new(false),
            revoked: AtomicBool::new(revoked),
            closed: AtomicBool::new(revoked),
        }
    }

    #[inline]
    fn enter(&self) -> Bid {
        if self.inside.load(Ordering::Relaxed) {
            return Bid::Twice;
        }
        self.inside.store(true, Ordering::Relaxed);
        light_barrier();
        if self.revoked.load(Ordering::Acquire) {
            self.inside.store(false, Ordering::Release);
            return Bid::Revoked;
        }
        Bid::Inside
    }

    #[inline]
    fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }

    #[inline]
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Gives the bias again. Called under the lock, by the thread that is to have it.
    fn open(&self) {
        self.closed.store(false, Ordering::Relaxed);
        self.revoked.store(false, Ordering::Relaxed);
    }

    /// Takes the bias away. Called under the lock, by another thread than the owner. Returns
    /// `false` where there is no barrier: the owner may be inside then.
    #[cold]
    fn revoke(&self, barrier: impl FnOnce() -> bool) -> bool {
        self.revoked.store(true, Ordering::Release);
        if !barrier() {
            return false;
        }
        while self.inside.load(Ordering::Acquire) {
            yield_core();
        }
        self.close();
        true
    }

    /// The same, if the owner is not inside. Returns `false` where it is or may be.
    #[cold]
    fn try_revoke(&self, barrier: impl FnOnce() -> bool) -> bool {
        self.revoked.store(true, Ordering::Release);
        let is_inside = || self.inside.load(Ordering::Acquire);
        if is_inside() || !barrier() || is_inside() {
            return false;
        }
        self.close();
        true
    }
}

/// The owner's half of the barrier: keeps the compiler from reordering; the processor is kept by
/// the other half. Under loom, which has no such asymmetric pair, a full fence on each side.
#[inline]
fn light_barrier() {
    #[cfg(loom)]
    tagwire_base::sync::fence(Ordering::SeqCst);
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
}

#[cfg(not(loom))]
fn register_barrier() -> bool {
    let command = rustix::thread::MembarrierCommand::RegisterPrivateExpedited;
    rustix::thread::membarrier(command).is_ok()
}

/// The second thread's half of the barrier. Registered for when the guard was made; a filter of
/// system calls that came since may refuse it all the same.
#[cfg(not(loom))]
fn barrier(owner: Pid) -> bool {
    let command = rustix::thread::MembarrierCommand::PrivateExpedited;
    rustix::thread::membarrier(command).is_ok() || run_on_all_cores_of(owner)
}

/// The same without `membarrier`: this thread runs on every core on which the owner may, one after
/// the other, and goes back to its own. An owner that was running has been switched out by then,
/// for this thread or to be moved, and a switch is a full barrier.
#[cfg(not(loom))]
fn run_on_all_cores_of(owner: Pid) -> bool {
    use rustix::io::Errno;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    std::sync::atomic::fence(Ordering::SeqCst);
    let Ok(own) = sched_getaffinity(None) else {
        return false;
    };
    let cores = match sched_getaffinity(Some(owner)) {
        Ok(cores) => cores,
        // It has ended, with a switch.
        Err(Errno::SRCH) => return true,
        Err(_) => return false,
    };
    let mut all = (0..CpuSet::MAX_CPU as u32).filter(|core| cores.is_set(*core as usize));
    let done = all.all(|core| tagwire_base::topology::bind_to(core).is_ok());
    // A thread that may not go back stays where it is, and works.
    let _ = sched_setaffinity(None, &own);
    done
}

/// Whether this process has no such thread any more. One that has taken its number is taken for it.
fn has_ended(thread: Pid) -> bool {
    // SAFETY: the signal 0 is sent to nobody.
    let sent = unsafe {
        libc::syscall(
            libc::SYS_tgkill,
            libc::getpid(),
            thread.as_raw_nonzero().get(),
            0,
        )
    };
    sent == -1 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

#[cfg(not(loom))]
fn yield_core() {
    rustix::thread::sched_yield();
}

#[cfg(loom)]
fn register_barrier() -> bool {
    true
}

#[cfg(loom)]
fn barrier(_: Pid) -> bool {
    tagwire_base::sync::fence(Ordering::SeqCst);
    true
}

#[cfg(loom)]
fn yield_core() {
    spin_loop();
}

const FREE: u32 = 0;
const HELD: u32 = 1;
const CONTENDED: u32 = 2;

/// How often a thread that waits for the lock yields its core before it sleeps.
const YIELDS: u32 = if cfg!(loom) { 1 } else { 16 };

/// A lock whose fast path is one exchange to take and one to give, and whose waiters sleep.
///
/// Written here because the holder may be descheduled on a machine with more threads than
/// cores: waiters must go to the kernel soon.
struct Lock {
    state: AtomicU32,
}

impl Lock {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
        }
    }

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.lock_slowly();
        }
    }

    /// Takes it, if it is free.
    #[inline]
    fn try_lock(&self) -> bool {
        self.state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    fn lock_slowly(&self) {
        for _ in 0..40 {
            if self.state.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return;
            }
            spin_loop();
        }
        // Whoever holds it gives it back within a call, unless it waits for this core: to sleep and to be woken takes longer than
        // either.
        for _ in 0..YIELDS {
            yield_core();
            if self.state.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return;
            }
        }
        while self.state.swap(CONTENDED, Ordering::Acquire) != FREE {
            sleep_while(&self.state, CONTENDED);
        }
    }

    #[inline]
    fn unlock(&self) {
        if self.state.swap(FREE, Ordering::Release) == CONTENDED {
            wake_one(&self.state);
        }
    }
}

#[cfg(not(loom))]
fn sleep_while(word: &AtomicU32, value: u32) {
    use rustix::thread::futex;
    // A second bounds the harm of a wake-up that got lost to a signal.
    let bound = rustix::time::Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    let _ = futex::wait(word, futex::Flags::PRIVATE, value, Some(&bound));
}

#[cfg(not(loom))]
fn wake_one(word: &AtomicU32) {
    let _ = rustix::thread::futex::wake(word, rustix::thread::futex::Flags::PRIVATE, 1);
}

#[cfg(loom)]
fn sleep_while(_: &AtomicU32, _: u32) {
    spin_loop();
}

#[cfg(loom)]
fn wake_one(_: &AtomicU32) {}

/// How long a sleeping thread lets others wait for news of peers.
pub(crate) const LOOK_AFTER: Duration = Duration::from_millis(100);

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    struct Shared {
        bias: Bias,
        lock: Lock,
        count: loom::cell::UnsafeCell<u32>,
    }

    // SAFETY: the model's own check is what is tested.
    unsafe impl Sync for Shared {}

    impl Shared {
        fn add(&self) {
            // SAFETY: exclusive, by bias or lock; loom reports it if not.
            self.count.with_mut(|count| unsafe { *count += 1 });
        }

        /// Adds as a second thread does.
        fn add_by_lock(&self) {
            self.lock.lock();
            if !self.bias.is_closed() {
                assert!(self.bias.revoke(|| barrier(rustix::thread::gettid())));
            }
            self.add();
            self.lock.unlock();
        }

        /// Adds as a thread does that waits for nobody. Returns how often it has.
        fn add_if_free(&self) -> u32 {
            if !self.lock.try_lock() {
                return 0;
            }
            let barrier = || barrier(rustix::thread::gettid());
            let is_free = self.bias.is_closed() || self.bias.try_revoke(barrier);
            if is_free {
                self.add();
            }
            self.lock.unlock();
            u32::from(is_free)
        }

        /// Adds as the owner does.
        fn add_as_owner(&self) {
            match self.bias.enter() {
                Bid::Inside => {
                    self.add();
                    self.bias.leave();
                }
                Bid::Revoked => {
                    self.lock.lock();
                    self.bias.close();
                    self.add();
                    self.lock.unlock();
                }
                Bid::Twice => unreachable!("the owner is not inside"),
            }
        }
    }

    /// Runs an owner, which adds twice, beside a second thread, which tells how often it has: the counter, a plain cell, is never torn.
    fn exclude_each_other(
        is_revoked: bool,
        owner: impl Fn(&Shared) + Sync + Send + 'static,
        second: fn(&Shared) -> u32,
    ) {
        loom::model(move || {
            let shared = Arc::new(Shared {
                bias: Bias::new(is_revoked),
                lock: Lock::new(),
                count: loom::cell::UnsafeCell::new(0),
            });
            let other = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || second(&shared))
            };
            owner(&shared);
            let all = 2 + other.join().unwrap();
            // SAFETY: the other thread has ended.
            shared
                .count
                .with(|count| assert_eq!(unsafe { *count }, all));
        });
    }

    fn add_twice(shared: &Shared) {
        shared.add_as_owner();
        shared.add_as_owner();
    }

    fn add_once(shared: &Shared) -> u32 {
        shared.add_by_lock();
        1
    }

    #[test]
    fn loom_a_biased_owner_and_a_second_thread_exclude_each_other() {
        exclude_each_other(false, add_twice, add_once);
    }

    #[test]
    fn loom_a_biased_owner_and_a_thread_that_waits_for_nobody_exclude_each_other() {
        exclude_each_other(false, add_twice, Shared::add_if_free);
    }

    /// An owner whose bias was taken away takes it back under the lock, beside a second thread that comes again.
    #[test]
    fn loom_an_owner_that_takes_its_bias_back_and_a_second_thread_exclude_each_other() {
        let take_back = |shared: &Shared| {
            shared.lock.lock();
            shared.add();
            shared.bias.open();
            shared.lock.unlock();
            shared.add_as_owner();
        };
        exclude_each_other(true, take_back, add_once);
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// How many entries by the lock it takes until this thread enters by the bias.
    fn entries_before_bias(guarded: &Guarded<u8>) -> u64 {
        (0..1 << 16)
            .find(|_| {
                let has_bias = guarded.enter_by_bias().is_some();
                drop(guarded.enter().unwrap());
                has_bias
            })
            .expect("the bias is given")
    }

    fn intrude(guarded: &Guarded<u8>) {
        std::thread::scope(|scope| {
            scope.spawn(|| drop(guarded.enter().unwrap()));
        });
    }

    #[test]
    fn the_owner_gets_the_bias_back_ever_later() {
        let guarded = Guarded::new(ThreadLevel::Multiple, 7);
        if guarded.bias.is_closed() {
            return; // No barrier on this machine, hence no bias.
        }
        for wanted in [Streak::FIRST, 2 * Streak::FIRST, 4 * Streak::FIRST] {
            assert!(guarded.enter_by_bias().is_some());
            intrude(&guarded);
            assert_eq!(entries_before_bias(&guarded), wanted);
        }
    }

    #[test]
    fn threads_that_take_turns_get_no_bias() {
        let guarded = Guarded::new(ThreadLevel::Multiple, 7);
        for _ in 0..2 * Streak::FIRST {
            intrude(&guarded);
            drop(guarded.enter().unwrap());
        }
        assert!(guarded.enter_by_bias().is_none());
    }

    #[test]
    fn a_thread_gets_the_bias_of_an_owner_that_has_ended_and_of_no_other() {
        let opened = std::thread::spawn(|| Guarded::new(ThreadLevel::Multiple, 7));
        let guarded = opened.join().unwrap();
        if guarded.bias.is_closed() {
            return; // No barrier on this machine, hence no bias.
        }
        while !has_ended(guarded.owner_id()) {
            yield_core();
        }
        assert_eq!(entries_before_bias(&guarded), Streak::FIRST);
        // This thread has it now, and lives.
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                for _ in 0..4 * Streak::FIRST {
                    assert!(guarded.enter_by_bias().is_none());
                    drop(guarded.enter().unwrap());
                }
            });
            other.join().unwrap();
        });
    }

    #[test]
    fn single_refuses_other_threads_and_reentry() {
        let guarded = Arc::new(Guarded::new(ThreadLevel::Single, 7));
        let other = Arc::clone(&guarded);
        let refused = std::thread::spawn(move || other.enter().is_err())
            .join()
            .unwrap();
        assert!(refused);
        let entered = guarded.enter().unwrap();
        assert!(guarded.enter().is_err());
        drop(entered);
        assert_eq!(*guarded.enter().unwrap(), 7);
    }

    #[test]
    fn who_tries_waits_for_nobody() {
        let guarded = Guarded::new(ThreadLevel::Multiple, 7);
        let tried = || {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| guarded.try_enter().map(|entered| *entered));
                other.join().unwrap()
            })
        };
        // The owner is inside by the bias, and the next time by the lock.
        for _ in 0..2 {
            let entered = guarded.enter().unwrap();
            assert_eq!(tried(), None);
            assert!(guarded.try_enter().is_none());
            drop(entered);
        }
        assert_eq!(tried(), Some(7));
    }

    /// A thread that takes the place of the owner, and all that was its, is not the owner.
    #[test]
    fn nobody_inherits_the_owners_place() {
        let opened = std::thread::spawn(|| Guarded::new(ThreadLevel::Single, 7));
        let guarded = opened.join().unwrap();
        for _ in 0..20 {
            let refused = std::thread::scope(|scope| {
                let other = scope.spawn(|| guarded.enter().is_err());
                other.join().unwrap()
            });
            assert!(refused, "another thread was taken for the owner");
        }
    }

    /// Without a barrier a second thread is turned away, whoever holds the lock or waits for it
    /// goes on, and the owner's next call lets the second thread in.
    #[test]
    fn without_a_barrier_the_owner_lets_others_in() {
        let mut guarded = Guarded::new(ThreadLevel::Multiple, 7);
        if guarded.bias.is_closed() {
            return; // No barrier on this machine from the start, hence no bias.
        }
        guarded.barrier = |_| false;
        let guarded = &guarded;
        let enter = || {
            std::thread::scope(|scope| {
                let other = scope.spawn(|| guarded.enter().map(|entered| *entered));
                other.join().unwrap()
            })
        };
        for _ in 0..3 {
            assert!(matches!(enter(), Err(Error::NoBarrier)));
        }
        assert_eq!(*guarded.enter().unwrap(), 7);
        assert!(matches!(enter(), Ok(7)));
        assert_eq!(*guarded.enter().unwrap(), 7);
    }

    #[test]
    fn the_barrier_without_membarrier_puts_the_thread_back() {
        use rustix::thread::{gettid, sched_getaffinity};
        let owner = gettid();
        std::thread::spawn(move || {
            let cores = sched_getaffinity(None).unwrap();
            assert!(run_on_all_cores_of(owner));
            assert!(sched_getaffinity(None).unwrap() == cores);
        })
        .join()
        .unwrap();
    }

    /// Does not compile when an entered guard may be sent or shared.
    #[test]
    fn an_entered_guard_stays_on_its_thread() {
        trait Stays<Marker> {
            const YES: bool = true;
        }
        struct Sent;
        struct Shared;
        impl<T: ?Sized> Stays<()> for T {}
        impl<T: ?Sized + Send> Stays<Sent> for T {}
        impl<T: ?Sized + Sync> Stays<Shared> for T {}
        const _: () = assert!(<Entered<'static, u8> as Stays<_>>::YES);
    }

    #[test]
    fn multiple_counts_right() {
        let guarded = Arc::new(Guarded::new(ThreadLevel::Multiple, 0u64));
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let guarded = Arc::clone(&guarded);
                std::thread::spawn(move || {
                    for _ in 0..10_000 {
                        *guarded.enter().unwrap() += 1;
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(*guarded.enter().unwrap(), 40_000);
    }
}
