//! Random programs of epochs, of which each rank knows what all do: no access conflicts with another, but those that the standard
//! says the outcome of.
//!
//! In each epoch a cell of 8 bytes of a window has a role. So nobody writes what somebody else accesses, and bytes that one origin
//! writes are not accessed again before they are flushed.

use tagwire_conformance::Chance;

use crate::common::windows::Made;
use crate::misuse::{Wrong, outside};
use crate::oracle::{COMMUTATIVE, Change, Memory};
use crate::origin::Origin;
use crate::shapes::{VALUES, Value};

/// Bytes of a cell.
pub const CELL: usize = 8;

/// What may be done with a cell in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// One origin does with it what it likes.
    Of(usize),
    /// All read it.
    Read,
    /// All change it by one operation, on values of one type.
    Changed(Value, Change),
    /// Who has the exclusive lock adds 1 to it, by a get and a put.
    Counted,
}

/// The memory of a rank.
#[derive(Debug, Clone)]
pub struct Part {
    pub cells: usize,
    pub unit: i64,
    /// Bytes from an aligned address to its memory, where the program gives that.
    pub shift: usize,
    /// Cells behind which a piece ends that is attached by itself.
    pub cuts: Vec<usize>,
}

impl Part {
    fn new(chance: &mut Chance) -> Self {
        let cells = chance.one_of(&[0, 1, 5, 24, 24, 24]);
        let cuts = (1..cells).filter(|_| chance.below(10) == 0);
        Self {
            cells,
            cuts: cuts.collect(),
            unit: chance.one_of(&[1, 1, 2, 4, 8]),
            shift: chance.one_of(&[0, 0, 1, 4]),
        }
    }
}

/// How memory is accessed in an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Between fences, of which the first may be the last of the epoch before.
    Fence {
        follows: bool,
        first: i32,
        last: i32,
    },
    /// Each origin accesses these members, who wait or test.
    Group {
        targets: Vec<Vec<usize>>,
        tests: Vec<bool>,
    },
    /// Each origin locks members one by one, in a rising order.
    Locks {
        unchecked: bool,
    },
    LockAll {
        unchecked: bool,
    },
}

/// `MPI_MODE_NOPRECEDE`, `MPI_MODE_NOSUCCEED`.
const NO_PRECEDE: i32 = 2048;
pub const NO_SUCCEED: i32 = 16384;

impl Kind {
    fn new(size: usize, is_fenced: bool, chance: &mut Chance) -> Self {
        match chance.below(5) {
            0 | 1 => Self::Fence {
                follows: is_fenced && chance.is_true(),
                first: chance.one_of(&[0, 0, NO_PRECEDE]),
                last: chance.one_of(&[0, 0, NO_SUCCEED]),
            },
            2 => {
                let mut some = |_| (0..size).filter(|_| chance.below(3) > 0).collect();
                let targets = (0..size).map(&mut some).collect();
                Self::Group {
                    targets,
                    tests: (0..size).map(|_| chance.is_true()).collect(),
                }
            }
            3 => Self::Locks {
                unchecked: chance.below(4) == 0,
            },
            _ => Self::LockAll {
                unchecked: chance.below(4) == 0,
            },
        }
    }

    /// Returns whether an origin may access a member.
    pub fn allows(&self, origin: usize, target: usize) -> bool {
        match self {
            Self::Group { targets, .. } => targets[origin].contains(&target),
            _ => true,
        }
    }

