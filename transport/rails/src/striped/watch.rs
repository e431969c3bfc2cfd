//! Rails that have died without a word: a cable that was pulled looks like a peer that is busy,
//! until the peer replies by another rail.
//!
//! ```text
//!    something waits for half the patience      probe by all open rails
//!    the peer replies by one of them            it is awake, and looks at all of its rails
//!    patience later, one has not replied        that one is given up, and the peer told
//! ```
//!
//! The last rail to a peer is never given up: then nobody can tell silence from death.

use tagwire_transport::{EndpointId, Upcalls};

use super::core::Core;
use super::links::{Link, Round, State};

impl Core {
    /// Looks after the rails to all peers.
    pub(super) fn watch(&mut self, above: &mut dyn Upcalls) {
        let (now, patience) = (self.options.now(), self.options.patience.as_micros() as u64);
        let (mut silent, mut asked, mut mute) = (Vec::new(), Vec::new(), Vec::new());
        for (ours, link) in self.links.iter() {
            mute.extend(link.unended(now, patience).map(|rail| (ours, rail)));
        }
        // A rail that held the peer for gone before has nothing more to tell.
        for (ours, rail) in mute {
            self.end_way(ours, rail, false, above);
        }
        let reads = &self.reads;
        for (ours, link) in self.links.iter_mut().filter(|(_, link)| !link.is_gone) {
            silent.extend(parted(link, now, patience).map(|rail| (ours, rail)));
            let open = link.open().fold(0, |open, rail| open | 1 << rail);
            if !has_two(open) {
                link.round = None;
                continue;
            }
            if let Some(round) = &link.round {
                let missing = round.asked & !round.answered & open;
                let is_over =
                    (round.first_answer).is_some_and(|first| now.saturating_sub(first) >= patience);
                if is_over && missing != open {
                    silent.extend(bits(missing).map(|rail| (ours, rail)));
                }
                if missing == 0 || is_over {
                    link.round = None;
                }
                continue;
            }
            let waits = bits(open).any(|rail| {
                let since = [link.out.waits_since(rail), reads.waits_since(ours, rail)];
                let since = since.into_iter().flatten().min();
                since.is_some_and(|since| now.saturating_sub(since) >= patience / 2)
            });
            if waits {
                ask_all(link, open);
                asked.push(ours);
            }
        }
        asked.into_iter().for_each(|ours| self.list(ours));
        self.give_up_silent(silent);
    }

    pub(super) fn give_up_silent(&mut self, silent: Vec<(EndpointId, usize)>) {
        for (ours, rail) in silent {
            let rank = self.links.get(ours).map(|link| link.rank.as_u32());
            tracing::warn!(peer = rank, rail, "a rail does not answer and is given up");
            self.give_up(ours, rail);
        }
    }
}

fn ask_all(link: &mut Link, open: u32) {
    link.rounds = link.rounds.wrapping_add(1);
    link.round = Some(Round {
        number: link.rounds,
        asked: open,
        answered: 0,
        first_answer: None,
    });
    for rail in bits(open) {
        if let Some(way) = link.way(rail) {
            way.owes_probe = true;
        }
    }
}

/// The rails by which a peer has not left that has left by others long ago, having sent all that it
/// had: a goodbye may be lost.
fn parted(link: &mut Link, now: u64, patience: u64) -> impl Iterator<Item = usize> + use<> {
    let states = || link.ways.iter().flatten().map(|way| way.state);
    let left = states().any(|state| state == State::Ended { left: true });
    let is_long = left && link.last == Some(link.incoming.consumed()) && {
        let since = *link.parting_since.get_or_insert(now);
        now.saturating_sub(since) >= patience
    };
    let open: Vec<_> = link.open().filter(|_| is_long).collect();
    open.into_iter()
}

const fn has_two(set: u32) -> bool {
    set & set.wrapping_sub(1) != 0
}

fn bits(set: u32) -> impl Iterator<Item = usize> {
    (0..u32::BITS as usize).filter(move |bit| set & (1 << bit) != 0)
}
