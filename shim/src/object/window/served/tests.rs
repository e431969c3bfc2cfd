//! Accesses that are asked for: what is done, what is refused, and that each is done once, by whom ever.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_layout::{Datatype, Program};

use tagwire_layout::Basic;

use super::*;
use crate::abi::{Comm, Op};
use crate::object::datatype::Span;
use crate::object::window::block::{self, Mapping};
use crate::object::window::elsewhere::Epoch;
use crate::object::window::exchange::{self, Asker, BYTES, LATELY};
use crate::object::window::make::{Wanted, make};
use crate::object::window::meeting::meet;
use crate::object::window::{Data as Memory, Flavor};
use crate::process::Process;

/// Bytes of each window.
const SIZE: usize = 64;

const SUM: Op = Op(0x21);

/// Runs `body` on two ranks, with a window over memory of their own.
fn on_two(body: impl Fn(&Process, &Arc<Window>) + Sync) {
    let job = LocalJob::new(2).unwrap();
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (job, body) = (&job, &body);
            scope.spawn(move || {
                let member = Box::new(job.member(Rank::new(rank)));
                let process = Process::open(member, &[("wait", "yield")]).unwrap();
                let mut memory = [0_u8; SIZE];
                let wanted = Wanted {
                    flavor: Flavor::Create,
                    bytes: SIZE,
                    unit: 1,
                    base: Some(Out::over(&mut memory)),
                    has_gaps: false,
                    alignment: 8,
                };
                let world = process.comm(Comm::WORLD).unwrap();
                let window = Arc::new(make(&process, &world, Ok(wanted)).unwrap()(0));
                start(&window);
                body(&process, &window);
                window.barrier().unwrap();
                assert!(window.withdraw().unwrap().is_none());
                drop(window);
                process.finalize().unwrap();
            });
        }
    });
}

/// Asks rank 1, which looks all the time, until it does the access.
fn asked(window: &Window, offset: i64, what: What, data: &exchange::Data) -> exchange::Data {
    loop {
        if let Some(old) = window
            .elsewhere()
            .ask(1, offset, what, data, Epoch::Passive)
            .unwrap()
        {
            return old;
        }
        std::thread::yield_now();
    }
}

/// Returns words as the data of an access.
fn words(values: &[u64]) -> exchange::Data {
    let mut data = [0; BYTES];
    for (to, value) in data.as_chunks_mut::<8>().0.iter_mut().zip(values) {
        *to = value.to_ne_bytes();
    }
    data
}

#[test]
fn a_target_that_waits_does_what_it_is_asked_for() {
    on_two(|_, window| {
        if window.me() == 0 {
            asked(window, 8, What::Put(16), &words(&[5, 6]));
            let old = asked(window, 8, What::Change(SUM, Basic::U64), &words(&[2]));
            assert_eq!(old[..8], 5_u64.to_ne_bytes());
            let wrong = asked(window, 8, What::CompareSwap(Basic::U64), &words(&[5, 9]));
            let right = asked(window, 8, What::CompareSwap(Basic::U64), &words(&[7, 9]));
            assert_eq!([&wrong[..8], &right[..8]], [&7_u64.to_ne_bytes()[..]; 2]);
            let got = asked(window, 0, What::Get(24), &[0; BYTES]);
            assert_eq!(got, words(&[0, 9, 6]));
        }
        window.barrier().unwrap();
    });
}

#[test]
fn what_cannot_be_done_so_is_refused() {
    on_two(|_, window| {
        let data = words(&[1]);
        let size = SIZE as u64;
        for (what, offset) in [
            (What::Put(8), size - 7),
            (What::Get(1), size),
            (What::Get(1), u64::MAX),
            (What::Change(SUM, Basic::U64), size - 4),
            // A long double has no instruction, a character no sum, and there is no such operation.
            (What::Change(SUM, Basic::LongDouble), 0),
            (What::Change(Op(0xff), Basic::U64), 0),
            (What::CompareSwap(Basic::F64), 0),
            (What::CompareSwap(Basic::I128), 0),
        ] {
            assert_eq!(
                Server::act(window, (what, offset, data)),
                None,
                "{what:?} at {offset}"
            );
        }
        assert!(Server::act(window, (What::Put(8), size - 8, data)).is_some());
    });
    for wrong in [4, 0, 41 << 8, 1, u64::MAX, 2 | 0xff << 16, 3 | 1 << 40] {
        assert_eq!(What::decode(wrong), None, "{wrong:#x}");
    }
    for what in [
        What::Put(1),
        What::Get(BYTES),
        What::Change(SUM, Basic::F64),
        What::CompareSwap(Basic::Byte),
    ] {
        assert_eq!(What::decode(what.encode()), Some(what));
    }
}

