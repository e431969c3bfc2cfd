//! Where pending peers come in: a socket that listens, and the bounds on those who have not shown yet that they know the secret.
//!
//! Whoever owns the door waits for its sockets and reads them. The door says who may stay: a pending peer has one deadline for all
//! that it has to say. There is room for so many pending peers who have said nothing, and for as many who have said who they are
//! and have not proved it; one more sends the one away who has been there for longest. So whoever only connects keeps nobody
//! out, and neither does whoever says half of what is to be said.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::SocketFlags;
use tracing::debug;

/// How long connections are left waiting when one cannot be taken: this process has no descriptor left, most likely.
const PAUSE: Duration = Duration::from_millis(50);

/// The pauses before one comes again whose connection was dropped before it was heard, as it is where pending peers crowd.
pub const COME_AGAIN: [Duration; 6] = [
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_millis(1000),
];

/// A pending peer's number. It rises from one to the next, and is not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PendingId(pub u64);

/// A door.
#[derive(Debug)]
pub struct Door {
    listener: OwnedFd,
    /// Until when connections are left waiting.
    again_at: Option<Instant>,
    /// Those that have said nothing, and until when they may stay.
    silent: BTreeMap<PendingId, Instant>,
    /// Those that have said who they are.
    speaking: BTreeMap<PendingId, Instant>,
    next: u64,
    most: usize,
    patience: Duration,
}

impl Door {
    /// Opens a door for `most` pending peers of a kind, each of whom has `patience` to show who it is.
    ///
    /// # Errors
    /// When the listener cannot be made one that does not block.
    pub fn new(
        listener: impl Into<OwnedFd>,
        most: usize,
        patience: Duration,
    ) -> std::io::Result<Self> {
        let listener = listener.into();
        rustix::io::ioctl_fionbio(&listener, true)?;
        Ok(Self {
            listener,
            again_at: None,
            silent: BTreeMap::new(),
            speaking: BTreeMap::new(),
            next: 0,
            most,
            patience,
        })
    }

    /// Returns the next connection that waits. Where one cannot be taken, the door is closed for a moment.
    pub fn accept(&mut self, now: Instant) -> Option<OwnedFd> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        loop {
            match rustix::net::accept_with(&self.listener, flags) {
                Ok(socket) => return Some(socket),
                Err(Errno::AGAIN) => return None,
                // That one is gone again, and others may wait.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => {
                    debug!("cannot accept a connection: {error}");
                    self.again_at = Some(now + PAUSE);
                    return None;
                }
            }
        }
    }

    /// Lets a pending peer in, for whom there is room: see [`Door::crowding`].
    pub fn admit(&mut self, now: Instant) -> PendingId {
        let pending_peer = PendingId(self.next);
        self.next += 1;
        self.silent.insert(pending_peer, now + self.patience);
        pending_peer
    }

    /// Notes that a pending peer has said who it is. Returns who has to go for it.
    pub fn spoke(&mut self, pending_peer: PendingId) -> Option<PendingId> {
        let until = self.silent.remove(&pending_peer)?;
        let oldest = first_of(&self.speaking).filter(|_| self.speaking.len() >= self.most);
        if let Some(oldest) = oldest {
            self.speaking.remove(&oldest);
        }
        self.speaking.insert(pending_peer, until);
        oldest
    }

    /// Forgets a pending peer: it is known now, or gone.
    pub fn forget(&mut self, pending_peer: PendingId) {
        self.silent.remove(&pending_peer);
        self.speaking.remove(&pending_peer);
    }

    /// Opens the door again where it has been closed for long enough; returns whether it has.
    pub fn reopen(&mut self, now: Instant) -> bool {
        self.again_at.take_if(|at| *at <= now).is_some()
    }

    /// Returns those whose time is over, and forgets them.
    pub fn take_overdue(&mut self, now: Instant) -> Vec<PendingId> {
        let mut overdue = Vec::new();
        for pending in [&mut self.silent, &mut self.speaking] {
            while let Some(first) = pending.first_entry().filter(|first| *first.get() <= now) {
                overdue.push(first.remove_entry().0);
            }
        }
        overdue
    }

    /// Returns the one who has to go before another may come in, where there is no room.
    #[must_use]
    pub fn crowding(&self) -> Option<PendingId> {
        first_of(&self.silent).filter(|_| self.silent.len() >= self.most)
    }

    /// Returns the one who has been silent for longest, else the one who has been here for longest: where the process lacks
    /// what a connection costs, others are more likely to be somebody.
    #[must_use]
    pub fn oldest(&self) -> Option<PendingId> {
        first_of(&self.silent).or_else(|| first_of(&self.speaking))
    }

    /// Returns whether this is a pending peer.
    #[must_use]
    pub fn is_pending(&self, pending_peer: PendingId) -> bool {
        self.silent.contains_key(&pending_peer) || self.speaking.contains_key(&pending_peer)
    }

    /// Returns whether connections are taken.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.again_at.is_none()
    }

    /// Returns when something is due, though nobody comes.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        // Who came first has the earliest deadline.
        let silent = self.silent.first_key_value();
        let speaking = self.speaking.first_key_value();
        let deadlines = silent.into_iter().chain(speaking).map(|(_, until)| *until);
        deadlines.chain(self.again_at).min()
    }
}

