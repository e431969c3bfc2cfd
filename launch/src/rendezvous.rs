//! Ranks that know their numbers and one place, and nothing else: rank 0 serves the store there for the others.
//!
//! Nobody sees such ranks end but rank 0, by their connections. Where rank 0 dies, the store does: the others then hear
//! that it has failed, and of nobody else.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use tagwire_base::bootstrap::{Locality, MemberEvent};
use tagwire_base::{Bootstrap, JobSecret, Rank};

use crate::error::{Error, Result};
use crate::gather::{alone, gather_hosts};
use crate::launchers::{At, Join, Meeting};
use crate::patience::{self, Tries};
use crate::store::{Membership, NotIn, Store, StoreBootstrap};

/// How long rank 0, having left, serves the others that have not.
const LINGER: Duration = Duration::from_secs(30);

/// A rank's view of a job that has met.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    inner: StoreBootstrap,
    locality: Locality,
    /// At rank 0.
    store: Option<Store>,
}

impl At {
    /// Starts the store here.
    fn serve(&self, size: u32) -> Result<Store> {
        match self {
            Self::Host(name) => Store::start_for_session(size, name, HOST_SECRET),
            Self::Network { host, port, secret } => {
                let address = SocketAddr::new(listened(host), *port);
                Store::start_for_session(size, &format!("tcp:{address}"), secret.clone())
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Host(name) => name.clone(),
            Self::Network { host, port, .. } if host.contains(':') => {
                format!("tcp:[{host}]:{port}")
            }
            Self::Network { host, port, .. } => format!("tcp:{host}:{port}"),
        }
    }

    fn secret(&self) -> JobSecret {
        match self {
            Self::Host(_) => HOST_SECRET,
            Self::Network { secret, .. } => secret.clone(),
        }
    }
}

/// The store of a host looks at its clients' user, and at no secret. What it draws, and tells them alone, makes the ranks' secret.
const HOST_SECRET: JobSecret = JobSecret::from_bytes([0; JobSecret::LEN]);

/// Returns the address to listen at, for others to reach `host`: what a name means elsewhere is not known here.
fn listened(host: &str) -> IpAddr {
    match host.parse() {
        Ok(IpAddr::V6(address)) if !address.is_loopback() => Ipv6Addr::UNSPECIFIED.into(),
        Ok(address) if address.is_loopback() => address,
        _ if host == "localhost" => Ipv4Addr::LOCALHOST.into(),
        _ => Ipv4Addr::UNSPECIFIED.into(),
    }
}

impl Join for Meeting {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        Ok(Box::new(self.meet()?))
    }
}

impl Meeting {
    /// Joins the job.
    ///
    /// # Errors
    /// When the place is taken, or the others do not come there.
    fn meet(&self) -> Result<Rendezvous> {
        let patience = patience::of_environment()?;
        let store = if self.rank == Rank::new(0) {
            Some(self.at.serve(self.size)?)
        } else {
            None
        };
        let inner = self.reach(patience)?;
        let mut job = Rendezvous {
            inner,
            locality: alone(self.rank),
            store,
        };
        job.locality = gather_hosts(&mut job, self.launcher)?;
        // The one that leads to rank 0 leads to the others as well, unless this is rank 0.
        let own = job.inner.locality().address;
        if let Some(own) = own.filter(|own| !own.is_loopback() && job.locality.address.is_some()) {
            job.locality.address = Some(own);
        }
        Ok(job)
    }

    /// Connects to the store of this session, which rank 0 may be about to start. It may still serve the one before, for
    /// others.
    fn reach(&self, patience: Duration) -> Result<StoreBootstrap> {
        let name = self.at.name();
        let membership = Membership {
            rank: self.rank,
            size: self.size,
            local_rank: 0,
            local_size: 1,
            store: name.clone(),
            secret: self.at.secret(),
            application: None,
        };
        let mut tries = Tries::within(patience);
        loop {
            match StoreBootstrap::enter(membership.clone(), tries.left()) {
                Ok(inner) => return Ok(inner.led_by(Rank::new(0))),
                Err(NotIn::Early(_)) if tries.again() => {}
                Err(NotIn::Early(error)) => {
                    return Err(Error::Environment(format!(
                        "rank 0 of this job ({}) cannot be reached at '{name}' within {} s: {error}; {} says how long to try",
                        self.launcher,
                        patience.as_secs_f64(),
                        patience::LATE
                    )));
                }
                Err(NotIn::Refused(error)) => return Err(error.into()),
            }
        }
    }
}

