//! Peers that cannot be connected to because this host has lost an interface for now: a cable is out, or a switch starts
//! anew. UCX calls them unreachable at once, as it does those that no transport leads to.
//!
//! A connection that is there already outlives that: the kernel sends again. One that is to be made waits here as long. So does
//! a rank that opens while nothing leads from its host: UCX asks once what interfaces there are.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tagwire_base::{Clock, Time};
use tagwire_transport::{EndpointId, Post};
use tagwire_ucx_sys::{UCS_ERR_UNREACHABLE, ucs_status_t};

/// How long a peer is waited for. A rank that cannot be reached for longer has failed for this one.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is tried again.
const PAUSE: Duration = Duration::from_millis(10);

/// A peer that is still to be connected to.
#[derive(Debug)]
pub(crate) struct Absent {
    pub(crate) id: EndpointId,
    /// Its worker's address.
    pub(crate) worker: Vec<u8>,
    next: Time,
    until: Time,
}

/// The peers that are waited for.
#[derive(Debug)]
pub(crate) struct Absences {
    interfaces: Interfaces,
    list: Vec<Absent>,
}

/// Where the kernel shows a host's devices.
const DEVICES: &str = "/sys/class";

/// Waits until something leads from this host, where a rank has peers on others; not for ever.
pub(crate) fn await_way(clock: &Clock) {
    let until = clock.now() + PATIENCE;
    while !Interfaces::lead_out(Path::new(DEVICES)) && clock.now() < until {
        std::thread::sleep(PAUSE);
    }
}

impl Absences {
    /// Returns none, on this host.
    pub(crate) fn of_host() -> Self {
        Self {
            interfaces: Interfaces::of(Path::new(DEVICES).join(INTERFACES)),
            list: Vec::new(),
        }
    }

    /// Returns why a peer that cannot be connected to may be out of reach: interfaces by which nothing goes, or went when this
    /// rank opened, so that UCX does not know them.
    pub(crate) fn why(&self) -> String {
        let out = self.interfaces.out();
        let mut names: Vec<_> = out.iter().map(|name| name.to_string_lossy()).collect();
        names.sort();
        match names.is_empty() {
            true => String::new(),
            false => format!(
                "; nothing goes by {} of this host, or went when the rank opened",
                names.join(", ")
            ),
        }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether a peer is waited for.
    pub(crate) fn has(&self, id: EndpointId) -> bool {
        self.list.iter().any(|absent| absent.id == id)
    }

    /// Returns what is said to who wants to send to a peer without a connection.
    pub(crate) fn no_way(&self, to: EndpointId) -> Post {
        match self.has(to) {
            true => Post::Busy,
            false => Post::Gone,
        }
    }

    /// Takes note that a peer could not be connected to.
    ///
    /// # Errors
    /// The status, where waiting would not help.
    pub(crate) fn note(
        &mut self,
        id: EndpointId,
        worker: &[u8],
        status: ucs_status_t,
        now: Time,
    ) -> Result<(), ucs_status_t> {
        if status != UCS_ERR_UNREACHABLE || !self.interfaces.any_is_out() {
            return Err(status);
        }
        tracing::warn!("ucx: a peer cannot be reached while an interface of this host is out");
        self.list.push(Absent {
            id,
            worker: worker.to_vec(),
            next: now + PAUSE,
            until: now + PATIENCE,
        });
        Ok(())
    }

    /// Takes out those whose time it is.
    pub(crate) fn take_due(&mut self, now: Time) -> Vec<Absent> {
        let due = |absent: &mut Absent| now >= absent.next;
        self.list.extract_if(.., due).collect()
    }

    /// Waits on for one that could not be connected to again. Returns whether there is time left.
    pub(crate) fn wait_on(&mut self, mut absent: Absent, status: ucs_status_t, now: Time) -> bool {
        let waits = status == UCS_ERR_UNREACHABLE && now < absent.until;
        if waits {
            absent.next = now + PAUSE;
            self.list.push(absent);
        }
        waits
    }
}

/// Where interfaces are, of all devices, and other ways to other hosts.
const INTERFACES: &str = "net";
const OTHERS: &str = "infiniband";
/// The interface that leads to this host itself.
const LOOPBACK: &str = "lo";

/// The interfaces that this host had when the rank opened.
#[derive(Debug)]
struct Interfaces {
    folder: PathBuf,
    up: BTreeSet<OsString>,
}

impl Interfaces {
    fn of(folder: PathBuf) -> Self {
        let up = up(&folder);
        Self { folder, up }
    }

