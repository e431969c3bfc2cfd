//! Vectors of whole keys: 16 entries at once, by tag and source with a mask for each.
//!
//! As the vector variant of Open MPI's custom matching has it (`pml/ob1/custommatch`, 16 slots of 32 bits). A receive hits a
//! message where `(tag ^ t) & tag mask` and `(source ^ s) & source mask` are both 0. So the only false hits are internal tags,
//! which the mask of an any-tag receive lets through and the whole comparison refuses.

use tagwire_base::named::{Named, Spec};
use tagwire_lanes::Kernels;

use super::vectors::{self, ISA, Keys, ONES, ZEROS};
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::storage::{ANY_SOURCE, ANY_TAG, Capacity, Cells, Selector};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "lanes",
        parameters: &[ISA],
    },
    about: "for each context a chain of vectors of 16 entries, compared at once by tag, source and their masks",
    source: "Open MPI ob1 custommatch (vectors of 16 x 32 bits)",
    limits: "linear in the entries ahead, at 16 a step; in private memory only; a vector stays as long as one of its entries \
             does",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    vectors::open::<C, Whole>(spec, capacity)
}

#[derive(Debug)]
enum Whole {}

/// The keys of 16 receives: four lines.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Receives {
    tags: [u32; 16],
    tag_masks: [u32; 16],
    sources: [u32; 16],
    source_masks: [u32; 16],
}

/// The keys of 16 messages: two lines.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Messages {
    tags: [u32; 16],
    sources: [u32; 16],
}

impl Keys for Whole {
    const SLOTS: usize = 16;
    type Receives = Receives;
    type Messages = Messages;

    fn put_receive(receives: &mut Receives, slot: usize, receive: Selector) {
        let mask = |wild: u32| match receive.kind & wild {
            0 => u32::MAX,
            _ => 0,
        };
        receives.tags[slot] = receive.tag() as u32;
        receives.tag_masks[slot] = mask(ANY_TAG);
        receives.sources[slot] = receive.source();
        receives.source_masks[slot] = mask(ANY_SOURCE);
    }

    fn put_message(messages: &mut Messages, slot: usize, message: Selector) {
        messages.tags[slot] = message.tag() as u32;
        messages.sources[slot] = message.source();
    }

    fn receives(kernels: Kernels, receives: &Receives, message: Selector) -> u64 {
        let hits = kernels.hit_mask_u32x16(
            [&receives.tags, &receives.sources],
            [&receives.tag_masks, &receives.source_masks],
            [message.tag() as u32, message.source()],
        );
        u64::from(hits)
    }

    fn messages(kernels: Kernels, messages: &Messages, receive: Selector) -> u64 {
        let mask = |wild: u32| match receive.kind & wild {
            0 => &ONES,
            _ => &ZEROS,
        };
        let hits = kernels.hit_mask_u32x16(
            [&messages.tags, &messages.sources],
            [mask(ANY_TAG), mask(ANY_SOURCE)],
            [receive.tag() as u32, receive.source()],
        );
        u64::from(hits)
    }
}
