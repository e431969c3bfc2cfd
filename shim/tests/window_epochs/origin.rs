//! What an origin does in an epoch, and what comes of it.

use tagwire_conformance::Chance;

use crate::common::windows::Made;
use crate::misuse::{State, arguments, inside};
use crate::oracle::{Change, Memory, bytes, number};
use crate::program::{Access, CELL, Flush, Kind, NO_SUCCEED, Part, Role, Step};
use crate::shapes::{Shape, VALUES, Value};

/// What an origin has done with a cell since its last flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Used {
    No,
    Read,
    Written,
    Changed(Value),
}

/// Most steps of an origin.
const STEPS: u64 = 14;

/// Most values of an access.
const MOST: usize = 40;

/// Places that are tried for an access.
const TRIES: usize = 12;

pub struct Origin<'p> {
    me: usize,
    kind: &'p Kind,
    made: Made,
    parts: &'p [Part],
    roles: &'p [Vec<Role>],
    used: Vec<Vec<Used>>,
    /// Which members are locked, and whether exclusively.
    locked: Vec<Option<bool>>,
    /// Surely: a call whose arguments are wrong may count as an access, or not.
    has_accessed: bool,
    /// A fence lets it access what it may, since it has begun nothing else.
    is_fenced: bool,
    steps: Vec<Step>,
}

