//! What the ranks of a job do first, where no launcher of ours has told them: they learn the job's secret, and who is on
//! their host.

use std::time::Duration;

use tagwire_base::bootstrap::{Locality, groups};
use tagwire_base::host::name;
use tagwire_base::{Bootstrap, Error, JobSecret, Rank};

use crate::error::Result;
use crate::host;
use crate::patience::{self, LATE};
use crate::store::wire::VERSION;

/// The key under which rank 0 puts the version of what it says to others, and the job's secret.
const SECRET: &str = "secret";

/// The key under which ranks say where they are.
const HOST: &str = "host";

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
    announce(job)?;
    let drawn = if job.rank() == Rank::new(0) {
        let secret = JobSecret::generate()?;
        job.put(SECRET, &card_of(VERSION, &secret))?;
        Some(secret)
    } else {
        None
    };
    late(job.fence(patience), launcher)?;
    let secret = match drawn {
        Some(secret) => secret,
        None => secret_of(&job.get(Rank::new(0), SECRET, patience)?)?,
    };
    Ok((secret, group(job, patience)?))
}

/// Returns where this rank runs. Every rank of a job calls it whose store has told them the secret; `launcher` names who started them.
///
/// # Errors
/// When the others do not come in time, or `job` breaks.
pub(crate) fn gather_hosts(job: &mut dyn Bootstrap, launcher: &str) -> Result<Locality> {
    let patience = patience::of_environment()?;
    announce(job)?;
    late(job.fence(patience), launcher)?;
    Ok(group(job, patience)?)
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

/// Returns the name of this host.
fn own_host() -> String {
    name().unwrap_or_else(host::node)
}

/// Says where this rank is. Before the fence after which [`group`] is called.
///
/// # Errors
/// As [`Bootstrap::put`].
fn announce(job: &mut dyn Bootstrap) -> tagwire_base::Result<()> {
    job.put(HOST, own_host().as_bytes())
}

/// Returns this rank's number among those of its host, and how many those are. Every rank calls it.
///
/// # Errors
/// As [`Bootstrap::get`].
fn group(job: &mut dyn Bootstrap, timeout: Duration) -> tagwire_base::Result<Locality> {
    let hosts = groups(job, HOST, timeout)?;
    let own = job.rank().index();
    let is_here = |host: &&u32| **host == hosts[own];
    let local_size = hosts.iter().filter(is_here).count() as u32;
    let first = hosts.iter().position(|host| *host == hosts[own]);
    Ok(Locality {
        local_rank: hosts[..own].iter().filter(is_here).count() as u32,
        local_size,
        first_local: first.map_or_else(|| job.rank(), |first| Rank::new(first as u32)),
        address: (local_size < job.size()).then(host::own_address).flatten(),
    })
}

/// Returns `result`, where others did not come with what to do about it.
///
/// # Errors
/// That of `result`.
fn late<T>(result: tagwire_base::Result<T>, launcher: &str) -> Result<T> {
    result.map_err(|error| match error {
        Error::FenceTimeout(limit) => Error::Bootstrap(format!(
            "not every rank of this job ({launcher}) has come within {} s; {LATE} says how long to wait",
            limit.as_secs_f64()
        ))
        .into(),
        error => error.into(),
    })
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
                    announce(&mut first).unwrap();
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

    #[test]
    fn ranks_of_one_host_are_counted_however_many() {
        for size in [1, 16, 17] {
            let job = tagwire_base::bootstrap::LocalJob::new(size).unwrap();
            let threads: Vec<_> = (0..size)
                .map(|rank| {
                    let mut member = job.member(Rank::new(rank));
                    std::thread::spawn(move || {
                        announce(&mut member).unwrap();
                        member.fence(Duration::from_secs(10)).unwrap();
                        group(&mut member, Duration::from_secs(10)).unwrap()
                    })
                })
                .collect();
            for (rank, thread) in threads.into_iter().enumerate() {
                let locality = thread.join().unwrap();
                assert_eq!(
                    (locality.local_rank, locality.local_size),
                    (rank as u32, size)
                );
                assert_eq!(locality.first_local, Rank::new(0));
            }
        }
    }
}
