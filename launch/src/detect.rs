//! How a rank finds out who started it, and so how it joins its job.
//!
//! Launchers announce themselves in environment variables. They are asked in a fixed order, and
//! the first whose variables are all there and make sense is taken; the presence of one variable
//! proves nothing. Variables of which some are missing are an error that names them, because a
//! rank that went on alone would leave its job waiting.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Bootstrap, JobSecret, Rank};

use crate::error::{Error, Result};
use crate::pmi::{self, PmiBootstrap};
use crate::store::{Membership, StoreBootstrap};
use crate::variables;

/// The variable that holds the rank's number.
pub const RANK: &str = "TAGWIRE_RANK";
/// The variable that holds the number of ranks.
pub const SIZE: &str = "TAGWIRE_SIZE";
/// The variable that holds the rank's number among those on its machine.
pub const LOCAL_RANK: &str = "TAGWIRE_LOCAL_RANK";
/// The variable that holds the number of ranks on the rank's machine.
pub const LOCAL_SIZE: &str = "TAGWIRE_LOCAL_SIZE";
/// The variable that holds the store's socket name.
pub const STORE: &str = "TAGWIRE_STORE";
/// The variable that holds the job's secret.
pub const SECRET: &str = "TAGWIRE_SECRET";

/// The variable by which the user chooses how a rank joins its job: one of [`CHOICES`].
pub const LAUNCHER: &str = "TAGWIRE_LAUNCHER";
/// The values of [`LAUNCHER`].
pub const CHOICES: [&str; 4] = ["auto", "tagwire", "pmi", "single"];

/// The variables of this module that are no settings: whoever refuses unknown `TAGWIRE_` variables lets these pass.
pub const RESERVED: [&str; 7] = [RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, STORE, SECRET, LAUNCHER];

/// The variables that Tagwire's launcher sets for each rank.
pub const VARIABLES: [&str; 6] = [RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, STORE, SECRET];

/// Who may have started this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// Tagwire's own launcher.
    Tagwire,
    /// One that speaks PMI-1: `mpiexec` of MPICH or Intel MPI, gforker, `srun --mpi=pmi2`.
    Pmi,
    /// Nobody that we know: a job of one.
    Single,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tagwire => "tagwire run",
            Self::Pmi => "PMI-1",
            Self::Single => "single process",
        })
    }
}

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// The launchers in order.
    pub candidates: Vec<Candidate>,
    taken: Taken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Taken {
    Tagwire(Membership),
    Pmi(pmi::Place),
    Single,
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
/// When the variables of a launcher are incomplete or make no sense, or its store refuses this
/// rank.
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
        let choice = choice(&variable)?;
        let mut detection = Self {
            candidates: Vec::new(),
            taken: Taken::Single,
        };
        for (launcher, name, variables) in ASKED {
            let finding = if detection.taken != Taken::Single {
                Finding::NotAsked
            } else if choice != "auto" && choice != name {
                Finding::Absent(format!("{LAUNCHER} is '{choice}'"))
            } else if let Some((taken, rank, size)) = look(launcher, &variable)? {
                detection.taken = taken;
                Finding::Taken(format!("rank {rank} of {size}"))
            } else {
                Finding::Absent(format!("no variable of {} is set", variables.join(", ")))
            };
            detection.add(launcher, finding);
        }
        let finding = if detection.taken != Taken::Single {
            Finding::NotAsked
        } else if choice == "single" {
            Finding::Taken(format!("{LAUNCHER} says so"))
        } else if choice == "auto" {
            one_of_several(&variable)?;
            Finding::Taken("no launcher has announced itself".to_owned())
        } else {
            return Err(Error::Environment(format!(
                "{LAUNCHER} is '{choice}', and no launcher of that kind has started this process"
            )));
        };
        detection.add(Launcher::Single, finding);
        Ok(detection)
    }

    /// Who started this process.
    #[must_use]
    pub const fn launcher(&self) -> Launcher {
        match self.taken {
            Taken::Tagwire(_) => Launcher::Tagwire,
            Taken::Pmi(_) => Launcher::Pmi,
            Taken::Single => Launcher::Single,
        }
    }

    /// Joins the job that was found.
    ///
    /// # Errors
    /// When its store is gone or refuses this rank.
    pub fn join(self) -> Result<Detected> {
        let bootstrap: Box<dyn Bootstrap> = match &self.taken {
            Taken::Tagwire(membership) => Box::new(StoreBootstrap::connect(membership.clone())?),
            Taken::Pmi(place) => {
                let client = pmi::Client::open(place.descriptor)?;
                Box::new(PmiBootstrap::join(client, place.rank, place.size)?)
            }
            Taken::Single => Box::new(LocalJob::new(1)?.member(Rank::new(0))),
        };
        Ok(Detected {
            how: self.launcher(),
            detection: self,
            bootstrap,
        })
    }

    fn add(&mut self, launcher: Launcher, finding: Finding) {
        self.candidates.push(Candidate { launcher, finding });
    }
}

