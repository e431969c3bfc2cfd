//! Does what is due for the network whose messages this one carries.

use std::sync::Arc;

use tagwire_base::Rank;

use crate::due::{Carried, Due, Load};
use crate::flight::{Cargo, Flight};
use crate::place::Place;
use crate::state::{Behind, State, Work};

impl State {
    /// Does what is due, and what comes of that.
    pub(crate) fn do_due(&mut self, of: &Arc<dyn Carried>, mut due: Vec<Due>) {
        while !due.is_empty() {
            for one in due {
                match one {
                    Due::Wake(rank) => {
                        if let Some(place) = self.find(rank) {
                            self.signal(place);
                        }
                    }
                    Due::Carry { from, to, load } => self.carry_load(from, to, load),
                    Due::Receive { own, from, copied } => {
                        if let (Some(own), Some(from)) = (self.find(own), self.find(from)) {
                            let work = Work::Recv {
                                copied,
                                is_matched: true,
                                behind: Behind::default(),
                            };
                            self.work(own, from, work);
                        }
                    }
                }
            }
            due = of.due();
        }
    }

    fn carry_load(&mut self, from: Rank, to: Rank, load: Load) {
        let (Some(from), Some(to)) = (self.find(from), self.find(to)) else {
            return;
        };
        let link = self.link(from, to);
        self.counts.bytes += load.len as u64;
        let at = match load.is_sent {
            true => {
                self.members[from.index()].count_message(&mut self.counts.messages);
                let copied = load.copied;
                self.work(from, to, Work::Send { copied })
            }
            false => self.now,
        };
        self.carry(
            at,
            Flight {
                from,
                to,
                link,
                // Messages keep their order, which matching needs.
                is_fenced: true,
                cargo: Cargo::Load(load),
            },
        );
    }

    /// A load is there. The dead are its network's matter.
    pub(crate) fn land_load(&mut self, from: Place, to: Place, load: Load) {
        if let Some(carried) = self.carried.clone() {
            let rank = |of: Place| self.members[of.index()].rank;
            let due = carried.landed(rank(from), rank(to), load);
            self.do_due(&carried, due);
        }
    }

    /// A rank has left, or died.
    pub(crate) fn end_carried(&mut self, rank: Rank, has_left: bool) {
        if let Some(carried) = self.carried.clone() {
            let due = carried.ended(rank, has_left);
            self.do_due(&carried, due);
        }
    }
}