    /// Returns the origins that a member is exposed to.
    pub fn origins(&self, member: usize) -> Vec<usize> {
        match self {
            Self::Group { targets, .. } => (0..targets.len())
                .filter(|origin| targets[*origin].contains(&member))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether it has calls that complete accesses, and requests.
    pub const fn is_passive(&self) -> bool {
        matches!(self, Self::Locks { .. } | Self::LockAll { .. })
    }
}

/// An access: values of a member, and how they lie here.
#[derive(Debug, Clone)]
pub struct Access {
    pub target: usize,
    pub value: Value,
    /// The first byte that the shape counts from.
    pub start: usize,
    pub there: crate::shapes::Shape,
    pub here: crate::shapes::Shape,
    /// It has a request, which is waited for at once.
    pub by_request: bool,
}

/// Completes accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    One(usize),
    OneLocally(usize),
    All,
    AllLocally,
    /// `MPI_Win_sync`, which completes none.
    Order,
}

/// A call of an origin.
#[derive(Debug, Clone)]
pub enum Step {
    Lock {
        target: usize,
        exclusive: bool,
    },
    Unlock(usize),
    Flush(Flush),
    Put(Access, Vec<u8>),
    /// What it reads.
    Get(Access, Vec<u8>),
    Accumulate(Access, Change, Vec<u8>),
    /// What was there, where it is known.
    GetAccumulate(Access, Change, Vec<u8>, Option<Vec<u8>>),
    /// A get_accumulate of a single value by `MPI_Fetch_and_op`.
    FetchAndOp(Access, Change, Vec<u8>, Option<Vec<u8>>),
    CompareAndSwap {
        access: Access,
        compare: Vec<u8>,
        new: Vec<u8>,
        old: Vec<u8>,
    },
    /// Adds 1 to a cell under an exclusive lock.
    Count {
        target: usize,
        cell: usize,
    },
    Wrong(Wrong),
}

/// What all ranks do in an epoch.
#[derive(Debug)]
pub struct Epoch {
    pub kind: Kind,
    /// What each member stores into its own memory before.
    pub stores: Vec<Vec<(usize, u8)>>,
    /// Which piece a member attaches anew before.
    pub attached: Vec<Option<usize>>,
    pub steps: Vec<Vec<Step>>,
    /// What each calls before that it may not.
    pub before: Vec<Vec<Wrong>>,
    /// What the memory is after.
    pub after: Memory,
}

/// A program.
#[derive(Debug)]
pub struct Program {
    pub made: Made,
    pub parts: Vec<Part>,
    pub epochs: Vec<Epoch>,
}

/// Epochs of a program.
const EPOCHS: u64 = 6;

impl Program {
    /// Returns one of so many ranks, with a window of one of these kinds.
    pub fn new(size: usize, kinds: &[Made], chance: &mut Chance) -> Self {
        let made = chance.one_of(kinds);
        let parts: Vec<Part> = (0..size).map(|_| Part::new(chance)).collect();
        let zeros = parts.iter().map(|part| vec![0; part.cells * CELL]);
        let mut memory = Memory(zeros.collect());
        let mut epochs: Vec<Epoch> = Vec::new();
        // Which ranks may access since their last fence, until they begin another kind of epoch.
        let mut fenced = vec![false; size];
        for _ in 0..1 + chance.below(EPOCHS) {
            let before = epochs.last().map(|epoch| &epoch.kind);
            let is_fenced = matches!(before, Some(Kind::Fence { last: 0, .. }));
            let kind = Kind::new(size, is_fenced, chance);
            let epoch = epoch((kind, &mut fenced), (made, &parts), &mut memory, chance);
            epochs.push(epoch);
        }
        Self {
            made,
            parts,
            epochs,
        }
    }
}

fn epoch(
    (kind, fenced): (Kind, &mut [bool]),
    (made, parts): (Made, &[Part]),
    memory: &mut Memory,
    chance: &mut Chance,
) -> Epoch {
    // Between two epochs of one fence nobody knows when others begin.
    let is_apart = !matches!(kind, Kind::Fence { follows: true, .. });
    let stores = memory.0.iter_mut().map(|own| {
        let count = if is_apart { chance.below(4) } else { 0 };
        let stores = (0..count.min(own.len() as u64)).map(|_| {
            let (at, byte) = (chance.below(own.len() as u64) as usize, chance.word() as u8);
            own[at] = byte;
            (at, byte)
        });
        stores.collect()
    });
    let stores = stores.collect();
    let attached = parts.iter().map(|part| {
        let pieces = part.cuts.len() as u64 + 1;
        let renews = is_apart && part.cells > 0 && chance.below(4) == 0;
        renews.then(|| chance.below(pieces) as usize)
    });
    let attached = attached.collect();
    let before = (0..parts.len()).map(|me| {
        let count = if is_apart { chance.below(3) } else { 0 };
        (0..count)
            .map(|_| outside(parts.len(), fenced[me], chance))
            .collect()
    });
    let before: Vec<_> = before.collect();
    let roles: Vec<Vec<Role>> = parts
        .iter()
        .enumerate()
        .map(|(member, part)| roles(&kind, (member, parts.len()), part.cells, chance))
        .collect();
    let steps = (0..parts.len()).map(|me| {
        let origin = Origin::new(me, (&kind, made), (parts, &roles));
        let (steps, is_fenced) = origin.steps(fenced[me], memory, chance);
        fenced[me] = is_fenced;
        steps
    });
    let steps = steps.collect();
    Epoch {
        kind,
        stores,
        attached,
        steps,
        before,
        after: memory.clone(),
    }
}

/// Returns the roles of the cells of a member, in runs of some cells.
fn roles(
    kind: &Kind,
    (member, size): (usize, usize),
    cells: usize,
    chance: &mut Chance,
) -> Vec<Role> {
    let mut roles = Vec::with_capacity(cells);
    while roles.len() < cells {
        let role = match chance.below(6) {
            0 => Role::Read,
            1 => Role::Changed(chance.one_of(&VALUES), chance.one_of(&COMMUTATIVE)),
            2 if matches!(kind, Kind::Locks { unchecked: false }) => Role::Counted,
            _ => Role::Of(chance.below(size as u64) as usize),
        };
        let role = match role {
            Role::Of(origin) if !kind.allows(origin, member) => Role::Read,
            _ => role,
        };
        let run = 1 + chance.below(8) as usize;
        roles.extend(std::iter::repeat_n(role, run.min(cells - roles.len())));
    }
    roles
}
