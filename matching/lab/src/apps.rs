//! Applications' patterns of messages, as scripts: `tagwire match app NAME`.
//!
//! Each says how deep its searches go where receives are posted before their messages come, in two orders of arrival: that of
//! posting, which is the best case, and a random one. A list compares `(n + 3) / 4` entries on the average to find `n`
//! receives in random order. With `d` sources of `m` messages each, which keep their order, it is `1 + m (d - 1) / 4`.

mod exchange;
mod grid;
mod manager;
mod sparse;
mod storm;
mod sweep;
mod threads;

use tagwire_base::named::{Named, Parameter, Spec};
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::Pattern;

use crate::error::{Error, Result};
use crate::traffic::{Outgoing, Script};

/// A pattern of messages.
#[derive(Debug)]
pub struct App {
    /// Its name and its parameters.
    pub named: Named,
    /// What it is like, in a line.
    pub about: &'static str,
    /// The scripts of its ranks.
    scripts: fn(&Spec) -> Vec<Script>,
    /// How many receives a list compares to find one that waits, on the average.
    depth: fn(&Spec) -> Depth,
    /// How much there is to be made.
    size: fn(&Spec) -> Size,
}

/// How much the scripts are that an application makes, before they are made.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Messages over all ranks and steps.
    messages: u128,
    /// Receives, or sources, that are looked through for one of them, at most.
    looked: u128,
}

/// The mean depth of hits among posted receives; none where no receive waits for its message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Depth {
    /// Messages come in the order in which their receives were posted, as far as those of a source keep theirs.
    pub posted: Option<f64>,
    /// Messages come in a random order, those of a source in theirs.
    pub shuffled: Option<f64>,
}

/// An application with its parameters, such as `halo27:x=8,steps=3`.
#[derive(Debug, Clone)]
pub struct AppName {
    app: &'static App,
    spec: Spec,
}

/// All applications.
pub static APPS: &[&App] = &[
    &grid::HALO7,
    &grid::HALO27,
    &grid::FDS,
    &sweep::SWEEP,
    &exchange::ALLTOALL,
    &exchange::TRANSPOSE,
    &manager::FARM,
    &sparse::AMG,
    &sparse::NBX,
    &sparse::PARTICLES,
    &storm::STORM,
    &threads::THREADS,
];

impl AppName {
    /// Reads `NAME` or `NAME:KEY=VALUE,...`.
    ///
    /// # Errors
    /// [`Error::Usage`], with the nearest right name, or with the bound of one that is too large.
    pub fn parse(text: &str) -> Result<Self> {
        let known: Vec<&Named> = APPS.iter().map(|app| &app.named).collect();
        let spec = Spec::parse(text, &known);
        let spec = spec.map_err(|refused| Error::of_name("application", &refused))?;
        let app = APPS.iter().find(|app| app.named.name == spec.name());
        let app = app.expect("a name that is known is one of the table");
        let name = Self { app, spec };
        name.within_bounds()?;
        Ok(name)
    }

    /// Refuses what would take all memory, or not come to its end.
    fn within_bounds(&self) -> Result<()> {
        let Size { messages, looked } = (self.app.size)(&self.spec);
        let work = messages.saturating_mul(looked);
        let (what, count, most) = match (messages > MESSAGES, work > WORK) {
            (true, _) => ("messages", messages, MESSAGES),
            (_, true) => ("messages times receives at once", work, WORK),
            _ => return Ok(()),
        };
        let names: Vec<&str> = self.enlarged().collect();
        Err(Error::Usage(format!(
            "'{self}' has {count} {what}, and a pattern has at most {most}: choose a smaller {}",
            names.join(", ")
        )))
    }

    /// The parameters that make it larger than it is by default.
    fn enlarged(&self) -> impl Iterator<Item = &'static str> {
        let parameters = self.app.named.parameters.iter();
        let enlarged = parameters.filter(|parameter| {
            let default = parameter.range.default_text().parse::<u32>();
            !["bytes", "seed"].contains(&parameter.name)
                && default.is_ok_and(|default| self.spec.number(parameter.name) > default)
        });
        enlarged.map(|parameter| parameter.name)
    }

    /// Returns the name without parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.spec.name()
    }

    /// Returns the scripts of its ranks.
    #[must_use]
    pub fn scripts(&self) -> Vec<Script> {
        (self.app.scripts)(&self.spec)
    }

    /// Returns the mean depth that it is to have.
    #[must_use]
    pub fn depth(&self) -> Depth {
        (self.app.depth)(&self.spec)
    }
}

impl std::fmt::Display for AppName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.spec.fmt(f)
    }
}

/// What there is to say, a line for each thing.
impl std::fmt::Display for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {}", self.named.name, self.about)?;
        for Parameter { name, range, help } in self.named.parameters {
            let default = range.default_text();
            writeln!(f, "  {name}={range}: {help} [default: {default}]")?;
        }
        Ok(())
    }
}

