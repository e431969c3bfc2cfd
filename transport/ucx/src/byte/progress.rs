//! What has arrived and what has ended.

use tagwire_transport::Upcalls;

use super::Ucx;

impl Ucx {
    /// Takes what has arrived and reports it; returns how many things happened.
    #[inline]
    pub(super) fn advance(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let count = self.pump(upcalls);
        self.core.end_peers(count);
        let told = self.tell(upcalls);
        if told == 0 {
            self.core.after_progress(count);
        } else {
            self.core.waiter.disturbed();
        }
        told
    }

    /// One call of UCX's progress, which delivers messages as they come.
    #[inline]
    fn pump(&mut self, upcalls: &mut dyn Upcalls) -> u32 {
        let core = &mut self.core;
        let count = core.shared.with_upcalls(upcalls, || core.worker.progress());
        if core.attend() {
            self.serve();
        }
        count
    }

    /// Tells the rest: events first, then the ends that they explain.
    #[inline]
    fn tell(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut inbox = self.core.shared.inbox.borrow_mut();
        inbox.tell_early(upcalls);
        let mut told = inbox.take_told();
        drop(inbox);
        if !self.core.ended.is_empty() || !self.core.flushes.is_empty() {
            told += self.tell_ends(upcalls);
        }
        told
    }

    #[inline(never)]
    fn tell_ends(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let core = &mut self.core;
        let mut told = 0;
        for ended in core.ended.drain(..) {
            if let Some((token, outcome)) = ended.outcome(&core.links) {
                told += 1;
                upcalls.complete(token, outcome);
            }
        }
        told + core.tell_flushes(|token, outcome| upcalls.complete(token, outcome))
    }
}
