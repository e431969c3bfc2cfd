//! What a seed draws: where a trial runs, which program, with how many ranks, and what strikes them.

use std::fmt;

use tagwire_conformance::Chance;

use crate::blow::Blow;
use crate::disturbances::{self, Against, Disturbance, Toll};
use crate::grounds::{self, Ground};
use crate::job::Spec;
use crate::programs::{self, Program};

/// What a user chose, in place of what the seed draws.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// Run on this ground
    #[arg(long, value_name = "NAME", value_parser = named(grounds::ALL.iter().map(|ground| ground.name())))]
    pub ground: Option<String>,
    /// Run this program
    #[arg(long, value_name = "NAME", value_parser = named(programs::ALL.iter().map(|program| program.name())))]
    pub program: Option<String>,
    /// Strike with this disturbance alone
    #[arg(long, value_name = "NAME", value_parser = named(disturbances::ALL.iter().map(|one| one.name())))]
    pub disturbance: Option<String>,
    /// Have each rank send so many messages in the first flood of the program `flood`
    #[arg(long, value_name = "MESSAGES")]
    pub flood: Option<u64>,
}

/// Returns a parser of some names.
fn named(names: impl Iterator<Item = &'static str>) -> clap::builder::PossibleValuesParser {
    clap::builder::PossibleValuesParser::new(names)
}

impl Choice {
    /// Returns the disturbances that fit a program on a ground, of those that are wanted.
    fn disturbances(
        &self,
        ground: &dyn Ground,
        program: &dyn Program,
    ) -> Vec<&'static dyn Disturbance> {
        let calls_again = program.calls_again();
        let against = Against {
            ground,
            calls_again,
        };
        let all = disturbances::ALL.iter().copied();
        let fitting = all.filter(|one| is(one.name(), &self.disturbance) && one.fits(against));
        fitting.collect()
    }

    /// Returns the wanted grounds on which a program can be disturbed.
    fn grounds(&self, program: &dyn Program) -> Vec<&'static dyn Ground> {
        let all = grounds::ALL
            .iter()
            .copied()
            .filter(|one| is(one.name(), &self.ground));
        all.filter(|one| program.runs_on(*one) && !self.disturbances(*one, program).is_empty())
            .collect()
    }

    /// Returns the wanted programs that can be disturbed somewhere.
    fn programs(&self) -> Vec<&'static dyn Program> {
        let all = programs::ALL
            .iter()
            .copied()
            .filter(|one| is(one.name(), &self.program));
        all.filter(|one| !self.grounds(*one).is_empty()).collect()
    }
}

/// Whether a name is wanted.
fn is(name: &str, wanted: &Option<String>) -> bool {
    wanted.as_ref().is_none_or(|wanted| wanted == name)
}

impl fmt::Display for Choice {
    /// As options of the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = [
            ("ground", self.ground.clone()),
            ("program", self.program.clone()),
            ("disturbance", self.disturbance.clone()),
            ("flood", self.flood.map(|flood| flood.to_string())),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                write!(f, " --{option} {value}")?;
            }
        }
        Ok(())
    }
}

/// A trial before it runs.
pub struct Plan {
    /// Where.
    pub ground: &'static dyn Ground,
    /// What.
    pub program: &'static dyn Program,
    /// Its job: how many ranks, and what strikes them, in the order of its beginnings.
    pub job: Spec,
}

