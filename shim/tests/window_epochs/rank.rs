//! A rank that runs a program, and compares its memory with that of the oracle.

use std::sync::Arc;

use tagwire_shim::Process;
use tagwire_shim::abi::{Datatype, Errhandler, Group, Info, Request, Win};
use tagwire_shim::call::windows::{accumulates, creation, queries, synchronization, transfers};
use tagwire_shim::call::{collectives, complete, groups};
use tagwire_shim::raw::{Place, Pointer};

use crate::common::windows::{EXCLUSIVE, Made, SHARED};
use crate::common::{WORLD, barrier, data, ignore, list, one_sided, out_at, result, room};
use crate::oracle::{Change, bytes, number};
use crate::program::{Access, CELL, Epoch, Flush, Kind, Part, Program, Step};
use crate::shapes::VALUES;

/// What nobody has written.
const UNTOUCHED: u8 = 0xee;

/// `MPI_MODE_NOCHECK`.
const NO_CHECK: i32 = 1024;

/// What an access reads.
struct Reading {
    room: Vec<u8>,
    /// Of its values, which have this size.
    places: Vec<usize>,
    size: usize,
    /// Nothing where the values are not known.
    expected: Vec<u8>,
}

/// Data of an access that may be under way.
struct UnderWay {
    target: usize,
    reading: Option<Reading>,
    _written: Vec<u8>,
}

/// A rank with a window.
pub struct Rank<'p> {
    pub process: Arc<Process>,
    pub win: Win,
    program: &'p Program,
    me: usize,
    base: Pointer,
    /// Addresses of the memory of all, of a dynamic window.
    bases: Vec<i64>,
    under_way: Vec<UnderWay>,
    world: Group,
    _memory: Vec<u64>,
}

impl<'p> Rank<'p> {
    /// Runs a program.
    pub fn run(process: &Arc<Process>, me: usize, program: &'p Program) {
        let mut rank = Self::new(process, me, program);
        for epoch in &program.epochs {
            rank.epoch(epoch);
        }
        barrier(process);
        if program.made == Made::Dynamic {
            for piece in rank.pieces() {
                rank.detach(piece);
            }
        }
        creation::win_free(process, result(&mut rank.win)).unwrap();
        groups::group_free(process, result(&mut rank.world)).unwrap();
    }

    fn new(process: &Arc<Process>, me: usize, program: &'p Program) -> Self {
        let part = &program.parts[me];
        // One word more for what begins between two.
        let mut memory = vec![0_u64; part.cells + 1];
        let (bytes, unit, info) = ((part.cells * CELL) as i64, part.unit, Info::NULL);
        let (mut win, mut base) = (Win::NULL, Pointer(std::ptr::null_mut()));
        let own = Pointer(memory.as_mut_ptr().wrapping_byte_add(part.shift).cast());
        let (into, start) = (result(&mut win), result(&mut base));
        match program.made {
            Made::Created => {
                creation::win_create(process, out_at(own), bytes, unit, info, WORLD, into)
            }
            Made::Allocated => {
                creation::win_allocate(process, bytes, unit, info, WORLD, start, into)
            }
            Made::Shared => {
                creation::win_allocate_shared(process, bytes, unit, info, WORLD, start, into)
            }
            Made::Dynamic => creation::win_create_dynamic(process, info, WORLD, into),
        }
        .unwrap();
        queries::win_set_errhandler(process, win, Errhandler::RETURN).unwrap();
        if matches!(program.made, Made::Created | Made::Dynamic) {
            base = own;
        }
        let mut world = Group::NULL;
        groups::comm_group(process, WORLD, result(&mut world)).unwrap();
        let mut rank = Self {
            process: Arc::clone(process),
            win,
            program,
            me,
            base,
            bases: vec![0; program.parts.len()],
            under_way: Vec::new(),
            world,
            _memory: memory,
        };
        if program.made == Made::Dynamic {
            for piece in rank.pieces() {
                rank.attach(piece);
            }
        }
        let (own, long) = ([rank.base.0.expose_provenance() as i64], Datatype(0x201));
        let (sent, all) = (data(&own).of(1, long), room(&mut rank.bases).of(1, long));
        collectives::allgather(process, sent, all, WORLD).unwrap();
        rank
    }

