//! Where the other side comes in. One thread hears all pending peers at once: none of them costs a thread, and none keeps another
//! one waiting.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tagwire_base::log::is_logged;
use tagwire_launch::door::{Door, PendingId};
use tagwire_launch::{Deadline, watch_tcp};

use super::greeting::{Greeting, Own, Step};
use super::messages::{FIRST_LINE, Hearer, PeerMessage, Speaker};
use crate::error::{Error, Result};

/// How many pending peers may be here at once, of those who have said nothing and of those who have said who they are.
const MOST: usize = 64;
/// So many of those that are sent away are named, each of them.
const NAMED: u64 = 1000;
/// How long a pending peer has to show who it is.
pub(super) const FIRST_WORDS: Duration = Duration::from_secs(5);

/// An entrance.
pub(super) struct Entrance {
    door: Door,
    own: Own,
    pending: BTreeMap<PendingId, Pending>,
    /// Those that were sent away.
    refused: u64,
}

struct Pending {
    stream: TcpStream,
    address: String,
    greeting: Greeting,
}

/// Somebody who has shown that it knows the secret.
pub(super) struct Peer {
    pub stream: TcpStream,
    pub speaker: Speaker,
    pub hearer: Hearer,
    pub address: String,
}

/// What ends a wait.
pub(super) enum Came {
    /// Somebody who belongs here.
    Peer(Peer),
    /// What else was waited for.
    Other,
    /// Nobody, in the time that there was.
    Nobody,
}

impl Entrance {
    pub(super) fn new(listener: TcpListener, own: Own) -> Result<Self> {
        let door = Door::new(listener, MOST, FIRST_WORDS)
            .map_err(|error| Error::system("wait for the other side", error))?;
        Ok(Self {
            door,
            own,
            pending: BTreeMap::new(),
            refused: 0,
        })
    }

    /// Waits for a peer, for so long, or until `other` is readable. Whoever does not belong here is named on standard error.
    pub(super) fn next(
        &mut self,
        patience: Option<Duration>,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<Came> {
        let until = Deadline::within(patience).instant();
        loop {
            let now = Instant::now();
            self.let_in(now);
            for pending_peer in self.door.take_overdue(now) {
                let within = FIRST_WORDS.as_secs();
                self.refuse(
                    pending_peer,
                    &format!("it did not say who it is within {within} s"),
                );
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(Came::Nobody);
            }
            let due = until.into_iter().chain(self.door.due()).min();
            let left = due.map(|due| due.saturating_duration_since(now));
            let (is_other, ready) = self.wait(left, other)?;
            if is_other {
                return Ok(Came::Other);
            }
            for pending_peer in ready {
                if let Some(peer) = self.hear(pending_peer) {
                    return Ok(Came::Peer(peer));
                }
            }
        }
    }

    /// Waits until there is something to do, for so long at most. Returns whether `other` is readable, and which pending peers are.
    fn wait(
        &self,
        left: Option<Duration>,
        other: Option<BorrowedFd<'_>>,
    ) -> Result<(bool, Vec<PendingId>)> {
        let limit = left.and_then(|left| Timespec::try_from(left).ok());
        let streams = self.pending.values();
        let mut sources: Vec<PollFd<'_>> = streams
            .map(|pending_peer| PollFd::new(&pending_peer.stream, PollFlags::IN))
            .chain(other.map(|other| PollFd::from_borrowed_fd(other, PollFlags::IN)))
            .collect();
        if self.door.is_open() {
            sources.push(PollFd::new(&self.door, PollFlags::IN));
        }
        match poll(&mut sources, limit.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Error::system("wait for the other side", error)),
        }
        let is_ready = |source: &PollFd<'_>| !source.revents().is_empty();
        let (of_pending, rest) = sources.split_at(self.pending.len());
        let ready = self.pending.keys().zip(of_pending);
        let ready = ready.filter(|(_, source)| is_ready(source));
        let is_other = other.is_some() && rest.first().is_some_and(is_ready);
        Ok((
            is_other,
            ready.map(|(pending_peer, _)| *pending_peer).collect(),
        ))
    }

