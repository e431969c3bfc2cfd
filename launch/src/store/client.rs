//! A rank's side of the store.

use std::collections::VecDeque;
use std::fmt;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tagwire_base::bootstrap::Attribute;
use tagwire_base::error::is_shortage;
use tagwire_base::{Bootstrap, Error, JobSecret, Locality, MemberEvent, Owner, Rank, Result};

use super::socket::{self, Passed};
use super::wire::{FrameBuffer, Grant, Hello, MAX_KEY, MAX_VALUE, Reply, Request, RequestId, Who};
use crate::door::COME_AGAIN;
use crate::patience::Tries;
use crate::proof::secret_of_ranks;

/// How long the store may take for a reply that needs no other rank.
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);
/// How long a goodbye may take; after it the rank goes unheard.
const GOODBYE_DEADLINE: Duration = Duration::from_secs(5);

/// How long a rank that hears of another one's end leaves the word to their launcher.
const CAUSE_TIME: Duration = Duration::from_secs(1);

/// What closes a connection whose other side says something that it is not asked.
const UNFIT: &str = "gave an answer that does not fit the request";

/// What a rank must know to connect to its job's store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Membership {
    /// This rank.
    pub rank: Rank,
    /// How many ranks the job has.
    pub size: u32,
    /// This rank's number among those on its machine.
    pub local_rank: u32,
    /// How many ranks run on this machine.
    pub local_size: u32,
    /// The store: a socket's name in the abstract namespace, or `tcp:HOST:PORT`.
    pub store: String,
    /// What this rank proves.
    pub secret: JobSecret,
    /// Which of the programs of its job this rank runs, where its launcher says so.
    pub application: Option<u32>,
}

impl Membership {
    /// Rank `rank` of `size` on machines of their own, with a store at `address` (`HOST:PORT`).
    #[must_use]
    pub fn remote(rank: Rank, size: u32, address: &str, secret: JobSecret) -> Self {
        Self {
            rank,
            size,
            local_rank: 0,
            local_size: 1,
            store: format!("{}{address}", socket::TCP),
            secret,
            application: None,
        }
    }

    /// Returns the first rank on this machine: a launcher with a store gives each the ranks that follow those of the last.
    fn first_local(&self) -> Rank {
        Rank::new(self.rank.as_u32().saturating_sub(self.local_rank))
    }

    /// Whether the store may be on another machine.
    fn is_remote(&self) -> bool {
        self.store.starts_with(socket::TCP)
    }
}

/// A [`Bootstrap`] that talks to a store over a socket.
pub struct StoreBootstrap {
    membership: Membership,
    /// What ranks prove to each other.
    secret: JobSecret,
    /// The rank that serves the store, where no launcher does.
    leader: Option<Rank>,
    leader_left: bool,
    socket: OwnedFd,
    /// The process that connected.
    owner: Owner,
    incoming: FrameBuffer,
    descriptors: VecDeque<Passed>,
    /// The rest of a request that was given up when its beginning was sent.
    unsent: Vec<u8>,
    events: Vec<MemberEvent>,
    last_id: u32,
    /// Why nothing can be asked any more.
    closed: Option<String>,
    /// No more events come, and the caller knows.
    told_all: bool,
    /// The store has sent something.
    heard: bool,
}

impl fmt::Debug for StoreBootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreBootstrap")
            .field("membership", &self.membership)
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

/// Why a store has not let a rank in.
#[derive(Debug)]
pub(crate) enum NotIn {
    /// It refuses this rank, or is none.
    Refused(Error),
    /// It is not there, or is another session's.
    Early(Error),
}

impl NotIn {
    fn into_error(self) -> Error {
        match self {
            Self::Refused(error) | Self::Early(error) => error,
        }
    }
}

