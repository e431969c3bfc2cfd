//! Exchanges whose partners are few, many, or not known.

use tagwire_base::named::{Named, Spec};

use super::exchange::at_once;
use super::{App, BYTES, Depth, STEPS, Size, from, from_any, parameter, product, to};
use crate::random::Random;
use crate::traffic::{Outgoing, Script};

pub(super) static AMG: App = App {
    named: Named {
        name: "amg",
        parameters: &[
            parameter("ranks", 256, 32, 1 << 16, "Ranks"),
            parameter("levels", 4, 1, 16, "Levels of the grid"),
            STEPS,
            BYTES,
        ],
    },
    about: "levels with ever more neighbours, from 26 to a quarter of the ranks, and ever shorter messages; before each a question to ranks that do not know of it, which probe for any source",
    scripts: amg,
    depth: |spec| {
        let (mut receives, mut compared) = (0.0, 0.0);
        for count in (0..spec.number("levels")).map(|level| f64::from(neighbours(spec, level))) {
            receives += count;
            compared += count * (count + 3.0) / 4.0;
        }
        Depth {
            posted: Some(1.0),
            shuffled: Some(compared / receives),
        }
    },
    size: |spec| {
        let of_level = |level| 2 + u128::from(neighbours(spec, level));
        let each: u128 = (0..spec.number("levels")).map(of_level).sum();
        Size {
            messages: each * product(spec, ["ranks", "steps"]),
            looked: product(spec, ["ranks"]),
        }
    },
};

pub(super) static NBX: App = App {
    named: Named {
        name: "nbx",
        parameters: &[
            parameter("ranks", 32, 2, 1 << 14, "Ranks"),
            parameter("targets", 6, 1, 1 << 10, "Messages of each rank in a step"),
            parameter("seed", 1, 0, u32::MAX, "What the targets follow from"),
            STEPS,
            BYTES,
        ],
    },
    about: "a sparse exchange with partners that nobody knows before: synchronous sends, and receives of what a probe has found (Hoefler, Siebert, Lumsdaine, PPoPP 2010): no receive waits",
    scripts: nbx,
    depth: |_| Depth {
        posted: None,
        shuffled: None,
    },
    size: |spec| Size {
        messages: product(spec, ["ranks", "targets", "steps"]),
        looked: product(spec, ["ranks"]),
    },
};

pub(super) static PARTICLES: App = App {
    named: Named {
        name: "particles",
        parameters: &[
            parameter("ranks", 64, 3, 1 << 14, "Ranks"),
            parameter(
                "neighbours",
                8,
                2,
                1 << 10,
                "Ranks that particles go to, an even number",
            ),
            parameter("seed", 1, 0, u32::MAX, "What neighbours follow from"),
            STEPS,
            BYTES,
        ],
    },
    about: "other neighbours in each step, drawn by lot: first how many particles come from each, then the particles; receives are posted before the sends",
    scripts: particles,
    depth: |spec| Depth::of_sources(f64::from(2 * drawn(spec)), 1.0),
    // Each step shuffles all ways to go.
    size: |spec| {
        let others = 2 * u128::from(drawn(spec));
        Size {
            messages: 2 * others * product(spec, ["ranks", "steps"]),
            looked: others,
        }
    },
};

/// Neighbours on each of two sides of a rank.
fn drawn(spec: &Spec) -> u32 {
    (spec.number("neighbours") / 2).min((spec.number("ranks") - 1) / 2)
}

fn particles(spec: &Spec) -> Vec<Script> {
    let (ranks, bytes) = (spec.number("ranks"), spec.number("bytes"));
    let mut random = Random::new(u64::from(spec.number("seed")));
    let mut scripts = vec![Script::new(); ranks as usize];
    for _ in 0..spec.number("steps") {
        // The same ways for all, so that who sends to a rank hears of it too.
        let mut ways: Vec<u32> = (1..=(ranks - 1) / 2).collect();
        random.shuffle(&mut ways);
        let ways = ways.iter().take(drawn(spec) as usize);
        let ways: Vec<u32> = ways.flat_map(|way| [*way, ranks - way]).collect();
        for (rank, script) in (0..ranks).zip(&mut scripts) {
            let others = ways.iter().map(|way| (rank + way) % ranks);
            let others: Vec<u32> = others.collect();
            at_once(script, &others, COUNTS, 8);
            at_once(script, &others, OWN, u64::from(bytes));
        }
    }
    scripts
}

/// The contexts of counts, and of particles.
const COUNTS: u16 = 1;
const OWN: u16 = 2;

/// Neighbours of a rank on a level, an even number: half of them before it and half behind.
fn neighbours(spec: &Spec, level: u32) -> u32 {
    let most = (spec.number("ranks") / 4)
        .max(26)
        .min(spec.number("ranks") - 1)
        & !1;
    26_u32.saturating_mul(1 << level).min(most)
}

fn amg(spec: &Spec) -> Vec<Script> {
    let (ranks, bytes) = (spec.number("ranks"), spec.number("bytes"));
    let at = |rank: u32, way: u32| (rank + way) % ranks;
    let script = |rank: u32| {
        let mut script = Script::new();
        for _ in 0..spec.number("steps") {
            for level in 0..spec.number("levels") {
                // Who has what a rank needs is asked where it would be if ranks had equal shares.
                let asked = [ranks / 2, ranks / 3];
                for way in asked {
                    let question = script.send(to(at(rank, way), ASK, 0, 16));
                    script.wait(vec![question]);
                }
                for _ in asked {
                    script.probe_and_receive(from_any(ASK));
                }
                let half = neighbours(spec, level) / 2;
                let ways: Vec<u32> = (1..=half).flat_map(|way| [way, ranks - way]).collect();
                let receive = |way: &u32| from(at(rank, *way), level, 0);
                let mut requests: Vec<_> =
                    ways.iter().map(|way| script.post(receive(way))).collect();
                let message = |way: &u32| to(at(rank, *way), level, 0, u64::from(bytes >> level));
                requests.extend(ways.iter().map(|way| script.send(message(way))));
                script.wait(requests);
            }
        }
        script
    };
    (0..ranks).map(script).collect()
}

/// The tag of a question.
const ASK: u32 = 1 << 20;

fn nbx(spec: &Spec) -> Vec<Script> {
    let [ranks, targets, steps] = ["ranks", "targets", "steps"].map(|name| spec.number(name));
    let bytes = u64::from(spec.number("bytes"));
    let mut random = Random::new(u64::from(spec.number("seed")));
    let mut scripts = vec![Script::new(); ranks as usize];
    for step in 0..steps {
        let mut come = vec![0; ranks as usize];
        let mut sends = Vec::new();
        for (rank, script) in (0..ranks).zip(&mut scripts) {
            let mut own = Vec::new();
            for _ in 0..targets {
                let target = (rank + 1 + random.below(ranks - 1)) % ranks;
                come[target as usize] += 1;
                own.push(script.send(Outgoing {
                    synchronous: true,
                    ..to(target, step, 0, bytes)
                }));
            }
            sends.push(own);
        }
        for ((script, count), own) in scripts.iter_mut().zip(come).zip(sends) {
            for _ in 0..count {
                script.probe_and_receive(from_any(step));
            }
            script.wait(own);
        }
    }
    scripts
}