impl Membership {
    /// The environment variables that tell a rank of its membership.
    #[must_use]
    pub fn to_variables(&self) -> [(&'static str, String); 6] {
        [
            (RANK, self.rank.to_string()),
            (SIZE, self.size.to_string()),
            (LOCAL_RANK, self.local_rank.to_string()),
            (LOCAL_SIZE, self.local_size.to_string()),
            (STORE, self.store.clone()),
            (SECRET, self.secret.to_hex()),
        ]
    }
}

/// Returns how the user wants this process to join its job.
fn choice(variable: &impl Fn(&str) -> Option<OsString>) -> Result<String> {
    let Some(value) = variable(LAUNCHER) else {
        return Ok("auto".to_owned());
    };
    let chosen = value.to_str().filter(|value| CHOICES.contains(value));
    chosen.map(str::to_owned).ok_or_else(|| {
        let choices = CHOICES.join(", ");
        Error::Environment(format!("{LAUNCHER} is {value:?}, and may be {choices}"))
    })
}

/// The launchers that are asked for a job, in order: with the choice that names each, and the variables that it sets.
const ASKED: [(Launcher, &str, &[&str]); 2] = [
    (Launcher::Tagwire, "tagwire", &VARIABLES),
    (Launcher::Pmi, "pmi", &pmi::VARIABLES),
];

/// Returns the job that a launcher's variables tell of, this process's rank there and the job's size.
fn look(
    launcher: Launcher,
    variable: &impl Fn(&str) -> Option<OsString>,
) -> Result<Option<(Taken, u32, u32)>> {
    Ok(match launcher {
        Launcher::Tagwire => membership(variable)?.map(|membership| {
            let (rank, size) = (membership.rank.as_u32(), membership.size);
            (Taken::Tagwire(membership), rank, size)
        }),
        Launcher::Pmi => {
            pmi::place(variable)?.map(|place| (Taken::Pmi(place), place.rank, place.size))
        }
        Launcher::Single => None,
    })
}

/// How launchers that Tagwire cannot join by what they set say of how many a process is one.
struct Foreign {
    name: &'static str,
    /// All of them are set.
    marks: &'static [&'static str],
    /// The variable with the number of processes, where there is one.
    size: Option<&'static str>,
    way_out: &'static str,
}

/// Those that say of how many come first: one of one is settled by that.
const FOREIGN: [Foreign; 6] = [
    Foreign {
        name: "mpiexec of Open MPI",
        marks: &["OMPI_COMM_WORLD_RANK"],
        size: Some("OMPI_COMM_WORLD_SIZE"),
        way_out: "start it with tagwire run, or with mpiexec of MPICH",
    },
    Foreign {
        name: "srun",
        marks: &["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
        size: Some("SLURM_STEP_NUM_TASKS"),
        way_out: "srun --mpi=pmi2",
    },
    Foreign {
        name: "torchrun",
        marks: &["RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"],
        size: Some("WORLD_SIZE"),
        way_out: "start it with tagwire run",
    },
    Foreign {
        name: "PALS",
        marks: &["PALS_RANKID", "PALS_APID"],
        size: Some("PALS_SIZE"),
        way_out: "start it with tagwire run",
    },
    Foreign {
        name: "a PMIx launcher (prterun, or srun --mpi=pmix)",
        marks: &["PMIX_RANK", "PMIX_NAMESPACE"],
        size: None,
        way_out: "start it with tagwire run, mpiexec of MPICH, or srun --mpi=pmi2",
    },
    Foreign {
        name: "mpiexec -pmi-port",
        marks: &["PMI_PORT", "PMI_ID"],
        size: None,
        way_out: "start it without that option",
    },
];

/// How the variables begin by which other launchers give a process its place in their job.
const FOREIGN_PREFIXES: [&str; 8] = [
    "PMI_",
    "PMIX_",
    "HYDRA_",
    "HYDI_",
    "OMPI_COMM_WORLD_",
    "SLURM_PROCID",
    "SLURM_LOCALID",
    "SLURM_STEP_",
];

/// Whether a variable is one by which another launcher gives a process its place in its job.
pub(crate) fn is_of_foreign_launcher(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    FOREIGN_PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()))
}

/// Checks that this process is not one of several that a launcher has started and that cannot find each other: each
/// would be a job of one.
fn one_of_several(variable: &impl Fn(&str) -> Option<OsString>) -> Result<()> {
    for launcher in &FOREIGN {
        if !launcher.marks.iter().all(|name| variable(name).is_some()) {
            continue;
        }
        let size = launcher.size.and_then(&variable);
        let size = size.and_then(|size| size.to_str()?.parse::<u32>().ok());
        if size == Some(1) {
            return Ok(());
        }
        let of = size.map_or_else(String::new, |size| format!(" of {size}"));
        let Foreign { name, way_out, .. } = launcher;
        return Err(Error::Environment(format!(
            "this process is one{of} that {name} has started, and Tagwire cannot join them by what that sets ({}): {way_out}; {LAUNCHER}=single runs each as a job of its own",
            launcher.marks.join(", ")
        )));
    }
    Ok(())
}

