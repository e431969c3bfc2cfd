//! What `tagwire info` publishes of the conformance kits is what the kits say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that panics fails"
)]

#[path = "../pml/tests/common/mod.rs"]
mod pairs;

use pairs::published;
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::{Verdict, passed_tiers, run_all};
use tagwire_transport::ByteTransport;
use tagwire_transport::null::{NullOptions, NullTransport};
use tagwire_transport::shm::{CrossAttach, Shm, ShmOptions};

fn shm() -> Factory {
    Factory::new(16, |size| {
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let open = |rank| {
            let mut member = job.member(Rank::new(rank));
            match Shm::open(ShmOptions::default(), &mut member) {
                Ok(rail) => Ok(Box::new(rail) as Box<dyn ByteTransport>),
                Err(error) => Err(error.to_string()),
            }
        };
        (0..size).map(open).collect::<Result<_, _>>().map(Job::new)
    })
}

fn null() -> Factory {
    Factory::new(1, |_| {
        let transport = NullTransport::new(Rank::new(0), NullOptions::default());
        Ok(Job::new(vec![Box::new(transport)]))
    })
}

#[test]
fn transports_pass_what_is_published() {
    for (name, tiers) in published::BYTES {
        let factory = match *name {
            "shm" => shm(),
            "null" => null(),
            other => panic!("a transport without a factory here: {other}"),
        };
        let passed: Vec<_> = passed_tiers(&run_all(&factory))
            .into_iter()
            .map(|tier| tier.name())
            .collect();
        assert_eq!(passed, *tiers, "{name}");
    }
    // What a detail decides is pinned beside the transport itself.
    let pinned: Vec<_> = tagwire_rails::NAMES
        .iter()
        .filter(|name| !tagwire_rails::DETAILED.contains(name))
        .collect();
    let names: Vec<_> = published::BYTES.iter().map(|(name, _)| name).collect();
    assert_eq!(names, pinned);
}

#[test]
fn pairs_pass_what_is_published() {
    for (layer, transport, tiers) in published::PAIRS {
        let factory = match (*layer, *transport) {
            ("ob1", "shm") => pairs::shm("bins", CrossAttach::Auto, ""),
            ("cm", "shm") => pairs::shm_matching(ShmOptions::default()),
            ("dr", "shm") => pairs::shm_dr(),
            other => panic!("a pair without a factory here: {other:?}"),
        };
        let results = run_all(&factory);
        for (check, verdict) in &results {
            let failed = matches!(verdict, Verdict::Failed(_));
            assert!(!failed, "{}: {verdict:?}", check.name());
        }
        let tiers_passed = passed_tiers(&results).into_iter();
        let passed: Vec<_> = tiers_passed.map(|tier| tier.name()).collect();
        assert_eq!(passed, *tiers, "{layer} over {transport}");
    }
    let layers: Vec<_> = published::PAIRS.iter().map(|(layer, ..)| *layer).collect();
    assert_eq!(layers, tagwire_pml::settings::LAYERS);
}