impl Plan {
    /// Draws one. Each part has numbers of its own, so that a choice of one changes no other.
    ///
    /// # Errors
    /// When no disturbance or program fits what was chosen.
    pub fn of(seed: u64, choice: &Choice) -> Result<Self, String> {
        let mut chance = Chance::new(seed);
        let mut part = || Chance::new(chance.word());
        let (mut place, mut what, mut size, mut strokes, mut setting) =
            (part(), part(), part(), part(), part());
        let programs = choice.programs();
        let none = || format!("nothing fits{choice}");
        if programs.is_empty() {
            return Err(none());
        }
        let program = what.one_of(&programs);
        let grounds = choice.grounds(program);
        let ground = place.one_of(&grounds);
        let ranks = program.ranks(&mut size);
        let fitting = choice.disturbances(ground, program);
        let mut blows = Vec::new();
        for _ in 0..1 + strokes.below(4) {
            let one = strokes.one_of(&fitting);
            let blow = one.draw(&mut strokes, ranks);
            if fits_beside(&blow, one, &blows, ranks) {
                blows.push(blow);
            }
        }
        blows.sort_by_key(|blow| blow.at);
        let mut settings = ground.settings(&mut setting);
        let mut faults: Vec<String> = Vec::new();
        for blow in &blows {
            for (name, value) in disturbances::of(blow).settings(blow) {
                match name {
                    "TAGWIRE_FAULT" => faults.push(value),
                    name => settings.push((name, value)),
                }
            }
        }
        if !faults.is_empty() {
            let faults = format!("seed={seed},{}", faults.join(","));
            settings.push(("TAGWIRE_FAULT", faults));
        }
        let job = Spec {
            seed,
            program: program.name(),
            ranks,
            blows,
            settings,
            flood: choice.flood,
            flood_kib: ground.flood_kib(),
        };
        Ok(Self {
            ground,
            program,
            job,
        })
    }

    /// Whether it can be run on every machine, with nothing beside this program.
    pub fn runs_everywhere(&self) -> bool {
        self.ground.is_everywhere() && !self.program.is_in_c()
    }

    /// Whether ranks may not get what was sent to them.
    pub fn anything_goes(&self) -> bool {
        let mut blows = self.job.blows.iter();
        blows.any(|blow| disturbances::of(blow).toll() == Toll::Anything)
    }
}

/// Whether a blow can be struck beside others: somebody survives, and nobody is struck twice by the same.
fn fits_beside(blow: &Blow, one: &dyn Disturbance, others: &[Blow], ranks: u32) -> bool {
    let kills = |blow: &&Blow| disturbances::of(blow).toll() != Toll::None;
    let twice = others
        .iter()
        .any(|other| other.name == blow.name && other.rank == blow.rank);
    let victims = others.iter().filter(kills).count() as u32;
    !twice && (one.toll() == Toll::None || victims + 2 < ranks.max(3))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ground, program) = (self.ground.name(), self.program.name());
        write!(
            f,
            "seed {}: {program} of {} ranks on {ground}",
            self.job.seed, self.job.ranks
        )?;
        for blow in &self.job.blows {
            write!(f, " {blow}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_one_plan() {
        for seed in 0..200 {
            let draw = || Plan::of(seed, &Choice::default()).unwrap();
            let (first, second) = (draw(), draw());
            assert_eq!(first.to_string(), second.to_string());
            assert_eq!(first.job.settings, second.job.settings);
            assert!(!first.job.blows.is_empty());
        }
    }

    #[test]
    fn somebody_survives() {
        for seed in 0..2000 {
            let plan = Plan::of(seed, &Choice::default()).unwrap();
            let dies =
                |blow: &&Blow| matches!(disturbances::of(blow).toll(), Toll::Dies | Toll::MayDie);
            let dead = plan.job.blows.iter().filter(dies).count();
            assert!(dead < plan.job.ranks as usize, "{plan}");
        }
    }

    #[test]
    fn a_choice_leaves_the_rest() {
        for seed in 0..50 {
            let drawn = Plan::of(seed, &Choice::default()).unwrap();
            let program = Some(drawn.program.name().to_owned());
            let chosen = Choice {
                program,
                ..Choice::default()
            };
            assert_eq!(
                drawn.to_string(),
                Plan::of(seed, &chosen).unwrap().to_string()
            );
        }
    }

    #[test]
    fn faults_meet_those_who_mend_them() {
        for seed in 0..2000 {
            let plan = Plan::of(seed, &Choice::default()).unwrap();
            for blow in &plan.job.blows {
                let (ground, calls_again) = (plan.ground, plan.program.calls_again());
                let against = Against {
                    ground,
                    calls_again,
                };
                assert!(disturbances::of(blow).fits(against), "{plan}");
            }
        }
    }
}
