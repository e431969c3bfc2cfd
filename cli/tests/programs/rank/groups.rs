//! Collectives, and groups whose ranks and ids differ from the job's.

use tagwire::{
    ANY_SOURCE, ANY_TAG, Allgather, Allreduce, Alltoall, Barrier, Blocks, Broadcast, Combine,
    Context, Exscan, Gather, Max, Reduce, ReduceScatter, Scan, Scatter, Session, Sum,
};

use crate::flood::figure_kib;
use crate::{Outcome, say};

/// All collectives, whose results are known.
pub fn run() -> Outcome {
    let session = Session::open()?;
    let world = session.world();
    let me = session.rank();
    everything(world)?;
    at_once(world)?;
    again(world)?;
    neighbours(world)?;
    // Ids of ranks differ from here on.
    let alone = world.split(Some(me), 0)?.ok_or("no group")?;
    let more: Vec<_> = (0..me)
        .map(|_| alone.duplicate())
        .collect::<Result<_, _>>()?;
    let turned = world.split(Some(7), -(me as i32))?.ok_or("no group")?;
    assert_eq!(turned.rank()?, session.size() - 1 - me);
    everything(turned)?;
    at_once(turned)?;
    again(turned)?;
    neighbours(turned)?;
    points(turned)?;
    freed_meanwhile(turned)?;
    let halves = world.split((me > 0).then_some(me % 2), 0)?;
    assert_eq!(halves.is_some(), me > 0);
    if let Some(half) = halves {
        everything(half)?;
        points(half)?;
        half.free()?;
        assert!(half.barrier().is_err(), "it was freed");
    }
    if me < 2 && session.size() > 2 {
        let pair = world.subset(&[1, 0])?;
        everything(pair)?;
        assert_eq!(pair.rank()?, 1 - me);
    }
    more.into_iter().try_for_each(Context::free)?;
    everything(world.duplicate()?)?;
    session.close()?;
    say(me, "did everything");
    Ok(())
}

/// What is received after its context was freed has the numbers of its group.
fn freed_meanwhile(group: Context<'_>) -> Outcome {
    let short = group.duplicate()?;
    let (me, size) = (short.rank()?, short.size()?);
    let (from, to) = ((me + size - 1) % size, (me + 1) % size);
    let coming = short.irecv_owned(vec![0_u32], ANY_SOURCE, 3)?;
    short.send(&[me], to, 3)?;
    short.free()?;
    let (status, data) = coming.wait()?;
    assert_eq!((status.source(), &data[..]), (from, &[from][..]));
    Ok(())
}

/// Tells the bits of sums that depend on how they are made.
pub fn sums() -> Outcome {
    let session = Session::open()?;
    let (world, me) = (session.world(), session.rank());
    let mut bits = 0_u64;
    for len in [1, 300, 50_000] {
        let number = |place: u32| f64::from(me * 7 + place % 11 + 1).powi(5 - 3 * (me % 4) as i32);
        let numbers: Vec<f64> = (0..len).map(|place| number(place) / 3.0).collect();
        let mut all = numbers.clone();
        world.allreduce(&mut all, Sum)?;
        let mut at_root = numbers;
        world.reduce(&mut at_root, Sum, session.size() - 1)?;
        assert!(me + 1 < session.size() || at_root == all, "one tree");
        for sum in all {
            bits = bits.rotate_left(1) ^ sum.to_bits();
        }
    }
    session.close()?;
    say(me, format!("sums {bits:016x}"));
    Ok(())
}