/// Whether the system, or who listens, is not for this user.
fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::System { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

/// A reply, with what came beside it.
type Answer = (Reply, Option<Passed>);

impl StoreBootstrap {
    /// Connects to the store and says hello. A store that is reached from other machines may drop a connection
    /// before it has read the hello, where pending peers crowd it: then this comes again.
    ///
    /// # Errors
    /// When there is no such store, or it refuses this rank.
    pub fn connect(membership: Membership) -> Result<Self> {
        let mut pauses = COME_AGAIN.iter();
        loop {
            let mut this = Self::reach(membership.clone(), socket::CONNECT_TIMEOUT)?;
            let Err(why) = this.say_hello(ANSWER_DEADLINE) else {
                return Ok(this);
            };
            let is_unheard = this.is_unheard() && this.membership.is_remote();
            match pauses.next().filter(|_| is_unheard) {
                Some(pause) => std::thread::sleep(*pause),
                None => return Err(why.into_error()),
            }
        }
    }

    /// Connects to the store that a rank serves for one session, once. Whoever is there replies `within` this time.
    pub(crate) fn enter(membership: Membership, within: Duration) -> Result<Self, NotIn> {
        let mut this =
            Self::reach(membership, within).map_err(|error| match is_forbidden(&error) {
                // Another user has taken the name: nobody of this job comes to listen there.
                true => NotIn::Refused(error),
                false => NotIn::Early(error),
            })?;
        match this.say_hello(within) {
            Ok(()) => Ok(this),
            // Another service may listen there, which says nothing.
            Err(NotIn::Refused(error @ Error::SlowStore { .. })) => Err(NotIn::Early(error)),
            // It hung up on all who were about to come when it ended.
            Err(why) if this.is_unheard() => Err(NotIn::Early(why.into_error())),
            Err(why) => Err(why),
        }
    }

    /// Whether the store has hung up without a word: one that has an opinion of this rank replies before.
    const fn is_unheard(&self) -> bool {
        self.closed.is_some() && !self.heard
    }

    /// Connects to the store.
    fn reach(membership: Membership, within: Duration) -> Result<Self> {
        let socket = socket::connect(&membership.store, within).map_err(|error| {
            Error::system(
                format!("connect to the store '{}'", membership.store),
                error,
            )
        })?;
        Ok(Self {
            secret: membership.secret.clone(),
            membership,
            leader: None,
            leader_left: false,
            socket,
            owner: Owner::here(),
            incoming: FrameBuffer::default(),
            descriptors: VecDeque::new(),
            unsent: Vec::new(),
            events: Vec::new(),
            last_id: 0,
            closed: None,
            told_all: false,
            heard: false,
        })
    }

    /// The store is served by a rank and not by a launcher: what its loss says is that this rank is gone, if anything.
    pub(crate) const fn led_by(mut self, leader: Rank) -> Self {
        self.leader = Some(leader);
        self
    }

    fn say_hello(&mut self, within: Duration) -> Result<(), NotIn> {
        let time = Tries::within(within);
        let rank = self.membership.rank.as_u32();
        let hello = Hello::of(Who::Rank(rank)).map_err(NotIn::Refused)?;
        let answer = self.ask(&Request::Hello(hello.clone()), None, within);
        let challenge = match answer.map_err(NotIn::Refused)? {
            Some((Reply::Challenge(challenge), _)) => challenge,
            answer => return Err(self.not_in(answer, within)),
        };
        // That is no opinion of this rank yet: where pending peers crowd, the store may still hang up without one.
        self.heard = false;
        let proof = hello.proof(&self.membership.secret, &challenge);
        let answer = self.ask(&Request::Proof(proof), None, time.left());
        let (grant, proof) = match answer.map_err(NotIn::Refused)? {
            Some((Reply::Granted(grant, proof), _)) => (grant, proof),
            answer => return Err(self.not_in(answer, within)),
        };
        if !hello.is_answered(&proof, &self.membership.secret, (&challenge, &grant)) {
            let why = "whoever serves it does not know the job's secret, or somebody has changed what it said";
            return Err(NotIn::Refused(self.close(why)));
        }
        let Grant::Welcome { size, round, nonce } = grant else {
            return Err(NotIn::Refused(self.close(UNFIT)));
        };
        if size != self.membership.size {
            return Err(NotIn::Refused(Error::Bootstrap(format!(
                "the environment tells of {} ranks, the store '{}' of {size}",
                self.membership.size, self.membership.store
            ))));
        }
        self.secret = secret_of_ranks(&self.membership.secret, round, &nonce);
        Ok(())
    }

    /// Returns what it means that something else came than the next step, or nothing `within` this time.
    fn not_in(&mut self, answer: Option<Answer>, within: Duration) -> NotIn {
        match answer {
            None => NotIn::Refused(self.slow(within)),
            Some((Reply::Later(why), _)) => NotIn::Early(Error::Bootstrap(why)),
            answer => NotIn::Refused(self.unexpected(answer)),
        }
    }

    /// Sends `request` and waits for its reply; `None` when `timeout` passes first. Only what breaks the stream
    /// closes the connection: after any other error, and after a timeout, the next request is as good as before.
    pub(super) fn ask(
        &mut self,
        request: &Request,
        descriptor: Option<BorrowedFd<'_>>,
        timeout: Duration,
    ) -> Result<Option<Answer>> {
        self.owner.check()?;
        if let Some(why) = &self.closed {
            return Err(Error::Bootstrap(format!(
                "store '{}': {why}",
                self.membership.store
            )));
        }
        self.last_id = self.last_id.wrapping_add(1).max(1);
        let id = RequestId(self.last_id);
        let until = Instant::now().checked_add(timeout);
        if !self.send(&request.encode(id), descriptor, until)? {
            return Ok(None);
        }
        loop {
            while let Some((answered, answer)) = self.next_answer()? {
                // An older id belongs to a request that was given up.
                if answered == id {
                    return Ok(Some(answer));
                }
            }
            if !self.receive()? && !self.wait(PollFlags::IN, until)? {
                return Ok(None);
            }
        }
    }

    /// Sends a request, behind what is left of the one before; false when `until` comes first.
    fn send(
        &mut self,
        bytes: &[u8],
        descriptor: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
    ) -> Result<bool> {
        let rest = std::mem::take(&mut self.unsent);
        Ok(self.send_frame(&rest, true, None, until)?
            && self.send_frame(bytes, false, descriptor, until)?)
    }

    /// Sends `bytes`. Of a frame that is `begun`, here or before, the rest is kept for the next request where it cannot
    /// be sent now: half a frame cannot be taken back.
    fn send_frame(
        &mut self,
        bytes: &[u8],
        mut begun: bool,
        mut descriptor: Option<BorrowedFd<'_>>,
        until: Option<Instant>,
    ) -> Result<bool> {
        let mut sent = 0;
        while sent < bytes.len() {
            let failed = match socket::send(&self.socket, &bytes[sent..], descriptor) {
                Ok(count) => {
                    sent += count;
                    begun = true;
                    descriptor = None;
                    continue;
                }
                Err(Errno::AGAIN) => match self.wait(PollFlags::OUT, until) {
                    Ok(true) => continue,
                    Ok(false) => Ok(false),
                    Err(error) => Err(error),
                },
                Err(error) => Err(self.broken("send to", error)),
            };
            if begun {
                self.unsent = bytes[sent..].to_vec();
            }
            return failed;
        }
        Ok(true)
    }

    /// Bytes of a request that was given up and has to be sent all the same.
    #[cfg(test)]
    pub(super) const fn unsent_len(&self) -> usize {
        self.unsent.len()
    }

    /// Takes what has arrived; whether there was any.
    fn receive(&mut self) -> Result<bool> {
        let mut buffer = [0; 16 * 1024];
        match socket::receive(&self.socket, &mut buffer, &mut self.descriptors) {
            Ok(0) => Err(self.close("connection closed by the launcher")),
            Ok(count) => {
                self.heard = true;
                self.incoming.extend(&buffer[..count]);
                Ok(true)
            }
            Err(Errno::AGAIN) => Ok(false),
            Err(error) => Err(self.broken("receive from", error)),
        }
    }

    /// Waits until the socket is ready; false when `until` comes first.
    fn wait(&mut self, readiness: PollFlags, until: Option<Instant>) -> Result<bool> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            let mut polled = [PollFd::new(&self.socket, readiness)];
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) => return Ok(true),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.broken("wait for", error)),
            }
        }
    }

    /// The error of a call that failed on the socket. The connection outlives a shortage of this machine.
    fn broken(&mut self, what: &str, error: Errno) -> Error {
        if is_shortage(&error.into()) {
            return Error::system(
                format!("{what} the store '{}'", self.membership.store),
                error,
            );
        }
        self.close(&format!("connection lost: {error}"))
    }

    /// The next reply among what has arrived; events on the way are kept for later.
    fn next_answer(&mut self) -> Result<Option<(RequestId, Answer)>> {
        loop {
            let decoded = match self.incoming.next_frame() {
                Ok(None) => return Ok(None),
                Ok(Some(frame)) => Reply::decode(&frame).map(|reply| (frame.id, reply)),
                Err(error) => Err(error),
            };
            match decoded {
                Ok((_, Reply::Left(rank))) => {
                    self.leader_left |= self.leader == Some(rank);
                    self.events.push(MemberEvent::Left(rank));
                }
                Ok((_, Reply::Failed(rank))) => self.events.push(MemberEvent::Failed(rank)),
                Ok((id, Reply::Descriptor)) => {
                    let Some(passed) = self.descriptors.pop_front() else {
                        return Err(self.close("announced a descriptor and sent none"));
                    };
                    return Ok(Some((id, (Reply::Descriptor, Some(passed)))));
                }
                Ok((id, reply)) => return Ok(Some((id, (reply, None)))),
                Err(error) => return Err(self.close(&error.to_string())),
            }
        }
    }

    /// Reports, once, that nothing more is heard. Where the way to the store's machine is lost, so are all who are
    /// heard of by it. On this machine the others may live, as a launcher that ends takes its ranks with it.
    fn report_loss(&mut self) {
        if std::mem::replace(&mut self.told_all, true) {
            return;
        }
        if let Some(leader) = self.leader {
            if !self.leader_left {
                self.events.push(MemberEvent::Failed(leader));
            }
            self.events.push(MemberEvent::StoreLost);
        } else if self.membership.is_remote() {
            let others = (0..self.membership.size).map(Rank::new);
            let others = others.filter(|rank| *rank != self.membership.rank);
            self.events.extend(others.map(MemberEvent::Failed));
        } else {
            self.events.push(MemberEvent::StoreLost);
        }
    }

    /// Gives the connection up, and says why from now on.
    fn close(&mut self, why: &str) -> Error {
        let why = self.closed.get_or_insert_with(|| why.to_owned());
        Error::Bootstrap(format!("store '{}': {why}", self.membership.store))
    }

    /// The error that a reply means which is not the one hoped for.
    fn unexpected(&mut self, answer: Option<Answer>) -> Error {
        match answer {
            Some((Reply::Refused(why), _)) => Error::Bootstrap(why),
            Some(_) => self.close(UNFIT),
            None => self.slow(ANSWER_DEADLINE),
        }
    }

    fn slow(&self, timeout: Duration) -> Error {
        Error::SlowStore {
            store: self.membership.store.clone(),
            timeout,
        }
    }

    fn check_key(key: &str) -> Result<()> {
        if key.len() > MAX_KEY {
            return Err(Error::Bootstrap(format!(
                "a key of {} bytes, and the store takes {MAX_KEY}",
                key.len()
            )));
        }
        Ok(())
    }
}