impl Depth {
    /// One receive waits at a time, or the first takes every message.
    const ONE: Self = Self {
        posted: Some(1.0),
        shuffled: Some(1.0),
    };

    /// So many sources send so many messages each, whose receives were posted source by source.
    fn of_sources(sources: f64, messages: f64) -> Self {
        Self {
            posted: Some(1.0),
            shuffled: Some(1.0 + messages * (sources - 1.0) / 4.0),
        }
    }
}

const fn parameter(
    name: &'static str,
    default: u32,
    min: u32,
    max: u32,
    help: &'static str,
) -> Parameter {
    Parameter::number(name, default, min..=max, help)
}

const STEPS: Parameter = parameter("steps", 4, 1, 1 << 20, "Time steps");
const BYTES: Parameter = parameter("bytes", 8192, 0, u32::MAX, "Bytes of a message");

/// Most messages of a pattern: each takes some 240 bytes while its traces are made.
const MESSAGES: u128 = 1 << 23;
/// Most entries that are looked at for all of them.
const WORK: u128 = 1 << 32;

/// The product of parameters.
fn product<const N: usize>(spec: &Spec, names: [&str; N]) -> u128 {
    let numbers = names.map(|name| u128::from(spec.number(name)));
    numbers.into_iter().product()
}

/// A receive from one rank with one tag.
fn from(source: u32, tag: u32, context: u16) -> Pattern {
    Pattern {
        source: Rank::new(source).into(),
        tag: user(tag).into(),
        context: ContextId::new(context),
    }
}

/// A receive from any rank with one tag.
fn from_any(tag: u32) -> Pattern {
    Pattern {
        source: SourceSelector::ANY,
        ..from(0, tag, 0)
    }
}

/// A receive of anything.
fn anything() -> Pattern {
    Pattern {
        tag: TagSelector::ANY,
        ..from_any(0)
    }
}

fn to(to: u32, tag: u32, context: u16, bytes: u64) -> Outgoing {
    Outgoing {
        to,
        tag: user(tag).as_i32(),
        context,
        bytes,
        synchronous: false,
    }
}