/// What belongs to an epoch that the target ends too is left to one that waits for that end, and to no other.
#[test]
fn a_target_that_waits_in_a_fence_is_asked() {
    const ROUNDS: usize = 20_000;
    let is_over = AtomicBool::new(false);
    on_two(|_, window| {
        let ask = || {
            let what = What::Change(SUM, Basic::U64);
            let asked = window.elsewhere();
            asked.ask(1, 0, what, &words(&[1]), Epoch::Active).unwrap()
        };
        let lines = window.members()[1].block.lines(0).unwrap();
        if window.me() == 0 {
            assert_eq!(ask(), None, "it is not there yet");
            assert_eq!(lines.ask[0].load(Acquire), 0, "nor asked");
        }
        window.barrier().unwrap();
        let mut old = None;
        for _ in 0..ROUNDS {
            if window.me() == 0 {
                std::thread::yield_now();
                old = ask();
            }
            meet(window).unwrap();
            // Between two meetings: both see it in the same round.
            is_over.fetch_or(old.is_some(), AcqRel);
            meet(window).unwrap();
            if is_over.load(Acquire) {
                break;
            }
        }
        let expected = (window.me() == 0).then(|| words(&[0]));
        assert_eq!(old, expected, "it is asked once");
        assert!(is_over.load(Acquire), "it is asked");
        window.barrier().unwrap();
        assert_eq!(lines.attends.load(Acquire), 0, "it waits no more");
    });
}

/// Of many members some are looked at in each call of progress, all in a few, and who has asked last in each.
#[test]
fn a_call_of_progress_looks_at_some_of_many_members() {
    const MEMBERS: usize = 100;
    on_two(|_, window| {
        let memory = Arc::new(Mapping::own(block::bytes(MEMBERS)));
        let block = || Block::at(&memory, 0, (0, MEMBERS));
        let rank = (Arc::clone(&window.messenger), Weak::new());
        let server = Server::among(1..MEMBERS, block(), rank);
        let asks = block();
        let ask = |member: usize, number| {
            let lines = asks.lines(member).unwrap();
            lines.ask[0].store(number, Release);
        };
        (1..MEMBERS).for_each(|member| ask(member, 1));
        let calls: Vec<usize> = (0..10).map(|_| server.drive()).collect();
        let most = MEMBERS / 4;
        assert!(calls.iter().all(|served| *served <= most), "{calls:?}");
        assert_eq!(calls.iter().sum::<usize>(), MEMBERS - 1, "each once");
        let calls_of_all = MEMBERS.div_ceil(IN_TURN);
        for member in [70, 3] {
            ask(member, 2);
            let first: usize = (0..calls_of_all).map(|_| server.drive()).sum();
            assert_eq!(first, 1);
            for number in 3..30 {
                ask(member, number);
                assert_eq!(server.drive(), 1, "it has asked last");
            }
        }
    });
}

/// The target looks now and then, so that accesses are done, withdrawn and not asked for: none is lost, and none is done twice.
#[test]
fn each_access_is_done_once() {
    const DONE: u64 = 60;
    let is_over = AtomicBool::new(false);
    on_two(|process, window| {
        if window.me() == 1 {
            let mut turns = 0_u32;
            while !is_over.load(Acquire) {
                turns = turns.wrapping_add(1);
                // Up to some dozen looks, then none for a while.
                for _ in 0..turns % 41 {
                    process.messenger.progress().unwrap();
                }
                (0..turns % 977).for_each(|_| std::hint::spin_loop());
                std::thread::yield_now();
            }
            return;
        }
        let mut done = 0_u64;
        while done < DONE {
            let old = window.elsewhere().ask(
                1,
                0,
                What::Change(SUM, Basic::U64),
                &words(&[1]),
                Epoch::Passive,
            );
            match old.unwrap() {
                Some(old) => {
                    assert_eq!(old[..8], done.to_ne_bytes());
                    done += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        is_over.store(true, Release);
        let span = Span {
            program: Program::of(&Datatype::of(Basic::U64)),
            count: 1,
            bytes: 8,
        };
        let Memory::Remote(parts) = &window.members()[1].data else {
            panic!("it is mapped");
        };
        let found = window.accesses().fetch(1, parts, (&span, 0)).unwrap();
        assert_eq!(found.address().read().to_vec(8), done.to_ne_bytes());
    });
}

#[test]
fn a_target_that_comes_late_is_asked_seldom() {
    let (mut asker, mut asked) = (Asker::default(), 0);
    for access in 1..=100_000 {
        let now = access * 10;
        if asker.asks(now, now - 1) {
            asked += 1;
            asker.miss(now);
        }
    }
    assert!((10..=120).contains(&asked), "{asked}");
    assert!(!asker.asks(2 * LATELY, LATELY - 1), "it looked long ago");
    let mut fresh = Asker::default();
    fresh.miss(50);
    assert!(!fresh.asks(60, 50), "it has not looked since");
    let calls = (0..1000).filter(|_| fresh.calls(70)).count();
    assert_eq!(calls, 1, "of many accesses at once one wakes it");
}
