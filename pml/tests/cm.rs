//! cm over the network in memory that matches, in all its ways.
#![cfg(not(loom))]

use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_conformance::pml::Factory;
use tagwire_conformance::pml_conformance;
use tagwire_transport::Directed;

fn network(options: MatchOptions) -> Factory {
    let short = options.max_short;
    Factory::cm_in_memory(options).boundaries(&[short, 8192])
}

/// Everything at its smallest, and no room every other time.
fn tight() -> MatchOptions {
    MatchOptions {
        slots: 2,
        max_short: 16,
        burst: 1,
        chunk: 4096,
        busy_every: 2,
        ..MatchOptions::default()
    }
}

pml_conformance!(plain, network(MatchOptions::default()));
pml_conformance!(small_and_busy, network(tight()));
pml_conformance!(
    helping,
    network(MatchOptions {
        helping: true,
        ..MatchOptions::default()
    })
);
pml_conformance!(
    late,
    network(MatchOptions {
        late_answers: true,
        busy_every: 3,
        ..MatchOptions::default()
    })
);
pml_conformance!(
    few_bits,
    network(MatchOptions {
        bits: 0x0000_ffff_ffff_ffff,
        ignorable: Some(0x7fff_ffff),
        directed: Directed::AfterConnect,
        ..MatchOptions::default()
    })
);
pml_conformance!(
    source_in_bits,
    network(MatchOptions {
        bits: 0x000f_ffff_ffff_ffff,
        directed: Directed::InBits,
        helping: true,
        ..MatchOptions::default()
    })
);

/// What concerns one operation alone: the rank goes on after each.
mod limits {
    use tagwire_base::bootstrap::LocalJob;
    use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
    use tagwire_pml::cm::{Cm, CmOptions};
    use tagwire_pml::{Error, LocalRank, PointToPoint, SendMode};
    use tagwire_transport::{RecvBuffer, SendBuffer};

    use super::*;

    fn open(options: MatchOptions) -> Result<Cm, Error> {
        let network = MatchNetwork::new(1, options);
        let job = LocalJob::new(1)?;
        let rail = Box::new(network.rank(Rank::new(0)));
        let bootstrap = Box::new(job.member(Rank::new(0)));
        Cm::open(&CmOptions::default(), rail, bootstrap)
    }

    fn exchange(cm: &mut Cm, tag: Tag) {
        let (to, world) = (Rank::new(0), ContextId::WORLD);
        let (from, any) = (SourceSelector::ANY, TagSelector::ANY);
        let sent = cm.isend(SendBuffer::EMPTY, to, tag, world, SendMode::Standard);
        let sent = sent.expect("a tag within the limits");
        let posted = cm.irecv(RecvBuffer::EMPTY, from, any, world);
        let posted = posted.expect("a receive of anything");
        for _ in 0..10 {
            cm.progress();
        }
        let status = cm.take(posted).expect("not stale").expect("complete");
        assert_eq!((status.tag, status.failure), (tag, None));
        assert!(cm.is_complete(sent));
    }

    #[test]
    fn tags_beyond_the_limit_are_refused_by_name() {
        let mut cm = open(MatchOptions {
            bits: (1 << 32) - 1,
            ..MatchOptions::default()
        })
        .expect("bits for a small layout");
        let limits = cm.tag_limits();
        assert_eq!((limits.largest_tag, limits.contexts), ((1 << 23) - 1, 256));
        let largest = Tag::user(limits.largest_tag).expect("not negative");
        exchange(&mut cm, largest);
        let wide = Tag::user(limits.largest_tag + 1).expect("not negative");
        let (to, world) = (Rank::new(0), ContextId::WORLD);
        let mode = SendMode::Standard;
        let from = SourceSelector::ANY;
        let only = TagSelector::exact(wide);
        let refusals = [
            cm.isend(SendBuffer::EMPTY, to, wide, world, mode).err(),
            cm.send_init(SendBuffer::EMPTY, to, wide, world, mode).err(),
            cm.irecv(RecvBuffer::EMPTY, from, only, world).err(),
            cm.recv_init(RecvBuffer::EMPTY, from, only, world).err(),
            cm.probe(from, only, world).err(),
            cm.claim(from, only, world).err(),
        ];
        for refusal in refusals {
            let text = refusal.expect("no place for the tag").to_string();
            assert_eq!(
                text,
                "8388608 is too wide: over memory-match the largest is 8388607"
            );
        }
        assert!(cm.open_work().is_none());
        exchange(&mut cm, largest);
    }

    #[test]
    fn contexts_beyond_the_limit_are_refused() {
        let mut cm = open(MatchOptions {
            bits: (1 << 20) - 1,
            ..MatchOptions::default()
        })
        .expect("bits for the smallest layout");
        let contexts: Vec<_> = (1..16).map(|_| cm.open_context()).collect();
        assert!(contexts.iter().all(Result::is_ok));
        assert!(matches!(cm.open_context(), Err(Error::NoContext)));
        cm.close_context(ContextId::new(3)).expect("it is there");
        let again = cm.open_context().expect("one is free");
        assert_eq!(again, ContextId::new(3));
    }

    #[test]
    fn too_few_bits_are_named() {
        let refused = open(MatchOptions {
            bits: 0xffff,
            ..MatchOptions::default()
        });
        let text = refused.expect_err("no layout fits").to_string();
        assert_eq!(
            text,
            "memory-match has 16 match bits in a row to be used: too few for context and tag"
        );
    }

    #[test]
    fn receives_beyond_the_bound_are_refused() {
        let mut cm = open(MatchOptions {
            max_posted: 2,
            ..MatchOptions::default()
        })
        .expect("a plain network");
        let (from, any, world) = (SourceSelector::ANY, TagSelector::ANY, ContextId::WORLD);
        let posted: Vec<_> = (0..2)
            .map(|_| cm.irecv(RecvBuffer::EMPTY, from, any, world))
            .map(|posted| posted.expect("within the bound"))
            .collect();
        let refused = cm.irecv(RecvBuffer::EMPTY, from, any, world);
        assert!(matches!(refused, Err(Error::TooManyReceives(_))));
        for request in posted {
            cm.cancel(request).expect("a receive");
            assert!(cm.take(request).expect("not stale").is_some());
        }
        exchange(&mut cm, Tag::user(1).expect("not negative"));
    }
}
