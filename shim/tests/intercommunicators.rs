//! Intercommunicators: how they are made, messages between their groups, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(unsafe_code)]

mod common;

use common::sides::{SIZES, Sides, ask, each, wait};
use common::{
    INT, Ints, SUM, WORLD, code, data, ignore, in_place, list, nowhere, number, ranks, result,
    room, status, text,
};
use tagwire_shim::abi::{
    ANY_SOURCE, Comm, Errhandler, Group, Info, PROC_NULL, ROOT, Request, Status,
};
use tagwire_shim::call::intercommunicators as inter;
use tagwire_shim::call::{
    collectives as coll, communicators, complete, groups, keyvals, p2p, partitioned, probes,
    topologies,
};
use tagwire_shim::error::{Class, On};

#[test]
fn both_groups_are_known() {
    each(|process, sides| {
        let comm = sides.comm;
        assert_eq!(ask(|value| inter::comm_test_inter(process, comm, value)), 1);
        assert_eq!(
            ask(|value| inter::comm_test_inter(process, WORLD, value)),
            0
        );
        assert_eq!(
            ask(|value| communicators::comm_rank(process, comm, value)),
            sides.me
        );
        assert_eq!(
            ask(|value| communicators::comm_size(process, comm, value)),
            sides.size
        );
        assert_eq!(
            ask(|value| inter::comm_remote_size(process, comm, value)),
            sides.remote
        );
        let (mut local, mut remote, mut of_local) = (Group::NULL, Group::NULL, Group::NULL);
        groups::comm_group(process, comm, result(&mut local)).unwrap();
        groups::comm_group(process, sides.local, result(&mut of_local)).unwrap();
        inter::comm_remote_group(process, comm, result(&mut remote)).unwrap();
        let same = ask(|value| groups::group_compare(process, local, of_local, value));
        assert_eq!(same, 201);
        let same = ask(|value| groups::group_compare(process, local, remote, value));
        assert_eq!(same, 204);
        assert_eq!(
            ask(|value| groups::group_size(process, remote, value)),
            sides.remote
        );
        // Unlike those of one group.
        let compared =
            |other| ask(|value| communicators::comm_compare(process, comm, other, value));
        let mut copy = Comm::NULL;
        communicators::comm_dup(process, comm, result(&mut copy)).unwrap();
        assert_eq!(
            [compared(comm), compared(copy), compared(sides.local)],
            [201, 202, 204]
        );
        communicators::comm_free(process, result(&mut copy)).unwrap();
        // In the reverse order in both groups.
        communicators::comm_split(process, comm, 3, -sides.me, result(&mut copy)).unwrap();
        let expected = if sides.size + sides.remote > 2 {
            203
        } else {
            202
        };
        assert_eq!(compared(copy), expected);
        assert_eq!(
            ask(|value| communicators::comm_rank(process, copy, value)),
            sides.size - 1 - sides.me
        );
        communicators::comm_disconnect(process, result(&mut copy)).unwrap();
        for group in [&mut local, &mut remote, &mut of_local] {
            groups::group_free(process, result(group)).unwrap();
        }
    });
}

