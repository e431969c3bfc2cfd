//! What the store knows and decides: values, descriptors, fences, who is here and who is gone.
//!
//! No sockets and no clock: requests go in, [`KeySpace::take_outbox`] gives what must be sent.
//!
//! A rank may leave and come back, as two programs that one rank runs one after the other do.
//! Each stay belongs to a **round**: the number of times this rank had left before. Ranks of one
//! round see only that round's values, descriptors, fences and events, so that the second
//! program never reads an address of the first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tagwire_base::{JobSecret, Rank};

use super::admission::{Admission, Admitted, Step};
use super::socket::Passed;
use super::wire::{Grant, Reply, Request, RequestId, Who};
use crate::proof::Nonce;

/// The most that one rank may keep here, in bytes of keys and values, over all rounds that others may still read.
const MAX_BYTES_PER_RANK: usize = 16 << 20;
/// What a value costs beside its bytes.
const VALUE_OVERHEAD: usize = 64;
/// What a stay costs beside its values.
const STAY_OVERHEAD: usize = 256;

/// One connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ClientId(pub u64);

/// Whether a connection goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Verdict {
    Keep,
    /// Send what is in the outbox, then close.
    Close,
}

/// A message to a client.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub client: ClientId,
    pub id: RequestId,
    pub reply: Reply,
    pub descriptor: Option<Arc<OwnedFd>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Membership {
    Expected,
    Left,
    Failed,
}

#[derive(Debug, Default, Clone)]
struct Member {
    /// How often it has left: the round of its present or next stay.
    leaves: u32,
    /// It ended, or its connection did, without a goodbye.
    ended: bool,
    client: Option<ClientId>,
    /// Its host has said that its process is over.
    over: bool,
    /// Bytes that it keeps here, over all rounds.
    kept: usize,
}

impl Member {
    fn membership(&self, round: u32) -> Membership {
        if round < self.leaves {
            Membership::Left
        } else if self.ended {
            Membership::Failed
        } else {
            Membership::Expected
        }
    }
}

#[derive(Debug)]
struct Client {
    rank: Rank,
    round: u32,
    /// A client waits for one thing at a time: a new request replaces an old one, whose asker
    /// has given up.
    waiting: Option<(RequestId, Wait)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Wait {
    Value {
        rank: Rank,
        key: String,
    },
    Descriptor {
        rank: Rank,
    },
    /// The fence that each rank calls for the n-th time.
    Fence(u64),
}

/// What one round has brought together.
#[derive(Debug, Default)]
struct Round {
    values: HashMap<Rank, HashMap<String, Arc<[u8]>>>,
    /// Bytes that each member keeps in this round.
    bytes: HashMap<Rank, usize>,
    descriptors: HashMap<Rank, Arc<OwnedFd>>,
    fences: HashMap<Rank, u64>,
}

/// What starts ranks on another host.
#[derive(Debug)]
struct Host {
    name: String,
    ranks: Range<u32>,
}

#[derive(Debug)]
pub(super) struct KeySpace {
    admission: Admission,
    /// What makes the ranks' secrets those of this store.
    nonce: Nonce,
    members: Vec<Member>,
    clients: HashMap<ClientId, Client>,
    rounds: BTreeMap<u32, Round>,
    outbox: Vec<Outgoing>,
    /// What the launcher is to hear of.
    reports: Vec<Report>,
    /// What starts ranks elsewhere.
    hosts: HashMap<ClientId, Host>,
    /// The first rank that no host has.
    next_rank: u32,
    /// The status that the job ends with, once it does.
    over_with: Option<u32>,
    /// Whether each rank has one stay, and comes to another store for the next.
    one_stay: bool,
}

/// What a launcher hears of from its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// A rank wants the job ended, with this status.
    Abort(Rank, u32),
    /// Another host has brought so many ranks.
    Came(u32),
    /// A rank of another host has ended, with this status.
    Ended(Rank, u32),
    /// Another host is lost, by its name, and with it those of its ranks that had not ended.
    HostLost(String, Vec<Rank>),
}

impl KeySpace {
    pub fn new(size: u32, secret: JobSecret, nonce: Nonce) -> Self {
        Self {
            admission: Admission::new(secret),
            nonce,
            members: vec![Member::default(); size as usize],
            clients: HashMap::new(),
            rounds: BTreeMap::new(),
            outbox: Vec::new(),
            reports: Vec::new(),
            hosts: HashMap::new(),
            next_rank: size,
            over_with: None,
            one_stay: false,
        }
    }