impl Bootstrap for Rendezvous {
    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn size(&self) -> u32 {
        self.inner.size()
    }

    fn locality(&self) -> Locality {
        self.locality
    }

    fn secret(&self) -> &JobSecret {
        self.inner.secret()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.inner.put(key, value)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> tagwire_base::Result<Vec<u8>> {
        self.inner.get(rank, key, timeout)
    }

    fn fence(&mut self, timeout: Duration) -> tagwire_base::Result<()> {
        self.inner.fence(timeout)
    }

    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        self.inner.put_descriptor(descriptor)
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> tagwire_base::Result<OwnedFd> {
        self.inner.get_descriptor(rank, timeout)
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        self.inner.poll_events()
    }

    fn leave(&mut self) {
        self.inner.leave();
        if let Some(store) = self.store.take()
            && !store.wait_until_empty(LINGER)
        {
            tracing::warn!(
                "rank 0 ends while others go on: they hear of no rank's end any more, and cannot contact ranks that they have not contacted yet"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::thread;

    use super::*;

    fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    }

    /// Passes on what the two sides of a connection say to each other, and keeps it.
    fn overhear(listener: TcpListener, to: u16) -> thread::JoinHandle<Vec<u8>> {
        thread::spawn(move || {
            let (near, _) = listener.accept().unwrap();
            let far = loop {
                match TcpStream::connect(("127.0.0.1", to)) {
                    Ok(far) => break far,
                    Err(_) => thread::sleep(Duration::from_millis(5)),
                }
            };
            let ways = [(&near, &far), (&far, &near)].map(|(from, to)| {
                let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                thread::spawn(move || {
                    let (mut heard, mut bytes) = (Vec::new(), [0; 4096]);
                    while let Ok(count @ 1..) = from.read(&mut bytes) {
                        heard.extend(&bytes[..count]);
                        if to.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                    heard
                })
            });
            ways.map(|way| way.join().unwrap()).concat()
        })
    }

    #[test]
    fn the_secret_of_a_session_is_not_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, near) = (free_port(), listener.local_addr().unwrap().port());
        let overheard = overhear(listener, port);
        let ranks = [(0, port), (1, near)].map(|(rank, port)| {
            let meeting = Meeting {
                launcher: "test",
                rank: Rank::new(rank),
                size: 2,
                at: At::Network {
                    host: "127.0.0.1".to_owned(),
                    port,
                    secret: JobSecret::from_bytes([7; JobSecret::LEN]),
                },
            };
            thread::spawn(move || {
                let mut job = meeting.meet().unwrap();
                let secret = job.secret().clone();
                job.put("a key", b"a value").unwrap();
                job.fence(LINGER).unwrap();
                job.leave();
                secret
            })
        });
        let [a, b] = ranks.map(|rank| rank.join().unwrap());
        assert_eq!(a, b);
        let overheard = overheard.join().unwrap();
        let has = |part: &[u8]| overheard.windows(part.len()).any(|window| window == part);
        assert!(has(b"a value"), "nothing was overheard");
        for secret in [&a, &JobSecret::from_bytes([7; JobSecret::LEN])] {
            assert!(!has(secret.as_bytes()));
            assert!(!has(&secret.as_bytes()[..8]), "nor a part of it");
        }
    }

    /// Rank 1 is back for the next session while rank 0 is still in the one before.
    #[test]
    fn a_rank_that_comes_again_waits_for_the_next_store() {
        let places = [
            At::Host(format!("tagwire-again-{}", std::process::id())),
            At::Network {
                host: "127.0.0.1".to_owned(),
                port: free_port(),
                secret: JobSecret::from_bytes([7; JobSecret::LEN]),
            },
        ];
        for at in places {
            let ranks = [0, 1].map(|rank| {
                let meeting = Meeting {
                    launcher: "test",
                    rank: Rank::new(rank),
                    size: 2,
                    at: at.clone(),
                };
                thread::spawn(move || {
                    for session in 0..3u8 {
                        let mut job = meeting.meet().unwrap();
                        job.put("session", &[session]).unwrap();
                        let other = Rank::new(1 - rank);
                        let told = job.get(other, "session", LINGER).unwrap();
                        assert_eq!(told, [session]);
                        if rank == 0 {
                            thread::sleep(Duration::from_millis(100));
                        }
                        job.leave();
                    }
                })
            });
            for rank in ranks {
                rank.join().unwrap();
            }
        }
    }
}