impl<'p> Origin<'p> {
    pub fn new(
        me: usize,
        (kind, made): (&'p Kind, Made),
        (parts, roles): (&'p [Part], &'p [Vec<Role>]),
    ) -> Self {
        Self {
            me,
            kind,
            made,
            parts,
            roles,
            used: parts
                .iter()
                .map(|part| vec![Used::No; part.cells])
                .collect(),
            locked: vec![None; parts.len()],
            has_accessed: false,
            is_fenced: false,
            steps: Vec::new(),
        }
    }

    /// Returns its calls in an epoch, and whether a fence still lets it access members after, as one did before. What they write is in
    /// `memory` after.
    pub fn steps(
        mut self,
        is_fenced: bool,
        memory: &mut Memory,
        chance: &mut Chance,
    ) -> (Vec<Step>, bool) {
        self.is_fenced = match self.kind {
            Kind::Fence { .. } => true,
            Kind::Group { targets, .. } => is_fenced && targets[self.me].is_empty(),
            Kind::Locks { .. } => is_fenced,
            Kind::LockAll { .. } => false,
        };
        for _ in 0..chance.below(STEPS + 1) {
            match chance.below(8) {
                0 => self.misuse(chance),
                1 if self.kind.is_passive() => self.flush(chance),
                2 | 3 if matches!(self.kind, Kind::Locks { .. }) => self.lock(chance),
                _ => self.access(memory, chance),
            }
        }
        for target in 0..self.locked.len() {
            if self.locked[target].is_some() {
                self.steps.push(Step::Unlock(target));
            }
        }
        let is_fenced = match self.kind {
            Kind::Fence { last, .. } => *last & NO_SUCCEED == 0,
            _ => self.is_fenced,
        };
        (self.steps, is_fenced)
    }

    /// Returns the members that it may access now.
    fn open(&self) -> Vec<usize> {
        let is_open = |target: &usize| match self.kind {
            Kind::Locks { .. } => self.locked[*target].is_some(),
            _ => self.kind.allows(self.me, *target),
        };
        (0..self.parts.len()).filter(is_open).collect()
    }

    fn state(&self) -> State {
        State {
            size: self.parts.len(),
            me: self.me,
            open: self.open(),
            has_accessed: self.has_accessed,
            is_fenced: self.is_fenced,
            is_exposed: !self.kind.origins(self.me).is_empty(),
        }
    }

    fn misuse(&mut self, chance: &mut Chance) {
        let open = self.open();
        let step = match (open.is_empty(), chance.is_true()) {
            (false, true) => {
                let target = chance.one_of(&open);
                let bytes = self.parts[target].cells * CELL;
                arguments((self.made, self.parts.len()), (target, bytes), chance)
            }
            _ => inside(self.kind, &self.state(), chance),
        };
        self.steps.push(Step::Wrong(step));
    }

    fn lock(&mut self, chance: &mut Chance) {
        let held = self.locked.iter().rposition(Option::is_some);
        let next = held.map_or(0, |held| held + 1);
        match held {
            Some(_) if chance.is_true() || next == self.locked.len() => {
                let held = self.open();
                let target = chance.one_of(&held);
                self.locked[target] = None;
                self.used[target].fill(Used::No);
                self.steps.push(Step::Unlock(target));
            }
            _ => {
                let target = next + chance.below((self.locked.len() - next) as u64) as usize;
                let exclusive = *self.kind == Kind::Locks { unchecked: false } && chance.is_true();
                self.is_fenced = false;
                self.locked[target] = Some(exclusive);
                self.steps.push(Step::Lock { target, exclusive });
            }
        }
    }

    fn flush(&mut self, chance: &mut Chance) {
        let open = self.open();
        if open.is_empty() {
            return;
        }
        let target = chance.one_of(&open);
        let flush = chance.one_of(&[
            Flush::One(target),
            Flush::One(target),
            Flush::OneLocally(target),
            Flush::All,
            Flush::AllLocally,
            Flush::Order,
        ]);
        match flush {
            Flush::One(target) => self.used[target].fill(Used::No),
            Flush::All => self.used.iter_mut().for_each(|used| used.fill(Used::No)),
            _ => {}
        }
        self.steps.push(Step::Flush(flush));
    }

    /// Accesses a member that it may access, where there is a place for it.
    fn access(&mut self, memory: &mut Memory, chance: &mut Chance) {
        let open = self.open();
        let open: Vec<usize> = open
            .into_iter()
            .filter(|target| self.parts[*target].cells > 0)
            .collect();
        if open.is_empty() {
            return;
        }
        let target = chance.one_of(&open);
        let cell = chance.below(self.parts[target].cells as u64) as usize;
        match self.roles[target][cell] {
            Role::Counted => self.count(target, cell, memory),
            Role::Changed(value, change) => {
                self.change(target, (value, change), memory, chance);
            }
            Role::Read => self.get(target, memory, chance),
            Role::Of(origin) if origin == self.me => match chance.below(4) {
                0 => self.put(target, memory, chance),
                1 => self.get(target, memory, chance),
                2 => self.change_own(target, memory, chance),
                _ => self.swap(target, memory, chance),
            },
            Role::Of(_) => {}
        }
    }

    /// Returns an access whose cells are as `may` says, which have been used so after.
    fn place(
        &mut self,
        (target, value): (usize, Value),
        shape: &dyn Fn(&mut Chance) -> Shape,
        (may, after): (&dyn Fn(Role, Used) -> bool, Used),
        chance: &mut Chance,
    ) -> Option<(Access, Vec<usize>)> {
        let bytes = self.parts[target].cells * CELL;
        let step = value.size.max(self.parts[target].unit as usize);
        for _ in 0..TRIES {
            let there = shape(chance);
            let places = there.places();
            let start = chance.below((bytes / step) as u64) as usize * step;
            let at: Vec<usize> = places
                .iter()
                .map(|place| start + place * value.size)
                .collect();
            let is_right = at.iter().all(|at| {
                let cell = at / CELL;
                *at < bytes && may(self.roles[target][cell], self.used[target][cell])
            });
            if !is_right {
                continue;
            }
            for at in &at {
                self.used[target][at / CELL] = after;
            }
            self.has_accessed = true;
            let access = Access {
                target,
                value,
                start,
                here: Shape::of(places.len(), chance),
                there,
                by_request: self.kind.is_passive() && chance.below(4) == 0,
            };
            return Some((access, at));
        }
        None
    }

    fn put(&mut self, target: usize, memory: &mut Memory, chance: &mut Chance) {
        let (me, value) = (self.me, chance.one_of(&VALUES));
        let may = move |role, used| role == Role::Of(me) && used == Used::No;
        let how: (&dyn Fn(Role, Used) -> bool, Used) = (&may, Used::Written);
        if let Some((access, at)) = self.place((target, value), &any, how, chance) {
            let data = chance.bytes(at.len() * value.size);
            memory.write(target, value, &at, &data);
            self.steps.push(Step::Put(access, data));
        }
    }

    fn get(&mut self, target: usize, memory: &Memory, chance: &mut Chance) {
        let (me, value) = (self.me, chance.one_of(&VALUES));
        let may = move |role, used| match role {
            Role::Read => true,
            Role::Of(origin) => origin == me && matches!(used, Used::No | Used::Read),
            _ => false,
        };
        let how: (&dyn Fn(Role, Used) -> bool, Used) = (&may, Used::Read);
        if let Some((access, at)) = self.place((target, value), &any, how, chance) {
            let data = memory.read(target, value, &at);
            self.steps.push(Step::Get(access, data));
        }
    }

    /// Changes values that others change, too.
    fn change(
        &mut self,
        target: usize,
        (value, change): (Value, Change),
        memory: &mut Memory,
        chance: &mut Chance,
    ) {
        let role = Role::Changed(value, change);
        let may = move |found, _| found == role;
        let how: (&dyn Fn(Role, Used) -> bool, Used) = (&may, Used::Changed(value));
        let is_single = chance.below(3) == 0;
        if let Some((access, at)) = self.place((target, value), shape(is_single), how, chance) {
            let data = chance.bytes(at.len() * value.size);
            memory.change(target, value, &at, (change, &data));
            self.steps.push(match (is_single, chance.is_true()) {
                (true, _) => Step::FetchAndOp(access, change, data, None),
                (_, true) => Step::Accumulate(access, change, data),
                _ => Step::GetAccumulate(access, change, data, None),
            });
        }
    }

    /// Changes values that are its own, in the order of its calls.
    fn change_own(&mut self, target: usize, memory: &mut Memory, chance: &mut Chance) {
        let (me, value, change) = (self.me, chance.one_of(&VALUES), Change::any(chance));
        let may = move |role, used| is_changeable(me, value, (role, used));
        let how: (&dyn Fn(Role, Used) -> bool, Used) = (&may, Used::Changed(value));
        let is_single = chance.below(3) == 0;
        if let Some((access, at)) = self.place((target, value), shape(is_single), how, chance) {
            let data = chance.bytes(at.len() * value.size);
            let old = Some(memory.read(target, value, &at));
            memory.change(target, value, &at, (change, &data));
            self.steps.push(match (is_single, chance.is_true()) {
                (true, _) => Step::FetchAndOp(access, change, data, old),
                (_, true) if change != Change::Nothing => Step::Accumulate(access, change, data),
                _ => Step::GetAccumulate(access, change, data, old),
            });
        }
    }

    fn swap(&mut self, target: usize, memory: &mut Memory, chance: &mut Chance) {
        let (me, value) = (self.me, chance.one_of(&VALUES));
        let may = move |role, used| is_changeable(me, value, (role, used));
        let how: (&dyn Fn(Role, Used) -> bool, Used) = (&may, Used::Changed(value));
        if let Some((access, at)) = self.place((target, value), shape(true), how, chance) {
            let old = memory.read(target, value, &at);
            let new = chance.bytes(value.size);
            let compare = match chance.is_true() {
                true => old.clone(),
                false => chance.bytes(value.size),
            };
            if compare == old {
                memory.write(target, value, &at, &new);
            }
            self.steps.push(Step::CompareAndSwap {
                access,
                compare,
                new,
                old,
            });
        }
    }

    /// Adds 1 to a cell that several do so with, each under the exclusive lock.
    fn count(&mut self, target: usize, cell: usize, memory: &mut Memory) {
        if self.locked[target] != Some(true) || self.used[target][cell] != Used::No {
            return;
        }
        self.used[target][cell] = Used::Written;
        let (value, at) = (VALUES[3], [cell * CELL]);
        let count = number(&memory.read(target, value, &at)).wrapping_add(1);
        memory.write(target, value, &at, &bytes(count, value.size));
        self.steps.push(Step::Count { target, cell });
    }
}

fn is_changeable(me: usize, value: Value, (role, used): (Role, Used)) -> bool {
    role == Role::Of(me) && (used == Used::No || used == Used::Changed(value))
}

fn any(chance: &mut Chance) -> Shape {
    Shape::new(MOST, chance)
}

fn shape(is_single: bool) -> &'static dyn Fn(&mut Chance) -> Shape {
    match is_single {
        true => &|_: &mut Chance| Shape::Block(1),
        false => &any,
    }
}
