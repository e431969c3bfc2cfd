//! Programs of tasks: futures of owned operations, under any runtime.

use std::future::{Future, poll_fn};
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use crate::descriptor::WaitDescriptor;
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// Runs `work` in this task, and makes the progress meanwhile that futures of this session wait for: those in `work`, and
    /// those of other tasks. Returns what `work` returns.
    ///
    /// [`OwnedSend`](crate::OwnedSend), [`OwnedRecv`](crate::OwnedRecv) and `completed` of the persistent operations are
    /// futures. They make no progress: without a task that drives, nobody wakes theirs, unless the program calls
    /// [`progress`](Session::progress) again and again. A future that is dropped leaves nothing behind: its operation is taken
    /// back or goes on, and its buffer is freed at its end.
    ///
    /// `readable` is the runtime's part. It returns [`Poll::Ready`] where the runtime has found `descriptor` readable, and
    /// takes note that it has said so; else it has the task woken once it is. Of tokio, that is
    /// `AsyncFd::poll_read_ready` with `clear_ready`:
    ///
    /// ```
    /// use tagwire::Session;
    /// use tokio::io::unix::AsyncFd;
    ///
    /// let session = Session::open()?;
    /// let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    /// let received = runtime.block_on(async {
    ///     let descriptor = AsyncFd::new(session.wait_fd()?)?;
    ///     let readable = |task: &mut std::task::Context<'_>| {
    ///         let ready = descriptor.poll_read_ready(task);
    ///         ready.map_ok(|mut ready| ready.clear_ready()).map_err(Into::into)
    ///     };
    ///     let work = async {
    ///         let (world, me) = (session.world(), session.rank());
    ///         let receive = world.irecv_owned(vec![0u8; 4], me, 7)?;
    ///         world.isend_owned(b"work".to_vec(), me, 7)?.await?;
    ///         let (_, data) = receive.await?;
    ///         Ok::<_, tagwire::Error>(data)
    ///     };
    ///     Ok::<_, Box<dyn std::error::Error>>(session.drive(descriptor.get_ref(), readable, work).await??)
    /// })?;
    /// assert_eq!(received, b"work");
    /// # session.close()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Each turn [arms](WaitDescriptor::arm) the descriptor after what `readable` has cleared: what comes in between makes it
    /// readable again. A blocking call in a task holds up all tasks of its thread, and what it completes of theirs is noticed
    /// at their next turn, at the latest after the longest sleep (setting `sleep`).
    ///
    /// At [`ThreadLevel::Single`](crate::ThreadLevel::Single) all tasks are those of the thread that opened the session, as in
    /// a runtime of one thread. One task drives a session at a time.
    ///
    /// # Errors
    /// Those of `readable`; when called from a thread that may not. `work` is dropped then.
    pub async fn drive<T, E: From<Error>>(
        &self,
        descriptor: &WaitDescriptor,
        mut readable: impl FnMut(&mut Context<'_>) -> Poll<Result<(), E>>,
        work: impl Future<Output = T>,
    ) -> Result<T, E> {
        let mut work = pin!(work);
        let driving = self.shared.tasks.drive();
        let asked = self.shared.messenger.dump_flag();
        poll_fn(|task| {
            driving.by(task.waker());
            if let Poll::Ready(done) = work.as_mut().poll(task) {
                return Poll::Ready(Ok(done));
            }
            if asked.swap(false, Relaxed) {
                // In one piece, as a wait does it.
                let _ = std::io::stderr().write_all(self.describe()?.as_bytes());
            }
            let may_wait = self.turn(descriptor)?;
            if may_wait && readable(task)?.is_pending() {
                return Poll::Pending;
            }
            // Once more, after what other tasks have to do.
            task.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Makes progress once, arms the descriptor and wakes the tasks whose operations are complete. Returns whether the
    /// caller may wait.
    fn turn(&self, descriptor: &WaitDescriptor) -> Result<bool> {
        let messenger = &self.shared.messenger;
        self.shared.orphans.reap(messenger);
        let may_wait = descriptor.arm()?;
        self.shared.tasks.wake_complete(messenger);
        Ok(may_wait)
    }
}
