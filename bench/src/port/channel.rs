//! A port for tests: ranks are threads, messages go over channels and are matched by a plain
//! list. It can be told to spoil a byte of some message.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use tagwire_base::{Rank, Tag};

use super::partitioned::{Operation, PartitionedPort, Partner, RecvEnd, Rounds, SendEnd};
use super::{Endpoint, Port, peer_gone};
use crate::args::partitioned::PartitionedPlan;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

mod windows;

struct Message {
    from: Rank,
    tag: Tag,
    bytes: Vec<u8>,
}

struct Posted {
    data: Incoming,
    from: Rank,
    tag: Tag,
    done: Arc<AtomicU64>,
}

/// The tags of threads, edges and partitions.
const FIRST_OF_THREADS: i32 = 16;

/// Which message, counted over all that this rank sends with the tag of data or of a thread, and which byte.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spoil {
    pub message: u64,
    pub offset: usize,
}

pub(crate) struct ChannelPort {
    rank: Rank,
    peers: Vec<Option<Sender<Message>>>,
    /// Which ranks have ended, of all.
    ended: Arc<[AtomicBool]>,
    state: Mutex<State>,
    /// What any rank lets the others write to.
    rooms: Arc<Mutex<Vec<Incoming>>>,
    spoil: Option<Spoil>,
    sent: AtomicU64,
}

struct State {
    inbox: Receiver<Message>,
    posted: VecDeque<Posted>,
    unexpected: VecDeque<Message>,
}

/// Whether a receive is complete, and from whom it is.
pub(crate) struct Request(Option<(Arc<AtomicU64>, Rank)>);

impl Request {
    fn is_done(&self) -> bool {
        let done = self.0.as_ref();
        done.is_none_or(|(done, _)| done.load(Ordering::Acquire) == 1)
    }
}

impl Drop for ChannelPort {
    fn drop(&mut self) {
        self.ended[self.rank.index()].store(true, Ordering::Release);
    }
}

/// Runs `body` on `size` ranks and returns their results in order.
pub(crate) fn job<T: Send>(
    size: u32,
    spoil: Option<Spoil>,
    body: impl Fn(&ChannelPort) -> T + Sync,
) -> Vec<T> {
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..size).map(|_| channel()).unzip();
    let ended: Arc<[AtomicBool]> = (0..size).map(|_| AtomicBool::new(false)).collect();
    let rooms: Arc<Mutex<Vec<Incoming>>> = Arc::default();
    let ports: Vec<_> = (0_u32..)
        .zip(inboxes)
        .map(|(rank, inbox)| ChannelPort {
            rank: Rank::new(rank),
            // Nobody sends to itself; keeping no sender of one's own lets an inbox end.
            peers: (0_u32..)
                .zip(&senders)
                .map(|(to, s)| (to != rank).then(|| s.clone()))
                .collect(),
            ended: Arc::clone(&ended),
            rooms: Arc::clone(&rooms),
            state: Mutex::new(State {
                inbox,
                posted: VecDeque::new(),
                unexpected: VecDeque::new(),
            }),
            spoil: spoil.filter(|_| rank == 0),
            sent: AtomicU64::new(0),
        })
        .collect();
    drop(senders);
    std::thread::scope(|scope| {
        let body = &body;
        let threads: Vec<_> = ports
            .into_iter()
            .map(|port| scope.spawn(move || body(&port)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

impl State {
    fn arrive(&mut self, message: Message) {
        let fits = |posted: &Posted| posted.from == message.from && posted.tag == message.tag;
        match self.posted.iter().position(fits) {
            Some(at) => deliver(&self.posted.remove(at).unwrap(), &message),
            None => self.unexpected.push_back(message),
        }
    }
}

fn deliver(posted: &Posted, message: &Message) {
    assert!(message.bytes.len() <= posted.data.len(), "truncated");
    posted
        .data
        .buffer()
        .write(0, tagwire_transport::Payload::from_slice(&message.bytes));
    posted.done.store(1, Ordering::Release);
}

impl ChannelPort {
    /// Returns from whom receives are posted, with their tags, in their order.
    pub(crate) fn posted(&self) -> Vec<(Rank, Tag)> {
        let state = self.state.lock().unwrap();
        let posted = state.posted.iter();
        posted.map(|posted| (posted.from, posted.tag)).collect()
    }

    /// Counts a message, and spoils it where it is the one.
    fn spoil(&self, bytes: &mut [u8]) {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        if let Some(spoil) = self.spoil.filter(|spoil| spoil.message == number) {
            bytes[spoil.offset] ^= 0xff;
        }
    }
}

impl Endpoint for ChannelPort {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        u32::try_from(self.peers.len()).unwrap()
    }

    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        self.isend(data, to, tag).map(drop)
    }

    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        let mut one = vec![self.irecv(data, from, tag)?];
        self.wait_all(&mut one)
    }
}

impl Port for ChannelPort {
    type Request = Request;

    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<Request> {
        let mut bytes = data.bytes().to_vec();
        if tag == super::tags::DATA || tag.as_i32() >= FIRST_OF_THREADS {
            self.spoil(&mut bytes);
        }
        let message = Message {
            from: self.rank,
            tag,
            bytes,
        };
        let peer = self.peers[to.index()]
            .as_ref()
            .expect("nobody sends to itself");
        peer.send(message).map_err(|_| peer_gone(to))?;
        Ok(Request(None))
    }

    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<Request> {
        let done = Arc::new(AtomicU64::new(0));
        let posted = Posted {
            data,
            from,
            tag,
            done: Arc::clone(&done),
        };
        let mut state = self.state.lock().unwrap();
        let fits = |message: &Message| message.from == from && message.tag == tag;
        match state.unexpected.iter().position(fits) {
            Some(at) => deliver(&posted, &state.unexpected.remove(at).unwrap()),
            None => state.posted.push_back(posted),
        }
        Ok(Request(Some((done, from))))
    }

    /// Of two ranks: any source is the other one.
    fn irecv_any(&self, data: Incoming, tag: Tag) -> Result<Request> {
        assert_eq!(self.peers.len(), 2);
        self.irecv(data, Rank::new(1 - self.rank.as_u32()), tag)
    }

    fn wait_all(&self, requests: &mut Vec<Request>) -> Result<()> {
        while let Some(open) = requests.iter().find(|request| !request.is_done()) {
            let from = open.0.as_ref().map_or(self.rank, |(_, from)| *from);
            // What it has sent before its end is in the inbox by now.
            let is_gone = self.ended[from.index()].load(Ordering::Acquire);
            let mut state = self.state.lock().unwrap();
            let wait = std::time::Duration::from_millis(1);
            match state.inbox.recv_timeout(wait) {
                Ok(message) => state.arrive(message),
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) if is_gone && !open.is_done() => {
                    return Err(peer_gone(from));
                }
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(_) => return Err(peer_gone(Rank::new(1 - self.rank.as_u32().min(1)))),
            }
        }
        requests.clear();
        Ok(())
    }
}