#[test]
fn messages_go_to_the_other_group() {
    each(|process, sides| {
        let comm = sides.comm;
        // Each sends to all of the other group; sources are numbers there.
        let own = [sides.world];
        let mut open: Vec<Request> = (0..sides.remote).map(|_| Request::NULL).collect();
        for (to, request) in open.iter_mut().enumerate() {
            let (data, new) = (data(&own), result(request));
            p2p::isend(process, data.ints(1), to as i32, 3, comm, new).unwrap();
        }
        for from in (0..sides.remote).rev() {
            let (mut got, mut found) = ([-1], Status::EMPTY);
            match from {
                0 => {
                    // The last one is found by a probe for any source; others may have gone on to the next tag.
                    p2p::probe(process, ANY_SOURCE, 3, comm, status(&mut found)).unwrap();
                    assert_eq!((found.source, found.tag), (0, 3));
                    let mut message = tagwire_shim::abi::Message::NULL;
                    let (new, of) = (result(&mut message), status(&mut found));
                    probes::mprobe(process, ANY_SOURCE, 3, comm, new, of).unwrap();
                    let of = status(&mut found);
                    probes::mrecv(process, room(&mut got).ints(1), new, of).unwrap();
                }
                _ => p2p::recv(
                    process,
                    room(&mut got).ints(1),
                    from,
                    3,
                    comm,
                    status(&mut found),
                )
                .unwrap(),
            }
            assert_eq!((found.source, got), (from, [sides.world_of(from)]));
        }
        open.iter_mut().for_each(|request| wait(process, request));
        let no_rank = p2p::send(process, data(&own).ints(1), sides.remote, 3, comm);
        assert_eq!(code(no_rank), Class::Rank);
        let mut found = Status::EMPTY;
        p2p::recv(
            process,
            nowhere().ints(0),
            PROC_NULL,
            3,
            comm,
            status(&mut found),
        )
        .unwrap();
        assert_eq!(found.source, PROC_NULL);

        // Pairs of the same number exchange, by persistent and by partitioned operations.
        if sides.me < sides.size.min(sides.remote) {
            let (mut got, mut requests) = ([-1; 2], [Request::NULL; 2]);
            let into = room(&mut got);
            let [send, recv] = requests.each_mut().map(result);
            p2p::send_init(process, data(&own).ints(1), sides.me, 4, comm, send).unwrap();
            p2p::recv_init(process, into.ints(1), ANY_SOURCE, 4, comm, recv).unwrap();
            for _round in 0..3 {
                complete::start(process, recv).unwrap();
                complete::start(process, send).unwrap();
                complete::wait(process, send, ignore()).unwrap();
                let mut found = Status::EMPTY;
                complete::wait(process, recv, status(&mut found)).unwrap();
                assert_eq!((found.source, got[0]), (sides.me, sides.world_of(sides.me)));
            }
            [send, recv]
                .into_iter()
                .for_each(|request| complete::request_free(process, request).unwrap());
            let both = [sides.world, sides.world + 100];
            let info = Info::NULL;
            partitioned::psend_init(
                process,
                data(&both),
                2,
                1,
                INT,
                sides.me,
                5,
                comm,
                info,
                send,
            )
            .unwrap();
            partitioned::precv_init(process, into, 2, 1, INT, sides.me, 5, comm, info, recv)
                .unwrap();
            [send, recv]
                .into_iter()
                .for_each(|request| complete::start(process, request).unwrap());
            let sending = send.get().unwrap();
            [1, 0]
                .into_iter()
                .for_each(|part| partitioned::pready(process, part, sending).unwrap());
            [send, recv]
                .into_iter()
                .for_each(|request| complete::wait(process, request, ignore()).unwrap());
            let other = sides.world_of(sides.me);
            assert_eq!(got, [other, other + 100]);
            [send, recv]
                .into_iter()
                .for_each(|request| complete::request_free(process, request).unwrap());
        }
    });
}

#[test]
fn communicators_are_made_of_both_groups() {
    for size in SIZES {
        ranks(size, |process, world| {
            let sides = Sides::of(process, world, size, 0);
            // What was copied is good for as long as it is there.
            let (mut key, mut copy, mut later, mut request) =
                (0, Comm::NULL, Comm::NULL, Request::NULL);
            let new = result(&mut key);
            keyvals::comm_create_keyval(
                process,
                Some(common::duplicate_function()),
                None,
                new,
                number(0),
            )
            .unwrap();
            keyvals::comm_set_attr(process, sides.comm, key, number(41)).unwrap();
            communicators::comm_dup(process, sides.comm, result(&mut copy)).unwrap();
            let (new, of) = (result(&mut later), result(&mut request));
            tagwire_shim::call::duplicates::comm_idup(process, copy, new, of).unwrap();
            sides.free(process);
            wait(process, &mut request);
            let (mut value, mut flag) = (number(0), 0);
            keyvals::comm_get_attr(process, later, key, result(&mut value), result(&mut flag))
                .unwrap();
            assert_eq!((flag, value.0.addr()), (1, 41));
            for comm in [copy, later] {
                let (own, mut all) = ([world], [-1; 5]);
                let (from, into) = (data(&own), room(&mut all));
                coll::allgather(process, from.ints(1), into.ints(1), comm).unwrap();
                let others = (0..size as i32).filter(|other| other % 2 != world % 2);
                let others: Vec<_> = others.collect();
                assert_eq!(all[..others.len()], others);
            }
            // The odd ones first; the others first; as they come.
            for (high, odd_first) in [([1, 0], true), ([0, 1], false), ([0, 0], false)] {
                let mut whole = Comm::NULL;
                inter::intercomm_merge(
                    process,
                    later,
                    high[world as usize % 2],
                    result(&mut whole),
                )
                .unwrap();
                assert_eq!(
                    ask(|value| inter::comm_test_inter(process, whole, value)),
                    0
                );
                let n = size as i32;
                let place = match (world % 2 == 1, odd_first) {
                    (true, true) | (false, false) => world / 2,
                    (true, false) => (n + 1) / 2 + world / 2,
                    (false, true) => n / 2 + world / 2,
                };
                assert_eq!(
                    ask(|value| communicators::comm_rank(process, whole, value)),
                    place
                );
                coll::barrier(process, whole).unwrap();
                communicators::comm_free(process, result(&mut whole)).unwrap();
            }
            // The first of each group.
            let (mut group, mut part, mut first) = (Group::NULL, Group::NULL, Comm::WORLD);
            groups::comm_group(process, copy, result(&mut group)).unwrap();
            groups::group_incl(process, group, 1, list(&[0]), result(&mut part)).unwrap();
            communicators::comm_create(process, copy, part, result(&mut first)).unwrap();
            assert_eq!(first == Comm::NULL, world > 1);
            if world < 2 {
                assert_eq!(
                    ask(|value| inter::comm_remote_size(process, first, value)),
                    1
                );
                coll::barrier(process, first).unwrap();
                communicators::comm_free(process, result(&mut first)).unwrap();
            }
            // Nobody of the odd group: nobody gets one.
            let part_of = if world % 2 == 1 { Group::EMPTY } else { group };
            communicators::comm_create(process, copy, part_of, result(&mut first)).unwrap();
            assert_eq!(first, Comm::NULL);
            // A color of one group alone.
            communicators::comm_split(process, copy, world % 2, 0, result(&mut first)).unwrap();
            assert_eq!(first, Comm::NULL);
            for group in [&mut group, &mut part] {
                groups::group_free(process, result(group)).unwrap();
            }
            for comm in [&mut copy, &mut later] {
                communicators::comm_free(process, result(comm)).unwrap();
            }
        });
    }
}