fn everything(context: Context<'_>) -> Outcome {
    let (me, size) = (context.rank()?, context.size()?);
    let n = size as usize;
    for len in [1, 300, 50_000] {
        context.barrier()?;
        for root in [0, size - 1] {
            let mut data = vec![if me == root { root + 5 } else { 0 }; len];
            context.broadcast(&mut data, root)?;
            assert!(data.iter().all(|it| *it == root + 5));
            let mut sum = vec![u64::from(me); len];
            context.reduce(&mut sum, Sum, root)?;
            let all = u64::from(size * (size - 1) / 2);
            let expected = if me == root { all } else { u64::from(me) };
            assert!(sum.iter().all(|it| *it == expected));
            let mut gathered = vec![0; if me == root { n * len } else { 0 }];
            context.gather(&vec![me; len], &mut gathered, root)?;
            assert!(
                gathered
                    .chunks(len)
                    .zip(0..)
                    .all(|(part, rank)| part == vec![rank; len])
            );
            let mut part = vec![0; len];
            context.scatter(&gathered, &mut part, root)?;
            assert_eq!(part, vec![me; len]);
        }
        let mut most = vec![f64::from(me); len];
        context.allreduce(&mut most, Max)?;
        assert!(most.iter().all(|it| *it == f64::from(size - 1)));
        let mut all = vec![0; n * len];
        context.allgather(&vec![me; len], &mut all)?;
        assert!(
            all.chunks(len)
                .zip(0..)
                .all(|(part, rank)| part == vec![rank; len])
        );
        let blocks: Vec<_> = (0..size).flat_map(|to| vec![me * 100 + to; len]).collect();
        context.alltoall(&blocks, &mut all)?;
        assert!(
            all.chunks(len)
                .zip(0..)
                .all(|(part, from)| part == vec![from * 100 + me; len])
        );
        let mut own = vec![0; len];
        context.reduce_scatter(&blocks, &mut own, Sum)?;
        let expected = (0..size).map(|from| from * 100 + me).sum();
        assert!(own.iter().all(|it: &u32| *it == expected));
        let mut upto = vec![u64::from(me); len];
        context.scan(&mut upto, Sum)?;
        assert_eq!(upto[len - 1], u64::from(me * (me + 1) / 2));
    }
    // The lower rank's operand comes first: the result is the number of the last.
    let last = Combine::ordered(|_: u32, higher: u32| higher);
    let mut number = [me];
    context.allreduce(&mut number, &last)?;
    assert_eq!(number, [size - 1]);
    let counts: Vec<_> = (0..n).collect();
    let mut all = vec![0u16; counts.iter().sum()];
    context.allgather_varying(&vec![me as u16; n.min(me as usize)], &mut all, &counts)?;
    assert_eq!(
        all.iter().map(|it| u32::from(*it)).max().unwrap_or(0),
        size - 1
    );
    Ok(())
}

/// Nonblocking collectives, several at once and with messages between them.
fn at_once(context: Context<'_>) -> Outcome {
    let (me, size) = (context.rank()?, context.size()?);
    let (n, session) = (size as usize, context.session());
    let (next, last) = ((me + 1) % size, (me + size - 1) % size);
    for len in [1, 300, 50_000] {
        let own = vec![me; len];
        let blocks: Vec<_> = (0..size).flat_map(|to| vec![me * 100 + to; len]).collect();
        let counts = vec![len; n];
        let zeros = || vec![0u32; n * len];
        let (mut data, mut most) = (own.clone(), vec![f64::from(me); len]);
        let (mut sum, mut upto, mut before) = (own.clone(), own.clone(), own.clone());
        let (mut all, mut varying, mut gathered, mut turned) = (zeros(), zeros(), zeros(), zeros());
        let (mut part, mut reduced, mut came) = (own.clone(), own.clone(), vec![u32::MAX; len]);
        session.try_scope(|scope| {
            let mut open = vec![
                scope.start(&context, Broadcast::new(&mut data, size - 1))?,
                context.irecv(scope, &mut came, last, 8)?,
                scope.start(&context, Allreduce::in_place(&mut most, Max))?,
                scope.start(&context, Reduce::in_place(&mut sum, Sum, 0))?,
                scope.start(&context, Scan::in_place(&mut upto, Sum))?,
                scope.start(&context, Exscan::in_place(&mut before, Sum))?,
                scope.start(&context, Barrier::new())?,
                scope.start(&context, Allgather::new(&own, &mut all))?,
                scope.start(
                    &context,
                    Allgather::new(&own, &mut varying).varying(&counts),
                )?,
                scope.start(&context, Gather::new(&own, &mut gathered, 0))?,
                scope.start(&context, Alltoall::new(&blocks, &mut turned))?,
                scope.start(&context, Scatter::new(&blocks, &mut part, 0))?,
                scope.start(&context, ReduceScatter::new(&blocks, &mut reduced, Sum))?,
                context.isend(scope, &own, next, 8)?,
            ];
            // By ones, by some, and the rest by the scope.
            scope.wait_any(&mut open)?.ok_or("none was open").unwrap();
            let one = open.swap_remove(me as usize % open.len());
            one.wait()?;
            for (_, end) in scope.wait_some(&mut open)? {
                end?;
            }
            let half = open.split_off(open.len() / 2);
            scope.wait_all(half)?;
            Ok(())
        })?;
        assert_eq!((data[len - 1], came[0]), (size - 1, last));
        assert_eq!(most[0], f64::from(size - 1));
        assert_eq!(sum[0], if me == 0 { size * (size - 1) / 2 } else { me });
        assert_eq!(upto[len - 1], me * (me + 1) / 2);
        assert_eq!(before[len - 1], if me > 0 { me * (me - 1) / 2 } else { 0 });
        let ranks: Vec<_> = (0..size).flat_map(|rank| vec![rank; len]).collect();
        assert!(all == ranks && varying == ranks);
        assert!(me > 0 || gathered == ranks);
        let from_all = (0..size).flat_map(|from| vec![from * 100 + me; len]);
        assert!(turned.into_iter().eq(from_all));
        assert_eq!((part[0], part[len - 1]), (me, me));
        assert_eq!(reduced[0], (0..size).map(|from| from * 100 + me).sum());
    }
    Ok(())
}

