//! Programs of tasks: futures of owned operations, under any runtime.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tagwire_pml::Wakeup;

use crate::error::Result;
use crate::session::Session;
use crate::tasks::Driver;

impl Session {
    /// Runs `work` in this task, and makes the progress meanwhile that futures of this session wait for: those in `work`, and
    /// those of other tasks. Returns what `work` returns.
    ///
    /// [`OwnedSend`](crate::OwnedSend), [`OwnedRecv`](crate::OwnedRecv) and `completed` of the persistent operations are
    /// futures. They make no progress: without a task that drives, nobody wakes theirs, unless the program calls
    /// [`progress`](Session::progress) again and again. A future that is dropped leaves nothing behind: its operation is taken
    /// back or goes on, and its buffer is freed at its end.
    ///
    /// Any runtime will do: a thread sleeps for the rank, and wakes this task. Here it is tokio, with one thread.
    ///
    /// ```
    /// let session = tagwire::Session::open()?;
    /// let (world, me) = (session.world(), session.rank());
    /// let work = async {
    ///     let receive = world.irecv_owned(vec![0u8; 4], me, 7)?;
    ///     world.isend_owned(b"work".to_vec(), me, 7)?.await?;
    ///     let (status, data) = receive.await?;
    ///     assert_eq!((status.source(), &data[..]), (me, &b"work"[..]));
    ///     Ok::<_, tagwire::Error>(())
    /// };
    /// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// runtime.block_on(session.drive(work))??;
    /// # session.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A blocking call in a task holds up all tasks of its thread. What it completes of theirs is noticed at their next turn,
    /// at the latest after the longest sleep (setting `sleep`).
    ///
    /// At [`ThreadLevel::Single`](crate::ThreadLevel::Single) all tasks are those of the thread that opened the session, as in
    /// a runtime of one thread. One task drives a session at a time.
    ///
    /// # Errors
    /// When the system has no thread left; when called from a thread that may not. `work` is dropped then.
    pub async fn drive<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = pin!(work);
        let driving = Driving::of(self)?;
        poll_fn(|task| {
            driving.driver.set(Some(task.waker().clone()));
            if let Poll::Ready(done) = work.as_mut().poll(task) {
                return Poll::Ready(Ok(done));
            }
            if !driving.turn(self)? {
                // Once more, after what other tasks have to do.
                task.waker().wake_by_ref();
            }
            Poll::Pending
        })
        .await
    }
}

/// What a task that drives has, until it ends or is dropped.
struct Driving {
    wakeup: Wakeup,
    driver: Arc<Driver>,
}

impl Driving {
    fn of(session: &Session) -> Result<Self> {
        let driver = Arc::clone(session.shared.tasks.driver());
        let woken = Arc::clone(&driver);
        let wakeup = Wakeup::open(&session.shared.messenger, move || woken.wake())?;
        Ok(Self { wakeup, driver })
    }

    /// Makes progress once, and wakes the tasks whose operations are complete. Returns whether the caller may wait.
    fn turn(&self, session: &Session) -> Result<bool> {
        let messenger = &session.shared.messenger;
        messenger
            .dumps()
            .write_if_wanted(|| messenger.dump(), None)?;
        session.shared.orphans.reap(messenger);
        let may_wait = self.wakeup.arm()?;
        session.shared.tasks.wake_complete(messenger);
        Ok(may_wait)
    }
}

impl Drop for Driving {
    fn drop(&mut self) {
        self.driver.set(None);
    }
}