    fn part(&self) -> &'p Part {
        &self.program.parts[self.me]
    }

    /// Returns the pieces that this rank attaches, in bytes: where they begin, and their lengths.
    fn pieces(&self) -> Vec<(usize, usize)> {
        let part = self.part();
        let ends = part.cuts.iter().copied().chain([part.cells]);
        let starts = [0].into_iter().chain(part.cuts.iter().copied());
        let pieces = starts.zip(ends).filter(|(start, end)| start < end);
        pieces
            .map(|(start, end)| (start * CELL, (end - start) * CELL))
            .collect()
    }

    fn at(&self, offset: usize) -> Pointer {
        Pointer(self.base.0.wrapping_byte_add(offset))
    }

    fn attach(&self, (start, length): (usize, usize)) {
        let memory = out_at(self.at(start));
        creation::win_attach(&self.process, self.win, memory, length as i64).unwrap();
    }

    fn detach(&self, (start, _): (usize, usize)) {
        let memory = out_at(self.at(start)).read();
        creation::win_detach(&self.process, self.win, memory).unwrap();
    }

    /// Returns a group of members of the window.
    pub fn group(&self, members: &[usize]) -> Group {
        let ranks: Vec<i32> = members.iter().map(|member| *member as i32).collect();
        let mut group = Group::NULL;
        let (count, ranks) = (ranks.len() as i32, list(&ranks));
        groups::group_incl(&self.process, self.world, count, ranks, result(&mut group)).unwrap();
        group
    }

    /// Returns elements from a byte of a member on.
    pub fn place(&self, member: usize, (start, count, datatype): (usize, i64, Datatype)) -> Place {
        let displacement = match self.program.made {
            Made::Dynamic => self.bases[member] + start as i64,
            _ => start as i64 / self.program.parts[member].unit,
        };
        Place {
            rank: member as i32,
            displacement,
            count,
            datatype,
        }
    }

    /// Returns a byte at a displacement, of a dynamic window one from the base of the member on where that is no number past all.
    pub fn byte_at(&self, rank: i32, displacement: i64) -> Place {
        let base = match self.program.made {
            Made::Dynamic => self.bases.get(rank as u32 as usize).copied(),
            _ => None,
        };
        Place {
            rank,
            displacement: base.unwrap_or(0).wrapping_add(displacement),
            count: 1,
            datatype: VALUES[0].handle,
        }
    }

    fn epoch(&mut self, epoch: &Epoch) {
        for wrong in &epoch.before[self.me] {
            wrong.make(self);
        }
        for (at, byte) in &epoch.stores[self.me] {
            out_at(self.at(*at)).copy(data(&[*byte]), 1);
        }
        if let (Made::Dynamic, Some(piece)) = (self.program.made, epoch.attached[self.me]) {
            let piece = self.pieces()[piece];
            self.detach(piece);
            self.attach(piece);
        }
        match &epoch.kind {
            Kind::Fence {
                follows,
                first,
                last,
            } => self.fenced(epoch, (*follows, *first, *last)),
            Kind::Group { .. } => self.exposed(epoch),
            Kind::Locks { unchecked } => {
                barrier(&self.process);
                self.steps(epoch, *unchecked);
                barrier(&self.process);
            }
            Kind::LockAll { unchecked } => {
                barrier(&self.process);
                let assertion = if *unchecked { NO_CHECK } else { 0 };
                synchronization::win_lock_all(&self.process, assertion, self.win).unwrap();
                self.steps(epoch, false);
                synchronization::win_unlock_all(&self.process, self.win).unwrap();
                barrier(&self.process);
            }
        }
        self.settle(|_| true);
        let next = self
            .program
            .epochs
            .iter()
            .skip_while(|one| !std::ptr::eq(*one, epoch));
        let next = next.skip(1).map(|next| &next.kind).next();
        // The next accesses of others may have begun.
        if !matches!(next, Some(Kind::Fence { follows: true, .. })) {
            let length = self.part().cells * CELL;
            let own = out_at(self.base).read().to_vec(length);
            assert!(
                own == epoch.after.0[self.me],
                "the memory of rank {} is {own:x?}, not {:x?}, after {:?}",
                self.me,
                epoch.after.0[self.me],
                epoch
            );
        }
    }

    fn fenced(&mut self, epoch: &Epoch, (follows, first, last): (bool, i32, i32)) {
        if !follows {
            synchronization::win_fence(&self.process, first, self.win).unwrap();
        }
        self.steps(epoch, false);
        synchronization::win_fence(&self.process, last, self.win).unwrap();
    }

    fn exposed(&mut self, epoch: &Epoch) {
        let Kind::Group { targets, tests } = &epoch.kind else {
            return;
        };
        let (process, win) = (Arc::clone(&self.process), self.win);
        let (origins, targets) = (epoch.kind.origins(self.me), &targets[self.me]);
        if !origins.is_empty() {
            let mut group = self.group(&origins);
            synchronization::win_post(&process, group, 0, win).unwrap();
            groups::group_free(&process, result(&mut group)).unwrap();
        }
        if !targets.is_empty() {
            let mut group = self.group(targets);
            synchronization::win_start(&process, group, 0, win).unwrap();
            groups::group_free(&process, result(&mut group)).unwrap();
        }
        self.steps(epoch, false);
        if !targets.is_empty() {
            synchronization::win_complete(&process, win).unwrap();
        }
        if !origins.is_empty() && tests[self.me] {
            let mut flag = 0;
            while flag == 0 {
                synchronization::win_test(&process, win, result(&mut flag)).unwrap();
            }
        } else if !origins.is_empty() {
            synchronization::win_wait(&process, win).unwrap();
        }
    }

    fn steps(&mut self, epoch: &Epoch, unchecked: bool) {
        for step in &epoch.steps[self.me] {
            self.step(step, unchecked);
        }
    }

    fn step(&mut self, step: &Step, unchecked: bool) {
        let (process, win) = (Arc::clone(&self.process), self.win);
        match step {
            Step::Lock { target, exclusive } => {
                let kind = if *exclusive { EXCLUSIVE } else { SHARED };
                let assertion = if unchecked { NO_CHECK } else { 0 };
                let target = *target as i32;
                synchronization::win_lock(&process, kind, target, assertion, win).unwrap();
            }
            Step::Unlock(target) => {
                synchronization::win_unlock(&process, *target as i32, win).unwrap();
                self.settle(|one| one == *target);
            }
            Step::Flush(flush) => self.flush(*flush),
            Step::Put(access, data) => self.put(access, data),
            Step::Get(access, expected) => self.get(access, expected),
            Step::Accumulate(access, change, data) => self.accumulate(access, *change, data),
            Step::GetAccumulate(access, change, data, old) => {
                self.get_accumulate(access, *change, (data, old.as_deref()));
            }
            Step::FetchAndOp(access, change, data, old) => {
                self.fetch_and_op(access, *change, (data, old.as_deref()));
            }
            Step::CompareAndSwap {
                access,
                compare,
                new,
                old,
            } => self.compare_and_swap(access, (compare, new), old),
            Step::Count { target, cell } => self.count(*target, *cell),
            Step::Wrong(wrong) => wrong.make(self),
        }
    }

    fn flush(&mut self, flush: Flush) {
        let (process, win) = (&*self.process, self.win);
        let done = match flush {
            Flush::One(target) => one_sided::win_flush(process, target as i32, win),
            Flush::OneLocally(target) => one_sided::win_flush_local(process, target as i32, win),
            Flush::All => synchronization::win_flush_all(process, win),
            Flush::AllLocally => synchronization::win_flush_local_all(process, win),
            Flush::Order => synchronization::win_sync(process, win),
        };
        done.unwrap();
        match flush {
            Flush::One(target) | Flush::OneLocally(target) => self.settle(|one| one == target),
            Flush::All | Flush::AllLocally => self.settle(|_| true),
            Flush::Order => {}
        }
    }

    /// Checks what accesses have read that have ended, and forgets them.
    fn settle(&mut self, has_ended: impl Fn(usize) -> bool) {
        self.under_way.retain(|one| {
            if !has_ended(one.target) {
                return true;
            }
            if let Some(reading) = &one.reading {
                reading.check();
            }
            false
        });
    }

    /// Waits for a request, after which the data of its access is free, and what it reads is there.
    fn wait(&self, mut request: Request, access: UnderWay) {
        complete::wait(&self.process, result(&mut request), ignore()).unwrap();
        assert_eq!(request, Request::NULL);
        if let Some(reading) = &access.reading {
            reading.check();
        }
    }

    fn put(&mut self, access: &Access, values: &[u8]) {
        let (process, win) = (Arc::clone(&self.process), self.win);
        let spread = spread(access, values);
        let mut request = Request::NULL;
        self.with_types(access, |(count, datatype), place| {
            let origin = data(&spread).of(count, datatype);
            match access.by_request {
                true => transfers::rput(&process, origin, place, win, result(&mut request)),
                false => one_sided::put(&process, origin, place, win),
            }
            .unwrap();
        });
        self.started(request, access, None, spread);
    }

    fn get(&mut self, access: &Access, expected: &[u8]) {
        let (process, win) = (Arc::clone(&self.process), self.win);
        let mut into = blank(access);
        let mut request = Request::NULL;
        self.with_types(access, |(count, datatype), place| {
            let origin = room(&mut into).of(count, datatype);
            match access.by_request {
                true => transfers::rget(&process, origin, place, win, result(&mut request)),
                false => one_sided::get(&process, origin, place, win),
            }
            .unwrap();
        });
        let reading = Reading::new(access, into, Some(expected));
        self.started(request, access, Some(reading), Vec::new());
    }

    fn accumulate(&mut self, access: &Access, change: Change, values: &[u8]) {
        let (process, win, op) = (Arc::clone(&self.process), self.win, change.handle());
        let spread = spread(access, values);
        let mut request = Request::NULL;
        self.with_types(access, |(count, datatype), place| {
            let origin = data(&spread).of(count, datatype);
            let asked = result(&mut request);
            match access.by_request {
                true => accumulates::raccumulate(&process, origin, place, op, win, asked),
                false => one_sided::accumulate(&process, origin, place, op, win),
            }
            .unwrap();
        });
        self.started(request, access, None, spread);
    }

    fn get_accumulate(
        &mut self,
        access: &Access,
        change: Change,
        (values, old): (&[u8], Option<&[u8]>),
    ) {
        let (process, win, op) = (Arc::clone(&self.process), self.win, change.handle());
        let (spread, mut into) = (spread(access, values), blank(access));
        let mut request = Request::NULL;
        self.with_types(access, |(count, datatype), place| {
            let origin = data(&spread).of(count, datatype);
            let (old, asked) = (room(&mut into).of(count, datatype), result(&mut request));
            match access.by_request {
                true => accumulates::rget_accumulate(&process, origin, old, place, op, win, asked),
                false => one_sided::get_accumulate(&process, origin, old, place, op, win),
            }
            .unwrap();
        });
        let reading = Reading::new(access, into, old);
        self.started(request, access, Some(reading), spread);
    }

    fn fetch_and_op(
        &mut self,
        access: &Access,
        change: Change,
        (value, old): (&[u8], Option<&[u8]>),
    ) {
        let (process, win) = (&*self.process, self.win);
        let (value, mut into) = (value.to_vec(), blank(access));
        let datatype = access.value.handle;
        let Place {
            rank, displacement, ..
        } = self.place(access.target, (access.start, 1, datatype));
        let (from, room, op) = (data(&value), room(&mut into), change.handle());
        one_sided::fetch_and_op(process, from, room, datatype, rank, displacement, op, win)
            .unwrap();
        let reading = Reading::new(access, into, old);
        self.started(Request::NULL, access, Some(reading), value);
    }

    fn compare_and_swap(&mut self, access: &Access, (compare, new): (&[u8], &[u8]), old: &[u8]) {
        let (process, win) = (&*self.process, self.win);
        let (both, mut into) = ([compare, new].concat(), blank(access));
        let datatype = access.value.handle;
        let Place {
            rank, displacement, ..
        } = self.place(access.target, (access.start, 1, datatype));
        let (compare, new) = (data(&both), data(&both[compare.len()..]));
        let room = room(&mut into);
        one_sided::compare_and_swap(
            process,
            new,
            compare,
            room,
            datatype,
            rank,
            displacement,
            win,
        )
        .unwrap();
        let reading = Reading::new(access, into, Some(old));
        self.started(Request::NULL, access, Some(reading), both);
    }

    fn count(&mut self, target: usize, cell: usize) {
        let (process, win, value) = (&*self.process, self.win, VALUES[3]);
        let mut word = vec![0; CELL];
        let place = self.place(target, (cell * CELL, 1, value.handle));
        let into = room(&mut word).of(1, value.handle);
        one_sided::get(process, into, place, win).unwrap();
        one_sided::win_flush(process, target as i32, win).unwrap();
        let word = bytes(number(&word).wrapping_add(1), CELL);
        let from = data(&word).of(1, value.handle);
        one_sided::put(process, from, place, win).unwrap();
        self.settle(|one| one == target);
        self.under_way.push(UnderWay {
            target,
            reading: None,
            _written: word,
        });
    }

    /// Calls `body` with a count and the datatype at the origin, and with the place at the target.
    fn with_types(&self, access: &Access, body: impl FnOnce((i64, Datatype), Place)) {
        let (process, value) = (&*self.process, access.value);
        access.here.with(process, value, |count, datatype| {
            access.there.with(process, value, |there, at| {
                body(
                    (count, datatype),
                    self.place(access.target, (access.start, there, at)),
                );
            });
        });
    }

    /// Keeps the data of an access that was started, or waits for its request.
    fn started(
        &mut self,
        request: Request,
        access: &Access,
        reading: Option<Reading>,
        written: Vec<u8>,
    ) {
        let under_way = UnderWay {
            target: access.target,
            reading,
            _written: written,
        };
        match request {
            Request::NULL => self.under_way.push(under_way),
            request => self.wait(request, under_way),
        }
    }
}

