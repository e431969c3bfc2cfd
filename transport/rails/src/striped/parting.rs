//! How a rank leaves by several rails.
//!
//! ```text
//!    all that was sent is acknowledged, goodbyes are said by each rail
//!    the rails leave                                  nothing is sent any more
//!    a peer has heard that by one of them             patience later, those by which it has not are given up for it
//!    all rails have left
//! ```
//!
//! - **Messages** have come once the bundle's own numbers say so, whatever a rail still waits for. What is not acknowledged when the
//!   rank waits no more is lost only where a rail has data reliability: others bring what they have taken.
//! - **A goodbye** has come once it has by one rail. A peer that has it there, and lacks it elsewhere, gives up the others for
//!   itself ([`watch`](super::watch)): nobody has to be there for that.

use tagwire_base::{Rank, Time};

use super::core::Core;
use super::rail::Rail;
use crate::reliable::DR;

/// The goodbye of this rank, once it is said.
#[derive(Debug, Clone, Copy)]
pub(super) struct Farewell {
    /// When peers are waited for no more.
    pub(super) until: Time,
    /// When who drops the rank waits for them no more.
    pub(super) dropped_until: Time,
    /// Peers have what was sent to them, or are waited for no more: the rails leave.
    pub(super) is_heard: bool,
}

impl Core {
    /// Has goodbyes said by all rails.
    pub(super) fn say_farewell(&mut self, rails: &[Rail]) {
        let (now, until) = (self.options.clock.now(), self.options.disconnect_timeout);
        self.farewell = Some(Farewell {
            until: now + until,
            dropped_until: now + until.min(self.options.drop_timeout),
            is_heard: false,
        });
        let rails_lose = rails.iter().any(|rail| rail.transport.name() == DR);
        let peers: Vec<_> = self.links.iter().map(|(ours, _)| ours).collect();
        for ours in peers {
            if let Some(link) = self.links.get(ours) {
                link.owe_byes(rails_lose);
            }
            self.list(ours);
        }
    }

    /// Returns whether the rails leave, or have left.
    pub(super) fn is_heard(&self) -> bool {
        self.farewell.is_some_and(|farewell| farewell.is_heard)
    }

    /// Lets the rails leave once peers have what was sent to them, or are waited for no more.
    #[cold]
    pub(super) fn part(&mut self, rails: &mut [Rail]) {
        let Some(farewell) = self.farewell.filter(|farewell| !farewell.is_heard) else {
            return;
        };
        let waits = self.links.iter().any(|(_, link)| link.is_waited_for());
        if !waits || self.options.clock.now() >= farewell.until {
            self.end_farewell(rails);
        }
    }

    /// Waits for acknowledgements no more: the rails leave.
    pub(super) fn end_farewell(&mut self, rails: &mut [Rail]) {
        if let Some(farewell) = &mut self.farewell {
            farewell.is_heard = true;
        }
        self.links.iter_mut().for_each(|(_, link)| link.abandon());
        rails.iter_mut().for_each(|rail| rail.transport.leave());
    }

    /// Gives up the rails by which a peer has not heard the goodbye for as long as their patience lasts, where it has by another.
    pub(super) fn give_up_unheard(&mut self, rails: &[Rail]) {
        if !self.is_heard() {
            return;
        }
        let (now, patience) = (self.options.now(), self.options.patience.as_micros() as u64);
        let unheard: Vec<Vec<Rank>> = rails.iter().map(unheard_by).collect();
        let mut silent = Vec::new();
        for (ours, link) in self.links.iter_mut() {
            let lacks = |rail: &usize| unheard[*rail].contains(&link.rank);
            // A rail that was given up has told it nothing, and is waited for no more.
            let (late, heard): (Vec<_>, Vec<_>) = link.in_use().partition(lacks);
            if late.is_empty() || heard.is_empty() {
                link.heard_since = None;
                continue;
            }
            let since = *link.heard_since.get_or_insert(now);
            if now.saturating_sub(since) >= patience {
                silent.extend(late.into_iter().map(|rail| (ours, rail)));
            }
        }
        self.give_up_silent(silent);
    }

    /// Adds the peers that may lack messages, where this rank leaves or has left.
    pub(super) fn unheard(&self, out: &mut Vec<Rank>) {
        let waits = !self.is_heard();
        let lacking = (self.links.iter()).filter(|(_, link)| link.is_unheard(waits));
        out.extend(lacking.map(|(_, link)| link.rank));
    }
}

/// Returns the peers that lack something of what a rail has taken for them.
fn unheard_by(rail: &Rail) -> Vec<Rank> {
    let mut ranks = Vec::new();
    rail.transport.unheard(&mut ranks);
    ranks
}