    /// Sends ranks away that have left or ended: the next store is theirs.
    pub const fn allow_one_stay(&mut self) {
        self.one_stay = true;
    }

    /// Leaves all ranks but the first `own` to other hosts.
    pub const fn keep_first(&mut self, own: u32) {
        self.next_rank = own;
    }

    /// Tells the other hosts that the job ends.
    pub fn end_hosts(&mut self, status: u32) {
        let hosts: Vec<ClientId> = self.hosts.keys().copied().collect();
        for client in hosts {
            self.reply(client, RequestId::default(), Reply::End { status });
        }
        self.over_with = Some(status);
    }

    /// Carries out `request` of `client`, which may still be a pending peer.
    pub fn handle(
        &mut self,
        client: ClientId,
        id: RequestId,
        request: Request,
        passed: Option<Passed>,
    ) -> Verdict {
        let Some(known) = self.clients.get(&client) else {
            return match self.hosts.contains_key(&client) {
                true => self.handle_host(client, id, &request),
                false => self.handle_stranger(client, id, request),
            };
        };
        let (rank, round) = (known.rank, known.round);
        match request {
            Request::Hello(_) | Request::Proof(_) | Request::Ended { .. } => {
                return self.refuse_and_close(client, id, "a second hello");
            }
            Request::Put { key, value } => self.put(client, id, key, value),
            Request::Get { rank, key } => {
                self.wait_on(client, id, rank, |rank| Wait::Value { rank, key })
            }
            Request::GetDescriptor { rank } => {
                self.wait_on(client, id, rank, |rank| Wait::Descriptor { rank });
            }
            Request::Fence => {
                let count = self.round(round).fences.entry(rank).or_default();
                *count += 1;
                let wait = Wait::Fence(*count);
                self.set_waiting(client, id, wait);
                self.settle(round);
            }
            Request::PutDescriptor => {
                let descriptor = match passed {
                    Some(Passed::Descriptor(descriptor)) => descriptor,
                    Some(Passed::Cut) => {
                        let why = "the launcher has no descriptor left for the rank's memory (raise its limit of open files, ulimit -n)";
                        self.reply(client, id, Reply::Refused(why.to_owned()));
                        return Verdict::Keep;
                    }
                    None => {
                        return self.refuse_and_close(
                            client,
                            id,
                            "no descriptor beside the message",
                        );
                    }
                };
                self.round(round)
                    .descriptors
                    .insert(rank, Arc::new(descriptor));
                self.reply(client, id, Reply::Done);
                self.settle(round);
            }
            Request::Abort { status } => {
                self.reports.push(Report::Abort(rank, status));
                self.reply(client, id, Reply::Done);
            }
            Request::Leave => {
                self.leave(client, id);
                return Verdict::Close;
            }
        }
        Verdict::Keep
    }

    /// Carries out what a pending peer says.
    fn handle_stranger(&mut self, client: ClientId, id: RequestId, request: Request) -> Verdict {
        match self.admission.hear(client, request) {
            Ok(Step::Challenge(nonce)) => {
                self.reply(client, id, Reply::Challenge(nonce));
                Verdict::Keep
            }
            Ok(Step::Admit(admitted)) => match admitted.who() {
                Who::Rank(rank) => self.join(client, id, *rank, &admitted),
                Who::Host { ranks, name } => self.host(client, id, (*ranks, name), &admitted),
            },
            Err(why) => self.refuse_and_close(client, id, &why),
        }
    }

    /// Carries out what a host says, which is which of its ranks have ended.
    fn handle_host(&mut self, client: ClientId, id: RequestId, request: &Request) -> Verdict {
        match request {
            Request::Ended { rank, status } => self.ended_elsewhere(client, *rank, *status),
            // A second hello would leave nobody to answer for the ranks of the first.
            _ => self.refuse_and_close(client, id, "a host says what has ended, and nothing else"),
        }
    }

    /// The connection is gone. Without a goodbye before, its rank counts as failed.
    pub fn disconnected(&mut self, client: ClientId) {
        self.admission.forget(client);
        if let Some(known) = self.clients.get(&client) {
            self.ended(known.rank);
        }
        if let Some(Host { name, ranks }) = self.hosts.remove(&client) {
            let ranks = ranks.map(Rank::new);
            let lost: Vec<Rank> = ranks.filter(|rank| self.over(*rank)).collect();
            if !lost.is_empty() {
                self.reports.push(Report::HostLost(name, lost));
            }
        }
    }

