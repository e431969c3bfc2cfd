//! The store's event loop: one thread, no blocking call but the wait for events.
//!
//! A client can hold up nobody but itself. Its requests are not read while its replies pile up,
//! so what it costs is bounded; the door bounds how many pending peers there are, and for how long. Of a pending peer no more is kept
//! than the longest hello, and no descriptor.

use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::io::Errno;
use tagwire_base::Rank;
use tracing::debug;

use super::key_space::{ClientId, KeySpace, Report, Verdict};
use super::socket::{self, Passed};
use super::wire::{FrameBuffer, MAX_FIRST, MAX_LENGTH, Malformed, Request};
use crate::door::{Door, PendingId};

/// Replies that may wait for a client before its requests are left unread.
const MAX_BACKLOG: usize = 256 * 1024;
/// How long a pending peer has to prove that it belongs to the job.
const HELLO_DEADLINE: Duration = Duration::from_secs(10);
/// How many pending peers of a kind may be connected beyond one per rank.
pub(super) const SPARE_STRANGERS: usize = 64;
/// Bytes taken from one client before the next has its turn.
const READ_CHUNK: usize = 64 * 1024;
/// The same of a pending peer: it is to say who it is and to prove it, and no more is kept of what it says.
const FIRST_CHUNK: usize = 512;
const _: () = assert!(FIRST_CHUNK > MAX_FIRST);

const LISTENER: u64 = u64::MAX;
const CONTROL: u64 = u64::MAX - 1;

/// What the launcher hears of.
#[derive(Debug, Clone)]
pub(super) struct Reports {
    /// Readable once there is something.
    wake: Arc<OwnedFd>,
    queue: Arc<Mutex<Vec<Report>>>,
}

impl Reports {
    pub fn new() -> Result<Self, Errno> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self {
            wake: Arc::new(rustix::event::eventfd(0, flags)?),
            queue: Arc::default(),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Vec<Report>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, reports: Vec<Report>) {
        if !reports.is_empty() {
            self.queue().extend(reports);
            // Fails only when it has been given more often than can be counted.
            let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        }
    }

    pub fn take(&self) -> Vec<Report> {
        let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        std::mem::take(&mut *self.queue())
    }
}

impl AsFd for Reports {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

/// What the launcher reports to the store's thread.
#[derive(Debug)]
pub(super) enum Control {
    RankEnded(Rank),
    /// To be told once no member is connected any more.
    WhenEmpty(Sender<()>),
    /// The job ends, with this status: other hosts are told.
    EndJob(u32),
}

impl From<PendingId> for ClientId {
    fn from(pending_peer: PendingId) -> Self {
        Self(pending_peer.0)
    }
}

impl ClientId {
    /// Returns the number that it came in by.
    const fn pending_peer(self) -> PendingId {
        PendingId(self.0)
    }
}

#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    sent: usize,
    descriptor: Option<Arc<OwnedFd>>,
}

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    incoming: FrameBuffer,
    descriptors: VecDeque<Passed>,
    outgoing: VecDeque<Chunk>,
    backlog: usize,
    closing: bool,
    /// Requests lie unread because too many replies wait.
    stalled: bool,
    interest: EventFlags,
}

