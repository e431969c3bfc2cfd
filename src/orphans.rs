//! Buffers of operations that were dropped before their end.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tagwire_pml::{Messenger, RequestId};

/// How many are looked at when one is dropped: more than one, so that those which are complete do not gather.
const AT_ONCE: usize = 8;

/// The buffer of a dropped operation, kept until no peer can touch it any more.
struct Orphan {
    /// Returns whether that is so by now.
    is_settled: Box<dyn Fn(&Messenger) -> bool + Send>,
    buffer: Box<dyn Send>,
}

/// Buffers of operations that were dropped before their end.
#[derive(Default)]
pub(crate) struct Orphans(Mutex<VecDeque<Orphan>>);

impl fmt::Debug for Orphans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Orphans({})", lock(&self.0).len())
    }
}

impl Orphans {
    /// Keeps `buffer` until the request is complete, which is freed then if it is `persistent`.
    pub(crate) fn adopt(&self, request: RequestId, persistent: bool, buffer: Box<dyn Send>) {
        let is_settled = move |messenger: &Messenger| match messenger.test(request) {
            Ok(Some(_)) => !persistent || messenger.free(request).is_ok(),
            Err(tagwire_pml::Error::StaleRequest) => true,
            _ => false,
        };
        self.adopt_until(is_settled, buffer);
    }

    /// Keeps `buffer` until `is_settled`.
    pub(crate) fn adopt_until(
        &self,
        is_settled: impl Fn(&Messenger) -> bool + Send + 'static,
        buffer: Box<dyn Send>,
    ) {
        let is_settled = Box::new(is_settled);
        lock(&self.0).push_back(Orphan { is_settled, buffer });
    }

    /// Frees what is complete among the next few in turn: many under way cost one that is dropped nothing.
    pub(crate) fn reap(&self, messenger: &Messenger) {
        self.reap_some(messenger, AT_ONCE);
    }

    /// Frees all that is complete.
    pub(crate) fn reap_all(&self, messenger: &Messenger) {
        self.reap_some(messenger, usize::MAX);
    }

    fn reap_some(&self, messenger: &Messenger, count: usize) {
        Taken::of(&self.0, count).retain(|orphan| !(orphan.is_settled)(messenger));
    }

    /// Leaves the rest to the end of the process: a peer may still touch it.
    pub(crate) fn abandon(&self) {
        let orphans = std::mem::take(&mut *lock(&self.0));
        orphans
            .into_iter()
            .for_each(|orphan| std::mem::forget(orphan.buffer));
    }
}

/// The first of a list, taken out: what is called for them may make progress, and so run functions of the program that drop
/// other operations. They come back when this is dropped, also by a panic.
struct Taken<'l, T> {
    list: &'l Mutex<VecDeque<T>>,
    all: Vec<T>,
}

impl<'l, T> Taken<'l, T> {
    fn of(list: &'l Mutex<VecDeque<T>>, count: usize) -> Self {
        let mut held = lock(list);
        let count = count.min(held.len());
        let all = held.drain(..count).collect();
        Self { list, all }
    }

    /// Drops those that are not to be kept, with nothing locked.
    fn retain(mut self, keep: impl FnMut(&T) -> bool) {
        self.all.retain(keep);
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        lock(self.list).extend(self.all.drain(..));
    }
}

fn lock<T>(list: &Mutex<VecDeque<T>>) -> MutexGuard<'_, VecDeque<T>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What looks at one may drop another operation, which is adopted meanwhile.
    #[test]
    fn others_are_adopted_while_some_are_looked_at() {
        let list = Mutex::new(VecDeque::from([1, 2, 3]));
        Taken::of(&list, 2).retain(|number| {
            lock(&list).push_back(number + 10);
            *number == 2
        });
        assert_eq!(*lock(&list), [3, 11, 12, 2]);
    }

    #[test]
    fn a_panic_keeps_what_was_taken() {
        let list = Mutex::new(VecDeque::from([1, 2, 3]));
        let looked = std::panic::catch_unwind(|| {
            Taken::of(&list, 3).retain(|_| panic!("a function of the program"))
        });
        assert!(looked.is_err());
        assert_eq!(*lock(&list), [1, 2, 3]);
    }
}