    /// A rank of another host is over, in whatever way. Returns whether this is the first word of it: only that counts.
    fn over(&mut self, rank: Rank) -> bool {
        let is_first = !std::mem::replace(&mut self.members[rank.index()].over, true);
        if is_first {
            self.ended(rank);
        }
        is_first
    }

    fn host(
        &mut self,
        client: ClientId,
        id: RequestId,
        (ranks, name): (u32, &str),
        admitted: &Admitted,
    ) -> Verdict {
        if let Some(status) = self.over_with {
            let why = format!("the job has ended with status {status}");
            return self.refuse_and_close(client, id, &why);
        }
        let (first, size) = (self.next_rank, self.members.len() as u32);
        if ranks == 0 || ranks > size - first {
            let why = format!(
                "this host brings {ranks} ranks (option -n), and {} of the job's {size} are left",
                size - first
            );
            return self.refuse_and_close(client, id, &why);
        }
        self.next_rank += ranks;
        let host = Host {
            name: name.to_owned(),
            ranks: first..first + ranks,
        };
        self.hosts.insert(client, host);
        self.reports.push(Report::Came(ranks));
        let place = (self.admission).grant(admitted, Grant::Place { first, size });
        self.reply(client, id, place);
        Verdict::Keep
    }

    fn ended_elsewhere(&mut self, client: ClientId, rank: u32, status: u32) -> Verdict {
        let is_its = |host: &Host| host.ranks.contains(&rank);
        if !self.hosts.get(&client).is_some_and(is_its) {
            return Verdict::Close;
        }
        let rank = Rank::new(rank);
        if self.over(rank) {
            self.reports.push(Report::Ended(rank, status));
        }
        Verdict::Keep
    }

    /// The rank's process has ended, or as good as ended.
    pub fn ended(&mut self, rank: Rank) {
        let Some(member) = self.members.get_mut(rank.index()) else {
            return;
        };
        if std::mem::replace(&mut member.ended, true) {
            return;
        }
        let first = member.leaves;
        if let Some(client) = member.client.take() {
            self.clients.remove(&client);
        }
        self.announce(rank, Reply::Failed(rank), |round| round >= first);
        for (_, round) in self.rounds.range_mut(first..) {
            round.descriptors.remove(&rank);
        }
        let affected: Vec<u32> = self.rounds.range(first..).map(|(&n, _)| n).collect();
        affected.into_iter().for_each(|round| self.settle(round));
        self.retire();
    }

    /// The connection of `rank`, if it has one.
    pub fn client_of(&self, rank: Rank) -> Option<ClientId> {
        self.members.get(rank.index())?.client
    }

