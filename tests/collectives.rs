//! Collectives as values: each does the same whether it is run, started in a scope, or made persistent.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire::testing::job;
use tagwire::{
    Allgather, Allreduce, Alltoall, Barrier, Blocks, Broadcast, Exscan, Gather, OwnedBlocks,
    Reduce, ReduceScatter, Scan, Scatter, Sum,
};

/// Does a value on these buffers in each way, the last of which has its outcome in `$place`, and compares it.
macro_rules! alike {
    ($session:ident, $group:expr, $place:ident is $expected:expr, ($($name:ident = $buffer:expr),*) => $value:expr) => {{
        let (group, expected): (_, Vec<u32>) = (&$group, $expected.into());
        let buffers = ($(Vec::<u32>::from($buffer),)*);
        let ($(mut $name,)*) = buffers.clone();
        {
            $(let $name = &mut $name;)*
            group.run($value).unwrap();
        }
        assert_eq!([$(&$name),*].last().unwrap()[..], expected, "run {}", stringify!($value));
        let ($(mut $name,)*) = buffers.clone();
        {
            $(let $name = &mut $name;)*
            $session.try_scope(|scope| scope.start(group, $value).map(drop)).unwrap();
        }
        assert_eq!([$(&$name),*].last().unwrap()[..], expected, "start {}", stringify!($value));
        let ($($name,)*) = buffers;
        let mut persistent = group.init($value).unwrap();
        persistent.start().unwrap();
        persistent.wait().unwrap();
        assert_eq!(persistent.$place().unwrap(), expected, "init {}", stringify!($value));
    }};
}

/// Rank 0 of three gives and gets one element where lengths vary, rank 1 two, and rank 2 three.
#[test]
fn a_value_does_the_same_in_each_way() {
    job(3, |session| {
        let (world, me) = (session.world(), session.rank());
        let (counts, mine) = ([1, 2, 3], me as usize + 1);
        // What each rank has of each other one, and what is as long as its number says.
        let row = |from: u32| [10 * from, 10 * from + 1, 10 * from + 2];
        let column = [me, 10 + me, 20 + me];
        let parts = [0, 1, 1, 2, 2, 2];
        let at = |root: u32, there: &[u32], elsewhere: &[u32]| match me == root {
            true => there.to_vec(),
            false => elsewhere.to_vec(),
        };

        alike!(session, world, data is [7; 2], (data = at(1, &[7; 2], &[0; 2])) => Broadcast::new(data, 1));
        alike!(session, world, data is [3, 33], (data = [me, 10 + me]) => Allreduce::in_place(data, Sum));
        alike!(session, world, result is [3, 33], (own = [me, 10 + me], sum = [0; 2]) => Allreduce::new(own, sum, Sum));
        alike!(session, world, data is at(2, &[3], &[me]), (data = [me]) => Reduce::in_place(data, Sum, 2));
        alike!(session, world, data is [[0, 1, 3][me as usize]], (data = [me]) => Scan::in_place(data, Sum));
        alike!(session, world, data is [[0, 0, 1][me as usize]], (data = [me]) => Exscan::in_place(data, Sum));
        alike!(session, world, result is [30 + 3 * me], (all = row(me), own = [0]) => ReduceScatter::new(all, own, Sum));

        alike!(session, world, result is at(1, &[0, 1, 2], &[9; 3]),
            (own = [me], all = [9; 3]) => Gather::new(own, all, 1));
        alike!(session, world, result is at(1, &parts, &[9; 6]),
            (own = vec![me; mine], all = [9; 6]) => Gather::new(own, all, 1).varying(&counts));
        alike!(session, world, data is at(1, &[0, 1, 2], &[me]),
            (data = at(1, &[9, 1, 9], &[me])) => Gather::in_place(data, 1));
        alike!(session, world, data is at(1, &parts, &vec![me; mine]),
            (data = at(1, &[9, 1, 1, 9, 9, 9], &vec![me; mine])) => Gather::in_place(data, 1).varying(&counts));

        alike!(session, world, result is [0, 1, 2], (own = [me], all = [9; 3]) => Allgather::new(own, all));
        alike!(session, world, result is parts,
            (own = vec![me; mine], all = [9; 6]) => Allgather::new(own, all).varying(&counts));
        alike!(session, world, data is [0, 1, 2], (data = [me; 3]) => Allgather::in_place(data));
        alike!(session, world, data is parts, (data = [me; 6]) => Allgather::in_place(data).varying(&counts));

        alike!(session, world, result is [me], (all = [0, 1, 2], own = [9]) => Scatter::new(all, own, 2));
        alike!(session, world, result is vec![me; mine],
            (all = parts, own = vec![9; mine]) => Scatter::new(all, own, 2).varying(&counts));
        alike!(session, world, data is at(2, &[0, 1, 2], &[me]),
            (data = at(2, &[0, 1, 2], &[9])) => Scatter::in_place(data, 2));
        alike!(session, world, data is at(2, &parts, &vec![me; mine]),
            (data = at(2, &parts, &vec![9; mine])) => Scatter::in_place(data, 2).varying(&counts));

        alike!(session, world, result is column, (data = row(me), from = [9; 3]) => Alltoall::new(data, from));
        let all: Vec<_> = (0..3).flat_map(|to| vec![row(me)[to]; to + 1]).collect();
        let from_all = column.map(|it| vec![it; mine]).concat();
        alike!(session, world, result is from_all,
            (data = all.clone(), from = vec![9; 3 * mine]) => Alltoall::varying(data, &counts, from, &[mine; 3]));
        alike!(session, world, data is column, (data = row(me)) => Alltoall::in_place(data));
        let (even, each) = ([2; 3], |row: [u32; 3]| row.map(|it| [it; 2]).concat());
        alike!(session, world, data is each(column), (data = each(row(me))) => Alltoall::in_place(data).varying(&even));

        let (last, next) = ((me + 2) % 3, (me + 1) % 3);
        let ring = world.neighbours(&[last, next], &[next, last]).unwrap();
        alike!(session, ring, result is [last, next], (own = [me], from = [9; 2]) => Allgather::new(own, from));
        let lengths = [last as usize + 1, next as usize + 1];
        let from_both = [vec![last; lengths[0]], vec![next; lengths[1]]].concat();
        alike!(session, ring, result is from_both,
            (own = vec![me; mine], from = vec![9; lengths[0] + lengths[1]]) => Allgather::new(own, from).varying(&lengths));
        alike!(session, ring, result is [10 * last, 10 * next + 1],
            (data = [10 * me, 10 * me + 1], from = [9; 2]) => Alltoall::new(data, from));
        alike!(session, ring, result is [last, next, next],
            (data = [me; 3], from = [9; 3]) => Alltoall::varying(data, &[1, 2], from, &[1, 2]));
    });
}

