//! The queues of UCX's tag matching (`src/ucp/tag/tag_match.h` and `.inl` of UCX 1.2x).
//!
//! A receive whose mask is full lies in a bin by its tag, any other in one wildcard queue. Each receive has a sequence
//! number; while a wildcard is pending, an arrival walks its bin and the wildcard queue together in the order of these
//! numbers. A receive with a full mask walks the bin of messages, any other the list of all.
//!
//! The 64-bit tag is laid out as Open MPI's UCX layer has it: 24 bits of tag, 20 of source, 20 of context. Wider fields are
//! hashed as if they were cut off there, and compared whole. The bin of a tag is `(low % P) ^ (high % P)` over its 32-bit
//! halves, where P is the largest prime that is no greater than `bins`: 1,021 for the 1,024 bins of UCX.

use tagwire_base::named::{Named, Parameter, Spec};

use super::Found;
use super::binned::{self, Bins, CHAIN};
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::queue::View;
use crate::storage::{Capacity, Cells, Selector, WILD, Word};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "ucx",
        parameters: &[Parameter::number(
            "bins",
            1024,
            2..=1 << 20,
            "bins of each queue; the hash goes by the largest prime that is no greater",
        )],
    },
    about: "bins by a hash of the 64-bit tag, one queue of all wildcards, merged by sequence number",
    source: "UCX, src/ucp/tag/tag_match.h; tag layout of Open MPI's UCX layer",
    limits: "one pending wildcard: an arrival walks its bin and the whole wildcard queue; a wildcard receive walks all \
             unexpected messages; structured tags collide in bins",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let bins = spec.number("bins");
    let hashed = Hashed {
        prime: prime_up_to(bins),
        // As many as the exclusive-or of two residues can name.
        heads: bins.next_power_of_two() as usize,
    };
    binned::open::<C>(hashed, capacity)
}

#[derive(Debug)]
struct Hashed {
    prime: u32,
    heads: usize,
}

impl Hashed {
    /// Walks a bin and the wildcard queue together, lower sequence numbers first.
    fn find_in_both<C: Cells>(
        view: View<'_, C, 1>,
        [mut exact, mut wild]: [u32; 2],
        message: Selector,
    ) -> Found {
        for looked in 1..=view.nodes.len() as u64 {
            let (slot, node) = match (view.node(exact), view.node(wild)) {
                (Some(a), Some(b)) if b.sequence.load() < a.sequence.load() => (&mut wild, b),
                (Some(a), _) => (&mut exact, a),
                (None, Some(b)) => (&mut wild, b),
                (None, None) => {
                    return Found {
                        looked: looked - 1,
                        ..Found::default()
                    };
                }
            };
            if node.selector().accepts(message) {
                return Found {
                    slot: Some(*slot),
                    looked,
                    false_hits: 0,
                };
            }
            *slot = node.links[CHAIN].next.load();
        }
        Found {
            looked: view.nodes.len() as u64,
            ..Found::default()
        }
    }
}

impl Bins for Hashed {
    fn count(&self) -> usize {
        self.heads
    }

    fn barred(&self) -> u32 {
        WILD
    }

    fn bin(&self, entry: Selector) -> usize {
        let context = (entry.kind & !WILD) as u64;
        bin_of(
            entry.tag() as u64,
            entry.source() as u64,
            context,
            self.prime,
        ) as usize
    }

    fn find_posted<C: Cells>(view: View<'_, C, 1>, first: [u32; 2], message: Selector) -> Found {
        let [exact, wild] = first;
        if view.node(wild).is_some() {
            return Self::find_in_both(view, first, message);
        }
        Found::of(view.find(CHAIN, exact, |entry, _| entry.accepts(message)))
    }
}

/// Returns the bin of a receive that names source and tag, or of a message, where the hash goes by `prime`: of the 64-bit tag as Open MPI's
/// UCX layer lays it out.
#[must_use]
pub const fn bin_of(tag: u64, source: u64, context: u64, prime: u32) -> u32 {
    let tag = (tag & 0xff_ffff) << 40 | (source & 0xf_ffff) << 20 | context;
    let (high, low) = ((tag >> 32) as u32, tag as u32);
    (low % prime) ^ (high % prime)
}

/// The largest prime that is no greater than `most`, which is 2 or more.
fn prime_up_to(most: u32) -> u32 {
    let is_prime = |number: &u32| {
        let mut divisors = (2..).take_while(|divisor| divisor * divisor <= *number);
        divisors.all(|divisor| !number.is_multiple_of(divisor))
    };
    (2..=most).rev().find(is_prime).unwrap_or(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prime_of_ucx_is_that_of_its_table() {
        for (bins, prime) in [(1024, 1021), (64, 61), (2, 2), (3, 3), (1 << 20, 1_048_573)] {
            assert_eq!(prime_up_to(bins), prime);
        }
    }

    /// The tag is in the upper half of the 64-bit tag alone.
    #[test]
    fn tags_a_multiple_of_the_prime_apart_collide() {
        let hashed = Hashed {
            prime: 1021,
            heads: 1024,
        };
        let of = |tag: u32| {
            hashed.bin(Selector {
                key: u64::from(tag),
                kind: 0,
            })
        };
        assert_eq!(of(0), of(1021));
        assert_ne!(of(0), of(1));
    }
}
