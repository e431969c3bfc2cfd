//! A thread that makes progress while the program computes: for transports whose peers cannot
//! do it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tagwire_base::Config;

use crate::error::{Error, Result};
use crate::messenger::Messenger;

/// A rank's progress thread, from [`start`](ProgressThread::start) to its drop. It sleeps in the kernel while
/// nothing arrives, and wakes the program's threads for what it has completed.
///
/// It is a second thread in the rank: the rank's level is
/// [`Multiple`](crate::ThreadLevel::Multiple), and each call of the program pays for the lock that the two share.
pub struct ProgressThread {
    messenger: Arc<Messenger>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressThread {
    /// The thread for `messenger`, if `config` asks for one.
    ///
    /// # Errors
    /// As [`start`](ProgressThread::start).
    pub fn from_config(config: &Config, messenger: &Arc<Messenger>) -> Result<Option<Self>> {
        let wanted = config.flag("progress-thread");
        wanted.then(|| Self::start(messenger)).transpose()
    }

    /// Starts the thread for `messenger`.
    ///
    /// # Errors
    /// [`Error::WrongThread`] when the rank's level lets no second thread in; when the system has
    /// no thread left.
    pub fn start(messenger: &Arc<Messenger>) -> Result<Self> {
        if !messenger.takes_any_thread() {
            return Err(Error::WrongThread);
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (driven, stopped) = (Arc::clone(messenger), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name(format!("progress {}", messenger.rank()))
            .spawn(move || drive(&driven, &stopped))
            .map_err(Error::NoThread)?;
        Ok(Self {
            messenger: Arc::clone(messenger),
            stop,
            thread: Some(thread),
        })
    }
}

/// Makes progress until told to stop, or until the rank refuses.
fn drive(messenger: &Messenger, stop: &AtomicBool) {
    while !stop.load(Ordering::Acquire) {
        match messenger.arm(messenger.sleepers.noted()) {
            // Told to stop from now on, it is woken.
            Ok(Some(armed)) if !stop.load(Ordering::Acquire) => armed.sleep(),
            Ok(_) => {}
            Err(error) => {
                tracing::warn!("the progress thread ends: {error}");
                return;
            }
        }
    }
}

impl Drop for ProgressThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.messenger.sleepers.wake();
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for ProgressThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgressThread(rank {})", self.messenger.rank())
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::time::Duration;

    use tagwire_base::bootstrap::LocalJob;
    use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
    use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
    use tagwire_transport::{RecvBuffer, SendBuffer};

    use super::*;
    use crate::guard::ThreadLevel;
    use crate::ob1::{Ob1, Ob1Options};
    use crate::types::SendMode;
    use crate::wait::WaitPolicy;

    fn ranks(level: ThreadLevel) -> (Arc<Messenger>, Arc<Messenger>) {
        let network = MemoryNetwork::new(2, MemoryOptions::default());
        let job = LocalJob::new(2).unwrap();
        let open = |rank: u32| {
            let rank = Rank::new(rank);
            let rail = Box::new(network.rank(rank));
            let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(job.member(rank)));
            Arc::new(Messenger::new(
                ob1.unwrap(),
                level,
                WaitPolicy::adaptive(true),
            ))
        };
        std::thread::scope(|scope| {
            let second = scope.spawn(|| open(1));
            (open(0), second.join().unwrap())
        })
    }

    #[test]
    fn a_rank_of_one_thread_has_no_other() {
        let (port, _) = ranks(ThreadLevel::Funneled);
        assert!(ProgressThread::start(&port).is_err());
    }

    /// The receiver computes; a synchronous send ends all the same.
    #[test]
    fn messages_match_while_their_receiver_computes() {
        let (sender, receiver) = ranks(ThreadLevel::Multiple);
        let driver = ProgressThread::start(&receiver).unwrap();
        let (tag, world) = (Tag::user(1).unwrap(), ContextId::WORLD);
        for _ in 0..50 {
            let posted = receiver
                .irecv(
                    RecvBuffer::EMPTY,
                    SourceSelector::ANY,
                    TagSelector::ANY,
                    world,
                )
                .unwrap();
            let data = SendBuffer::EMPTY;
            let mode = SendMode::Synchronous;
            let sent = sender.isend(data, Rank::new(1), tag, world, mode).unwrap();
            let status = sender.wait(sent, Some(Duration::from_secs(20))).unwrap();
            assert_eq!(status.failure, None);
            assert!(receiver.wait(posted, None).is_ok());
        }
        drop(driver);
        assert!(receiver.progress().is_ok());
    }
}
