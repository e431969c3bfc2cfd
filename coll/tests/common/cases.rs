//! Every operation with arguments that are drawn, and what a serial oracle says that it returns.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::sync::Arc;

use tagwire_coll::operations::{
    Allgather, Allreduce, Alltoall, Barrier, Blocks, Broadcast, CollectiveOperation, Counts,
    Exscan, Gather, Parts, Reduce, ReduceScatter, Root, Scan, Scatter,
};
use tagwire_coll::{Call, Persistent, Reduction, Request, Result, Team};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_transport::fault::SplitMix64;

use super::{composition, joined};

/// Numbers that all ranks draw alike.
pub struct Draws(SplitMix64);

impl Draws {
    pub fn of(seed: u64) -> Self {
        Self(SplitMix64::stream(seed, 1))
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0.below(end as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        self.0.bytes(len)
    }

    /// A length in elements: none, few, many.
    fn count(&mut self) -> usize {
        match self.below(5) {
            0 => 0,
            1 => 1,
            2 | 3 => self.below(50),
            _ => self.below(3000),
        }
    }
}

/// What `rank` gives in `round`: never all zero, so that what was not written shows.
fn data(rank: usize, round: u64, bytes: usize) -> Vec<u8> {
    Draws::of(round << 32 | rank as u64 | 1 << 63).bytes(bytes)
}

/// The reduction of a round, and the bytes of a value.
fn reduction(round: u64) -> (Operation, Layout) {
    match round % 3 {
        0 => composition(),
        1 => (Operation::Sum, Layout::of(Basic::U32)),
        _ => (Operation::BitXor, Layout::of(Basic::U8)),
    }
}

/// The combination of what the ranks of a range give.
fn combined(of: std::ops::Range<usize>, round: u64, bytes: usize) -> Vec<u8> {
    let (operation, layout) = reduction(round);
    let mut inputs = of.map(|rank| data(rank, round, bytes));
    let first = inputs.next().unwrap();
    inputs.fold(first, |sum, next| {
        let mut into = next;
        operation.combine(&layout, &sum, &mut into).unwrap();
        into
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Barrier,
    Broadcast,
    Reduce,
    ReduceInPlace,
    Allreduce,
    Scan,
    Exscan,
    ReduceScatter,
    ReduceScatterInPlace,
    Allgather(Form),
    Gather(Form),
    Scatter(Form),
    Alltoall(Form),
}

/// How the blocks of a buffer lie, and whether there is one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Equal,
    Varying,
    Apart,
    InPlace,
    VaryingInPlace,
}

use Form::{Apart, Equal, InPlace, Varying, VaryingInPlace};

/// An operation, its buffers, and what has to be in the one that it writes.
pub struct Case {
    kind: Kind,
    operation: Operation,
    layout: Layout,
    root: usize,
    leads: bool,
    input: Vec<u8>,
    /// As it is before the operation.
    before: Vec<u8>,
    out: Vec<u8>,
    expected: Vec<u8>,
    lengths: Vec<usize>,
    from: Vec<usize>,
}

/// Makes a type of the operations that are named.
macro_rules! any {
    ($($Name:ident),*) => {
        /// An operation of any kind.
        pub enum Any<'a> {
            Barrier(Barrier),
            $($Name($Name<'a>)),*
        }

        impl CollectiveOperation for Any<'_> {
            fn check(&self, team: &Team) -> Result<()> {
                match self {
                    Self::Barrier(one) => one.check(team),
                    $(Self::$Name(one) => one.check(team)),*
                }
            }

            fn describe(&self, team: &Team) -> String {
                match self {
                    Self::Barrier(one) => one.describe(team),
                    $(Self::$Name(one) => one.describe(team)),*
                }
            }

            fn counts(&self, team: &Team) -> Option<Counts> {
                match self {
                    Self::Barrier(one) => one.counts(team),
                    $(Self::$Name(one) => one.counts(team)),*
                }
            }

            async fn steps(&mut self, call: Call<'_>) -> Result<()> {
                match self {
                    Self::Barrier(one) => one.steps(call).await,
                    $(Self::$Name(one) => one.steps(call).await),*
                }
            }
        }
    };
}

any!(
    Allgather,
    Allreduce,
    Alltoall,
    Broadcast,
    Exscan,
    Gather,
    Reduce,
    ReduceScatter,
    Scan,
    Scatter
);

/// What operations are made of, one at a time.
pub trait Maker: 'static {
    type Operation<'a>: CollectiveOperation + 'a;

    fn operation(&mut self) -> Self::Operation<'_>;
}

/// Starts an operation. Its maker has to be there until it has ended.
pub fn start(maker: &mut impl Maker, team: &Arc<Team>) -> Result<Request> {
    // SAFETY: who starts an operation keeps its maker until it has ended.
    unsafe { team.start(maker.operation()) }
}

/// Makes a persistent operation. Its maker has to be there until that is dropped, and is looked at between rounds.
pub fn init(maker: &mut impl Maker, team: &Arc<Team>) -> Persistent {
    let place = Place(maker);
    // SAFETY: as above.
    unsafe { team.init(move || place.operation()) }.unwrap()
}

/// Where the maker of a persistent operation is.
struct Place<M>(*mut M);

// SAFETY: the operations that are made go from thread to thread, and so may what makes them.
unsafe impl<M> Send for Place<M> {}
// SAFETY: as above.
unsafe impl<M> Sync for Place<M> {}

impl<M: Maker> Place<M> {
    /// # Safety
    /// The maker is there, and nobody else looks at it, while the operation is.
    unsafe fn operation(&self) -> M::Operation<'static> {
        // SAFETY: the caller's promise.
        unsafe { (*self.0).operation() }
    }
}

