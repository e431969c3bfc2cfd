//! Ranks that are threads, each with a transport over shared memory of its own.
#![cfg(not(loom))]

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_coll::{Selection, Team};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::wait::{WaitMode, WaitPolicy};
use tagwire_pml::{Messenger, ThreadLevel};
use tagwire_transport::shm::{Shm, ShmOptions};

/// Runs `body` on each of `size` ranks over shared memory, and returns what each returned. A rank leaves in good order where `body`
/// did not panic.
pub fn on_shm<T: Send>(size: usize, mode: WaitMode, body: impl Fn(&Team) -> T + Sync) -> Vec<T> {
    on_shm_by(&Selection::default(), size, mode, body)
}

/// The same by a choice of algorithms.
pub fn on_shm_by<T: Send>(
    selection: &Selection,
    size: usize,
    mode: WaitMode,
    body: impl Fn(&Team) -> T + Sync,
) -> Vec<T> {
    let job = LocalJob::new(size as u32).unwrap();
    std::thread::scope(|scope| {
        let start = |number: usize| {
            let (job, body) = (job.clone(), &body);
            scope.spawn(move || {
                let mut member = job.member(Rank::new(number as u32));
                let options = ShmOptions::default();
                let rail = Box::new(Shm::open(options, &mut member).unwrap());
                let ob1 = Ob1::open(&Ob1Options::default(), rail, Box::new(member)).unwrap();
                let policy = WaitPolicy {
                    mode,
                    ..WaitPolicy::adaptive(true)
                };
                let messenger = Arc::new(Messenger::new(ob1, ThreadLevel::Single, policy));
                let team = Team::world(&messenger, Arc::new(selection.clone()));
                let end = body(&team);
                let _ = messenger.close(Duration::from_secs(20));
                end
            })
        };
        let threads: Vec<_> = (0..size).map(start).collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(Result::unwrap).collect()
    })
}
