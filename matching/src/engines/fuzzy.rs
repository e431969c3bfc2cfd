//! Vectors of partial keys: 64, 32 or 16 entries at once (Dosanjh and others, Fuzzy matching: hardware accelerated MPI
//! communication middleware, CCGrid 2019; Open MPI's `pml/ob1/custommatch`).
//!
//! The key of an entry is the low 8, 16 or 32 bits of its source XOR its tag. A receive has a mask beside it: all ones, or none
//! with any wildcard. Candidates are compared whole; keys of n random entries make n / 2^bits false hits in a search, and where
//! source XOR tag is the same everywhere, all n are.

use tagwire_base::named::{Named, Parameter, Range, Spec};
use tagwire_lanes::Kernels;

use super::vectors::{self, ISA, Keys};
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::storage::{Capacity, Cells, Selector, WILD};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "fuzzy",
        parameters: &[
            Parameter {
                name: "bits",
                range: Range::Word {
                    default: "8",
                    words: &["8", "16", "32"],
                },
                help: "bits of a key; a vector of 64 bytes has 64, 32 or 16 entries",
            },
            ISA,
        ],
    },
    about: "for each context a chain of vectors of partial keys, source XOR tag, whose candidates are compared whole",
    source: "Dosanjh and others, CCGrid 2019; Open MPI ob1 custommatch (fuzzy)",
    limits: "linear in the entries ahead, at 16 to 64 a step; every entry is a false hit where source XOR tag is constant; \
             wildcards are candidates of every search; in private memory only",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    match spec.word("bits") {
        "16" => vectors::open::<C, Bits16>(spec, capacity),
        "32" => vectors::open::<C, Bits32>(spec, capacity),
        _ => vectors::open::<C, Bits8>(spec, capacity),
    }
}

/// The keys of receives, with their masks: two lines.
#[derive(Debug)]
#[repr(C, align(64))]
struct Receives<T, const SLOTS: usize> {
    keys: [T; SLOTS],
    masks: [T; SLOTS],
}

/// The keys of messages: a line.
#[derive(Debug)]
#[repr(C, align(64))]
struct Messages<T, const SLOTS: usize> {
    keys: [T; SLOTS],
}

impl<T: Default + Copy, const SLOTS: usize> Default for Receives<T, SLOTS> {
    fn default() -> Self {
        Self {
            keys: [T::default(); SLOTS],
            masks: [T::default(); SLOTS],
        }
    }
}

impl<T: Default + Copy, const SLOTS: usize> Default for Messages<T, SLOTS> {
    fn default() -> Self {
        Self {
            keys: [T::default(); SLOTS],
        }
    }
}

/// The keys of so many bits, and the kernel that compares them.
macro_rules! keys {
    ($name:ident, $type:ty, $slots:literal, $kernel:ident) => {
        #[derive(Debug)]
        enum $name {}

        impl Keys for $name {
            const SLOTS: usize = $slots;
            type Receives = Receives<$type, $slots>;
            type Messages = Messages<$type, $slots>;

            fn put_receive(receives: &mut Self::Receives, slot: usize, receive: Selector) {
                receives.keys[slot] = key(receive) as $type;
                receives.masks[slot] = match receive.kind & WILD {
                    0 => <$type>::MAX,
                    _ => 0,
                };
            }

            fn put_message(messages: &mut Self::Messages, slot: usize, message: Selector) {
                messages.keys[slot] = key(message) as $type;
            }

            fn receives(kernels: Kernels, receives: &Self::Receives, message: Selector) -> u64 {
                let hits = kernels.$kernel(&receives.keys, &receives.masks, key(message) as $type);
                u64::from(hits)
            }

            fn messages(kernels: Kernels, messages: &Self::Messages, receive: Selector) -> u64 {
                const MASKS: &[$type; $slots] = &[<$type>::MAX; $slots];
                if receive.kind & WILD != 0 {
                    return u64::MAX;
                }
                u64::from(kernels.$kernel(&messages.keys, MASKS, key(receive) as $type))
            }
        }
    };
}

keys!(Bits8, u8, 64, eq_mask_u8x64);
keys!(Bits16, u16, 32, eq_mask_u16x32);
keys!(Bits32, u32, 16, eq_mask_u32x16);

/// What the keys are the low bits of.
const fn key(entry: Selector) -> u32 {
    entry.source() ^ entry.tag() as u32
}
