//! Signatures: which basic types follow each other, wherever they lie (MPI-5.0, section 5.1.1).

use std::collections::HashMap;
use std::sync::Arc;

use crate::{Basic, Constructor, Datatype};

/// The sequence of basic types of a datatype, as runs: what sender and receiver must agree on.
///
/// Runs that repeat are kept once, so a signature is no longer than its datatype.
#[derive(Debug, Clone)]
pub struct Signature {
    runs: Arc<[Run]>,
    size: u64,
    elements: u64,
    hash: Hash,
}

/// The same unit several times.
#[derive(Debug, Clone)]
struct Run {
    unit: Unit,
    count: u64,
}

#[derive(Debug, Clone)]
enum Unit {
    Basic(Basic),
    Group(Signature),
}

/// A polynomial in the numbers of the basic types, and the power that shifts it by its length: both of the sequence alone,
/// however its runs are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hash {
    value: u64,
    power: u64,
}

/// How many basic elements some packed bytes have (MPI-5.0, section 5.1.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elements {
    /// Those that are complete. A pair has two of them.
    pub whole: u64,
    /// How many bytes are left of one that is not.
    pub rest: u64,
}

impl Signature {
    /// Returns the signature of a datatype.
    #[must_use]
    pub fn of(datatype: &Datatype) -> Self {
        Maker::default().signature(datatype)
    }

    /// Returns how many bytes of data the basic types have.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns how many basic elements there are. A pair has two of them.
    #[must_use]
    pub const fn elements(&self) -> u64 {
        self.elements
    }

