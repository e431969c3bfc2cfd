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
use tagwire_base::{Bootstrap, JobSecret, Rank};

use crate::error::{Error, Result};
use crate::store::{Membership, StoreBootstrap};

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

/// The variables that Tagwire's launcher sets for each rank. They are no settings: whoever
/// refuses unknown `TAGWIRE_` variables lets these pass.
pub const VARIABLES: [&str; 6] = [RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, STORE, SECRET];

/// Who may have started this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Launcher {
    /// Tagwire's own launcher.
    Tagwire,
    /// Nobody that we know: a job of one.
    Single,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tagwire => "tagwire run",
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
        let mut detection = Self {
            candidates: Vec::new(),
            taken: Taken::Single,
        };
        match membership(&variable)? {
            Some(membership) => {
                let why = format!("rank {} of {}", membership.rank, membership.size);
                detection.add(Launcher::Tagwire, Finding::Taken(why));
                detection.add(Launcher::Single, Finding::NotAsked);
                detection.taken = Taken::Tagwire(membership);
            }
            None => {
                let why = format!("no variable of {} is set", VARIABLES.join(", "));
                detection.add(Launcher::Tagwire, Finding::Absent(why));
                let why = "no launcher has announced itself".to_owned();
                detection.add(Launcher::Single, Finding::Taken(why));
            }
        }
        Ok(detection)
    }

    /// Who started this process.
    #[must_use]
    pub const fn launcher(&self) -> Launcher {
        match self.taken {
            Taken::Tagwire(_) => Launcher::Tagwire,
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

/// What Tagwire's own variables say; `None` when none of them is set.
fn membership(variable: &impl Fn(&str) -> Option<OsString>) -> Result<Option<Membership>> {
    let (set, missing): (Vec<&str>, Vec<&str>) =
        VARIABLES.iter().partition(|name| variable(name).is_some());
    if set.is_empty() {
        return Ok(None);
    }
    if !missing.is_empty() {
        return Err(Error::Environment(format!(
            "{} is set and {} is missing: a launcher sets them all",
            set.join(", "),
            missing.join(", ")
        )));
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