    /// Whether `client` has proved the secret and not left.
    pub fn is_member(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client) || self.hosts.contains_key(&client)
    }

    /// Whether `client` has said who it is, and not proved it.
    pub fn is_challenged(&self, client: ClientId) -> bool {
        self.admission.is_challenged(client)
    }

    /// What the launcher is to hear of, in order.
    pub fn take_reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    /// What must be sent, in order.
    pub fn take_outbox(&mut self) -> Vec<Outgoing> {
        std::mem::take(&mut self.outbox)
    }

    /// A rank has proved that it belongs to the job.
    fn join(&mut self, client: ClientId, id: RequestId, rank: u32, admitted: &Admitted) -> Verdict {
        let size = self.members.len() as u32;
        let Some(member) = self.members.get_mut(rank as usize) else {
            let why = format!("there is no rank {rank} in a job of {size}");
            return self.refuse_and_close(client, id, &why);
        };
        let round = member.leaves;
        if self.one_stay && (member.ended || round > 0) {
            let why = format!("rank {rank} has left the session that rank 0 still serves");
            self.reply(client, id, Reply::Later(why));
            return Verdict::Close;
        }
        if member.ended {
            let why = format!("rank {rank} ended before and cannot come back");
            return self.refuse_and_close(client, id, &why);
        }
        if member.client.is_some() {
            return self.refuse_and_close(client, id, &format!("rank {rank} is connected already"));
        }
        if member.kept + STAY_OVERHEAD > MAX_BYTES_PER_RANK {
            let why = format!(
                "rank {rank} has joined and left {round} times and keeps {} bytes in the store, which other ranks may still read: they have to join and leave as often",
                member.kept
            );
            return self.refuse_and_close(client, id, &why);
        }
        member.client = Some(client);
        member.kept += STAY_OVERHEAD;
        let rank = Rank::new(rank);
        self.clients.insert(
            client,
            Client {
                rank,
                round,
                waiting: None,
            },
        );
        *self.round(round).bytes.entry(rank).or_default() += STAY_OVERHEAD;
        let nonce = self.nonce;
        let welcome = Grant::Welcome { size, round, nonce };
        let welcome = self.admission.grant(admitted, welcome);
        self.reply(client, id, welcome);
        self.tell_of_the_gone(client, rank, round);
        Verdict::Keep
    }

    /// A newcomer hears what the others of its round have heard already.
    fn tell_of_the_gone(&mut self, client: ClientId, own: Rank, round: u32) {
        for (number, member) in (0..).zip(&self.members) {
            let rank = Rank::new(number);
            let reply = match member.membership(round) {
                Membership::Left => Reply::Left(rank),
                Membership::Failed => Reply::Failed(rank),
                Membership::Expected => continue,
            };
            if rank != own {
                let id = RequestId::default();
                self.outbox.push(Outgoing {
                    client,
                    id,
                    reply,
                    descriptor: None,
                });
            }
        }
    }

    fn put(&mut self, client: ClientId, id: RequestId, key: String, value: Vec<u8>) {
        let Some(&Client { rank, round, .. }) = self.clients.get(&client) else {
            return;
        };
        let state = self.rounds.entry(round).or_default();
        let values = state.values.entry(rank).or_default();
        let cost = |value: usize| key.len() + value + VALUE_OVERHEAD;
        let before = values.get(&key).map_or(0, |old| cost(old.len()));
        let (added, kept) = (cost(value.len()), &mut self.members[rank.index()].kept);
        if *kept - before + added > MAX_BYTES_PER_RANK {
            let why =
                format!("rank {rank} keeps more than {MAX_BYTES_PER_RANK} bytes in the store");
            self.reply(client, id, Reply::Refused(why));
            return;
        }
        *kept = *kept - before + added;
        let bytes = state.bytes.entry(rank).or_default();
        *bytes = *bytes - before + added;
        values.insert(key, value.into());
        self.reply(client, id, Reply::Done);
        self.settle(round);
    }

    fn leave(&mut self, client: ClientId, id: RequestId) {
        let Some(Client { rank, round, .. }) = self.clients.remove(&client) else {
            return;
        };
        let member = &mut self.members[rank.index()];
        member.leaves += 1;
        member.client = None;
        self.round(round).descriptors.remove(&rank);
        self.reply(client, id, Reply::Done);
        self.announce(rank, Reply::Left(rank), |other| other == round);
        self.settle(round);
        self.retire();
    }

    fn announce(&mut self, gone: Rank, reply: Reply, concerns: impl Fn(u32) -> bool) {
        for (&client, state) in &self.clients {
            if state.rank != gone && concerns(state.round) {
                let id = RequestId::default();
                self.outbox.push(Outgoing {
                    client,
                    id,
                    reply: reply.clone(),
                    descriptor: None,
                });
            }
        }
    }

    /// Parks a request that concerns `rank`, and replies to it at once where that can be.
    fn wait_on(
        &mut self,
        client: ClientId,
        id: RequestId,
        rank: u32,
        wait: impl FnOnce(Rank) -> Wait,
    ) {
        if rank as usize >= self.members.len() {
            let why = format!("there is no rank {rank} in a job of {}", self.members.len());
            self.reply(client, id, Reply::Refused(why));
            return;
        }
        self.set_waiting(client, id, wait(Rank::new(rank)));
        self.settle_one(client, None);
    }

    fn set_waiting(&mut self, client: ClientId, id: RequestId, wait: Wait) {
        if let Some(state) = self.clients.get_mut(&client) {
            state.waiting = Some((id, wait));
        }
    }

    /// Replies to whoever of `round` need not wait any more.
    fn settle(&mut self, round: u32) {
        let waiting: Vec<ClientId> = self
            .clients
            .iter()
            .filter(|(_, state)| state.round == round && state.waiting.is_some())
            .map(|(&client, _)| client)
            .collect();
        if waiting.is_empty() {
            return;
        }
        let progress = self.fence_progress(round);
        waiting
            .into_iter()
            .for_each(|client| self.settle_one(client, Some(progress)));
    }

    fn settle_one(&mut self, client: ClientId, fences: Option<FenceProgress>) {
        let Some(Client {
            round,
            waiting: Some((id, wait)),
            ..
        }) = self.clients.get(&client)
        else {
            return;
        };
        let (round, id, wait) = (*round, *id, wait.clone());
        let Some((reply, descriptor)) = self.answer(round, &wait, fences) else {
            return;
        };
        if let Some(state) = self.clients.get_mut(&client) {
            state.waiting = None;
        }
        self.outbox.push(Outgoing {
            client,
            id,
            reply,
            descriptor,
        });
    }

    fn answer(
        &self,
        round: u32,
        wait: &Wait,
        fences: Option<FenceProgress>,
    ) -> Option<(Reply, Option<Arc<OwnedFd>>)> {
        let state = self.rounds.get(&round)?;
        let gone = |rank: &Rank, what: &str| {
            let how = match self.members[rank.index()].membership(round) {
                Membership::Expected => return None,
                Membership::Left => "left",
                Membership::Failed => "ended",
            };
            Some((
                Reply::Refused(format!("rank {rank} {how} without {what}")),
                None,
            ))
        };
        match wait {
            Wait::Value { rank, key } => {
                match state.values.get(rank).and_then(|values| values.get(key)) {
                    Some(value) => Some((Reply::Value(value.to_vec()), None)),
                    None => gone(rank, &format!("putting key '{key}'")),
                }
            }
            Wait::Descriptor { rank } => match state.descriptors.get(rank) {
                Some(descriptor) => Some((Reply::Descriptor, Some(Arc::clone(descriptor)))),
                None => gone(rank, "a descriptor that is still there"),
            },
            Wait::Fence(number) => {
                let progress = fences?;
                if *number <= progress.complete {
                    return Some((Reply::Done, None));
                }
                let (rank, _) = progress.gone.filter(|(_, reached)| number > reached)?;
                gone(&rank, "reaching the fence")
            }
        }
    }

    /// How far the fences of `round` have come.
    fn fence_progress(&self, round: u32) -> FenceProgress {
        let mut progress = FenceProgress {
            complete: u64::MAX,
            gone: None,
        };
        let fences = self.rounds.get(&round).map(|state| &state.fences);
        for (number, member) in (0..).zip(&self.members) {
            let rank = Rank::new(number);
            let reached = fences
                .and_then(|counts| counts.get(&rank))
                .copied()
                .unwrap_or(0);
            progress.complete = progress.complete.min(reached);
            let is_gone = member.membership(round) != Membership::Expected;
            if is_gone && progress.gone.is_none_or(|(_, least)| reached < least) {
                progress.gone = Some((rank, reached));
            }
        }
        progress
    }

    /// Forgets the rounds that nobody can be in any more: those before the earliest stay of a living member.
    fn retire(&mut self) {
        let living = self.members.iter().filter(|member| !member.ended);
        let over = match living.map(|member| member.leaves).min() {
            Some(earliest) => {
                let rest = self.rounds.split_off(&earliest);
                std::mem::replace(&mut self.rounds, rest)
            }
            None => std::mem::take(&mut self.rounds),
        };
        for (rank, bytes) in over.values().flat_map(|round| &round.bytes) {
            self.members[rank.index()].kept -= bytes;
        }
    }

    fn round(&mut self, number: u32) -> &mut Round {
        self.rounds.entry(number).or_default()
    }

    fn reply(&mut self, client: ClientId, id: RequestId, reply: Reply) {
        self.outbox.push(Outgoing {
            client,
            id,
            reply,
            descriptor: None,
        });
    }

    fn refuse_and_close(&mut self, client: ClientId, id: RequestId, why: &str) -> Verdict {
        self.reply(client, id, Reply::Refused(why.to_owned()));
        Verdict::Close
    }
}

#[derive(Debug, Clone, Copy)]
struct FenceProgress {
    /// Every rank has reached this many.
    complete: u64,
    /// Of the ranks that are gone, the one that reached the fewest, and how many.
    gone: Option<(Rank, u64)>,
}

#[cfg(test)]
mod tests;
