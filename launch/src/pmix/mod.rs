//! PMIx, by which PRRTE (`prterun`, and with it `mpiexec` of Open MPI 5) and `srun --mpi=pmix` let ranks find each other.

mod events;
mod library;
mod raw;

use std::time::{Duration, Instant};

use tagwire_base::bootstrap::{Attribute, MemberEvent};
use tagwire_base::{Bootstrap, Rank};

use crate::error::Result;
use crate::key_values::{KeyValueBootstrap, KeyValues};
use crate::launchers::{Join, OfPmix};
use crate::patience::{self, LATE, Pauses};
use library::{Library, WILDCARD, failed};
use raw::Value;

impl Join for OfPmix {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        let (client, rank, size) = Client::open()?;
        Ok(Box::new(KeyValueBootstrap::join(client, rank, size)?))
    }
}

/// A rank's connection to its launcher.
#[derive(Debug)]
struct Client {
    library: Library,
    /// How long a reply may take that waits for no other rank.
    patience: Duration,
}

impl Client {
    /// Connects to the launcher. Returns the connection with the rank and the job's size.
    ///
    /// # Errors
    /// When there is no library, or the launcher does not answer it.
    fn open() -> Result<(Self, Rank, u32)> {
        let patience = patience::of_environment()?;
        let mut client = Self {
            library: Library::open()?,
            patience,
        };
        let rank = client.library.rank();
        let size = client.number(WILDCARD, "pmix.job.size")?;
        let unsaid = || {
            let within = patience.as_secs_f64();
            failed(format!(
                "its server says of no number of ranks ('pmix.job.size') within {within} s ({LATE})"
            ))
        };
        let size = size.ok_or_else(unsaid)?;
        if rank >= size {
            return Err(failed(format!(
                "its server says that this is rank {rank} of {size}"
            )));
        }
        Ok((client, Rank::new(rank), size))
    }

    /// Returns a number of a rank, or of the whole job, where the launcher says it.
    fn number(&mut self, rank: u32, key: &str) -> Result<Option<u32>> {
        Ok(match self.library.get(rank, key, self.patience)? {
            Some(Value::Number(number)) => Some(number),
            _ => None,
        })
    }
}

impl KeyValues for Client {
    const NAME: &'static str = "PMIx";

    fn put(&mut self, _: Rank, key: &str, value: &[u8]) -> Result<()> {
        self.library.put(key, value)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>> {
        let deadline = Instant::now().checked_add(timeout);
        let left = || deadline.map_or(timeout, |end| end.saturating_duration_since(Instant::now()));
        let mut pauses = Pauses::new();
        loop {
            match self.library.get(rank.as_u32(), key, left())? {
                Some(Value::Bytes(bytes)) => return Ok(Some(bytes)),
                Some(other) => {
                    return Err(failed(format!(
                        "what rank {rank} put as '{key}' came back as {other:?}"
                    )));
                }
                None if left().is_zero() => return Ok(None),
                None => pauses.sleep(),
            }
        }
    }

    fn barrier(&mut self, timeout: Duration) -> Result<Option<()>> {
        self.library.fence(timeout)
    }

    fn attribute(&mut self, attribute: Attribute) -> Option<u32> {
        let own = self.library.rank();
        let number = match attribute {
            Attribute::UniverseSize => self.number(WILDCARD, "pmix.univ.size"),
            Attribute::ApplicationNumber => self.number(own, "pmix.appnum"),
            _ => Ok(None),
        };
        number.ok().flatten()
    }

    fn events(&mut self) -> Vec<MemberEvent> {
        self.library.events()
    }

    fn abort(&mut self, status: i32) {
        self.library.abort(status);
    }

    fn finalize(&mut self) -> Result<()> {
        self.library.finalize()
    }
}