/// Returns the blocks of these lengths.
pub fn cut<'a>(mut data: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let block = |length: &usize| data.split_off(..*length).unwrap();
    lengths.iter().map(block).collect()
}

/// The same, to be changed.
pub fn cut_mut<'a>(mut data: &'a mut [u8], lengths: &[usize]) -> Vec<&'a mut [u8]> {
    let block = |length: &usize| data.split_off_mut(..*length).unwrap();
    lengths.iter().map(block).collect()
}

impl Case {
    /// Runs it to its end.
    pub fn block(&mut self, team: &Team) {
        let (reduction, root) = (
            Reduction {
                operation: &self.operation,
                layout: &self.layout,
            },
            self.root,
        );
        let (input, out) = (&self.input[..], &mut self.out[..]);
        let (lengths, from) = (&self.lengths[..], &self.from[..]);
        let leads = self.leads;
        let ended = match self.kind {
            Kind::Barrier => team.barrier(),
            Kind::Broadcast => team.broadcast(out, root),
            Kind::Reduce => team.reduce(reduction, input, leads.then_some(out), root),
            Kind::Allreduce => team.allreduce(reduction, out),
            Kind::Scan => team.scan(reduction, out),
            Kind::Exscan => team.exscan(reduction, out),
            Kind::ReduceScatter => team.reduce_scatter(reduction, input, lengths, out),
            Kind::Allgather(Equal) => team.allgather(input, out),
            Kind::Allgather(Varying) => team.allgatherv(input, lengths, out),
            Kind::Gather(Equal) => team.gather(input, leads.then_some(out), root),
            Kind::Gather(Varying) => team.gatherv(input, lengths, leads.then_some(out), root),
            Kind::Scatter(Equal) => team.scatter(leads.then_some(input), out, root),
            Kind::Scatter(Varying) => team.scatterv(leads.then_some(input), lengths, out, root),
            Kind::Alltoall(Equal) => team.alltoall(input, out),
            Kind::Alltoall(Varying) => team.alltoallv(input, lengths, out, from),
            Kind::Alltoall(Apart) => team.alltoallw(&cut(input, lengths), &mut cut_mut(out, from)),
            // Those of one buffer.
            _ => team.call(self.make()),
        };
        ended.unwrap_or_else(|error| panic!("{:?}: {error}", self.kind));
    }

    /// Starts it. It has to be there until the operation has ended.
    pub fn start(&mut self, team: &Arc<Team>) -> Request {
        self.try_start(team).unwrap()
    }

    /// The same, where it may be refused.
    pub fn try_start(&mut self, team: &Arc<Team>) -> Result<Request> {
        start(self, team)
    }

