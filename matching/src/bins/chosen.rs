//! Bounds that are parameters, so that the choice of those of jobs can be measured.

use tagwire_base::named::{Parameter, Spec};

use super::{Bounds, FEW, FEW_UNEXPECTED, FIRST_BINS};

pub(super) const PARAMETERS: &[Parameter] = &[
    Parameter::number(
        "few",
        FEW as u32,
        0..=1 << 20,
        "receives of a list that an arrival looks at before the list gets bins",
    ),
    Parameter::number(
        "few-unexpected",
        FEW_UNEXPECTED as u32,
        0..=1 << 20,
        "messages of the list that a receive looks at before there is an index",
    ),
    Parameter::number(
        "first",
        FIRST_BINS as u32,
        1..=1 << 20,
        "bins of a queue when it first gets some; a power of two, or what is next to it",
    ),
];

/// Bounds that a user chose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chosen {
    few: u32,
    few_unexpected: u32,
    first_bins: u32,
}

impl Chosen {
    pub(super) fn new(spec: &Spec) -> Self {
        Self {
            few: spec.number("few"),
            few_unexpected: spec.number("few-unexpected"),
            first_bins: spec.number("first"),
        }
    }
}

impl Bounds for Chosen {
    fn few(self) -> usize {
        self.few as usize
    }

    fn few_unexpected(self) -> usize {
        self.few_unexpected as usize
    }

    fn first_bins(self) -> usize {
        self.first_bins as usize
    }
}