/// Persistent collectives, started in another order on each rank.
fn again(context: Context<'_>) -> Outcome {
    let (me, size) = (context.rank()?, context.size()?);
    let n = size as usize;
    for len in [1, 50_000] {
        let mut barrier = context.init(Barrier::new())?;
        let mut sum = context.init(Allreduce::in_place(vec![0u64; len], Sum))?;
        let mut all = context.init(Allgather::new(vec![0u64; len], vec![0; n * len]))?;
        for round in 0..10 {
            sum.data_mut()?.fill(u64::from(me) + round);
            all.data_mut()?.fill(u64::from(me) * round);
            if (u64::from(me) + round).is_multiple_of(2) {
                sum.start()?;
                all.start()?;
                barrier.start()?;
            } else {
                barrier.start()?;
                all.start()?;
                sum.start()?;
            }
            assert!(all.start().is_err() && all.data().is_err() && all.result().is_err());
            context.barrier()?;
            while !all.test()? {}
            sum.wait()?;
            barrier.wait()?;
            let expected = (0..u64::from(size)).map(|rank| rank + round).sum();
            assert!(sum.data()?.iter().all(|value| *value == expected));
            let parts = all.result()?.chunks(len).zip(0..);
            assert!(
                parts
                    .into_iter()
                    .all(|(part, rank)| part[0] == rank * round)
            );
        }
        // Dropped under way.
        sum.start()?;
        drop(sum);
        assert_eq!(all.into_data()?.1.len(), n * len);
        context.barrier()?;
    }
    Ok(())
}