#[test]
fn groups_alone_are_enough() {
    for size in SIZES {
        ranks(size, |process, world| {
            let (mut all, mut even, mut odd) = (Group::NULL, Group::NULL, Group::NULL);
            groups::comm_group(process, WORLD, result(&mut all)).unwrap();
            let evens: Vec<i32> = (0..size as i32)
                .filter(|rank| rank % 2 == 0)
                .rev()
                .collect();
            let count = evens.len() as i32;
            groups::group_incl(process, all, count, list(&evens), result(&mut even)).unwrap();
            groups::group_difference(process, all, even, result(&mut odd)).unwrap();
            let (info, handler) = (Info::NULL, Errhandler::RETURN);
            let (local, remote) = if world % 2 == 0 {
                (even, odd)
            } else {
                (odd, even)
            };
            // Of the other group its leader alone has to know.
            let is_leader = world == evens[0] || world == 1;
            let remote = if is_leader { remote } else { Group::NULL };
            for name in [c"one", c"other"] {
                let mut comm = Comm::NULL;
                let (name, new) = (text(name), result(&mut comm));
                inter::intercomm_create_from_groups(
                    process, local, 0, remote, 0, name, info, handler, new,
                )
                .unwrap();
                let remote_size = ask(|value| inter::comm_remote_size(process, comm, value));
                assert_eq!(
                    remote_size,
                    if world % 2 == 0 {
                        size as i32 / 2
                    } else {
                        count
                    }
                );
                let (own, mut sum) = ([world], [-1]);
                let (from, into) = (data(&own), room(&mut sum));
                coll::allreduce(process, from, into.ints(1), SUM, comm).unwrap();
                let others = (0..size as i32).filter(|other| other % 2 != world % 2);
                assert_eq!(sum, [others.sum()]);
                communicators::comm_free(process, result(&mut comm)).unwrap();
            }
            let mut comm = Comm::NULL;
            let (name, new) = (text(c"wrong"), result(&mut comm));
            let wrong = inter::intercomm_create_from_groups(
                process, local, 9, remote, 0, name, info, handler, new,
            );
            let wrong = wrong.unwrap_err();
            assert_eq!(
                (wrong.code(), wrong.raised_on()),
                (Class::Rank as i32, On::Handler(handler))
            );
            for group in [&mut all, &mut even, &mut odd] {
                groups::group_free(process, result(group)).unwrap();
            }
        });
    }
}

/// Two threads of each rank make some of the same leaders at once: tags tell them apart.
#[test]
fn threads_make_some_at_once() {
    ranks(4, |process, world| {
        let locals = [0, 1].map(|_| {
            let mut local = Comm::NULL;
            communicators::comm_split(process, WORLD, world % 2, 0, result(&mut local)).unwrap();
            local
        });
        std::thread::scope(|scope| {
            for (tag, local) in (1..).zip(locals) {
                scope.spawn(move || {
                    for round in 0..20 {
                        let mut comm = Comm::NULL;
                        let (leader, new) = (1 - world % 2, result(&mut comm));
                        inter::intercomm_create(process, local, 0, WORLD, leader, tag, new)
                            .unwrap();
                        let (own, mut got) = ([100 * tag + round], [-1; 2]);
                        let (from, into) = (data(&own), room(&mut got));
                        coll::allgather(process, from.ints(1), into.ints(1), comm).unwrap();
                        assert_eq!(got, [own[0]; 2]);
                        communicators::comm_free(process, result(&mut comm)).unwrap();
                    }
                });
            }
        });
    });
}

