//! What the ranks of a job do first, where no launcher of ours has told them: they learn the job's secret, and who is on
//! their host.

use tagwire_base::bootstrap::Locality;
use tagwire_base::{Bootstrap, Error, JobSecret, Rank};

use crate::error::Result;
use crate::store::wire::VERSION;
use crate::{host, patience};

/// The key under which rank 0 puts the version of what it says to others, and the job's secret.
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
/// When the others do not come in time, rank 0 has another version of Tagwire, or `job` breaks.
pub(crate) fn gather(job: &mut dyn Bootstrap, launcher: &str) -> Result<(JobSecret, Locality)> {
    let patience = patience::of_environment()?;
    host::announce(job)?;
    let drawn = if job.rank() == Rank::new(0) {
        let secret = JobSecret::generate()?;
        job.put(SECRET, &card_of(VERSION, &secret))?;
        Some(secret)
    } else {
        None
    };
    patience::late(job.fence(patience), launcher)?;
    let secret = match drawn {
        Some(secret) => secret,
        None => secret_of(&job.get(Rank::new(0), SECRET, patience)?)?,
    };
    Ok((secret, host::group(job, patience)?))
}

/// Returns what rank 0 puts: the version, and the secret.
fn card_of(version: u16, secret: &JobSecret) -> Vec<u8> {
    [&version.to_le_bytes()[..], secret.as_bytes()].concat()
}

fn secret_of(card: &[u8]) -> tagwire_base::Result<JobSecret> {
    let (version, secret) = card.split_first_chunk().map_or_else(
        || (None, card),
        |(version, secret)| (Some(u16::from_le_bytes(*version)), secret),
    );
    match (version, secret.try_into()) {
        (Some(VERSION), Ok(secret)) => Ok(JobSecret::from_bytes(secret)),
        _ => Err(Error::Bootstrap(format!(
            "rank 0 has another version of what ranks say to each other ({}; this rank's is {VERSION}): all hosts need the same Tagwire",
            version.unwrap_or_default()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tagwire_base::bootstrap::LocalJob;

    use super::*;

    #[test]
    fn rank_0_of_another_version_is_no_rank_0_of_this_job() {
        let secret = JobSecret::from_bytes([7; JobSecret::LEN]);
        let own = card_of(VERSION, &secret);
        let other = card_of(VERSION + 1, &secret);
        for (card, version) in [
            (&own, None),
            (&other, Some(VERSION + 1)),
            (&Vec::new(), Some(0)),
        ] {
            let job = LocalJob::new(2).unwrap();
            let card = card.clone();
            let first = std::thread::spawn({
                let mut first = job.member(Rank::new(0));
                move || {
                    host::announce(&mut first).unwrap();
                    first.put(SECRET, &card).unwrap();
                    first.fence(Duration::from_secs(10)).unwrap();
                }
            });
            let gathered = gather(&mut job.member(Rank::new(1)), "test");
            first.join().unwrap();
            let Some(version) = version else {
                assert_eq!(gathered.unwrap().0, secret);
                continue;
            };
            let error = gathered.unwrap_err().to_string();
            for part in ["rank 0", &format!("({version};"), "the same Tagwire"] {
                assert!(error.contains(part), "{error}");
            }
        }
    }
}
