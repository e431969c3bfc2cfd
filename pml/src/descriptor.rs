//! A descriptor that becomes readable when a rank has something to do: to wait with `poll` for messages and for other things.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::error::{Error, Result};
use crate::messenger::Messenger;
use crate::wakeup::Wakeup;

/// A descriptor to wait on: an eventfd, which a [`Wakeup`] makes readable.
pub struct WaitDescriptor {
    wakeup: Wakeup,
    event: Arc<OwnedFd>,
}

impl WaitDescriptor {
    /// Opens one for a rank.
    ///
    /// # Errors
    /// When the system has no descriptor or no thread left.
    pub fn open(messenger: &Arc<Messenger>) -> Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = eventfd(0, flags).map_err(|error| Error::NoDescriptor(error.into()))?;
        let event = Arc::new(event);
        let told = Arc::clone(&event);
        let tell = move || {
            // One that cannot take one more is readable.
            let _ = rustix::io::write(&*told, &1_u64.to_ne_bytes());
        };
        let wakeup = Wakeup::open(messenger, tell)?;
        Ok(Self { wakeup, event })
    }

    /// Makes progress once, and says that the caller is about to wait; see [`Wakeup::arm`]. What a call before this one has
    /// left readable is taken.
    ///
    /// # Errors
    /// [`Error::WrongThread`].
    pub fn arm(&self) -> Result<bool> {
        self.wakeup.messenger().check_thread()?;
        let mut taken = [0; 8];
        // Not readable is as good.
        let _ = rustix::io::read(&*self.event, &mut taken);
        self.wakeup.arm()
    }
}