#[test]
fn wrong_arguments_have_their_classes() {
    ranks(3, |process, world| {
        let sides = Sides::of(process, world, 3, 5);
        let (comm, mut made) = (sides.comm, Comm::WORLD);
        let new = result(&mut made);
        let on = |error: tagwire_shim::Result, class: Class, of: Comm| {
            let error = error.unwrap_err();
            assert_eq!(
                (error.code(), error.raised_on()),
                (class as i32, On::Comm(of)),
                "{}",
                error.text()
            );
        };
        // Of the calls that make one: all of the group hear of what its leader is told.
        on(
            inter::intercomm_create(process, comm, 0, WORLD, 0, 5, new),
            Class::Comm,
            comm,
        );
        assert_eq!(made, Comm::NULL);
        on(
            inter::intercomm_create(process, WORLD, 3, WORLD, 0, 5, new),
            Class::Rank,
            WORLD,
        );
        for (peer, remote, tag, class) in [
            (Comm::NULL, 1, 5, Class::Comm),
            (WORLD, 3, 5, Class::Rank),
            (WORLD, 1, -7, Class::Tag),
            (WORLD, 0, 5, Class::Comm),
        ] {
            let of_leader = if world == 0 { class } else { Class::Comm };
            on(
                inter::intercomm_create(process, WORLD, 0, peer, remote, tag, new),
                of_leader,
                WORLD,
            );
        }
        // Those of one group alone.
        let (mut value, mut none, mut request) = (0, Group::NULL, Request::NULL);
        on(
            inter::comm_remote_size(process, WORLD, result(&mut value)),
            Class::Comm,
            WORLD,
        );
        on(
            inter::comm_remote_group(process, WORLD, result(&mut none)),
            Class::Comm,
            WORLD,
        );
        on(
            inter::intercomm_merge(process, WORLD, 0, new),
            Class::Comm,
            WORLD,
        );
        // Those that there are for one group alone.
        let (own, mut got) = ([1], [0; 3]);
        let (from, into) = (data(&own), room(&mut got));
        on(
            coll::scan(process, from, into.ints(1), SUM, comm),
            Class::Comm,
            comm,
        );
        on(
            coll::iexscan(process, from, into.ints(1), SUM, comm, result(&mut request)),
            Class::Comm,
            comm,
        );
        on(
            communicators::comm_create_group(process, comm, Group::EMPTY, 1, new),
            Class::Comm,
            comm,
        );
        on(
            topologies::cart_create(process, comm, 1, list(&[1]), list(&[0]), 0, new),
            Class::Comm,
            comm,
        );
        let neighbours = tagwire_shim::call::collectives::neighbor_allgather(
            process,
            from.ints(1),
            into.ints(1),
            comm,
        );
        on(neighbours, Class::Comm, comm);
        // Roots and places.
        for root in [-9, sides.remote] {
            on(
                coll::bcast(process, into.ints(1), root, comm),
                Class::Root,
                comm,
            );
        }
        on(
            coll::bcast(process, into.ints(1), ROOT, WORLD),
            Class::Root,
            WORLD,
        );
        on(
            coll::allreduce(process, in_place(), into.ints(1), SUM, comm),
            Class::Buffer,
            comm,
        );
        on(
            coll::allgather(process, in_place().ints(0), into.ints(1), comm),
            Class::Buffer,
            comm,
        );
        on(
            coll::alltoall(process, in_place().ints(0), into.ints(1), comm),
            Class::Buffer,
            comm,
        );
        on(
            coll::reduce(process, in_place(), into.ints(1), SUM, 0, comm),
            Class::Buffer,
            comm,
        );
        // A group that is none of the local one.
        let mut remote = Group::NULL;
        inter::comm_remote_group(process, comm, result(&mut remote)).unwrap();
        on(
            communicators::comm_create(process, comm, remote, new),
            Class::Group,
            comm,
        );
        groups::group_free(process, result(&mut remote)).unwrap();
        // Nothing of this has begun anything.
        coll::barrier(process, comm).unwrap();
        sides.free(process);
    });
}