impl Bootstrap for StoreBootstrap {
    fn rank(&self) -> Rank {
        self.membership.rank
    }

    fn size(&self) -> u32 {
        self.membership.size
    }

    fn locality(&self) -> Locality {
        Locality {
            local_rank: self.membership.local_rank,
            local_size: self.membership.local_size,
            first_local: self.membership.first_local(),
            address: socket::own_address(&self.socket),
        }
    }

    fn secret(&self) -> &JobSecret {
        &self.secret
    }

    fn reports_ends(&self) -> bool {
        // A launcher sees each of its processes end. A store that is reached from other machines sees only
        // connections end, and nothing of a rank that never makes one.
        !self.membership.is_remote()
    }

    fn attribute(&mut self, attribute: Attribute) -> Option<u32> {
        match attribute {
            Attribute::ApplicationNumber => self.membership.application,
            _ => None,
        }
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        Self::check_key(key)?;
        if value.len() > MAX_VALUE {
            return Err(Error::Bootstrap(format!(
                "the value of key '{key}' has {} bytes, and the store takes {MAX_VALUE}",
                value.len()
            )));
        }
        let request = Request::Put {
            key: key.to_owned(),
            value: value.to_vec(),
        };
        match self.ask(&request, None, ANSWER_DEADLINE)? {
            Some((Reply::Done, _)) => Ok(()),
            answer => Err(self.unexpected(answer)),
        }
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        Self::check_key(key)?;
        let request = Request::Get {
            rank: rank.as_u32(),
            key: key.to_owned(),
        };
        match self.ask(&request, None, timeout)? {
            Some((Reply::Value(value), _)) => Ok(value),
            None => Err(timed_out(rank, key, timeout)),
            answer => Err(self.unexpected(answer)),
        }
    }

