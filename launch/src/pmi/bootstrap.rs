//! A job that a PMI-1 launcher has started.

use std::net::{IpAddr, UdpSocket};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use tagwire_base::bootstrap::{Locality, MemberEvent};
use tagwire_base::{Bootstrap, Error, JobSecret, Owner, Rank, hex};

use super::client::Client;
use crate::error::Result;

/// How long a job's ranks may take to begin.
const GATHERING: Duration = Duration::from_secs(60);

/// How often a value that is not there is asked for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Keys of what ranks tell each other before anything else.
const HOST: &str = "host";
const SECRET: &str = "secret";

/// Digits in front of a value: of how many parts it is.
const COUNT: usize = 4;

/// A rank's view of its job.
#[derive(Debug)]
pub(crate) struct PmiBootstrap {
    client: Client,
    rank: Rank,
    size: u32,
    locality: Locality,
    secret: JobSecret,
    own_address: Option<IpAddr>,
    left: bool,
    /// A forked child has the same socket: what it says would be taken for this rank's.
    owner: Owner,
}

/// Returns what all ranks of one host have in common, and those of another have not: the run of its kernel, the user, and
/// the namespace of processes, so that containers are hosts of their own.
fn host() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let user = rustix::process::getuid().as_raw();
    format!("{} {user} {}", boot.trim(), namespace.display())
}

/// Returns the address by which this host reaches others, as its routes say; nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address of the block for documentation: it takes the default route.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified() && !address.is_loopback()).then_some(address)
}

impl PmiBootstrap {
    /// Joins the job of `size` ranks in which this process is `rank`.
    ///
    /// # Errors
    /// When the launcher is gone, or the others do not come.
    pub(crate) fn join(client: Client, rank: u32, size: u32) -> Result<Self> {
        let mut job = Self {
            client,
            rank: Rank::new(rank),
            size,
            locality: Locality {
                local_rank: 0,
                local_size: 1,
            },
            secret: JobSecret::from_bytes([0; JobSecret::LEN]),
            own_address: None,
            left: false,
            owner: Owner::here(),
        };
        let own = host();
        job.store(HOST, own.as_bytes())?;
        if rank == 0 {
            job.secret = JobSecret::generate()?;
            let secret = job.secret.clone();
            job.store(SECRET, secret.as_bytes())?;
        }
        job.fence(GATHERING)?;
        if rank > 0 {
            let secret = job.get(Rank::new(0), SECRET, GATHERING)?;
            let secret = secret.try_into().map_err(|_| {
                Error::Bootstrap("rank 0 put a secret of another length".to_owned())
            })?;
            job.secret = JobSecret::from_bytes(secret);
        }
        job.look_around(own.as_bytes())?;
        Ok(job)
    }

    /// Finds out which ranks are on this host.
    fn look_around(&mut self, own: &[u8]) -> Result<()> {
        let mut here = Vec::new();
        for rank in (0..self.size).map(Rank::new) {
            if rank == self.rank || self.get(rank, HOST, GATHERING)? == own {
                here.push(rank);
            }
        }
        let before = here.iter().take_while(|rank| **rank != self.rank).count();
        self.locality = Locality {
            local_rank: before as u32,
            local_size: here.len() as u32,
        };
        if here.len() < self.size as usize {
            self.own_address = own_address();
        }
        Ok(())
    }

    fn store(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let text = hex::encode(value);
        let maxima = self.client.maxima();
        let longest_name = name(self.rank, key, 1 << (4 * COUNT)).len();
        let most = self
            .client
            .longest_value(longest_name)
            .saturating_sub(COUNT);
        let most = most.max(1);
        let parts: Vec<&[u8]> = text.as_bytes().chunks(most).collect();
        let count = parts.len().max(1);
        for number in 0..count {
            let name = name(self.rank, key, number);
            if name.len() >= maxima.key || count >= 1 << (4 * COUNT) {
                return Err(Error::Bootstrap(format!(
                    "'{key}' of {} bytes does not fit into the launcher's key-value space (keys of {}, values of {})",
                    value.len(), maxima.key, maxima.value
                ))
                .into());
            }
            let part = parts
                .get(number)
                .map_or("", |part| std::str::from_utf8(part).unwrap_or_default());
            self.client.put(&name, &format!("{count:04x}{part}"))?;
        }
        Ok(())
    }

    /// Returns a value where it is there, in all its parts.
    fn fetch(&mut self, rank: Rank, key: &str) -> Result<Option<Vec<u8>>> {
        let mut text = String::new();
        let (mut number, mut count) = (0, 1);
        while number < count {
            let Some(part) = self.client.get(&name(rank, key, number))? else {
                return Ok(None);
            };
            let told = part
                .get(..COUNT)
                .and_then(|count| usize::from_str_radix(count, 16).ok());
            let Some(told) = told.filter(|told| *told > 0) else {
                return Err(malformed(rank, key).into());
            };
            count = told;
            text.push_str(&part[COUNT..]);
            number += 1;
        }
        hex::decode(&text)
            .map(Some)
            .ok_or_else(|| malformed(rank, key).into())
    }
}

fn name(rank: Rank, key: &str, part: usize) -> String {
    format!("tw.{}.{key}.{part}", rank.as_u32())
}

fn malformed(rank: Rank, key: &str) -> Error {
    Error::Bootstrap(format!(
        "what rank {rank} put as '{key}' came back changed from the launcher's key-value space"
    ))
}

/// The error of the contract that one of this crate's is.
fn told(error: crate::error::Error) -> Error {
    match error {
        crate::error::Error::Bootstrap(error) => error,
        error => Error::Bootstrap(error.to_string()),
    }
}

impl Bootstrap for PmiBootstrap {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn locality(&self) -> Locality {
        self.locality
    }

    fn secret(&self) -> &JobSecret {
        &self.secret
    }

    fn own_address(&self) -> Option<IpAddr> {
        self.own_address
    }

    fn put(&mut self, key: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.owner.check()?;
        self.store(key, value).map_err(told)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> tagwire_base::Result<Vec<u8>> {
        self.owner.check()?;
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(value) = self.fetch(rank, key).map_err(told)? {
                return Ok(value);
            }
            // What was put before the last fence is there; some launchers show what was put since.
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::BootstrapTimeout {
                    rank,
                    key: key.to_owned(),
                    seconds: timeout.as_secs(),
                });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn fence(&mut self, timeout: Duration) -> tagwire_base::Result<()> {
        self.owner.check()?;
        let passed = self.client.barrier(timeout).map_err(told)?;
        passed.ok_or(Error::FenceTimeout(timeout))
    }

    /// PMI-1 carries no descriptors: shared memory opens those of its peers below `/proc`.
    fn put_descriptor(&mut self, _: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        Ok(())
    }

    fn get_descriptor(&mut self, rank: Rank, _: Duration) -> tagwire_base::Result<OwnedFd> {
        Err(Error::Bootstrap(format!(
            "the launcher passes no descriptors (PMI-1), so that the memory of rank {rank} cannot be opened from here: run all ranks of a host in one namespace of processes, or choose a network (TAGWIRE_TRANSPORT)"
        )))
    }

    /// PMI-1 reports nothing of other ranks: a launcher ends the job when one has failed.
    fn poll_events(&mut self) -> Vec<MemberEvent> {
        Vec::new()
    }

    fn leave(&mut self) {
        if self.owner.is_here()
            && !std::mem::replace(&mut self.left, true)
            && let Err(error) = self.client.finalize()
        {
            tracing::debug!("the launcher did not hear the goodbye: {error}");
        }
    }
}
