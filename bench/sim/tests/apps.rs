//! Skeletons of applications send the messages of the paper, and the same seed has the same profile.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_bench_sim::apps::{APPS, Case, app, run};
use tagwire_bench_sim::{Pml, Profile, RankProfile};
use tagwire_sim::SimOptions;
use tagwire_sim::presets::preset;

fn profile(name: &str, pml: Pml, ranks: u32, steps: u32, [imbalance, jitter]: [f64; 2]) -> Profile {
    let app = app(name).unwrap();
    let case = Case {
        ranks,
        steps,
        compute: app.compute,
        imbalance,
        jitter,
        seed: 3,
    };
    let options = SimOptions::of(preset("redstorm").unwrap().machine);
    let profile = run(&options, pml, app, case).unwrap();
    assert_eq!(profile.ranks.len(), ranks as usize, "{name}");
    profile
}

fn mean(profile: &Profile, of: impl Fn(&RankProfile) -> f64) -> f64 {
    profile.spread(of)[0]
}

/// Table 1 has messages of a whole run: a step has its part of them. Sums of 256 and of 1,024 ranks take 8 and 10 messages of each.
#[test]
fn messages_are_those_of_the_paper() {
    for (name, steps, short, long) in [
        ("vh1", 5, 240.0 / 5.0, 3000.0 / 5.0),
        ("gtc", 1, 10.0, 13.0),
        ("pop", 364, 16.0 * 364.0, 6.0),
        ("s3d", 2, 0.0, 12.0),
    ] {
        let app = app(name).unwrap();
        // As the paper had; of those that take long here, so many as have a sum of as many messages less.
        let (ranks, fewer) = match app.ranks {
            1024 => (64, 4.0),
            _ => (64, 2.0),
        };
        let sums = match name {
            "vh1" => 6.0,
            "gtc" => 1.0,
            "pop" => 364.0,
            _ => 0.0,
        };
        let profile = profile(name, Pml::Cm, ranks, steps, [0.0; 2]);
        // Each broadcast sends a message to all but its root.
        let told = if name == "gtc" { 63.0 / 64.0 } else { 0.0 };
        let found = mean(&profile, |rank| rank.short() as f64);
        assert_eq!(found, short - fewer * sums + told, "{name}");
        assert_eq!(mean(&profile, |rank| rank.long as f64), long, "{name}");
    }
}

#[test]
fn a_seed_names_a_profile() {
    for app in APPS {
        let once = profile(app.name, Pml::Cm, 32, 2, [app.imbalance, app.jitter]);
        assert_eq!(
            once,
            profile(app.name, Pml::Cm, 32, 2, [app.imbalance, app.jitter])
        );
        let mut parts = once.routines().into_iter();
        let (first, part) = parts.next().unwrap();
        assert!(part > 0.0, "{first}");
        let all: f64 = part + parts.map(|(_, part)| part).sum::<f64>();
        // Of run times that are nearly the same, the mean of the parts is the part of all.
        assert!(
            (all - mean(&once, RankProfile::library)).abs() < 0.1,
            "{}",
            app.name
        );
    }
}

#[test]
fn jitter_drops_long_messages() {
    let dropped = |jitter| {
        let profile = profile("s3d", Pml::Cm, 64, 4, [0.0, jitter]);
        mean(&profile, RankProfile::dropped_share)
    };
    assert_eq!(dropped(0.0), 0.0);
    assert!(dropped(5.0) > 20.0, "{}", dropped(5.0));
}

#[test]
fn skeletons_run_where_the_library_matches_too() {
    for app in APPS {
        let profile = profile(app.name, Pml::Ob1, 16, 1, [app.imbalance, app.jitter]);
        assert!(mean(&profile, RankProfile::library) > 0.0, "{}", app.name);
    }
}
