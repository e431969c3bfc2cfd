//! Launchers with a PMIx server: PRRTE (`prterun`, and `mpiexec` of Open MPI 5), and `srun --mpi=pmix`.

use super::{Found, Known, Launcher, Place};
use crate::environment::Environment;
use crate::error::{Error, Result};

/// The variable that names the file of the library that speaks to the server.
pub const LIBRARY: &str = "TAGWIRE_LIBPMIX";

const VARIABLES: [&str; 2] = ["PMIX_RANK", "PMIX_NAMESPACE"];

/// Where the server is, in the wire protocols of the library's versions.
const SERVERS: [&str; 6] = [
    "PMIX_SERVER_URI41",
    "PMIX_SERVER_URI4",
    "PMIX_SERVER_URI3",
    "PMIX_SERVER_URI21",
    "PMIX_SERVER_URI2",
    "PMIX_SERVER_URI",
];

const ADVICE: &str = "a PMIx launcher (prterun, mpiexec of Open MPI 5, srun --mpi=pmix) sets them all; TAGWIRE_LAUNCHER=single runs this process alone";

/// A launcher with a PMIx server.
#[derive(Debug)]
pub(crate) struct Pmix;

/// A rank of such a launcher's job.
#[derive(Debug)]
pub(crate) struct OfPmix {
    rank: u32,
    namespace: String,
}

impl Known for Pmix {
    fn launcher(&self) -> Launcher {
        Launcher("PMIx")
    }

    fn choice(&self) -> &'static str {
        "pmix"
    }

    fn find(&self, environment: &Environment<'_>) -> Result<Found> {
        if !environment.has_all(&VARIABLES, ADVICE)? {
            return Ok(Found::unset(&VARIABLES));
        }
        if !SERVERS.iter().any(|name| environment.has(name)) {
            return Err(Error::Environment(format!(
                "{} are set, and none of {}: {ADVICE}",
                VARIABLES.join(" and "),
                SERVERS.join(", ")
            )));
        }
        Ok(Found::Rank(Box::new(OfPmix {
            rank: environment.number("PMIX_RANK")?,
            namespace: environment.text("PMIX_NAMESPACE").unwrap_or_default(),
        })))
    }
}

impl Place for OfPmix {
    fn describe(&self) -> String {
        format!("rank {} of {}", self.rank, self.namespace)
    }
}
