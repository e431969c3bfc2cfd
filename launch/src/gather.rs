//! What the ranks of a job do first, where no launcher of ours has told them: they learn the job's secret, and who is on
//! their host.

use tagwire_base::bootstrap::Locality;
use tagwire_base::{Bootstrap, Error, JobSecret, Rank};

use crate::error::Result;
use crate::{host, patience};

/// The key under which rank 0 puts the job's secret.
const SECRET: &str = "secret";

/// Returns where `rank` runs, while it does not know of any other.
pub(crate) const fn alone(rank: Rank) -> Locality {
    Locality {
        local_rank: 0,
        local_size: 1,
        first_local: rank,
        address: None,
    }
}

/// Returns the secret that rank 0 draws, and where this rank runs. Every rank calls it; `launcher` names who started them.
///
/// # Errors
/// When the others do not come in time, or `job` breaks.
pub(crate) fn gather(job: &mut dyn Bootstrap, launcher: &str) -> Result<(JobSecret, Locality)> {
    let patience = patience::of_environment()?;
    host::announce(job)?;
    let drawn = if job.rank() == Rank::new(0) {
        let secret = JobSecret::generate()?;
        job.put(SECRET, secret.as_bytes())?;
        Some(secret)
    } else {
        None
    };
    patience::late(job.fence(patience), launcher)?;
    let secret = match drawn {
        Some(secret) => secret,
        None => secret_of(job.get(Rank::new(0), SECRET, patience)?)?,
    };
    Ok((secret, host::group(job, patience)?))
}

fn secret_of(bytes: Vec<u8>) -> tagwire_base::Result<JobSecret> {
    let bytes = bytes
        .try_into()
        .map_err(|_| Error::Bootstrap("rank 0 put a secret of another length".to_owned()))?;
    Ok(JobSecret::from_bytes(bytes))
}