    fn fence(&mut self, timeout: Duration) -> Result<()> {
        match self.ask(&Request::Fence, None, timeout)? {
            Some((Reply::Done, _)) => Ok(()),
            None => Err(Error::FenceTimeout(timeout)),
            answer => {
                // A launcher that ends the job with the rank that is missing does so at once, and has named it. The others
                // need not.
                if !self.membership.is_remote() {
                    std::thread::sleep(CAUSE_TIME);
                }
                Err(self.unexpected(answer))
            }
        }
    }

    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> Result<()> {
        if self.membership.is_remote() {
            // Nobody can take it from there; who needs it hears so when he asks.
            return Ok(());
        }
        match self.ask(
            &Request::PutDescriptor,
            Some(descriptor.as_fd()),
            ANSWER_DEADLINE,
        )? {
            Some((Reply::Done, _)) => Ok(()),
            answer => Err(self.unexpected(answer)),
        }
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> Result<OwnedFd> {
        if self.membership.is_remote() {
            return Err(Error::Bootstrap(format!(
                "no descriptor of rank {rank}: the store '{}' is reached by TCP, which passes none",
                self.membership.store
            )));
        }
        match self.ask(
            &Request::GetDescriptor {
                rank: rank.as_u32(),
            },
            None,
            timeout,
        )? {
            Some((Reply::Descriptor, Some(Passed::Descriptor(descriptor)))) => Ok(descriptor),
            Some((Reply::Descriptor, Some(Passed::Cut))) => Err(Error::system(
                format!("take the descriptor of rank {rank} from the store (ulimit -n)"),
                Errno::MFILE,
            )),
            None => Err(timed_out(rank, "descriptor", timeout)),
            answer => Err(self.unexpected(answer)),
        }
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        if !self.owner.is_here() {
            return Vec::new();
        }
        if self.closed.is_none() {
            // What came behind the last reply lies here already. Late replies to requests that
            // were given up are dropped; a broken stream shows in the next request.
            let _ = self.receive();
            while let Ok(Some(_)) = self.next_answer() {}
        }
        if self.closed.is_some() {
            self.report_loss();
        }
        std::mem::take(&mut self.events)
    }

    fn abort(&mut self, status: i32) {
        let request = Request::Abort {
            status: status as u32,
        };
        // Who is not heard ends all the same, as a rank that has failed.
        let _ = self.ask(&request, None, GOODBYE_DEADLINE);
    }

    fn leave(&mut self) {
        if self.closed.is_none() && self.owner.is_here() {
            // Waiting for the reply makes sure that the goodbye precedes this process's end.
            let _ = self.ask(&Request::Leave, None, GOODBYE_DEADLINE);
            self.told_all = true;
            self.close("this rank has left");
        }
    }
}

fn timed_out(rank: Rank, key: &str, timeout: Duration) -> Error {
    Error::BootstrapTimeout {
        rank,
        key: key.to_owned(),
        seconds: timeout.as_secs(),
    }
}