/// Exchanges with some ranks, in a ring of which each edge is there twice, and in a grid.
fn neighbours(context: Context<'_>) -> Outcome {
    let (me, size) = (context.rank()?, context.size()?);
    let (next, last) = ((me + 1) % size, (me + size - 1) % size);
    let session = context.session();
    let ring = context.neighbours(&[last, last], &[next, next])?;
    let grid = context.cartesian(&[1, size], &[false, true])?;
    assert_eq!(grid.shift(1, 1)?, (Some(last), Some(next)));
    assert_eq!(grid.coords(me), Some(vec![0, me]));
    assert!(context.neighbours(&[size], &[]).is_err());
    let error = context.cartesian(&[size, 2], &[true; 2]).unwrap_err();
    assert!(error.to_string().contains("grid of"), "{error}");
    for len in [1, 50_000] {
        let count = |from: u32| len + from as usize;
        let twice = |first: u32, second: u32| [vec![first; len], vec![second; len]].concat();
        let (mut out, mut halo) = (twice(9, 9), vec![9; 4 * len]);
        ring.alltoall(&twice(me, 100 + me), &mut out)?;
        assert!(out == twice(last, 100 + last));
        ring.allgather(&vec![me; len], &mut out)?;
        assert!(out == twice(last, last));
        // What is sent to the left comes from the right.
        let directions = [twice(7, 7), twice(me, 100 + me)].concat();
        grid.neighbourhood().alltoall(&directions, &mut halo)?;
        assert!(halo == [twice(9, 9), twice(100 + last, next)].concat());
        let given = vec![me; 3 * count(me)];
        let (mut varying, mut gathered) = (vec![9; 3 * count(last)], vec![9; 2 * count(last)]);
        let (to, from) = ([count(me), 2 * count(me)], [count(last), 2 * count(last)]);
        let (bytes, floats) = ([me as u8; 3], vec![f64::from(me); len]);
        let (mut from_last, mut room) = ([9u8; 3], vec![9.0; len]);
        session.try_scope(|scope| {
            let blocks = Blocks::new().send(&bytes).send(&floats);
            let blocks = blocks.recv(&mut from_last).recv(&mut room);
            let open = [
                scope.start(&ring, Alltoall::blocks(blocks))?,
                scope.start(&ring, Alltoall::varying(&given, &to, &mut varying, &from))?,
                scope.start(
                    &ring,
                    Allgather::new(&given[..count(me)], &mut gathered).varying(&[count(last); 2]),
                )?,
            ];
            scope.wait_all(open)?;
            Ok(())
        })?;
        assert!(varying.iter().chain(&gathered).all(|it| *it == last));
        assert_eq!(
            (from_last, room[len - 1]),
            ([last as u8; 3], f64::from(last))
        );
        let mut again = grid
            .neighbourhood()
            .init(Alltoall::new(vec![0; 4 * len], vec![9; 4 * len]))?;
        for round in 0..3 {
            again.data_mut()?[2 * len..3 * len].fill(me + round);
            again.start()?;
            again.wait()?;
            let from_right = &again.result()?[3 * len..];
            assert!(from_right == vec![next + round; len]);
        }
    }
    let all: Vec<_> = (0..size).map(|to| vec![me; to as usize]).collect();
    let mut rooms = vec![vec![9; me as usize]; size as usize];
    let blocks = all
        .iter()
        .fold(Blocks::new(), |blocks, data| blocks.send(data));
    let rooms_lent = rooms.iter_mut();
    context.alltoall_blocks(rooms_lent.fold(blocks, |blocks, room| blocks.recv(room)))?;
    assert!(
        rooms
            .iter()
            .zip(0..)
            .all(|(room, from)| *room == vec![from; me as usize])
    );
    Ok(())
}

/// Messages in a group name ranks of the group.
fn points(context: Context<'_>) -> Outcome {
    let (me, size) = (context.rank()?, context.size()?);
    let (next, last) = ((me + 1) % size, (me + size - 1) % size);
    let mut from = [u32::MAX];
    let status = context.sendrecv((&[me], next, 3), (&mut from, last, 3))?;
    assert_eq!((from[0], status.source()), (last, last));
    let send = context.isend_owned(vec![me; 7 + me as usize], next, 4)?;
    let (data, status) = context.recv_vec::<u32>(ANY_SOURCE, ANY_TAG)?;
    assert_eq!(
        (data, status.source()),
        (vec![last; 7 + last as usize], last)
    );
    send.wait()?;
    let mut receive = context.precv_init(vec![0u8; 6], 3, last, 5)?;
    let mut send = context.psend_init(vec![9u8; 6], 2, next, 5)?;
    receive.start()?;
    let round = send.start()?;
    round.ready(1)?;
    round.ready(0)?;
    round.wait()?;
    receive.wait()?;
    assert_eq!(receive.data()?, [9; 6]);
    context.barrier()?;
    Ok(())
}

/// Many ranks, operations and contexts: `groups-many CONTEXTS`. Memory does not grow with contexts that were freed.
pub fn many(arguments: &[String]) -> Outcome {
    let contexts: u32 = arguments.first().ok_or("how many contexts?")?.parse()?;
    let session = Session::open()?;
    let world = session.world();
    let (me, size) = (session.rank(), session.size());
    let blocks = vec![me; 256 * size as usize];
    let mut from_all = blocks.clone();
    for _ in 0..100 {
        let mut sum = [1u64; 128];
        world.allreduce(&mut sum, Sum)?;
        assert_eq!(sum, [u64::from(size); 128]);
        world.alltoall(&blocks, &mut from_all)?;
        assert!(
            from_all
                .chunks(256)
                .zip(0..)
                .all(|(part, from)| part == [from; 256])
        );
    }
    let make = |count| {
        (0..count).try_for_each(|_| {
            let context = world.duplicate()?;
            context.free()
        })
    };
    // The first ones bring tables to their size.
    make(100)?;
    let before = figure_kib("/proc/self", "VmRSS:")?;
    make(contexts)?;
    let after = figure_kib("/proc/self", "VmRSS:")?;
    world.barrier()?;
    session.close()?;
    say(me, format!("resident {before} KiB before, {after} after"));
    Ok(())
}
