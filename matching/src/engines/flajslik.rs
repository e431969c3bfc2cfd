//! Bins with ordered wildcards, after Flajslik, Dinan and Underwood (Mitigating MPI message matching misery, ISC 2016).
//!
//! A receive whose hashed fields are all exact lies in the bin of their hash, any other in one list. The paper keeps the
//! wildcards in their order by markers in every bin, which are patented; here each receive has a sequence number, and the
//! lower one of the two finds wins. A receive with a hashed field wild walks the list of all messages.

use tagwire_base::named::{Named, Parameter, Range, Spec};

use super::Found;
use super::binned::{self, Bins, CHAIN};
use crate::bins::hash;
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::queue::View;
use crate::storage::{ANY_SOURCE, ANY_TAG, Capacity, Cells, Selector, Word};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "flajslik",
        parameters: &[
            Parameter::number("bins", 256, 1..=1 << 20, "bins of each queue"),
            Parameter {
                name: "key",
                range: Range::Word {
                    default: "both",
                    words: &["source", "tag", "both"],
                },
                help: "what the hash goes by",
            },
        ],
    },
    about: "a fixed number of bins by source, tag or both, one list of wildcards, merged by sequence number",
    source: "Flajslik, Dinan and Underwood, ISC 2016, with sequence numbers in place of its markers",
    limits: "a receive with a hashed field wild walks all unexpected messages; entries per bin grow with the queue",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let keyed = Keyed {
        bins: spec.number("bins") as usize,
        // The bits of a selector's kind that keep it out of the bins.
        barred: match spec.word("key") {
            "source" => ANY_SOURCE,
            "tag" => ANY_TAG,
            _ => ANY_SOURCE | ANY_TAG,
        },
    };
    binned::open::<C>(keyed, capacity)
}

#[derive(Debug)]
struct Keyed {
    bins: usize,
    barred: u32,
}

impl Bins for Keyed {
    fn count(&self) -> usize {
        self.bins
    }

    fn barred(&self) -> u32 {
        self.barred
    }

    fn bin(&self, entry: Selector) -> usize {
        let mut fields = 0;
        if self.barred & ANY_SOURCE != 0 {
            fields |= u64::from(u32::MAX) << 32;
        }
        if self.barred & ANY_TAG != 0 {
            fields |= u64::from(u32::MAX);
        }
        let hashed = Selector {
            key: entry.key & fields,
            kind: 0,
        };
        hash(hashed) % self.bins
    }

    fn find_posted<C: Cells>(
        view: View<'_, C, 1>,
        [exact, wild]: [u32; 2],
        message: Selector,
    ) -> Found {
        let (exact, looked) = view.find(CHAIN, exact, |entry, _| entry.accepts(message));
        let limit = exact.map_or(u64::MAX, |(_, node)| node.sequence.load());
        // Past the limit no wildcard can win, so the walk ends there.
        let (wild, steps) = view.find(CHAIN, wild, |entry, node| {
            node.sequence.load() >= limit || entry.accepts(message)
        });
        let earlier = wild.filter(|(_, node)| node.sequence.load() < limit);
        Found::of((earlier.or(exact), looked + steps))
    }
}