/// A tag; those of applications are far below the largest.
fn user(tag: u32) -> Tag {
    Tag::user((tag & i32::MAX as u32) as i32).expect("it is not negative")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::stats::{Groups, Key, count, merge};
    use crate::traffic::Model;

    /// The program's figures over all ranks.
    fn figures(app: &AppName, model: &str) -> crate::stats::group::Summary {
        let model: Model = model.parse().unwrap();
        let mut sum = Groups::new();
        for trace in model.traces(&app.scripts(), "test").unwrap() {
            merge(&mut sum, &count(&trace).unwrap());
        }
        sum[&Key::PROGRAM].summary()
    }

    /// Every application, and with parameters that make other patterns.
    fn names() -> Vec<AppName> {
        let plain = APPS.iter().map(|app| app.named.name);
        let others = [
            "halo7:messages=8",
            "halo27:x=3,y=5,z=3,messages=2",
            "alltoall:algorithm=pairwise",
            "alltoall:algorithm=bruck,ranks=13",
            "alltoall:ranks=64,steps=3",
            "particles:ranks=9,neighbours=20",
            "storm:senders=1",
            "storm:senders=9,messages=7",
            "threads:x=3,y=5,stencil=faces",
            "threads:x=2,y=3,z=4",
        ];
        plain
            .chain(others)
            .map(|name| AppName::parse(name).unwrap())
            .collect()
    }

    #[test]
    fn messages_in_the_order_of_their_receives_are_found_as_deep_as_is_said() {
        let exactly = names().into_iter().filter(|app| app.name() != "threads");
        for app in exactly {
            let depth = figures(&app, "posted").receives.hit_depth;
            let Some(wanted) = app.depth().posted else {
                assert_eq!(depth.count, 0, "{app}: no receive waits");
                continue;
            };
            assert!(depth.count > 0, "{app}");
            assert!(
                (depth.mean - wanted).abs() < 1e-9,
                "{app}: {depth:?}, {wanted}"
            );
        }
    }

    /// Which of its messages a process sends before others is drawn by lot.
    #[test]
    fn messages_of_threads_by_lot_are_found_as_deep_as_is_said_on_the_average() {
        for name in ["x=8,y=8", "x=3,y=5,stencil=faces", "x=2,y=3,z=4"] {
            let (mut sum, mut hits, mut wanted) = (0.0, 0.0, 0.0);
            for seed in 1..=5 {
                let app = AppName::parse(&format!("threads:{name},seed={seed}")).unwrap();
                let depth = figures(&app, "posted").receives.hit_depth;
                sum += depth.mean * depth.count as f64;
                hits += depth.count as f64;
                wanted = app.depth().posted.unwrap();
            }
            let mean = sum / hits;
            assert!(
                (mean - wanted).abs() < 0.05 * wanted,
                "{name}: {mean}, {wanted}"
            );
        }
    }

    #[test]
    fn messages_in_random_order_are_found_as_deep_as_is_said() {
        for app in names() {
            let Some(wanted) = app.depth().shuffled else {
                continue;
            };
            let (mut sum, mut hits) = (0.0, 0.0);
            for seed in 1..=5 {
                let depth = figures(&app, &format!("shuffled:seed={seed}"))
                    .receives
                    .hit_depth;
                sum += depth.mean * depth.count as f64;
                hits += depth.count as f64;
            }
            let mean = sum / hits;
            assert!(
                (mean - wanted).abs() < 0.05 * wanted,
                "{app}: {mean}, {wanted}"
            );
        }
    }

    #[test]
    fn every_application_comes_to_its_end_in_every_order() {
        for app in names() {
            let scripts = app.scripts();
            let (receives, sends) = scripts.iter().fold((0, 0), |(receives, sends), script| {
                (receives + script.receives(), sends + script.sends())
            });
            for model in ["causal", "random:seed=3"] {
                let figures = figures(&app, model);
                assert_eq!(
                    (figures.posts, figures.arrivals),
                    (receives as u64, sends as u64),
                    "{app}"
                );
            }
        }
    }

    /// What the public sample has (in the shared folder of the design): 1,440 receives of each of 2 x 2 ranks, 8 pairs of source
    /// and tag, no wildcards.
    #[test]
    fn a_sweep_of_two_by_two_ranks_is_that_of_the_public_sample() {
        let app = AppName::parse("sweep:x=2,y=2").unwrap();
        for script in app.scripts() {
            assert_eq!((script.receives(), script.sends()), (1440, 1440));
        }
        let figures = figures(&app, "causal");
        assert_eq!((figures.pairs, figures.wildcard_share), (8, 0.0));
    }

    #[test]
    fn what_would_never_be_made_is_refused_with_the_bound_and_the_parameters() {
        for (name, told) in [
            (
                "halo27:x=1024,y=1024,z=1024",
                "has 111669149696 messages, and a pattern has at most 8388608: choose a smaller x, y, z",
            ),
            (
                "halo7:messages=65536,steps=1048576",
                "has 26388279066624 messages, and a pattern has at most 8388608: choose a smaller messages, steps",
            ),
            (
                "fds:x=1024,y=1024,z=1024,messages=65536,steps=1048576",
                "choose a smaller x, y, z, messages, steps",
            ),
            (
                "sweep:x=1,y=1,angles=1024,planes=1024,iterations=1048576",
                "choose a smaller angles, planes, iterations",
            ),
            ("alltoall:ranks=16384", "choose a smaller ranks"),
            (
                "alltoall:ranks=16384,algorithm=pairwise",
                "choose a smaller ranks",
            ),
            (
                "transpose:side=128,steps=1048576",
                "choose a smaller side, steps",
            ),
            (
                "farm:workers=65536,tasks=1048576",
                "choose a smaller workers, tasks",
            ),
            (
                "farm:workers=65536",
                "has 429496729600 messages times receives at once, and a pattern has at most 4294967296: choose a smaller workers",
            ),
            (
                "amg:ranks=65536,levels=16",
                "choose a smaller ranks, levels",
            ),
            (
                "nbx:ranks=16384,targets=1024",
                "choose a smaller ranks, targets",
            ),
            (
                "particles:ranks=16384,neighbours=1024",
                "choose a smaller ranks, neighbours",
            ),
            (
                "storm:senders=16384,messages=4096",
                "choose a smaller senders, messages",
            ),
            ("threads:x=4096,y=4096", "choose a smaller x, y"),
            (
                "halo7:x=3,y=3,z=3,steps=1,messages=40000",
                "messages times receives at once",
            ),
        ] {
            let refused = AppName::parse(name).unwrap_err();
            assert_eq!(refused.exit_status(), 1, "{name}");
            let refused = refused.to_string();
            assert!(refused.contains(told), "{refused}");
        }
        // A pattern without many messages may have many ranks.
        assert!(AppName::parse("alltoall:ranks=16384,algorithm=bruck").is_ok());
    }

    /// What is counted ahead is what there is, but for the rims of a sweep.
    #[test]
    fn the_size_that_is_known_ahead_is_that_of_the_scripts() {
        for app in names() {
            let sends: usize = app.scripts().iter().map(Script::sends).sum();
            let ahead = (app.app.size)(&app.spec).messages;
            match app.name() {
                "sweep" => assert!(ahead >= sends as u128, "{app}: {ahead}, {sends}"),
                _ => assert_eq!(ahead, sends as u128, "{app}"),
            }
        }
    }

    #[test]
    fn who_asks_for_nothing_that_is_there_is_told_the_nearest() {
        let told = AppName::parse("hallo7").unwrap_err().to_string();
        assert!(told.contains("did you mean 'halo7'?"), "{told}");
        let told = AppName::parse("storm:sender=2").unwrap_err().to_string();
        assert!(told.contains("did you mean 'senders'?"), "{told}");
    }
}