fn first_of(pending: &BTreeMap<PendingId, Instant>) -> Option<PendingId> {
    pending
        .first_key_value()
        .map(|(pending_peer, _)| *pending_peer)
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);
    const SECOND: Duration = Duration::from_secs(1);

    fn door(most: usize) -> (Door, Instant) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (Door::new(listener, most, PATIENCE).unwrap(), Instant::now())
    }

    #[test]
    fn a_stranger_has_one_deadline_whatever_it_says() {
        let (mut door, now) = door(8);
        let first = door.admit(now);
        let second = door.admit(now + SECOND);
        assert_eq!(door.due(), Some(now + PATIENCE));
        assert_eq!(door.spoke(first), None);
        assert_eq!(door.spoke(first), None, "once");
        assert_eq!(door.due(), Some(now + PATIENCE), "no word makes it longer");
        let just_before = now + PATIENCE - Duration::from_nanos(1);
        assert_eq!(door.take_overdue(just_before), []);
        assert_eq!(door.take_overdue(now + PATIENCE), [first]);
        assert!(!door.is_pending(first) && door.is_pending(second));
        assert_eq!(door.due(), Some(now + SECOND + PATIENCE));
        door.forget(second);
        assert_eq!(door.due(), None);
    }

    #[test]
    fn one_too_many_sends_the_oldest_of_its_kind_away() {
        let (mut door, now) = door(2);
        let [first, second] = [door.admit(now), door.admit(now)];
        assert_eq!(door.crowding(), Some(first));
        assert_eq!(door.oldest(), Some(first));
        assert_eq!(door.spoke(first), None);
        assert_eq!(door.crowding(), None, "who speaks makes room");
        assert_eq!(door.spoke(second), None);
        let third = door.admit(now);
        assert_eq!(door.oldest(), Some(third), "who speaks is rather somebody");
        assert_eq!(door.spoke(third), Some(first));
        assert!(!door.is_pending(first) && door.is_pending(third));
        assert_eq!(door.oldest(), Some(second));
        door.forget(second);
        door.forget(third);
        assert_eq!(door.oldest(), None);
    }

    #[test]
    fn connections_are_taken_as_they_come() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let place = listener.local_addr().unwrap();
        let mut door = Door::new(listener, 2, PATIENCE).unwrap();
        let now = Instant::now();
        assert!(door.accept(now).is_none() && door.is_open());
        let _stream = TcpStream::connect(place).unwrap();
        let socket = door.accept(now).unwrap();
        let flags = rustix::fs::fcntl_getfl(&socket).unwrap();
        assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    }

    #[test]
    fn after_a_connection_that_cannot_be_taken_it_is_closed_for_a_moment() {
        // Nothing listens at this socket: each accept fails.
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut door = Door::new(socket, 2, PATIENCE).unwrap();
        let now = Instant::now();
        assert!(door.accept(now).is_none());
        assert!(!door.is_open());
        assert_eq!(door.due(), Some(now + PAUSE));
        let just_before = now + PAUSE - Duration::from_nanos(1);
        assert!(!door.reopen(just_before) && !door.is_open());
        assert!(door.reopen(now + PAUSE) && door.is_open());
        assert!(!door.reopen(now + PAUSE), "once");
    }
}