/// Those that have no buffers of one type.
#[test]
fn barriers_and_blocks_are_values_too() {
    job(3, |session| {
        let (world, me) = (session.world(), session.rank());
        let (last, next) = ((me + 2) % 3, (me + 1) % 3);
        world.run(Barrier::new()).unwrap();
        let mut barrier = world.init(Barrier::new()).unwrap();
        barrier.start().unwrap();
        barrier.wait().unwrap();

        // Bytes one way around, floats the other.
        let ring = world.neighbours(&[last, next], &[next, last]).unwrap();
        let (bytes, floats) = ([me as u8; 3], [f64::from(me)]);
        let (mut from_last, mut from_next) = ([9u8; 3], [9.0]);
        let blocks = || Blocks::new().send(&bytes).send(&floats);
        let came = blocks().recv(&mut from_last).recv(&mut from_next);
        let started =
            session.try_scope(|scope| scope.start(&ring, Alltoall::blocks(came)).map(drop));
        started.unwrap();
        assert_eq!((from_last, from_next), ([last as u8; 3], [f64::from(next)]));

        let blocks = OwnedBlocks::new().send(vec![0u8; 3]).send(floats.to_vec());
        let blocks = blocks.recv(vec![9u8; 3]).recv(vec![9.0]);
        let mut exchange = ring.init(Alltoall::blocks(blocks)).unwrap();
        assert!(exchange.sent_mut::<f64>(0).is_err());
        for round in 0..3 {
            exchange.sent_mut::<u8>(0).unwrap().fill(me as u8 + round);
            exchange.start().unwrap();
            assert!(exchange.received::<u8>(0).is_err());
            exchange.wait().unwrap();
            assert_eq!(exchange.received::<u8>(0).unwrap(), [last as u8 + round; 3]);
            assert_eq!(exchange.received::<f64>(1).unwrap(), [f64::from(next)]);
        }
    });
}