    /// Whether something may lead to other hosts, or there is nothing that ever could.
    fn lead_out(devices: &Path) -> bool {
        let folder = devices.join(INTERFACES);
        let beside_loopback = |names: BTreeSet<OsString>| names.iter().any(|name| name != LOOPBACK);
        beside_loopback(up(&folder))
            || !beside_loopback(all(&folder))
            || !all(&devices.join(OTHERS)).is_empty()
    }

    /// Returns those that carry nothing now, or did not then.
    fn out(&self) -> BTreeSet<OsString> {
        let (up, all) = (up(&self.folder), all(&self.folder));
        let out = all
            .into_iter()
            .filter(|name| !up.contains(name) || !self.up.contains(name));
        out.collect()
    }

    /// Whether one of them carries nothing now.
    fn any_is_out(&self) -> bool {
        !self.up.is_subset(&up(&self.folder))
    }
}

/// Returns the names in a folder of devices.
fn all(folder: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Returns the interfaces that carry something. Some do not say.
fn up(folder: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_up = |entry: &std::fs::DirEntry| {
        let state = std::fs::read_to_string(entry.path().join("operstate"));
        state.is_ok_and(|state| matches!(state.trim(), "up" | "unknown"))
    };
    let up = entries.filter(is_up);
    up.map(|entry| entry.file_name()).collect()
}

#[cfg(test)]
mod tests {
    use tagwire_base::bootstrap::{Bootstrap, LocalJob};
    use tagwire_base::{ManualClock, Rank};
    use tagwire_transport::{
        AmHeader, Arrival, ByteTransport, Class, Lane, Outcome, PeerEvent, Token, Transport,
        Upcalls,
    };

    use super::*;
    use crate::{Ucx, UcxOptions};

    #[derive(Default)]
    struct Heard {
        failed: usize,
        messages: usize,
    }

    impl Upcalls for Heard {
        fn deliver(&mut self, _: Arrival<'_>) {
            self.messages += 1;
        }

        fn complete(&mut self, _: Token, _: Outcome) {}

        fn peer(&mut self, event: PeerEvent) {
            self.failed += usize::from(matches!(event, PeerEvent::Failed(_)));
        }
    }

    /// A rank by some transports; nothing, loudly, where there is no UCX.
    fn open(job: &LocalJob, rank: u32, transports: &str) -> Option<Ucx> {
        let options = UcxOptions {
            transports: Some(transports.to_owned()),
            ..UcxOptions::default()
        };
        let opened = Ucx::open(options, &job.member(Rank::new(rank)));
        opened.inspect_err(|why| eprintln!("SKIPPED: {why}")).ok()
    }

    fn send(from: &mut Ucx, to: EndpointId) -> Post {
        from.send(Lane(0), to, Class::Data, AmHeader([1, 0]), &[])
    }

    #[test]
    fn interfaces_that_go_and_come_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let say = |name: &str, state: &str| {
            let interface = folder.path().join(name);
            std::fs::create_dir_all(&interface).unwrap();
            std::fs::write(interface.join("operstate"), format!("{state}\n")).unwrap();
        };
        say("lo", "unknown");
        say("eth0", "up");
        say("eth1", "down");
        let interfaces = Interfaces::of(folder.path().to_owned());
        assert!(!interfaces.any_is_out(), "eth1 was never there");
        for state in ["down", "lowerlayerdown"] {
            say("eth0", state);
            assert!(interfaces.any_is_out());
        }
        say("eth0", "up");
        assert!(!interfaces.any_is_out());
    }

    #[test]
    fn a_way_to_other_hosts_is_seen() {
        let devices = tempfile::tempdir().unwrap();
        let say = |name: &str, state: &str| {
            let interface = devices.path().join(INTERFACES).join(name);
            std::fs::create_dir_all(&interface).unwrap();
            std::fs::write(interface.join("operstate"), format!("{state}\n")).unwrap();
        };
        let leads_out = || Interfaces::lead_out(devices.path());
        assert!(leads_out(), "nobody knows");
        say("lo", "unknown");
        assert!(leads_out(), "nothing ever will");
        say("eth0", "down");
        assert!(!leads_out());
        say("eth1", "up");
        assert!(leads_out());
        say("eth1", "lowerlayerdown");
        assert!(!leads_out());
        let interfaces = Interfaces::of(devices.path().join(INTERFACES));
        let out = || interfaces.out().into_iter().collect::<Vec<_>>();
        assert_eq!(out(), ["eth0", "eth1"]);
        say("eth1", "up");
        assert_eq!(out(), ["eth0", "eth1"], "what came late is unknown to UCX");
        std::fs::create_dir_all(devices.path().join(OTHERS).join("mlx5_0")).unwrap();
        assert!(leads_out(), "by something that is no interface");
    }

    /// No transport leads to the peer, as if the only one were out.
    #[test]
    fn a_peer_beyond_an_interface_that_is_out_is_waited_for() {
        let job = LocalJob::new(2).unwrap();
        let (Some(mut one), Some(other)) = (open(&job, 0, "self"), open(&job, 1, "tcp,self"))
        else {
            return;
        };
        let refused = one.connect(Rank::new(1), &other.address()).unwrap_err();
        assert!(refused.to_string().contains("unreachable"), "{refused}");
        let hand = ManualClock::default();
        one.core.clock = hand.clock();
        one.core.absences.interfaces.up.insert("pulled".into());
        let to = one.connect(Rank::new(1), &other.address()).unwrap();
        assert_eq!(one.connect(Rank::new(1), &other.address()).unwrap(), to);
        let mut heard = Heard::default();
        hand.advance(PATIENCE - Duration::from_nanos(1));
        one.progress(Lane(0), &mut heard);
        assert_eq!((send(&mut one, to), heard.failed), (Post::Busy, 0));
        hand.advance(PAUSE);
        one.progress(Lane(0), &mut heard);
        one.progress(Lane(0), &mut heard);
        assert_eq!((send(&mut one, to), heard.failed), (Post::Gone, 1));
    }

    #[test]
    fn who_waits_is_connected_when_the_way_is_there() {
        let job = LocalJob::new(2).unwrap();
        let (Some(mut one), Some(mut other)) =
            (open(&job, 0, "tcp,self"), open(&job, 1, "tcp,self"))
        else {
            return;
        };
        // As if its first address had been beyond an interface that was out.
        let Some(beyond) = open(&job, 1, "self") else {
            return;
        };
        let hand = ManualClock::default();
        one.core.clock = hand.clock();
        one.core.absences.interfaces.up.insert("pulled".into());
        let to = one.connect(Rank::new(1), &beyond.address()).unwrap();
        let (secret, address) = (job.member(Rank::new(0)).secret().clone(), other.address());
        let worker = crate::wire::read_address(Rank::new(1), &address, &secret).unwrap();
        one.core.absences.list[0].worker = worker.to_vec();
        hand.advance(PAUSE);
        let (mut heard, mut others) = (Heard::default(), Heard::default());
        while send(&mut one, to) == Post::Busy {
            one.progress(Lane(0), &mut heard);
            other.progress(Lane(0), &mut others);
        }
        while others.messages == 0 {
            one.progress(Lane(0), &mut heard);
            other.progress(Lane(0), &mut others);
        }
        assert!(heard.failed == 0 && one.core.absences.is_empty());
    }
}
