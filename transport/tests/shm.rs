//! The conformance kit on shared memory: with cross-memory attach, without it, with descriptors
//! passed, and with chunks so small that every transfer has many.

use tagwire_base::Rank;
use tagwire_base::bootstrap::{Bootstrap, LocalJob};
use tagwire_conformance::byte::{Factory, Job, Tier};
use tagwire_conformance::tiers;
use tagwire_conformance::transport_conformance;
use tagwire_transport::ByteTransport;
use tagwire_transport::shm::{CrossAttach, DescriptorWay, Shm, ShmOptions};

fn job(size: u32, options: &ShmOptions) -> Result<Job, String> {
    let job = LocalJob::new(size).map_err(|error| error.to_string())?;
    let open = |rank| {
        let mut bootstrap = job.member(Rank::new(rank));
        let mut shm =
            Shm::open(options.clone(), &mut bootstrap).map_err(|error| error.to_string())?;
        shm.set_descriptor_source(move |peer| {
            bootstrap.get_descriptor(peer, std::time::Duration::from_secs(10))
        });
        Ok(Box::new(shm) as Box<dyn ByteTransport>)
    };
    (0..size).map(open).collect::<Result<_, _>>().map(Job::new)
}

fn factory(options: ShmOptions) -> Factory {
    Factory::new(16, move |size| job(size, &options))
}

fn plain() -> ShmOptions {
    ShmOptions::default()
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

/// Transfers from and into the arena.
fn arena() -> ShmOptions {
    ShmOptions {
        arena: 1 << 30,
        ..ShmOptions::default()
    }
}

fn arena_alone() -> ShmOptions {
    ShmOptions {
        cross_attach: CrossAttach::Off,
        ..arena()
    }
}

fn no_arena() -> ShmOptions {
    ShmOptions {
        arena: 0,
        ..ShmOptions::default()
    }
}

fn passed() -> ShmOptions {
    ShmOptions {
        descriptor: DescriptorWay::Passed,
        ..ShmOptions::default()
    }
}

transport_conformance!(on_shm, factory(plain()));
transport_conformance!(on_shm_with_small_chunks, factory(small_chunks()));
transport_conformance!(on_shm_without_attach, factory(without_attach()));
transport_conformance!(on_shm_without_arena, factory(no_arena()));
transport_conformance!(on_shm_by_the_arena, factory(arena()).allocating());
transport_conformance!(
    on_shm_by_the_arena_alone,
    factory(arena_alone()).allocating()
);
transport_conformance!(on_shm_with_passed_descriptors, factory(passed()));

#[test]
fn shared_memory_passes_the_tiers_that_it_claims() {
    let with = tiers(&factory(plain())).unwrap();
    let without = tiers(&factory(without_attach())).unwrap();
    for tier in [Tier::Cooperative, Tier::Put, Tier::Get] {
        assert!(with.contains(&tier), "{with:?}");
    }
    assert!(!without.contains(&Tier::Put), "{without:?}");
    assert!(!without.contains(&Tier::Cooperative), "{without:?}");
    let arena = tiers(&factory(arena_alone()).allocating()).unwrap();
    assert!(arena.contains(&Tier::Cooperative), "{arena:?}");
}
