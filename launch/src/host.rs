//! Which ranks are on one host.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use tagwire_base::bootstrap::Locality;
use tagwire_base::host::{VARIABLE, identity};
use tagwire_base::{Bootstrap, Error, Rank};

/// Ranks that each find out for themselves. In larger jobs rank 0 does, and reports: each by itself would be a request for
/// every pair of ranks.
const EACH: u32 = 16;

/// The keys under which ranks say where they are, and rank 0 how they lie.
const HOST: &str = "host";
const HOSTS: &str = "hosts";

/// Returns the name of this host: the user's, or what the kernel says.
fn host() -> String {
    let named = std::env::var(VARIABLE).ok().filter(|name| !name.is_empty());
    named.or_else(identity).unwrap_or_else(node)
}

/// Returns what this host is called.
pub(crate) fn node() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
}

/// Says where this rank is. Before the fence after which [`group`] is called.
///
/// # Errors
/// As [`Bootstrap::put`].
pub(crate) fn announce(job: &mut dyn Bootstrap) -> tagwire_base::Result<()> {
    job.put(HOST, host().as_bytes())
}

/// Returns this rank's number among those of its host, and how many those are. Every rank calls it.
///
/// # Errors
/// As [`Bootstrap::get`].
pub(crate) fn group(job: &mut dyn Bootstrap, timeout: Duration) -> tagwire_base::Result<Locality> {
    let hosts = if job.size() <= EACH {
        collect(job, timeout)?
    } else {
        let told = if job.rank() == Rank::new(0) {
            let hosts = pack(&collect(job, timeout)?);
            job.put(HOSTS, hosts.as_bytes())?;
            hosts
        } else {
            String::new()
        };
        job.fence(timeout)?;
        let told = if told.is_empty() {
            job.get(Rank::new(0), HOSTS, timeout)?
        } else {
            told.into_bytes()
        };
        let text = String::from_utf8_lossy(&told);
        unpack(&text, job.size()).ok_or_else(|| {
            Error::Bootstrap(format!(
                "rank 0 put '{text}' where the hosts of {} ranks should be",
                job.size()
            ))
        })?
    };
    let own = job.rank().index();
    let is_here = |rank: &&u32| **rank == hosts[own];
    let local_size = hosts.iter().filter(is_here).count() as u32;
    Ok(Locality {
        local_rank: hosts[..own].iter().filter(is_here).count() as u32,
        local_size,
        address: (local_size < job.size()).then(own_address).flatten(),
    })
}

/// Returns the host of each rank, as a number.
fn collect(job: &mut dyn Bootstrap, timeout: Duration) -> tagwire_base::Result<Vec<u32>> {
    let mut known: Vec<Vec<u8>> = Vec::new();
    let ranks = (0..job.size()).map(Rank::new);
    ranks
        .map(|rank| {
            let host = job.get(rank, HOST, timeout)?;
            let number = known.iter().position(|other| *other == host);
            let number = number.unwrap_or_else(|| {
                known.push(host);
                known.len() - 1
            });
            Ok(number as u32)
        })
        .collect()
}

/// Returns hosts as text: `2x3,1x2` is five ranks, three on host 2 and two on host 1.
fn pack(hosts: &[u32]) -> String {
    let runs = hosts.chunk_by(|a, b| a == b);
    let runs: Vec<String> = runs
        .map(|run| format!("{}x{}", run[0], run.len()))
        .collect();
    runs.join(",")
}

/// Returns the hosts of `size` ranks that [`pack`] wrote.
fn unpack(text: &str, size: u32) -> Option<Vec<u32>> {
    let mut hosts = Vec::new();
    for run in text.split(',') {
        let (host, count) = run.split_once('x')?;
        let (host, count): (u32, usize) = (host.parse().ok()?, count.parse().ok()?);
        if count > size as usize - hosts.len() {
            return None;
        }
        hosts.resize(hosts.len() + count, host);
    }
    (hosts.len() == size as usize).then_some(hosts)
}

/// Returns the address by which this host reaches others, as its routes say; nothing is sent.
pub(crate) fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // An address of the block for documentation: it takes the default route.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_unspecified() && !address.is_loopback()).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_back_and_nonsense_does_not() {
        for hosts in [&[0; 300][..], &[0, 1, 0, 1], &[2, 2, 1]] {
            assert_eq!(unpack(&pack(hosts), hosts.len() as u32).unwrap(), hosts);
        }
        for (text, size) in [
            ("", 1),
            ("0x2", 1),
            ("0x2", 3),
            ("0", 1),
            ("ax1", 1),
            ("0x99999999999", 4),
        ] {
            assert_eq!(unpack(text, size), None, "{text}");
        }
    }

    #[test]
    fn ranks_of_one_host_are_counted_however_many() {
        for size in [1, EACH, EACH + 1] {
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
            }
        }
    }
}