    /// Returns a number that is equal for equal sequences, and for others most likely not.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash.value
    }

    /// Returns the number for `count` of these sequences one behind the other.
    #[must_use]
    pub fn hash_of(&self, count: u64) -> u64 {
        self.hash.times(count).value
    }

    /// Returns how many basic elements the first `bytes` packed bytes have, of as many sequences as it takes.
    ///
    /// `MPI_Get_elements` returns the number of those that are complete.
    #[must_use]
    pub fn elements_in(&self, bytes: u64) -> Elements {
        if self.size == 0 {
            return Elements {
                whole: 0,
                rest: bytes,
            };
        }
        let (times, rest) = (bytes / self.size, bytes % self.size);
        let part = self.elements_within(rest);
        Elements {
            whole: times * self.elements + part.whole,
            rest: part.rest,
        }
    }

    /// Returns how many bytes the first `elements` basic elements have, of as many sequences as it takes: what
    /// [`elements_in`](Self::elements_in) is asked for.
    ///
    /// `MPI_Status_set_elements` sets so many. `None` where there are no such elements, or their bytes do not fit 64 bits.
    #[must_use]
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        if elements == 0 {
            return Some(0);
        }
        let (times, rest) = (
            elements.checked_div(self.elements)?,
            elements % self.elements,
        );
        times
            .checked_mul(self.size)?
            .checked_add(self.bytes_within(rest))
    }

    /// Returns how many whole sequences `bytes` packed bytes are; none where they end within one, for which `MPI_Get_count`
    /// returns `MPI_UNDEFINED` (MPI-5.0, section 3.2.5).
    #[must_use]
    pub const fn count_in(&self, bytes: u64) -> Option<u64> {
        match (bytes, self.size) {
            (0, _) => Some(0),
            (_, 0) => None,
            (bytes, size) if bytes % size == 0 => Some(bytes / size),
            _ => None,
        }
    }

    /// Returns the one basic type, with its count, if there is only one.
    #[must_use]
    pub fn uniform(&self) -> Option<(Basic, u64)> {
        let mut found = None;
        for run in &*self.runs {
            let basic = match &run.unit {
                Unit::Basic(basic) => *basic,
                Unit::Group(group) => group.uniform()?.0,
            };
            if *found.get_or_insert(basic) != basic {
                return None;
            }
        }
        found.map(|basic| (basic, self.size / basic.size() as u64))
    }

    /// Calls a function with each run of equal basic types, in their order. Neighbouring runs may have one type.
    pub(crate) fn try_for_each<E>(
        &self,
        visit: &mut impl FnMut(Basic, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for run in &*self.runs {
            match &run.unit {
                Unit::Basic(basic) => visit(*basic, run.count)?,
                Unit::Group(group) => {
                    for _ in 0..run.count {
                        group.try_for_each(visit)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the sum of a number over all basic elements, `each` times their count.
    pub(crate) fn total<E>(&self, each: &impl Fn(Basic) -> Result<u64, E>) -> Result<u128, E> {
        let mut total = 0;
        for run in &*self.runs {
            let unit = match &run.unit {
                Unit::Basic(basic) => each(*basic)?.into(),
                Unit::Group(group) => group.total(each)?,
            };
            total += unit * u128::from(run.count);
        }
        Ok(total)
    }

    /// Returns the elements in fewer bytes than the sequence has.
    fn elements_within(&self, bytes: u64) -> Elements {
        let (mut whole, mut rest) = (0, bytes);
        for run in &*self.runs {
            let times = (rest / run.unit.size()).min(run.count);
            whole += times * run.unit.elements();
            rest -= times * run.unit.size();
            if times < run.count {
                let part = match &run.unit {
                    Unit::Basic(basic) => within_basic(*basic, rest),
                    Unit::Group(group) => group.elements_within(rest),
                };
                whole += part.whole;
                rest = part.rest;
                break;
            }
        }
        Elements { whole, rest }
    }

    /// Returns the bytes of fewer elements than the sequence has.
    fn bytes_within(&self, elements: u64) -> u64 {
        let (mut bytes, mut rest) = (0, elements);
        for run in &*self.runs {
            let times = (rest / run.unit.elements()).min(run.count);
            bytes += times * run.unit.size();
            rest -= times * run.unit.elements();
            if times < run.count {
                return bytes
                    + match &run.unit {
                        // One of the two of a pair.
                        Unit::Basic(basic) if rest > 0 => {
                            basic.pair().map_or(0, |(value, _)| value.size() as u64)
                        }
                        Unit::Basic(_) => 0,
                        Unit::Group(group) => group.bytes_within(rest),
                    };
            }
        }
        bytes
    }

    fn of_runs(runs: Vec<Run>) -> Self {
        let hash = runs.iter().fold(Hash::EMPTY, |hash, run| {
            hash.then(run.unit.hash().times(run.count))
        });
        Self {
            size: runs.iter().map(|run| run.unit.size() * run.count).sum(),
            elements: runs.iter().map(|run| run.unit.elements() * run.count).sum(),
            hash,
            runs: runs.into(),
        }
    }
}

impl PartialEq for Signature {
    /// By length and hash: sequences that differ are equal with a chance of one in 2^60.
    fn eq(&self, other: &Self) -> bool {
        (self.size, self.elements, self.hash) == (other.size, other.elements, other.hash)
    }
}

impl Eq for Signature {}

impl Unit {
    fn size(&self) -> u64 {
        match self {
            Self::Basic(basic) => basic.size() as u64,
            Self::Group(group) => group.size,
        }
    }

    fn elements(&self) -> u64 {
        match self {
            Self::Basic(basic) => 1 + u64::from(basic.pair().is_some()),
            Self::Group(group) => group.elements,
        }
    }

    fn hash(&self) -> Hash {
        match self {
            Self::Basic(basic) => match basic.pair() {
                Some((value, index)) => Hash::of(value).then(Hash::of(index)),
                None => Hash::of(*basic),
            },
            Self::Group(group) => group.hash,
        }
    }
}

fn within_basic(basic: Basic, bytes: u64) -> Elements {
    match basic.pair() {
        Some((value, _)) if bytes >= value.size() as u64 => Elements {
            whole: 1,
            rest: bytes - value.size() as u64,
        },
        _ => Elements {
            whole: 0,
            rest: bytes,
        },
    }
}

impl Hash {
    const EMPTY: Self = Self { value: 0, power: 1 };
    /// A prime, so that no two sequences of one length are equal for all factors.
    const PRIME: u64 = (1 << 61) - 1;
    const FACTOR: u64 = 0x0a3c_59ac_91d2_6e37;

    fn of(basic: Basic) -> Self {
        Self {
            value: basic as u64 + 1,
            power: Self::FACTOR,
        }
    }

    fn then(self, next: Self) -> Self {
        let shifted = Self::product(self.value, next.power);
        Self {
            value: (shifted + next.value) % Self::PRIME,
            power: Self::product(self.power, next.power),
        }
    }

    fn times(self, mut count: u64) -> Self {
        let (mut result, mut square) = (Self::EMPTY, self);
        while count > 0 {
            if count & 1 == 1 {
                result = result.then(square);
            }
            square = square.then(square);
            count >>= 1;
        }
        result
    }

    fn product(one: u64, other: u64) -> u64 {
        (u128::from(one) * u128::from(other) % u128::from(Self::PRIME)) as u64
    }
}

/// Makes signatures of datatypes; of one that is used in several places only once.
#[derive(Default)]
struct Maker {
    done: HashMap<usize, Signature>,
}

impl Maker {
    fn signature(&mut self, datatype: &Datatype) -> Signature {
        if let Some(done) = self.done.get(&datatype.identity()) {
            return done.clone();
        }
        let mut runs = Runs::default();
        match (datatype.lowered(), datatype.constructor()) {
            (Some(of), _) => runs.push(self.signature(of), 1),
            (_, Constructor::Named(basic)) => runs.push_basic(*basic, 1),
            (_, Constructor::Duplicate(of) | Constructor::Resized { of, .. }) => {
                runs.push(self.signature(of), 1);
            }
            (_, Constructor::Contiguous { count, of }) => runs.push(self.signature(of), *count),
            (_, Constructor::Vector { shape, of } | Constructor::Hvector { shape, of }) => {
                runs.push(self.signature(of), shape.count.saturating_mul(shape.length));
            }
            (_, Constructor::Indexed { lengths, of, .. })
            | (_, Constructor::Hindexed { lengths, of, .. }) => {
                runs.push(self.signature(of), total(lengths));
            }
            (
                _,
                Constructor::IndexedBlock {
                    length,
                    displacements,
                    of,
                }
                | Constructor::HindexedBlock {
                    length,
                    displacements,
                    of,
                },
            ) => {
                let blocks = displacements.len() as u64;
                runs.push(self.signature(of), length.saturating_mul(blocks));
            }
            (_, Constructor::Struct(members)) => {
                for member in members {
                    runs.push(self.signature(&member.of), member.count);
                }
            }
            // They are lowered.
            (None, Constructor::Subarray { .. } | Constructor::Darray { .. }) => {}
        }
        let made = Signature::of_runs(runs.0);
        self.done.insert(datatype.identity(), made.clone());
        made
    }
}

/// Counts of elements with data fit 64 bits, as the size does; those of elements without do not matter.
fn total(counts: &[u64]) -> u64 {
    counts.iter().copied().fold(0, u64::saturating_add)
}

/// Runs that are added one after the other.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    /// How many runs a sequence may have to be taken in as they are.
    const SHORT: usize = 8;

    fn push_basic(&mut self, basic: Basic, count: u64) {
        match self.0.last_mut() {
            Some(Run {
                unit: Unit::Basic(last),
                count: before,
            }) if *last == basic => *before += count,
            _ => self.0.push(Run {
                unit: Unit::Basic(basic),
                count,
            }),
        }
    }

    fn push(&mut self, signature: Signature, count: u64) {
        if count == 0 || signature.size == 0 {
            return;
        }
        if let [Run { unit, count: inner }] = &*signature.runs {
            match unit {
                Unit::Basic(basic) => self.push_basic(*basic, inner * count),
                Unit::Group(group) => self.0.push(Run {
                    unit: Unit::Group(group.clone()),
                    count: inner * count,
                }),
            }
        } else if count == 1 && signature.runs.len() <= Self::SHORT {
            for run in &*signature.runs {
                match &run.unit {
                    Unit::Basic(basic) => self.push_basic(*basic, run.count),
                    Unit::Group(_) => self.0.push(run.clone()),
                }
            }
        } else {
            self.0.push(Run {
                unit: Unit::Group(signature),
                count,
            });
        }
    }
}
