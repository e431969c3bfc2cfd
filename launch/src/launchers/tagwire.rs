//! `tagwire run`.

use tagwire_base::{Bootstrap, JobSecret, Rank};

use super::{Found, Join, Known, Launcher, Place};
use crate::environment::Environment;
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

/// The variable that holds the number of the rank's program among those of the job, as `MPI_APPNUM` counts.
pub const APPLICATION: &str = "TAGWIRE_APPNUM";

/// The variables that Tagwire's launcher sets for each rank, and [`APPLICATION`] beside them.
pub const VARIABLES: [&str; 6] = [RANK, SIZE, LOCAL_RANK, LOCAL_SIZE, STORE, SECRET];

/// Tagwire's own launcher.
#[derive(Debug)]
pub(crate) struct Tagwire;

impl Known for Tagwire {
    fn launcher(&self) -> Launcher {
        Launcher("tagwire run")
    }

    fn choice(&self) -> &'static str {
        "tagwire"
    }

    fn find(&self, environment: &Environment<'_>) -> Result<Found> {
        if !environment.has_all(&VARIABLES, "a launcher sets them all")? {
            return Ok(Found::unset(&VARIABLES));
        }
        let (rank, size) = environment.rank_of(RANK, SIZE)?;
        let (local_rank, local_size) = environment.rank_of(LOCAL_RANK, LOCAL_SIZE)?;
        let store = environment
            .text(STORE)
            .filter(|name| !name.is_empty())
            .ok_or_else(|| Error::Environment(format!("{STORE} names no socket")))?;
        let application = match environment.has(APPLICATION) {
            true => Some(environment.number(APPLICATION)?),
            false => None,
        };
        // The value itself is not shown: it is the job's secret.
        let secret = environment
            .text(SECRET)
            .as_deref()
            .and_then(JobSecret::from_hex)
            .ok_or_else(|| {
                Error::Environment(format!(
                    "{SECRET} is not {} hexadecimal digits",
                    2 * JobSecret::LEN
                ))
            })?;
        Ok(Found::Rank(Box::new(Membership {
            rank: Rank::new(rank),
            size,
            local_rank,
            local_size,
            store,
            secret,
            application,
        })))
    }
}

impl Place for Membership {
    fn describe(&self) -> String {
        format!("rank {} of {}", self.rank, self.size)
    }
}

impl Join for Membership {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        Ok(Box::new(StoreBootstrap::connect(self.clone())?))
    }
}

impl Membership {
    /// The environment variables that tell a rank of its membership.
    #[must_use]
    pub fn to_variables(&self) -> Vec<(&'static str, String)> {
        let application = self
            .application
            .map(|number| (APPLICATION, number.to_string()));
        let place = [
            (RANK, self.rank.to_string()),
            (SIZE, self.size.to_string()),
            (LOCAL_RANK, self.local_rank.to_string()),
            (LOCAL_SIZE, self.local_size.to_string()),
            (STORE, self.store.clone()),
            (SECRET, self.secret.to_hex()),
        ];
        place.into_iter().chain(application).collect()
    }
}