    /// Makes a persistent operation of it. It has to be there until that is dropped, and is looked at between rounds.
    pub fn init(&mut self, team: &Arc<Team>) -> Persistent {
        init(self, team)
    }

    fn make(&mut self) -> Any<'_> {
        let operator = || {
            Reduction {
                operation: &self.operation,
                layout: &self.layout,
            }
            .into()
        };
        let (root, leads) = (Root::Member(self.root), self.leads);
        let (input, data) = (&self.input[..], &mut self.out[..]);
        let (lengths, from) = (
            Cow::Borrowed(&self.lengths[..]),
            Cow::Borrowed(&self.from[..]),
        );
        match self.kind {
            Kind::Barrier => Any::Barrier(Barrier),
            Kind::Broadcast => Any::Broadcast(Broadcast { data, root }),
            Kind::Reduce => Any::Reduce(Reduce {
                operator: operator(),
                input: Some(input),
                out: leads.then_some(data),
                root,
            }),
            Kind::ReduceInPlace => Any::Reduce(Reduce {
                operator: operator(),
                input: (!leads).then_some(input),
                out: leads.then_some(data),
                root,
            }),
            Kind::Allreduce => Any::Allreduce(Allreduce {
                operator: operator(),
                input: None,
                data,
            }),
            Kind::Scan => Any::Scan(Scan {
                operator: operator(),
                data,
            }),
            Kind::Exscan => Any::Exscan(Exscan {
                operator: operator(),
                data,
            }),
            Kind::ReduceScatter | Kind::ReduceScatterInPlace => Any::ReduceScatter(ReduceScatter {
                operator: operator(),
                input: (self.kind == Kind::ReduceScatter).then_some(input),
                lengths,
                out: data,
            }),
            Kind::Allgather(form) => Any::Allgather(Allgather {
                own: form.has_two().then_some(input),
                parts: form.parts(lengths),
                out: data,
            }),
            Kind::Gather(form) => {
                let (own, out) = match (form.has_two(), leads) {
                    (true, _) => (Some(input), leads.then_some(data)),
                    (false, true) => (None, Some(data)),
                    (false, false) => (Some(&*data), None),
                };
                Any::Gather(Gather {
                    own,
                    parts: form.parts(lengths),
                    out,
                    root,
                })
            }
            Kind::Scatter(form) => {
                let (input, own) = match (form.has_two(), leads) {
                    (true, _) => (leads.then_some(input), Some(data)),
                    (false, true) => (Some(&*data), None),
                    (false, false) => (None, Some(data)),
                };
                Any::Scatter(Scatter {
                    input,
                    parts: form.parts(lengths),
                    own,
                    root,
                })
            }
            Kind::Alltoall(Apart) => Any::Alltoall(Alltoall {
                input: Some(Blocks::Apart(cut(input, &self.lengths))),
                out: Blocks::Apart(cut_mut(data, &self.from)),
            }),
            Kind::Alltoall(form) => {
                let (to, two) = (form.parts(lengths), form.has_two());
                let from = if two { form.parts(from) } else { to.clone() };
                Any::Alltoall(Alltoall {
                    input: two.then_some(Blocks::Together(input, to)),
                    out: Blocks::Together(data, from),
                })
            }
        }
    }

    /// Returns whether the result is there.
    pub fn is_right(&self) -> bool {
        self.out == self.expected
    }

    /// Looks at the result.
    pub fn check(&self) {
        assert_eq!(self.out, self.expected, "{:?}", self.kind);
    }

    /// Fills the buffers as they were at first. Between two rounds.
    pub fn reset(&mut self) {
        self.out.copy_from_slice(&self.before);
    }
}

impl Form {
    /// Whether what is given has a buffer of its own.
    fn has_two(self) -> bool {
        !matches!(self, InPlace | VaryingInPlace)
    }

    fn parts(self, lengths: Cow<'_, [usize]>) -> Parts<'_> {
        match self {
            Varying | VaryingInPlace => Parts::Of(lengths),
            _ => Parts::Equal,
        }
    }
}

impl Maker for Case {
    type Operation<'a> = Any<'a>;

    fn operation(&mut self) -> Any<'_> {
        self.make()
    }
}