impl Connection {
    fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            incoming: FrameBuffer::default(),
            descriptors: VecDeque::new(),
            outgoing: VecDeque::new(),
            backlog: 0,
            closing: false,
            stalled: false,
            interest: EventFlags::IN,
        }
    }

    fn wanted(&self) -> EventFlags {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, !self.closing && self.backlog < MAX_BACKLOG);
        wanted.set(EventFlags::OUT, !self.outgoing.is_empty());
        wanted
    }

    /// Sends what the socket takes. An error means that the client is gone.
    fn flush(&mut self) -> Result<(), Errno> {
        while let Some(chunk) = self.outgoing.front_mut() {
            let descriptor = chunk
                .descriptor
                .as_ref()
                .map(|descriptor| descriptor.as_fd());
            match socket::send(&self.socket, &chunk.bytes[chunk.sent..], descriptor) {
                Ok(sent) => {
                    // The descriptor went with the first byte.
                    chunk.descriptor = None;
                    chunk.sent += sent;
                    self.backlog -= sent;
                    if chunk.sent == chunk.bytes.len() {
                        self.outgoing.pop_front();
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
enum Ending {
    #[error("the stream ended")]
    End,
    #[error("it has not proved that it belongs to the job, and others wait")]
    Crowded,
    #[error("it has not proved that it belongs to the job in time")]
    Late,
    #[error("{0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Socket(#[from] Errno),
}

pub(super) struct Server {
    poller: OwnedFd,
    door: Door,
    wake: Arc<OwnedFd>,
    control: Receiver<Control>,
    reports: Reports,
    keys: KeySpace,
    connections: HashMap<ClientId, Connection>,
    /// Stalled clients that can go on.
    resumable: Vec<ClientId>,
    /// Who is to be told once no member is connected any more.
    until_empty: Option<Sender<()>>,
    buffer: Vec<u8>,
}

impl Server {
    pub fn new(
        listener: OwnedFd,
        wake: Arc<OwnedFd>,
        (control, reports): (Receiver<Control>, Reports),
        keys: KeySpace,
        size: u32,
    ) -> std::io::Result<Self> {
        let door = Door::new(listener, size as usize + SPARE_STRANGERS, HELLO_DEADLINE)?;
        let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&poller, &door, EventData::new_u64(LISTENER), EventFlags::IN)?;
        epoll::add(&poller, &*wake, EventData::new_u64(CONTROL), EventFlags::IN)?;
        Ok(Self {
            poller,
            door,
            wake,
            control,
            reports,
            keys,
            connections: HashMap::new(),
            resumable: Vec::new(),
            until_empty: None,
            buffer: vec![0; READ_CHUNK],
        })
    }

    /// Serves until the control channel is closed.
    pub fn run(mut self) {
        let mut space = [MaybeUninit::<Event>::uninit(); 64];
        loop {
            let timeout = self.timeout();
            let events: Vec<(u64, EventFlags)> =
                match epoll::wait(&self.poller, &mut space[..], timeout.as_ref()) {
                    Ok((events, _)) => events
                        .iter()
                        .map(|event| (event.data.u64(), event.flags))
                        .collect(),
                    Err(Errno::INTR) => continue,
                    Err(error) => {
                        debug!("the store's wait for events failed: {error}");
                        return;
                    }
                };
            for (source, flags) in events {
                match source {
                    LISTENER => self.accept(),
                    CONTROL => {
                        if !self.obey() {
                            return;
                        }
                    }
                    client => self.serve(ClientId(client), flags),
                }
            }
            self.resume();
            self.housekeep(Instant::now());
            self.reports.give(self.keys.take_reports());
            // Pending peers are those that come for the next store, or nobody.
            let is_pending = |client: &ClientId| self.door.is_pending(client.pending_peer());
            if self.until_empty.is_some()
                && self.connections.keys().all(is_pending)
                && let Some(sender) = self.until_empty.take()
            {
                // Whoever waits may have given up.
                let _ = sender.send(());
            }
        }
    }

    fn accept(&mut self) {
        let now = Instant::now();
        for _ in 0..SPARE_STRANGERS {
            // Those that are left are announced again, after those who are here have been heard.
            let Some(socket) = self.door.accept(now) else {
                break;
            };
            self.welcome(socket, now);
        }
        if !self.door.is_open() {
            self.watch_listener(EventFlags::empty());
            if let Some(oldest) = self.door.oldest() {
                self.drop_client(oldest.into(), &Ending::Crowded);
            }
        }
    }

    fn watch_listener(&self, flags: EventFlags) {
        let data = EventData::new_u64(LISTENER);
        // A listener that is in the set can be changed there.
        let _ = epoll::modify(&self.poller, &self.door, data, flags);
    }

    fn welcome(&mut self, socket: OwnedFd, now: Instant) {
        if !socket::is_welcome(&socket) {
            debug!("a connection was sent away: another user's, or gone already");
            return;
        }
        while let Some(oldest) = self.door.crowding() {
            // Its hello may have come meanwhile.
            let ending = self.read(oldest.into()).err();
            if self.door.crowding() == Some(oldest) {
                self.drop_client(oldest.into(), &ending.unwrap_or(Ending::Crowded));
            }
        }
        let pending_peer = self.door.admit(now);
        let client = ClientId::from(pending_peer);
        let data = EventData::new_u64(client.0);
        match epoll::add(&self.poller, &socket, data, EventFlags::IN) {
            Ok(()) => drop(self.connections.insert(client, Connection::new(socket))),
            Err(_) => self.door.forget(pending_peer),
        }
    }

    /// Carries out what the launcher said; false when it hung up.
    fn obey(&mut self) -> bool {
        let mut count = [0; 8];
        // Only resets the wake-up; what there is to do is in the channel.
        let _ = rustix::io::read(&*self.wake, &mut count);
        loop {
            match self.control.try_recv() {
                Ok(Control::RankEnded(rank)) => self.rank_ended(rank),
                Ok(Control::EndJob(status)) => {
                    self.keys.end_hosts(status);
                    self.deliver();
                }
                Ok(Control::WhenEmpty(sender)) => self.until_empty = Some(sender),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }

    fn rank_ended(&mut self, rank: Rank) {
        // Its last words may still lie in the socket: a goodbye there is a goodbye.
        while let Some(client) = self.keys.client_of(rank) {
            match self.read(client) {
                Ok(true) => {}
                Ok(false) | Err(_) => break,
            }
        }
        let client = self.keys.client_of(rank);
        self.keys.ended(rank);
        if let Some(client) = client {
            self.remove(client);
        }
        self.deliver();
    }

    fn serve(&mut self, client: ClientId, flags: EventFlags) {
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR)
            && let Err(ending) = self.read(client)
        {
            self.drop_client(client, &ending);
            return;
        }
        self.flush(client);
    }

    /// Goes on with clients whose requests were left lying and whose replies have gone out.
    fn resume(&mut self) {
        while let Some(client) = self.resumable.pop() {
            if let Err(ending) = self.process(client) {
                self.drop_client(client, &ending);
            }
        }
    }

    /// Takes one chunk from `client` and carries out what is complete; whether there was any.
    fn read(&mut self, client: ClientId) -> Result<bool, Ending> {
        let Some(connection) = self.connections.get_mut(&client) else {
            return Ok(false);
        };
        if connection.closing || connection.stalled {
            return Ok(false);
        }
        let is_pending = self.door.is_pending(client.pending_peer());
        let most = if is_pending { FIRST_CHUNK } else { READ_CHUNK };
        match socket::receive(
            &connection.socket,
            &mut self.buffer[..most],
            &mut connection.descriptors,
        ) {
            Ok(0) => return Err(Ending::End),
            Ok(count) => connection.incoming.extend(&self.buffer[..count]),
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        if is_pending && !connection.descriptors.is_empty() {
            return Err(Malformed("a descriptor before a proof").into());
        }
        self.process(client)?;
        Ok(true)
    }

    /// Carries out the complete requests of `client`, until too many replies wait for it.
    fn process(&mut self, client: ClientId) -> Result<(), Ending> {
        while let Some(connection) = self.connections.get_mut(&client) {
            connection.stalled = connection.backlog >= MAX_BACKLOG;
            if connection.stalled || connection.closing {
                return Ok(());
            }
            let most = match self.door.is_pending(client.pending_peer()) {
                true => MAX_FIRST,
                false => MAX_LENGTH,
            };
            let Some(frame) = connection.incoming.next_frame_of(most)? else {
                // A descriptor comes with its request's first byte: at most one is early.
                if connection.descriptors.len() > 1 {
                    return Err(Malformed("descriptors that no message announced").into());
                }
                return Ok(());
            };
            let request = Request::decode(&frame)?;
            let mut crowded = None;
            let descriptor = match request {
                Request::PutDescriptor => connection.descriptors.pop_front(),
                _ => None,
            };
            let verdict = self.keys.handle(client, frame.id, request, descriptor);
            if self.keys.is_member(client) {
                self.door.forget(client.pending_peer());
            } else if self.keys.is_challenged(client) {
                crowded = self.door.spoke(client.pending_peer());
            }
            if verdict == Verdict::Close {
                connection.closing = true;
                self.keys.disconnected(client);
            }
            self.deliver();
            if let Some(crowded) = crowded {
                self.drop_client(crowded.into(), &Ending::Crowded);
            }
        }
        Ok(())
    }

    /// Moves the key space's outbox into the connections and sends what goes out at once.
    fn deliver(&mut self) {
        // The launcher hears first: of what others do at the news, that is the cause.
        self.reports.give(self.keys.take_reports());
        loop {
            let outbox = self.keys.take_outbox();
            if outbox.is_empty() {
                return;
            }
            let mut touched = Vec::new();
            for message in outbox {
                let Some(connection) = self.connections.get_mut(&message.client) else {
                    continue;
                };
                let bytes = message.reply.encode(message.id);
                connection.backlog += bytes.len();
                let descriptor = message.descriptor;
                connection.outgoing.push_back(Chunk {
                    bytes,
                    sent: 0,
                    descriptor,
                });
                touched.push(message.client);
            }
            touched.dedup();
            touched.into_iter().for_each(|client| self.flush(client));
        }
    }

    fn flush(&mut self, client: ClientId) {
        let Some(connection) = self.connections.get_mut(&client) else {
            return;
        };
        if let Err(error) = connection.flush() {
            self.drop_client(client, &error.into());
            return;
        }
        if connection.closing && connection.outgoing.is_empty() {
            self.remove(client);
            return;
        }
        if connection.stalled && connection.backlog < MAX_BACKLOG {
            self.resumable.push(client);
        }
        let wanted = connection.wanted();
        if wanted != connection.interest {
            connection.interest = wanted;
            let data = EventData::new_u64(client.0);
            if let Err(error) = epoll::modify(&self.poller, &connection.socket, data, wanted) {
                self.drop_client(client, &error.into());
            }
        }
    }

    fn drop_client(&mut self, client: ClientId, ending: &Ending) {
        debug!(client = client.0, "a connection ends: {ending}");
        self.remove(client);
        self.keys.disconnected(client);
        self.deliver();
    }

    fn remove(&mut self, client: ClientId) {
        self.connections.remove(&client);
        self.door.forget(client.pending_peer());
    }

    fn housekeep(&mut self, now: Instant) {
        if self.door.reopen(now) {
            self.watch_listener(EventFlags::IN);
        }
        for pending_peer in self.door.take_overdue(now) {
            self.drop_client(pending_peer.into(), &Ending::Late);
        }
    }

    fn timeout(&self) -> Option<Timespec> {
        let due = self.door.due()?;
        Timespec::try_from(due.saturating_duration_since(Instant::now())).ok()
    }
}

#[cfg(test)]
mod tests;