/// What Tagwire's own variables say; `None` when none of them is set.
fn membership(variable: &impl Fn(&str) -> Option<OsString>) -> Result<Option<Membership>> {
    if !variables::are_set(variable, &VARIABLES, "a launcher sets them all")? {
        return Ok(None);
    }
    let text = |name: &str| variable(name).and_then(|value| value.into_string().ok());
    let number = |name: &str| {
        text(name)
            .and_then(|text| text.parse::<u32>().ok())
            .ok_or_else(|| {
                let value = variable(name).unwrap_or_default();
                Error::Environment(format!("{name} is {value:?}, which is no number of ranks"))
            })
    };
    let (rank, size) = (number(RANK)?, number(SIZE)?);
    let (local_rank, local_size) = (number(LOCAL_RANK)?, number(LOCAL_SIZE)?);
    for (name, rank, of, size) in [
        (RANK, rank, SIZE, size),
        (LOCAL_RANK, local_rank, LOCAL_SIZE, local_size),
    ] {
        if rank >= size {
            return Err(Error::Environment(format!(
                "{name} is {rank} and {of} is {size}"
            )));
        }
    }
    let store = text(STORE)
        .filter(|name| !name.is_empty())
        .ok_or_else(|| Error::Environment(format!("{STORE} names no socket")))?;
    // The value itself is not shown: it is the job's secret.
    let secret = text(SECRET)
        .as_deref()
        .and_then(JobSecret::from_hex)
        .ok_or_else(|| {
            Error::Environment(format!(
                "{SECRET} is not {} hexadecimal digits",
                2 * JobSecret::LEN
            ))
        })?;
    let rank = Rank::new(rank);
    Ok(Some(Membership {
        rank,
        size,
        local_rank,
        local_size,
        store,
        secret,
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn sample() -> HashMap<&'static str, String> {
        Membership {
            rank: Rank::new(2),
            size: 4,
            local_rank: 2,
            local_size: 4,
            store: "tagwire-here".to_owned(),
            secret: JobSecret::from_bytes([7; 32]),
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
        assert_eq!(detection.launcher(), Launcher::Tagwire);
        let Taken::Tagwire(membership) = detection.taken else {
            panic!("not taken")
        };
        assert_eq!(
            membership
                .to_variables()
                .into_iter()
                .collect::<HashMap<_, _>>(),
            sample()
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
        assert_eq!(examine(&all).unwrap().launcher(), Launcher::Pmi);
        all.extend(sample());
        assert_eq!(examine(&all).unwrap().launcher(), Launcher::Tagwire);
        all.insert(LAUNCHER, "pmi".to_owned());
        assert_eq!(examine(&all).unwrap().launcher(), Launcher::Pmi);
        all.insert(LAUNCHER, "single".to_owned());
        assert_eq!(examine(&all).unwrap().launcher(), Launcher::Single);
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

    #[test]
    fn one_of_several_is_never_a_job_of_one() {
        for launcher in FOREIGN {
            let mut all: HashMap<_, _> = launcher
                .marks
                .iter()
                .map(|name| (*name, "3".to_owned()))
                .collect();
            if let Some(size) = launcher.size {
                all.insert(size, "4".to_owned());
            }
            let error = examine(&all).unwrap_err().to_string();
            for part in [launcher.name, launcher.way_out, LAUNCHER] {
                assert!(error.contains(part), "{error}");
            }
            all.insert(LAUNCHER, "single".to_owned());
            assert_eq!(examine(&all).unwrap().launcher(), Launcher::Single);
            all.remove(LAUNCHER);
            if let Some(size) = launcher.size {
                all.insert(size, "1".to_owned());
                assert_eq!(examine(&all).unwrap().launcher(), Launcher::Single);
            }
        }
    }

    /// Open MPI's launcher sets PMIx's variables too.
    #[test]
    fn one_of_one_is_a_job_of_one_whatever_else_is_set() {
        for size in ["OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"] {
            let mut all: HashMap<_, _> = FOREIGN
                .iter()
                .filter(|launcher| launcher.size == Some(size) || launcher.name.contains("PMIx"))
                .flat_map(|launcher| launcher.marks)
                .map(|name| (*name, "0".to_owned()))
                .collect();
            all.insert(size, "1".to_owned());
            assert_eq!(examine(&all).unwrap().launcher(), Launcher::Single);
            all.insert(size, "2".to_owned());
            assert!(examine(&all).is_err());
        }
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
        assert_eq!(detection.launcher(), Launcher::Single);
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
