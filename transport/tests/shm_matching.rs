//! The conformance kit for matching transports on shared memory: with cross-memory attach,
//! without it, and with chunks so small that every transfer has many.

use std::cell::RefCell;
use std::rc::Rc;

use tagwire_base::Rank;
use tagwire_base::bootstrap::{Bootstrap, LocalJob};
use tagwire_conformance::Verdict;
use tagwire_conformance::match_conformance;
use tagwire_conformance::matching::{Allocates, CHECKS, Factory, Job, Slack, Wanted};
use tagwire_transport::MatchTransport;
use tagwire_transport::shm::{CrossAttach, DescriptorWay, ShmMatch, ShmOptions, visits};

fn job(size: u32, wanted: Wanted, options: &ShmOptions) -> Result<Job, String> {
    let job = LocalJob::new(size).map_err(|error| error.to_string())?;
    let mut options = options.clone();
    options.overflow = wanted.unexpected_bytes.min(options.overflow);
    options.headers = wanted.unexpected_messages.min(options.headers);
    let open = |rank| {
        let mut bootstrap = job.member(Rank::new(rank));
        let mut shm =
            ShmMatch::open(options.clone(), &mut bootstrap).map_err(|error| error.to_string())?;
        shm.set_descriptor_source(move |peer| {
            bootstrap.get_descriptor(peer, std::time::Duration::from_secs(10))
        });
        Ok(Box::new(shm) as Box<dyn MatchTransport>)
    };
    (0..size).map(open).collect::<Result<_, _>>().map(Job::new)
}

/// Eight messages of each sender go before anything is known of the receiver's bounds.
const SLACK: Slack = Slack {
    bytes: 16 * 8 * 8192,
    messages: 16 * 8,
};

fn factory(options: ShmOptions) -> Factory {
    Factory::new(8, move |size, wanted| job(size, wanted, &options))
        .slack(SLACK)
        .boundaries(&[16, 40, 8192])
}

fn small_chunks() -> ShmOptions {
    ShmOptions {
        chunk_min: 4096,
        chunk_max: 8192,
        ..ShmOptions::default()
    }
}

fn without_attach() -> ShmOptions {
    ShmOptions {
        cross_attach: CrossAttach::Off,
        ..ShmOptions::default()
    }
}

/// Without cross-memory attach, with these buffers in the arena.
fn arena(sends: bool, receives: bool) -> Factory {
    let options = ShmOptions {
        arena: 1 << 30,
        ..without_attach()
    };
    factory(options).allocating(Allocates { sends, receives })
}

fn without_arena() -> ShmOptions {
    ShmOptions {
        arena: 0,
        ..without_attach()
    }
}

fn passed() -> ShmOptions {
    ShmOptions {
        descriptor: DescriptorWay::Passed,
        ..ShmOptions::default()
    }
}

match_conformance!(on_shm, factory(ShmOptions::default()));
match_conformance!(on_shm_with_small_chunks, factory(small_chunks()));
match_conformance!(on_shm_without_attach, factory(without_attach()));
match_conformance!(on_shm_without_attach_or_arena, factory(without_arena()));
match_conformance!(on_shm_from_the_arena, arena(true, false));
match_conformance!(on_shm_into_the_arena, arena(false, true));
match_conformance!(on_shm_by_the_arena_alone, arena(true, true));
match_conformance!(on_shm_with_passed_descriptors, factory(passed()));

/// The race of the kit in which the receiver computes now and then has senders that match.
#[test]
fn races_have_visitors() {
    let counters = Rc::new(RefCell::new(Vec::new()));
    let factory = Factory::new(3, {
        let counters = Rc::clone(&counters);
        move |size, _| {
            let job = LocalJob::new(size).map_err(|error| error.to_string())?;
            let open = |rank| {
                let mut member = job.member(Rank::new(rank));
                let shm = ShmMatch::open(ShmOptions::default(), &mut member).unwrap();
                counters.borrow_mut().push(visits(&shm));
                Box::new(shm) as Box<dyn MatchTransport>
            };
            Ok(Job::new((0..size).map(open).collect()))
        }
    });
    let name = "each_message_is_had_once";
    let check = CHECKS.iter().find(|check| check.name() == name).unwrap();
    assert_eq!(check.run(&factory), Verdict::Passed);
    let visits: u64 = counters
        .borrow()
        .iter()
        .map(|count| u64::from(count()))
        .sum();
    println!("{visits} visits");
    assert!(visits > 20, "only {visits} visits");
}