/// All operations once, with what the draws of `round` say.
pub fn cases(team: &Team, round: u64) -> Vec<Case> {
    let (me, size) = (team.me(), team.size());
    let mut draws = Draws::of(round);
    let root = draws.below(size);
    let (operation, layout) = reduction(round);
    let unit = layout.extent();
    let leads = me == root;
    let case = |kind, input: Vec<u8>, before: Vec<u8>, expected: Vec<u8>| Case {
        kind,
        operation: operation.clone(),
        layout: layout.clone(),
        root,
        leads,
        input,
        out: before.clone(),
        before,
        expected,
        lengths: Vec::new(),
        from: Vec::new(),
    };
    let none = Vec::new;
    let if_leads = |bytes: &Vec<u8>| if leads { bytes.clone() } else { Vec::new() };
    let mut list = Vec::new();

    let given = data(root, round, draws.count());
    let zeros = vec![0; given.len()];
    let whole = if leads { given.clone() } else { zeros };
    list.push(case(Kind::Broadcast, none(), whole, given));

    let bytes = draws.count() * unit;
    let own = data(me, round, bytes);
    let all = combined(0..size, round, bytes);
    let room = if leads { vec![0; bytes] } else { none() };
    list.push(case(Kind::Reduce, own.clone(), room, if_leads(&all)));
    list.push(case(
        Kind::ReduceInPlace,
        own.clone(),
        if_leads(&own),
        if_leads(&all),
    ));
    list.push(case(Kind::Allreduce, none(), own.clone(), all));
    let upto = combined(0..me + 1, round, bytes);
    list.push(case(Kind::Scan, none(), own.clone(), upto));
    let before = match me {
        0 => own.clone(),
        _ => combined(0..me, round, bytes),
    };
    list.push(case(Kind::Exscan, none(), own, before));

    let mut lengths: Vec<_> = (0..size).map(|_| draws.below(40)).collect();
    lengths[draws.below(size)] = 0;
    if round.is_multiple_of(4) {
        // More than a few pieces beside none.
        lengths[draws.below(size)] = 5000;
    }
    let lengths: Vec<_> = lengths.iter().map(|n| n * unit).collect();
    let with_lengths = |mut case: Case| {
        case.lengths.clone_from(&lengths);
        case
    };
    let total = lengths.iter().sum();
    let start: usize = lengths[..me].iter().sum();
    let input = data(me, round, total);
    let part = combined(0..size, round, total)[start..start + lengths[me]].to_vec();
    // What lies behind the result stays.
    let result = [&part[..], &input[part.len()..]].concat();
    let within = case(Kind::ReduceScatterInPlace, none(), input.clone(), result);
    list.push(with_lengths(within));
    let room = vec![0; lengths[me]];
    list.push(with_lengths(case(Kind::ReduceScatter, input, room, part)));

    let bytes = draws.count();
    let own = data(me, round, bytes);
    let all = joined((0..size).map(|rank| data(rank, round, bytes)));
    let room = vec![0; all.len()];
    list.push(case(
        Kind::Allgather(Equal),
        own.clone(),
        room.clone(),
        all.clone(),
    ));
    list.push(case(
        Kind::Gather(Equal),
        own.clone(),
        if_leads(&room),
        if_leads(&all),
    ));
    list.push(case(
        Kind::Scatter(Equal),
        if_leads(&all),
        vec![0; bytes],
        own,
    ));

    let own = data(me, round, lengths[me]);
    let all = joined((0..size).map(|rank| data(rank, round, lengths[rank])));
    let room = vec![0; all.len()];
    list.push(with_lengths(case(
        Kind::Allgather(Varying),
        own.clone(),
        room.clone(),
        all.clone(),
    )));
    list.push(with_lengths(case(
        Kind::Gather(Varying),
        own.clone(),
        if_leads(&room),
        if_leads(&all),
    )));
    let room = vec![0; own.len()];
    list.push(with_lengths(case(
        Kind::Scatter(Varying),
        if_leads(&all),
        room,
        own,
    )));

    let block = draws.below(300);
    let input = data(me, round, block * size);
    let from = |rank| data(rank, round, block * size)[me * block..(me + 1) * block].to_vec();
    let all = joined((0..size).map(from));
    list.push(case(
        Kind::Alltoall(Equal),
        input,
        vec![0; block * size],
        all,
    ));

    // From rank a to rank b go (a + 2 b) mod 7 times 9 bytes; or none, few or more than a piece, by turns.
    let mixed = [0, 8, 70_000, 8160, 16_320, 0, 1];
    let length = |a: usize, b: usize| match round % 3 {
        0 => mixed[(a + 3 * b) % 7],
        _ => (a + 2 * b) % 7 * 9,
    };
    let to: Vec<_> = (0..size).map(|peer| length(me, peer)).collect();
    let from: Vec<_> = (0..size).map(|peer| length(peer, me)).collect();
    let input = data(me, round, to.iter().sum());
    let all = joined((0..size).map(|peer| {
        let lengths: Vec<_> = (0..size).map(|other| length(peer, other)).collect();
        let start: usize = lengths[..me].iter().sum();
        data(peer, round, lengths.iter().sum())[start..start + lengths[me]].to_vec()
    }));
    for kind in [Kind::Alltoall(Varying), Kind::Alltoall(Apart)] {
        let room = vec![0; all.len()];
        let mut varying = case(kind, input.clone(), room, all.clone());
        (varying.lengths, varying.from) = (to.clone(), from.clone());
        list.push(varying);
    }

    list.push(case(Kind::Barrier, none(), none(), none()));
    list.extend(in_place(team, round, &case, draws));
    list
}

