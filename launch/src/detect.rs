//! How a rank finds out who started it, and so how it joins its job.
//!
//! Launchers announce themselves in environment variables. They are asked in a fixed order, and
//! the first whose variables are all there and make sense is taken; the presence of one variable
//! proves nothing. Variables of which some are missing are an error that names them, because a
//! rank that went on alone would leave its job waiting.

use std::env;
use std::ffi::OsString;
use std::fmt;

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Bootstrap, Rank};

use crate::environment::Environment;
pub use crate::environment::LAUNCHER;
use crate::error::{Error, Result};
use crate::launchers::{self, Found, KNOWN, Place};
pub use crate::launchers::{
    APPLICATION, LIBPMIX, LOCAL_RANK, LOCAL_SIZE, Launcher, RANK, RENDEZVOUS_SECRET, SECRET, SIZE,
    STORE, VARIABLES,
};
pub use crate::patience::LATE;

/// The variables of this module that are no settings: whoever refuses unknown `TAGWIRE_` variables lets these pass.
pub const RESERVED: [&str; 12] = [
    APPLICATION,
    RANK,
    SIZE,
    LOCAL_RANK,
    LOCAL_SIZE,
    STORE,
    SECRET,
    LAUNCHER,
    LATE,
    LIBPMIX,
    RENDEZVOUS_SECRET,
    // What `tagwire bench` tells the ranks that it starts, those of MPI on Tagwire too.
    "TAGWIRE_BENCH_PLAN",
];

/// The choices beside the launchers' own.
const AUTO: &str = "auto";
const SINGLE: &str = "single";

/// What was found of one launcher.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// This one is taken; with what speaks for it.
    Taken(String),
    /// Not this one; with the reason.
    Absent(String),
    /// Not asked, because an earlier one was taken.
    NotAsked,
}

/// One launcher and what was found of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The launcher.
    pub launcher: Launcher,
    /// What was found.
    pub finding: Finding,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.finding {
            Finding::Taken(why) => write!(f, "{}: taken, {why}", self.launcher),
            Finding::Absent(why) => write!(f, "{}: no, {why}", self.launcher),
            Finding::NotAsked => write!(f, "{}: not asked", self.launcher),
        }
    }
}

/// What the environment says, before anything is connected: the launchers in the order in which
/// they were asked, exactly one of them taken.
#[derive(Debug)]
pub struct Detection {
    /// The launchers in order.
    pub candidates: Vec<Candidate>,
    launcher: Launcher,
    /// `None` for a job of one.
    place: Option<Box<dyn Place>>,
}

/// A joined job, and how it was found.
pub struct Detected {
    /// Who started this process.
    pub how: Launcher,
    /// Which launchers were asked.
    pub detection: Detection,
    /// This rank's view of the job.
    pub bootstrap: Box<dyn Bootstrap>,
}

impl fmt::Debug for Detected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detected")
            .field("how", &self.how)
            .finish_non_exhaustive()
    }
}

/// Finds out who started this process and joins its job.
///
/// ```
/// let detected = tagwire_launch::detect::detect()?;
/// println!("rank {} of {}", detected.bootstrap.rank(), detected.bootstrap.size());
/// # Ok::<(), tagwire_launch::Error>(())
/// ```
///
/// # Errors
/// When the variables of a launcher are incomplete or make no sense, or it cannot be joined.
pub fn detect() -> Result<Detected> {
    Detection::of_environment()?.join()
}

impl Detection {
    /// What this process's environment says. Connects to nothing.
    ///
    /// # Errors
    /// When the variables of a launcher are incomplete or make no sense.
    pub fn of_environment() -> Result<Self> {
        Self::examine(|name| env::var_os(name))
    }

    /// What an environment says in which `variable` looks names up. Connects to nothing.
    ///
    /// # Errors
    /// When the variables of a launcher are incomplete or make no sense.
    pub fn examine(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let environment = Environment(&variable);
        let choice = choice(&environment)?;
        let mut detection = Self {
            candidates: Vec::new(),
            launcher: Launcher::SINGLE,
            place: None,
        };
        for known in KNOWN {
            let finding = if detection.place.is_some() {
                Finding::NotAsked
            } else if choice != AUTO && choice != known.choice() {
                Finding::Absent(format!("{LAUNCHER} is '{choice}'"))
            } else {
                match known.find(&environment)? {
                    Found::No(why) => Finding::Absent(why),
                    Found::Rank(place) => {
                        let description = place.describe();
                        detection.launcher = known.launcher();
                        detection.place = Some(place);
                        Finding::Taken(description)
                    }
                }
            };
            detection.add(known.launcher(), finding);
        }
        let finding = if detection.place.is_some() {
            Finding::NotAsked
        } else if choice == SINGLE {
            Finding::Taken(format!("{LAUNCHER} says so"))
        } else if choice == AUTO {
            launchers::one_of_several(&environment)?;
            Finding::Taken("no launcher has started this process as one of several".to_owned())
        } else {
            return Err(Error::Environment(format!(
                "{LAUNCHER} is '{choice}', and no launcher of that kind has started this process"
            )));
        };
        detection.add(Launcher::SINGLE, finding);
        Ok(detection)
    }