impl AsFd for WaitDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl fmt::Debug for WaitDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.wakeup.messenger().rank();
        write!(f, "WaitDescriptor(rank {rank})")
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use tagwire_base::bootstrap::LocalJob;
    use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
    use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
    use tagwire_transport::{RecvBuffer, SendBuffer};

    use super::*;
    use crate::guard::ThreadLevel;
    use crate::ob1::{Ob1, Ob1Options};
    use crate::types::{RequestId, SendMode};
    use crate::wait::WaitPolicy;

    const LONG: Duration = Duration::from_secs(30);

    /// Two ranks whose sleeps end after `sleep` with nothing.
    fn ranks(level: ThreadLevel, sleep: Duration) -> (Arc<Messenger>, Arc<Messenger>) {
        let network = MemoryNetwork::new(2, MemoryOptions::default());
        let job = LocalJob::new(2).unwrap();
        let policy = WaitPolicy {
            sleep,
            ..WaitPolicy::adaptive(true)
        };
        let open = |rank: u32, level| {
            let rank = Rank::new(rank);
            let rail = Box::new(network.rank(rank));
            let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(job.member(rank)));
            Arc::new(Messenger::new(ob1.unwrap(), level, policy))
        };
        std::thread::scope(|scope| {
            let second = scope.spawn(|| open(1, ThreadLevel::Multiple));
            (open(0, level), second.join().unwrap())
        })
    }

    fn tag() -> Tag {
        Tag::user(3).unwrap()
    }

    fn send(from: &Messenger) {
        let (to, mode) = (Rank::new(0), SendMode::Standard);
        let request = from.isend(SendBuffer::EMPTY, to, tag(), ContextId::WORLD, mode);
        from.wait(request.unwrap(), None).unwrap();
    }

    fn receive(port: &Messenger) -> RequestId {
        let (from, tag) = (SourceSelector::ANY, TagSelector::exact(tag()));
        port.irecv(RecvBuffer::EMPTY, from, tag, ContextId::WORLD)
            .unwrap()
    }

    /// Whether the descriptor becomes readable within `timeout`.
    fn is_readable(descriptor: &WaitDescriptor, timeout: Duration) -> bool {
        let mut all = [PollFd::new(descriptor, PollFlags::IN)];
        let limit = Timespec::try_from(timeout).unwrap();
        poll(&mut all, Some(&limit)).unwrap() > 0
    }

    /// The rank belongs to this thread alone, and another one sends.
    #[test]
    fn what_comes_makes_it_readable() {
        let (port, peer) = ranks(ThreadLevel::Single, LONG);
        let descriptor = WaitDescriptor::open(&port).unwrap();
        for _ in 0..50 {
            let request = receive(&port);
            while !descriptor.arm().unwrap() {}
            assert!(!is_readable(&descriptor, Duration::ZERO));
            let sender = Arc::clone(&peer);
            let sending = std::thread::spawn(move || send(&sender));
            let mut waits = 0;
            while port.test(request).unwrap().is_none() {
                if descriptor.arm().unwrap() {
                    assert!(is_readable(&descriptor, LONG));
                    waits += 1;
                }
            }
            assert!(waits < 5, "{waits} waits for one message");
            sending.join().unwrap();
        }
    }

    #[test]
    fn what_came_before_is_not_waited_for() {
        let (port, peer) = ranks(ThreadLevel::Single, LONG);
        let descriptor = WaitDescriptor::open(&port).unwrap();
        let request = receive(&port);
        while !descriptor.arm().unwrap() {}
        send(&peer);
        assert!(is_readable(&descriptor, LONG));
        // Nobody has made progress since.
        while descriptor.arm().unwrap() {
            assert!(is_readable(&descriptor, LONG));
        }
        assert!(port.test(request).unwrap().is_some());
    }

    /// A test of another request has made the progress.
    #[test]
    fn what_a_test_has_completed_is_not_waited_for() {
        let (port, peer) = ranks(ThreadLevel::Single, LONG);
        let descriptor = WaitDescriptor::open(&port).unwrap();
        for _ in 0..20 {
            let (first, second) = (receive(&port), receive(&port));
            while !descriptor.arm().unwrap() {}
            send(&peer);
            // Completes the first.
            assert!(port.test(second).unwrap().is_none());
            assert!(!descriptor.arm().unwrap());
            assert!(port.test(first).unwrap().is_some());
            send(&peer);
            while port.test(second).unwrap().is_none() {}
        }
    }

    /// Another thread completes a request between a test and the wait.
    #[test]
    fn what_another_thread_has_completed_is_not_waited_for() {
        let (port, peer) = ranks(ThreadLevel::Multiple, LONG);
        let descriptor = WaitDescriptor::open(&port).unwrap();
        for _ in 0..20 {
            let request = receive(&port);
            while !descriptor.arm().unwrap() {}
            send(&peer);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !port.is_complete(request).unwrap() {
                        port.progress().unwrap();
                    }
                });
            });
            assert!(!descriptor.arm().unwrap());
            assert!(port.test(request).unwrap().is_some());
        }
    }

    /// Peers are looked after, should nothing come.
    #[test]
    fn it_is_readable_after_the_longest_sleep() {
        let (port, _peer) = ranks(ThreadLevel::Multiple, Duration::from_millis(2));
        let descriptor = WaitDescriptor::open(&port).unwrap();
        for _ in 0..3 {
            while !descriptor.arm().unwrap() {}
            assert!(is_readable(&descriptor, LONG));
        }
    }

    #[test]
    fn other_threads_may_not_arm() {
        let (port, _peer) = ranks(ThreadLevel::Single, LONG);
        let descriptor = WaitDescriptor::open(&port).unwrap();
        let refused = std::thread::scope(|scope| {
            let other = scope.spawn(|| descriptor.arm().is_err());
            other.join().unwrap()
        });
        assert!(refused);
        assert!(!is_readable(&descriptor, Duration::ZERO));
    }

    /// Its thread is woken, however long it may sleep.
    #[test]
    fn its_end_does_not_wait() {
        let (port, _peer) = ranks(ThreadLevel::Single, Duration::from_secs(3600));
        let descriptor = WaitDescriptor::open(&port).unwrap();
        while !descriptor.arm().unwrap() {}
        let weak = Arc::downgrade(&descriptor.event);
        drop(descriptor);
        assert!(weak.upgrade().is_none(), "the thread is gone");
    }
}