/// Those of one buffer, whose `case` has its data in the room.
fn in_place(
    team: &Team,
    round: u64,
    case: &impl Fn(Kind, Vec<u8>, Vec<u8>, Vec<u8>) -> Case,
    mut draws: Draws,
) -> Vec<Case> {
    let (me, size) = (team.me(), team.size());
    let mut list = Vec::new();
    let equal = vec![draws.count(); size];
    // More than a piece beside few and none.
    let varying: Vec<_> = (0..size).map(|_| [0, 3, 9000][draws.below(3)]).collect();
    for (lengths, kinds) in [
        (
            equal,
            [
                Kind::Allgather(InPlace),
                Kind::Gather(InPlace),
                Kind::Scatter(InPlace),
            ],
        ),
        (
            varying,
            [
                Kind::Allgather(VaryingInPlace),
                Kind::Gather(VaryingInPlace),
                Kind::Scatter(VaryingInPlace),
            ],
        ),
    ] {
        let all = joined((0..size).map(|rank| data(rank, round, lengths[rank])));
        let own = data(me, round, lengths[me]);
        let start: usize = lengths[..me].iter().sum();
        let mut room = vec![0; all.len()];
        room[start..start + own.len()].copy_from_slice(&own);
        for kind in kinds {
            let (before, expected) = match kind {
                Kind::Allgather(_) => (room.clone(), all.clone()),
                _ => (own.clone(), own.clone()),
            };
            let mut one = case(kind, Vec::new(), before, expected);
            match kind {
                Kind::Gather(_) if one.leads => {
                    (one.before, one.expected) = (room.clone(), all.clone());
                }
                Kind::Scatter(_) if one.leads => {
                    (one.before, one.expected) = (all.clone(), all.clone());
                }
                Kind::Scatter(_) => one.before.fill(0),
                _ => {}
            }
            one.out.clone_from(&one.before);
            one.lengths.clone_from(&lengths);
            list.push(one);
        }
    }
    // Two members give each other as much.
    let length = |a: usize, b: usize| (a + b) % 4 * 3000;
    for (kind, length) in [
        (
            Kind::Alltoall(InPlace),
            &(|_, _| 700usize) as &dyn Fn(usize, usize) -> usize,
        ),
        (Kind::Alltoall(VaryingInPlace), &length),
    ] {
        let of = |rank: usize| -> Vec<usize> { (0..size).map(|to| length(rank, to)).collect() };
        let given = |rank: usize| data(rank, round, of(rank).iter().sum());
        let block = |from: usize| {
            let start: usize = of(from)[..me].iter().sum();
            given(from)[start..start + length(from, me)].to_vec()
        };
        let all = joined((0..size).map(block));
        let mut one = case(kind, Vec::new(), given(me), all);
        one.lengths = of(me);
        list.push(one);
    }
    list
}