    /// Who started this process.
    #[must_use]
    pub const fn launcher(&self) -> Launcher {
        self.launcher
    }

    /// Joins the job that was found.
    ///
    /// # Errors
    /// When the launcher, or the rank that leads the others together, cannot be reached or refuses this rank.
    pub fn join(self) -> Result<Detected> {
        let bootstrap: Box<dyn Bootstrap> = match &self.place {
            Some(place) => place.join()?,
            None => Box::new(LocalJob::new(1)?.member(Rank::new(0))),
        };
        Ok(Detected {
            how: self.launcher,
            detection: self,
            bootstrap,
        })
    }

    fn add(&mut self, launcher: Launcher, finding: Finding) {
        self.candidates.push(Candidate { launcher, finding });
    }
}

/// Returns the values of [`LAUNCHER`].
pub fn choices() -> impl Iterator<Item = &'static str> {
    let launchers = KNOWN.iter().map(|known| known.choice());
    [AUTO].into_iter().chain(launchers).chain([SINGLE])
}

/// Returns how the user wants this process to join its job.
fn choice(environment: &Environment<'_>) -> Result<String> {
    let Some(value) = (environment.0)(LAUNCHER) else {
        return Ok(AUTO.to_owned());
    };
    let chosen = value
        .to_str()
        .and_then(|value| choices().find(|name| *name == value));
    chosen.map(str::to_owned).ok_or_else(|| {
        let choices: Vec<&str> = choices().collect();
        Error::Environment(format!(
            "{LAUNCHER} is {value:?}, and may be {}",
            choices.join(", ")
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use tagwire_base::JobSecret;

    use super::*;
    use crate::store::Membership;

    fn sample() -> HashMap<&'static str, String> {
        Membership {
            rank: Rank::new(2),
            size: 4,
            local_rank: 2,
            local_size: 4,
            store: "tagwire-here".to_owned(),
            secret: JobSecret::from_bytes([7; 32]),
            application: Some(1),
        }
        .to_variables()
        .into_iter()
        .collect()
    }

    fn examine(variables: &HashMap<&'static str, String>) -> Result<Detection> {
        Detection::examine(|name| variables.get(name).map(OsString::from))
    }

    #[test]
    fn variables_are_read_back() {
        let detection = examine(&sample()).unwrap();
        assert_eq!(detection.launcher().name(), "tagwire run");
        assert_eq!(
            detection.candidates[0].finding,
            Finding::Taken("rank 2 of 4".to_owned())
        );
        assert_eq!(detection.candidates[1].finding, Finding::NotAsked);
    }

    fn variables(text: &[(&'static str, &str)]) -> HashMap<&'static str, String> {
        text.iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    }

    const PMI: [(&str, &str); 3] = [("PMI_FD", "7"), ("PMI_RANK", "1"), ("PMI_SIZE", "2")];

    #[test]
    fn a_pmi_is_taken_after_our_own_variables() {
        let mut all = variables(&PMI);
        assert_eq!(examine(&all).unwrap().launcher().name(), "PMI-1");
        all.extend(sample());
        assert_eq!(examine(&all).unwrap().launcher().name(), "tagwire run");
        all.insert(LAUNCHER, "pmi".to_owned());
        assert_eq!(examine(&all).unwrap().launcher().name(), "PMI-1");
        all.insert(LAUNCHER, "single".to_owned());
        assert_eq!(examine(&all).unwrap().launcher(), Launcher::SINGLE);
    }

    #[test]
    fn half_a_pmi_and_nonsense_are_named() {
        for (name, _) in PMI {
            let mut all = variables(&PMI);
            all.remove(name);
            let error = examine(&all).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is missing")), "{error}");
        }
        for (name, value) in [("PMI_FD", "-1"), ("PMI_RANK", "2"), ("PMI_SIZE", "two")] {
            let mut all = variables(&PMI);
            all.insert(name, value.to_owned());
            let error = examine(&all).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    /// Each of these is one of several by the word of its launcher.
    const OF_SEVERAL: [(&str, &[(&str, &str)]); 4] = [
        (
            "pmix",
            &[
                ("PMIX_RANK", "1"),
                ("PMIX_NAMESPACE", "job"),
                ("PMIX_SERVER_URI41", "here"),
            ],
        ),
        ("pmi", &[("PMI_PORT", "127.0.0.1:9"), ("PMI_ID", "1")]),
        (
            "torchrun",
            &[
                ("RANK", "1"),
                ("WORLD_SIZE", "2"),
                ("MASTER_ADDR", "127.0.0.1"),
                ("MASTER_PORT", "9"),
            ],
        ),
        (
            "slurm",
            &[
                ("SLURM_PROCID", "1"),
                ("SLURM_STEP_NUM_TASKS", "2"),
                ("SLURM_STEP_NUM_NODES", "1"),
                ("SLURM_JOB_ID", "7"),
                ("SLURM_STEP_ID", "0"),
            ],
        ),
    ];

    #[test]
    fn each_launcher_is_taken_by_its_variables_and_by_choice() {
        let everything: Vec<_> = OF_SEVERAL
            .iter()
            .flat_map(|(_, set)| set.iter().copied())
            .collect();
        for (choice, set) in OF_SEVERAL {
            let taken = |all: &HashMap<_, _>| {
                let detection = examine(all).unwrap();
                let known = KNOWN.iter().find(|known| known.choice() == choice).unwrap();
                assert_eq!(detection.launcher(), known.launcher());
            };
            taken(&variables(set));
            let mut all = variables(&everything);
            all.insert(LAUNCHER, choice.to_owned());
            taken(&all);
            all.insert(LAUNCHER, SINGLE.to_owned());
            assert_eq!(examine(&all).unwrap().launcher(), Launcher::SINGLE);
        }
        // The order is the one of the table.
        assert_eq!(
            examine(&variables(&everything)).unwrap().launcher().name(),
            "PMIx"
        );
    }

    #[test]
    fn a_part_of_what_a_launcher_sets_is_never_a_job_of_one() {
        for (choice, set) in OF_SEVERAL {
            // torchrun's names are others' too: without a rank of several they say nothing.
            let says_nothing = |name: &str| choice == "torchrun" && !name.starts_with("MASTER");
            for (gone, _) in set.iter().filter(|(name, _)| !says_nothing(name)) {
                let mut all = variables(set);
                all.remove(gone);
                let error = examine(&all).map(|found| found.launcher());
                let error = error.unwrap_err().to_string();
                for part in [gone, LAUNCHER] {
                    assert!(error.contains(part), "{choice} without {gone}: {error}");
                }
            }
        }
    }

    #[test]
    fn one_of_one_is_a_job_of_one() {
        for (choice, size) in [
            ("torchrun", "WORLD_SIZE"),
            ("slurm", "SLURM_STEP_NUM_TASKS"),
        ] {
            let (_, set) = OF_SEVERAL.iter().find(|(name, _)| *name == choice).unwrap();
            let mut all = variables(set);
            for (name, value) in [(size, "1"), ("RANK", "0"), ("SLURM_PROCID", "0")] {
                all.insert(name, value.to_owned());
            }
            assert_eq!(examine(&all).unwrap().launcher(), Launcher::SINGLE);
        }
    }

    #[test]
    fn a_slurm_step_on_several_hosts_has_to_have_a_pmi() {
        let (_, set) = OF_SEVERAL[3];
        let mut all = variables(set);
        all.insert("SLURM_STEP_NUM_NODES", "2".to_owned());
        let error = examine(&all).unwrap_err().to_string();
        assert!(
            error.contains("srun --mpi=pmi2") && error.contains("2 hosts"),
            "{error}"
        );
    }

    #[test]
    fn a_choice_that_is_none_and_one_that_cannot_be_are_refused() {
        for (value, part) in [
            ("hydra", "may be auto"),
            ("pmi", "no launcher"),
            ("tagwire", "no launcher"),
        ] {
            let error = examine(&variables(&[(LAUNCHER, value)]))
                .unwrap_err()
                .to_string();
            assert!(error.contains(part) && error.contains(value), "{error}");
        }
    }

    #[test]
    fn nothing_set_is_a_single_process() {
        let detection = examine(&HashMap::new()).unwrap();
        assert_eq!(detection.launcher(), Launcher::SINGLE);
        assert!(matches!(
            detection.candidates[0].finding,
            Finding::Absent(_)
        ));
        let detected = detection.join().unwrap();
        assert_eq!(
            (detected.bootstrap.rank(), detected.bootstrap.size()),
            (Rank::new(0), 1)
        );
    }

    #[test]
    fn each_missing_variable_is_named() {
        for name in VARIABLES {
            let mut variables = sample();
            variables.remove(name);
            let error = examine(&variables).unwrap_err().to_string();
            assert!(error.contains(&format!("and {name} is missing")), "{error}");
        }
    }

    #[test]
    fn nonsense_is_refused_and_named() {
        for (name, value) in [
            (RANK, "4"),
            (RANK, "-1"),
            (RANK, "4294967295"),
            (SIZE, "0"),
            (SIZE, "many"),
            (LOCAL_RANK, "9"),
            (APPLICATION, "first"),
            (STORE, ""),
            (SECRET, "beef"),
        ] {
            let mut variables = sample();
            variables.insert(name, value.to_owned());
            let error = examine(&variables).unwrap_err().to_string();
            assert!(error.contains(name), "{name}={value}: {error}");
            assert!(name != SECRET || !error.contains("beef"), "{error}");
        }
    }
}