/// An end of a partitioned operation: each partition is a message.
pub(crate) struct Partitioned<'p> {
    port: &'p ChannelPort,
    data: Incoming,
    partner: Partner,
    sends: bool,
    requests: Mutex<Vec<Request>>,
}

impl<'p> Partitioned<'p> {
    fn new(port: &'p ChannelPort, data: Incoming, partner: Partner, sends: bool) -> Self {
        Self {
            port,
            data,
            partner,
            sends,
            requests: Mutex::default(),
        }
    }

    fn tag(&self, partition: u32) -> Tag {
        let partition = i32::try_from(partition).unwrap();
        Tag::user((self.partner.tag.as_i32() + 1) << 16 | partition).unwrap()
    }
}

impl PartitionedPort for ChannelPort {
    type Send<'p> = Partitioned<'p>;
    type Recv<'p> = Partitioned<'p>;

    fn operations(&self, _: &PartitionedPlan) -> Vec<Operation> {
        let operation = |policy: &str| Operation {
            policy: policy.to_owned(),
            buffers: 1,
        };
        vec![operation("messages")]
    }

    fn psend(&self, data: Outgoing, to: Partner, _: &str) -> Result<Self::Send<'_>> {
        Ok(Partitioned::new(self, data.incoming(), to, true))
    }

    fn precv(&self, data: Incoming, from: Partner, _: u32) -> Result<Self::Recv<'_>> {
        Ok(Partitioned::new(self, data, from, false))
    }

    fn wait_ends<'p>(
        &'p self,
        sends: &[&Self::Send<'p>],
        receives: &[&Self::Recv<'p>],
    ) -> Result<()> {
        receives.iter().chain(sends).try_for_each(|end| end.wait())
    }
}

impl Partitioned<'_> {
    fn part(&self, partition: u32) -> Incoming {
        let len = self.data.len() / self.partner.partitions as usize;
        let start = partition as usize * len;
        self.data.part(start..start + len)
    }
}

impl Rounds for Partitioned<'_> {
    fn start(&self) -> Result<()> {
        let mut requests = self.requests.lock().unwrap();
        for partition in (0..self.partner.partitions).filter(|_| !self.sends) {
            let (tag, room) = (self.tag(partition), self.part(partition));
            requests.push(self.port.irecv(room, self.partner.rank, tag)?);
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let mut requests = std::mem::take(&mut *self.requests.lock().unwrap());
        self.port.wait_all(&mut requests)
    }
}

impl SendEnd for Partitioned<'_> {
    fn ready(&self, partition: u32) -> Result<()> {
        let data = self.part(partition).outgoing();
        let to = self.partner.rank;
        self.port.send(data, to, self.tag(partition))
    }
}

impl RecvEnd for Partitioned<'_> {
    fn arrived(&self, partition: u32) -> Result<bool> {
        if self.requests.lock().unwrap()[partition as usize].is_done() {
            return Ok(true);
        }
        let mut state = self.port.state.lock().unwrap();
        match state.inbox.try_recv() {
            Ok(message) => state.arrive(message),
            Err(std::sync::mpsc::TryRecvError::Empty) => {}
            Err(_) => return Err(peer_gone(self.partner.rank)),
        }
        Ok(false)
    }
}