    /// Lets those in who wait outside, as many as there is room for: those who are here are to be heard between.
    fn let_in(&mut self, now: Instant) {
        self.door.reopen(now);
        for _ in 0..MOST {
            let Some(socket) = self.door.is_open().then(|| self.door.accept(now)).flatten() else {
                break;
            };
            self.make_room();
            self.admit(socket, now);
        }
        if !self.door.is_open()
            && let Some(oldest) = self.door.oldest()
        {
            self.refuse(
                oldest,
                "this process has no descriptor left for another one",
            );
        }
    }

    /// Sends the one away who has said nothing for longest, where there is no room for another.
    fn make_room(&mut self) {
        while let Some(oldest) = self.door.crowding() {
            // Its words may have come meanwhile. With the first of them nobody is a peer.
            self.hear(oldest);
            if self.door.crowding() == Some(oldest) {
                self.refuse(oldest, "it said nothing, and others wait");
            }
        }
    }

    fn admit(&mut self, socket: OwnedFd, now: Instant) {
        // Who is gone again already is nobody.
        if watch_tcp(&socket).is_err() {
            return;
        }
        let stream = TcpStream::from(socket);
        let address = stream
            .peer_addr()
            .map_or_else(|_| "somebody".to_owned(), |address| address.to_string());
        let pending_peer = Pending {
            stream,
            address,
            greeting: Greeting::default(),
        };
        self.pending.insert(self.door.admit(now), pending_peer);
    }

    /// Reads from a pending peer. Returns it once it has proved to know the secret.
    fn hear(&mut self, id: PendingId) -> Option<Peer> {
        let pending_peer = self.pending.get_mut(&id)?;
        let mut bytes = [0; FIRST_LINE as usize];
        let step = match pending_peer.stream.read(&mut bytes) {
            Ok(0) => return self.refuse(id, "it left without a word"),
            Ok(count) => pending_peer.greeting.hear(&bytes[..count], &self.own),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Step::Wait,
                _ => return self.refuse(id, &error.to_string()),
            },
        };
        match step {
            Step::Wait => None,
            Step::Challenge(word) => {
                pending_peer.say(&word);
                let crowded = self.door.spoke(id)?;
                self.refuse(crowded, "it did not prove who it is, and others wait")
            }
            Step::Welcome(word) => {
                pending_peer.say(&word);
                self.door.forget(id);
                let peer = self.pending.remove(&id)?.into_peer();
                peer.inspect_err(|error| tell("somebody", &error.to_string()))
                    .ok()
            }
            Step::Refuse { why, told } => {
                if let Some(word) = told {
                    pending_peer.say(&word);
                }
                self.refuse(id, &why)
            }
        }
    }

    /// Sends a pending peer away.
    fn refuse(&mut self, id: PendingId, why: &str) -> Option<Peer> {
        self.door.forget(id);
        let pending_peer = self.pending.remove(&id)?;
        self.refused += 1;
        if is_logged(self.refused, NAMED) {
            tell(&pending_peer.address, why);
        }
        None
    }
}

impl Pending {
    /// Says a word. A new connection takes one at once; from another that does not, nothing will be heard.
    fn say(&mut self, word: &PeerMessage) {
        if let Ok(line) = word.line() {
            let _ = self.stream.write(&line);
        }
    }

    fn into_peer(self) -> std::io::Result<Peer> {
        self.stream.set_nonblocking(false)?;
        let mut hearer = Hearer::new(self.stream.try_clone()?);
        hearer.trust();
        Ok(Peer {
            speaker: Speaker::new(self.stream.try_clone()?),
            hearer,
            stream: self.stream,
            address: self.address,
        })
    }
}

