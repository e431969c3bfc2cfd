use super::ahead::Pairs;
use super::*;
use crate::args::Percentiles;
use crate::error::Error;
use crate::leader::Script;
use crate::measure::{Effort, Runner, Sample, Stage, measure};
use crate::port::channel::{ChannelPort, Spoil, job};
use crate::spread::{Sources, Spread};
use crate::suite::bandwidth::{Bandwidth, Direction};
use crate::suite::idle::Waits;
use crate::suite::message_rate::{Rate, ThreadedRate};
use crate::suite::ring::Ring;

const SEED: u64 = 42;

fn effort() -> Effort {
    Effort {
        iterations: Some(7),
        warmup: Some(2),
        small: (10, 1),
        large: (10, 1),
        turns: 1,
        percentiles: None,
    }
}

fn traffic(port: &ChannelPort, thread: u32) -> Traffic {
    Traffic::new(port.rank(), thread, 100, 4, Some(SEED), Memory::new).unwrap()
}

/// Runs a body on all ranks, on a few sizes, and returns rank 0's samples.
fn run<B: Body<ChannelPort>>(
    ranks: u32,
    spoil: Option<Spoil>,
    effort: &Effort,
    body: impl Fn(&ChannelPort) -> B + Sync,
) -> Result<Vec<Sample>> {
    let results = job(ranks, spoil, |port| {
        let stages: Vec<Box<dyn Stage + '_>> = vec![Box::new(Runner::new(port, body(port)))];
        let mut samples = Vec::new();
        let mut emit = |of_size: Vec<Sample>| {
            samples.extend(of_size);
            Ok(())
        };
        measure(port, stages, &[0, 1, 9, 100], effort, &mut emit)?;
        Ok(samples)
    });
    let mut failures: Vec<Error> = Vec::new();
    let mut samples = Vec::new();
    for result in results {
        match result {
            Ok(some) => samples.extend(some),
            Err(error) => failures.push(error),
        }
    }
    // The rank that saw wrong bytes knows more than the one whose peer ended.
    failures.sort_by_key(|error| !matches!(error, Error::Validation(_)));
    failures.into_iter().next().map_or(Ok(samples), Err)
}

fn assert_complete(samples: &[Sample]) {
    assert_eq!(
        samples.iter().map(|s| s.size).collect::<Vec<_>>(),
        [0, 1, 9, 100]
    );
    for sample in samples {
        assert!(sample.unit_ns.min > 0.0 && sample.unit_ns.median <= sample.unit_ns.max);
        assert_eq!((sample.iterations, sample.repetitions), (7, 5));
    }
}

#[test]
fn latency_with_receives_ahead() {
    for posted in [0, 5] {
        let samples = run(2, None, &effort(), |port| {
            Latency::new(traffic(port, 0), ahead(posted, Spread::Tags))
        })
        .unwrap();
        assert_complete(&samples);
    }
}

fn ahead(count: u32, spread: Spread) -> Ahead {
    Ahead {
        count,
        wild: 0,
        spread,
    }
}

/// All receives are posted and ended, also where their sources are ranks that do not play, or that have receives themselves.
#[test]
fn latency_with_receives_ahead_from_other_ranks() {
    for spread in [Spread::Tags, Spread::Sources] {
        for ranks in [3, 5] {
            let alone = run(ranks, None, &effort(), |port| {
                Latency::new(traffic(port, 0), ahead(7, spread)).alone()
            });
            assert_complete(&alone.unwrap());
        }
        for ranks in [4, 6] {
            let pairs = run(ranks, None, &effort(), |port| {
                Latency::new(traffic(port, 0), ahead(7, spread))
            });
            assert_complete(&pairs.unwrap());
        }
    }
    // What is received is checked as ever: sizes 0 and 1 take 9 messages each.
    let spoil = Spoil {
        message: 2 * 9 + 3,
        offset: 8,
    };
    let spoiled = run(5, Some(spoil), &effort(), |port| {
        Latency::new(traffic(port, 0), ahead(7, Spread::Sources)).alone()
    });
    assert!(matches!(spoiled, Err(Error::Validation(_))));
}

/// The receives of a rank that do not match, by tags and by sources.
#[test]
fn receives_ahead_differ_by_what_they_are_to() {
    use crate::port::tags;
    let of_all = |spread| {
        job(6, None, |port: &ChannelPort| {
            let pairs = Pairs::first(port.size());
            ahead(5, spread)
                .post(pairs, port, &traffic(port, 0))
                .unwrap();
            port.posted()
        })
    };
    let by_tags = |peer| {
        let tag = |number| (Rank::new(peer), tags::never(number));
        (0..5).map(tag).collect::<Vec<_>>()
    };
    let by_sources = [2, 3, 4, 5, 2].map(|from| (Rank::new(from), tags::DATA));
    let none = || vec![Vec::new(); 4];
    let told = of_all(Spread::Tags);
    assert_eq!(told, [vec![by_tags(1), by_tags(0)], none()].concat());
    let told = of_all(Spread::Sources);
    let wanted = [vec![by_sources.to_vec(); 2], none()].concat();
    assert_eq!(told, wanted);
}

#[test]
fn latency_of_many_pairs() {
    let samples = run(6, None, &effort(), |port| {
        Latency::new(traffic(port, 0), ahead(3, Spread::Tags))
    })
    .unwrap();
    assert_complete(&samples);
}