fn length(access: &Access) -> usize {
    let last = access.here.places().into_iter().max();
    last.map_or(0, |last| (last + 1) * access.value.size)
}

/// Returns memory for what is read.
fn blank(access: &Access) -> Vec<u8> {
    vec![UNTOUCHED; length(access)]
}

/// Returns values as they lie at the origin.
fn spread(access: &Access, values: &[u8]) -> Vec<u8> {
    let (size, mut spread) = (access.value.size, blank(access));
    for (place, value) in access.here.places().iter().zip(values.chunks_exact(size)) {
        spread[place * size..][..size].copy_from_slice(value);
    }
    spread
}

impl Reading {
    /// Returns that of an access into `room`, of known values or of unknown ones.
    fn new(access: &Access, room: Vec<u8>, expected: Option<&[u8]>) -> Self {
        Self {
            room,
            places: access.here.places(),
            size: access.value.size,
            expected: expected.unwrap_or_default().to_vec(),
        }
    }

    /// Checks what was read; of unknown values that nothing else was written.
    fn check(&self) {
        let (room, size) = (&self.room, self.size);
        let mut wanted = vec![UNTOUCHED; room.len()];
        for (number, place) in self.places.iter().enumerate() {
            let found = match self.expected.is_empty() {
                true => &room[place * size..],
                false => &self.expected[number * size..],
            };
            wanted[place * size..][..size].copy_from_slice(&found[..size]);
        }
        assert!(*room == wanted, "read {room:x?}, not {wanted:x?}");
    }
}