fn tell(address: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "refused {address}: {why}");
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use tagwire_base::JobSecret;

    use super::super::greeting::{Unknown, introduce};
    use super::super::messages::Silence;
    use super::*;

    fn own(secret: &str) -> Own {
        Own {
            secret: JobSecret::of_text(secret).unwrap(),
            version: "1.2.3".to_owned(),
        }
    }

    fn open() -> (Entrance, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        (Entrance::new(listener, own("ours")).unwrap(), place)
    }

    /// The other side, in a thread. It comes again where it was dropped unheard.
    fn partner(
        place: SocketAddr,
        secret: &'static str,
    ) -> std::thread::JoinHandle<Result<(), Unknown>> {
        std::thread::spawn(move || {
            loop {
                let stream = TcpStream::connect(place).unwrap();
                let speaker = Speaker::new(stream.try_clone().unwrap());
                let mut hearer = Hearer::new(stream.try_clone().unwrap());
                match introduce(&speaker, &mut hearer, &own(secret)) {
                    Err(Unknown::Silent(Silence::Gone)) => {}
                    met => return met,
                }
            }
        })
    }

    fn peer(entrance: &mut Entrance) -> Peer {
        match entrance.next(None, None).unwrap() {
            Came::Peer(peer) => peer,
            Came::Other | Came::Nobody => panic!("there was nothing else to wait for"),
        }
    }

    /// A pending peer that sends half a message, and stays, keeps nobody out.
    #[test]
    fn a_stranger_that_drips_keeps_nobody_waiting() {
        let (mut entrance, place) = open();
        let mut drips = TcpStream::connect(place).unwrap();
        drips.write_all(b"x").unwrap();
        let partner = partner(place, "ours");
        let peer = peer(&mut entrance);
        assert_eq!(partner.join().unwrap(), Ok(()));
        assert!(peer.address.starts_with("127.0.0.1:"));
        assert_eq!(
            entrance.pending.len(),
            1,
            "the one that drips is still here"
        );
        drop(drips);
    }

    /// More pending peers than may be here leave room for the one who belongs here, and cost no thread.
    #[test]
    fn a_crowd_of_strangers_keeps_nobody_out() {
        let (mut entrance, place) = open();
        // As many as the system lets wait outside.
        let crowd: Vec<TcpStream> = (0..MOST + 32)
            .map(|number| {
                let mut stream = TcpStream::connect(place).unwrap();
                if number % 2 == 0 {
                    stream.write_all(b"{").unwrap();
                }
                stream
            })
            .collect();
        let partner = partner(place, "ours");
        let _peer = peer(&mut entrance);
        assert_eq!(partner.join().unwrap(), Ok(()));
        assert!(entrance.pending.len() <= MOST);
        drop(crowd);
    }

    #[test]
    fn both_sides_see_who_does_not_know_the_secret() {
        let (mut entrance, place) = open();
        let pending_peer = partner(place, "theirs");
        let partner = partner(place, "ours");
        let _peer = peer(&mut entrance);
        assert_eq!(partner.join().unwrap(), Ok(()));
        let (stop, ending) = UnixStream::pair().unwrap();
        let watch = std::thread::spawn(move || {
            let met = pending_peer.join().unwrap();
            drop(stop);
            met
        });
        let came = entrance.next(None, Some(ending.as_fd())).unwrap();
        assert!(matches!(came, Came::Other));
        assert!(
            matches!(watch.join().unwrap(), Err(Unknown::Refused(why)) if why.contains("secret"))
        );
        // And one who listens without it is no other side.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let impostor = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let speaker = Speaker::new(stream.try_clone().unwrap());
            let mut hearer = Hearer::new(stream);
            hearer.hear().unwrap();
            speaker
                .say(&PeerMessage::Challenge { nonce: [0; 32] })
                .unwrap();
            hearer.hear().unwrap();
            speaker.say(&PeerMessage::Proof { proof: [0; 32] }).unwrap();
        });
        let met = super::tests::partner(place, "ours").join().unwrap();
        assert_eq!(met, Err(Unknown::Impostor));
        impostor.join().unwrap();
    }

    #[test]
    fn those_that_are_sent_away_fill_no_log() {
        assert!((1..=NAMED).all(|number| is_logged(number, NAMED)));
        let later = (NAMED + 1..1 << 20).filter(|number| is_logged(*number, NAMED));
        assert_eq!(later.count(), 10);
    }

    #[test]
    fn nobody_is_waited_for_as_long_as_is_said() {
        let (mut entrance, _) = open();
        let came = entrance.next(Some(Duration::from_millis(1)), None).unwrap();
        assert!(matches!(came, Came::Nobody));
    }
}