#[test]
fn latency_behind_unexpected_messages() {
    for ahead in [0, 5] {
        let samples = run(2, None, &effort(), |port| {
            let traffic = |thread| {
                Traffic::new(port.rank(), thread, 100, 16, Some(SEED), Memory::new).unwrap()
            };
            Unexpected::new(traffic(0), traffic(1), ahead)
        });
        assert_complete(&samples.unwrap());
        for ranks in [3, 5] {
            let samples = run(ranks, None, &effort(), |port| {
                let traffic = |thread| {
                    Traffic::new(port.rank(), thread, 100, 16, Some(SEED), Memory::new).unwrap()
                };
                let sources = Sources::of(Rank::new(0), Rank::new(1), ranks);
                Unexpected::new(traffic(0), traffic(1), ahead).with_sources(sources)
            });
            assert_complete(&samples.unwrap());
        }
    }
}

#[test]
fn latency_at_a_place_of_either_queue() {
    use crate::position::Position;
    for position in [
        Position::Head,
        Position::Middle,
        Position::Tail,
        Position::Shuffled,
        Position::At(3),
    ] {
        let traffic = |port: &ChannelPort, window| {
            Traffic::new(port.rank(), 0, 100, window, Some(SEED), Memory::new).unwrap()
        };
        let posted = run(4, None, &effort(), |port| {
            Placed::new(traffic(port, 6), position, 5)
        });
        assert_complete(&posted.unwrap());
        for percent in [40, 100] {
            let wild = run(2, None, &effort(), |port| {
                Placed::new(traffic(port, 6), position, 5).with_wild(percent)
            });
            assert_complete(&wild.unwrap());
        }
        let unexpected = run(2, None, &effort(), |port| {
            UnexpectedAt::new(traffic(port, 21), position, 5)
        });
        assert_complete(&unexpected.unwrap());
        // Sizes 0 and 1 take 9 messages each, and 6 that end the receives.
        let spoil = Spoil {
            message: 2 * (9 + 6) + 3,
            offset: 8,
        };
        let spoiled = run(2, Some(spoil), &effort(), |port| {
            Placed::new(traffic(port, 6), position, 5)
        });
        assert!(matches!(spoiled, Err(Error::Validation(_))), "{position}");
    }
}

#[test]
fn bandwidth_in_one_direction_and_in_both() {
    for direction in [Direction::One, Direction::Both] {
        let samples = run(2, None, &effort(), |port| {
            Bandwidth::new(traffic(port, 0), direction, 4)
        })
        .unwrap();
        assert_complete(&samples);
    }
}

#[test]
fn rate_of_many_pairs() {
    let samples = run(4, None, &effort(), |port| Rate::new(traffic(port, 0), 4)).unwrap();
    assert_complete(&samples);
}

#[test]
fn rate_of_many_threads() {
    let samples = run(2, None, &effort(), |port| {
        ThreadedRate::new((0..3).map(|thread| traffic(port, thread)).collect(), 4)
    });
    assert_complete(&samples.unwrap());
}

#[test]
fn ring_goes_round_whole() {
    let samples = run(3, None, &effort(), |port| Ring::new(traffic(port, 0))).unwrap();
    assert_complete(&samples);
}

#[test]
fn idle_looks_at_processor_time() {
    let pause = Duration::from_millis(50);
    let results = job(2, None, |port| {
        let mut waits = Waits {
            port,
            traffic: traffic(port, 0),
            pause,
            waited: None,
        };
        waits.block(&8).unwrap();
        waits.waited
    });
    let idle = results[0].unwrap();
    assert!(idle.elapsed >= Duration::from_millis(40));
    assert_eq!(results[1], None);
}

#[test]
fn percentiles_are_of_single_iterations() {
    let percentiles: Percentiles = "0,50,100".parse().unwrap();
    let effort = Effort {
        percentiles: Some(percentiles),
        ..effort()
    };
    let samples = run(2, None, &effort, |port| {
        Latency::new(traffic(port, 0), Ahead::default())
    })
    .unwrap();
    for sample in samples {
        let [(_, least), (_, middle), (_, most)] = sample.percentiles[..] else {
            panic!()
        };
        assert!(0.0 < least && least <= middle && middle <= most);
    }
}

#[test]
fn iterations_adapt_when_none_are_asked_for() {
    let effort = Effort {
        iterations: None,
        warmup: None,
        ..effort()
    };
    let samples = run(2, None, &effort, |port| {
        Latency::new(traffic(port, 0), Ahead::default())
    })
    .unwrap();
    assert!(
        samples
            .iter()
            .all(|sample| sample.iterations >= 10 && sample.repetitions == 5)
    );
}

#[test]
fn a_spoilt_byte_is_found_and_named() {
    // Sizes 0 and 1 take 9 messages each; number 18 + 3 is the fourth of 9 bytes.
    let spoil = Spoil {
        message: 18 + 3,
        offset: 8,
    };
    let error = run(2, Some(spoil), &effort(), |port| {
        Latency::new(traffic(port, 0), Ahead::default())
    })
    .unwrap_err();
    let Error::Validation(mismatch) = &error else {
        panic!("{error}")
    };
    assert_eq!((mismatch.rank, mismatch.from, mismatch.size), (1, 0, 9));
    assert_eq!((mismatch.iteration, mismatch.offset), (21, 8));
    assert_eq!(mismatch.expected ^ mismatch.found, 0xff);
    assert_eq!(error.exit_status().code(), 3);
}

#[test]
fn a_spoilt_byte_in_a_window_is_found() {
    let spoil = Spoil {
        message: 2 * 4 * 9 + 2,
        offset: 0,
    };
    let error = run(2, Some(spoil), &effort(), |port| {
        Bandwidth::new(traffic(port, 0), Direction::One, 4)
    })
    .unwrap_err();
    let Error::Validation(mismatch) = &error else {
        panic!("{error}")
    };
    assert_eq!(
        (mismatch.rank, mismatch.iteration, mismatch.size),
        (1, 74, 9)
    );
}
