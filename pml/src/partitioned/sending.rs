//! What a sending end consists of: shared between the handle, and the rank, which posts what had to
//! wait.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tagwire_base::sync::{AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use tagwire_base::{ContextId, Rank, SourceSelector, Tag};
use tagwire_transport::{Post, ReadRegion, SendBuffer, SendChannel};

use super::arrivals::{Arrival, Arrivals};
use super::awaited::{Awaited, say};
use super::closing::close;
use super::ends::SendingEnd;
use super::measure::measure;
use super::orphan::Orphan;
use super::plan::{Plan, check_count};
use super::policy::{Model, Policy};
use super::round::{Rhythm, Round};
use super::side::Side;
use super::timer::{NEVER, Timer};
use super::wire::{GIVEN_UP, INIT_TAG, Init, Reply, VERSION, again, message_tag, reply_tag};
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::messenger::Messenger;
use crate::types::{ContextPair, RequestId, SendMode};

/// How transport partitions leave.
#[derive(Debug)]
enum Carrier {
    /// By the transport's own means.
    Channel(Arc<dyn SendChannel>, Departure),
    /// Each as a message.
    Messages(Box<[RequestId]>),
}

/// When what was posted to a channel leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Departure {
    AtOnce,
    /// With the next progress of the rank.
    WithProgress,
}

/// Which group a user partition belongs to.
#[derive(Debug, Clone, Copy)]
struct GroupOf {
    group: u32,
    members: u32,
}

/// A sending end.
#[derive(Debug)]
pub struct Sending {
    messenger: Arc<Messenger>,
    to: Rank,
    /// The receiver's id of the context.
    peer_context: ContextId,
    /// What travels: transport partitions as the receiver knows them.
    plan: Plan,
    /// What waits for each other: as many groups, or fewer, where a timer splits them.
    groups: Plan,
    homes: Box<[GroupOf]>,
    first_tag: u32,
    round: Round,
    arrivals: Arrivals,
    /// Transport partitions that were posted, in all rounds.
    posted: AtomicU64,
    timer: Option<Timer>,
    policy: Policy,
    way: OnceLock<Result<Carrier>>,
    joining: Mutex<Option<Joining>>,
    /// The round that the way has been told of.
    begun: AtomicU64,
    looks: Rhythm,
}

/// What is kept until the receiver has replied.
#[derive(Debug)]
struct Joining {
    reply: Awaited<Reply>,
    region: ReadRegion,
}

impl Sending {
    /// Introduces this end to the receiver's rank, under the tag and in the context of `place`.
    pub(super) fn init(
        messenger: &Arc<Messenger>,
        data: &SendBuffer,
        partitions: u32,
        place: (Rank, Tag, ContextPair),
        policy: Policy,
    ) -> Result<Self> {
        let (to, tag, context) = place;
        let region = data
            .region()
            .ok_or(Error::BadRound("needs a contiguous buffer"))?;
        check_count(partitions, region.len())?;
        let worth = messenger.call(|layer| Ok(layer.terms(to)?.write))?;
        let policy = policy.resolve(|| messenger.partitioned.costs(|| measure(messenger)), worth);
        let count = policy.groups(partitions, region.len());
        let groups = Plan::new(partitions, 1, count, region.len())?;
        let timer = policy.patience().map(|after| {
            let alarm = messenger.partitioned.alarm();
            Timer::new(after, count, alarm)
        });
        let units = if timer.is_some() { partitions } else { count };
        let plan = Plan::new(partitions, 1, units, region.len())?;
        let init = Init {
            version: VERSION,
            tag: tag.as_i32(),
            sender: partitions,
            transport: units,
            bytes: region.len() as u64,
            first_tag: messenger.partitioned.take_tags(units),
            messages: u32::from(matches!(policy, Policy::Messages(_))),
        };
        let reply = messenger.call(|layer| introduce(layer, to, context, &init))?;
        messenger.partitioned.attention.wanted();
        Ok(Self {
            messenger: Arc::clone(messenger),
            to,
            peer_context: context.peer,
            homes: homes(&groups),
            plan,
            groups,
            first_tag: init.first_tag,
            round: Round::new(),
            arrivals: Arrivals::new(partitions, count, units),
            posted: AtomicU64::new(0),
            timer,
            policy,
            way: OnceLock::new(),
            joining: Mutex::new(Some(Joining { reply, region })),
            begun: AtomicU64::new(0),
            looks: Rhythm::default(),
        })
    }

    /// How many transport partitions there are.
    #[must_use]
    pub(super) const fn transport_partitions(&self) -> u32 {
        self.plan.transport()
    }

    /// Partition `partition` is ready: its bytes stay as they are from now on, and travel.
    ///
    /// # Errors
    /// When no round is under way, there is no such partition, or it was ready before in this round.
    #[inline]
    pub(super) fn ready(&self, partition: u32) -> Result<()> {
        let epoch = self.round.require()?;
        if let Some(group) = self.arrive(epoch, partition)? {
            self.release(epoch, group..group + 1);
        }
        Ok(())
    }

    /// Neighbouring groups that become complete are posted together.
    pub(super) fn ready_each(&self, partitions: impl Iterator<Item = u32>) -> Result<()> {
        let epoch = self.round.require()?;
        let mut complete = 0..0;
        let mut outcome = Ok(());
        for partition in partitions {
            match self.arrive(epoch, partition) {
                Ok(None) => {}
                Ok(Some(group)) if group == complete.end && !complete.is_empty() => {
                    complete.end += 1;
                }
                Ok(Some(group)) => {
                    self.release(epoch, std::mem::replace(&mut complete, group..group + 1));
                }
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        self.release(epoch, complete);
        outcome
    }

    /// Marks a partition; returns the group that is complete by that.
    #[inline]
    fn arrive(&self, epoch: u64, partition: u32) -> Result<Option<u32>> {
        let refuse = |what| Err(Error::BadPartition { partition, what });
        let Some(home) = self.homes.get(partition as usize) else {
            return refuse("is out of range");
        };
        if let Some(timer) = &self.timer {
            return self.arrive_in_time(timer, epoch, partition, *home);
        }
        let GroupOf { group, members } = *home;
        match self.arrivals.arrive(epoch, partition, group, members) {
            Arrival::Early => Ok(None),
            Arrival::Last => Ok(Some(group)),
            Arrival::Twice => refuse(TWICE),
        }
    }

    /// The same where a timer runs: each partition travels alone, and waits in the post queue.
    fn arrive_in_time(
        &self,
        timer: &Timer,
        epoch: u64,
        partition: u32,
        home: GroupOf,
    ) -> Result<Option<u32>> {
        if !self.arrivals.mark(epoch, partition) {
            return Err(Error::BadPartition {
                partition,
                what: TWICE,
            });
        }
        self.enqueue(epoch, partition);
        if self.arrivals.count(epoch, home.group, home.members) {
            timer.complete(home.group);
        } else {
            timer.set(home.group);
        }
        self.flush(epoch, None);
        let is_overdue =
            || timer.is_due(home.group, timer.now()) && self.arrivals.is_queued(epoch, partition);
        if is_overdue() || self.is_held_back() {
            timer.try_again();
        }
        Ok(None)
    }

    /// Posts groups that are complete, or queues them.
    #[inline]
    fn release(&self, epoch: u64, units: Range<u32>) {
        if units.is_empty() {
            return;
        }
        if let Some(Ok(Carrier::Channel(channel, departure))) = self.way.get() {
            self.begin(&**channel, epoch);
            if channel.post(epoch, units.clone()) == Post::Posted {
                self.count_posted(epoch, units.len());
                if *departure == Departure::WithProgress {
                    self.messenger.nudge();
                }
                return;
            }
        }
        units.for_each(|unit| self.enqueue(epoch, unit));
        match self.way.get() {
            // The receiver's credit may be here, and nobody has looked.
            Some(Ok(Carrier::Channel(_, Departure::WithProgress))) => self.messenger.nudge(),
            Some(_) => self.flush(epoch, None),
            None => {}
        }
    }

    /// Leaves a unit to whoever moves this rank on next.
    fn enqueue(&self, epoch: u64, unit: u32) {
        self.messenger.partitioned.attention.wanted();
        self.arrivals.enqueue(epoch, unit);
    }

    /// Whether something that was posted waits for progress.
    fn is_held_back(&self) -> bool {
        match self.way.get() {
            Some(Ok(Carrier::Channel(channel, _))) => channel.holds_back(),
            _ => false,
        }
    }

    /// Whether something is due that waits in the post queue.
    fn is_overdue(&self, timer: &Timer, epoch: u64) -> bool {
        let now = timer.now();
        let waits = |group| {
            let mut units = self.groups.senders_of(group);
            units.any(|unit| self.arrivals.is_queued(epoch, unit))
        };
        let mut groups = 0..self.groups.transport();
        self.arrivals.are_waiting() && groups.any(|group| timer.is_due(group, now) && waits(group))
    }

    /// Notes that so many were posted; the last one wakes a thread of this rank that waits for it.
    #[inline]
    fn count_posted(&self, epoch: u64, count: usize) {
        let before = self.posted.fetch_add(count as u64, AcqRel);
        if before + count as u64 == self.all(epoch) {
            self.messenger.sleepers.wake();
        }
    }

    /// How many transport partitions all rounds up to `epoch` have.
    fn all(&self, epoch: u64) -> u64 {
        epoch * u64::from(self.plan.transport())
    }

    /// Posts what waits in the queue and may go. Whoever has the layer lends it; where messages are to be
    /// sent and nobody has, the layer is entered, if this thread may.
    fn flush(&self, epoch: u64, layer: Option<&mut Layer>) {
        if !self.arrivals.are_waiting() {
            return;
        }
        match (self.way.get(), layer) {
            (Some(Ok(Carrier::Channel(channel, departure))), layer) => {
                self.begin(&**channel, epoch);
                let mut any = false;
                self.flush_by(epoch, &mut |unit| {
                    let posted = channel.post(epoch, unit..unit + 1) == Post::Posted;
                    any |= posted;
                    posted
                });
                match layer {
                    _ if !any || *departure == Departure::AtOnce => {}
                    // The layer does not wait for something that has just been posted.
                    Some(layer) => drop(layer.progress()),
                    None => self.messenger.nudge(),
                }
            }
            (Some(Ok(Carrier::Messages(requests))), Some(layer)) => {
                self.flush_by(epoch, &mut |unit| {
                    layer.start(requests[unit as usize]).is_ok()
                });
            }
            (Some(Ok(Carrier::Messages(_))), None) => {
                // A thread that may not leaves it to the one that waits.
                let _ = self.messenger.call(|layer| {
                    self.flush(epoch, Some(layer));
                    Ok(())
                });
            }
            _ => {}
        }
    }

    /// Posts by `post` what waits and is due.
    fn flush_by(&self, epoch: u64, post: &mut dyn FnMut(u32) -> bool) {
        let now = self.timer.as_ref().map_or(0, Timer::now);
        let is_due = |group| {
            self.timer
                .as_ref()
                .is_none_or(|timer| timer.is_due(group, now))
        };
        for group in (0..self.groups.transport()).filter(|group| is_due(*group)) {
            let units = match self.timer {
                Some(_) => self.groups.senders_of(group),
                None => group..group + 1,
            };
            for unit in units {
                while self.arrivals.dequeue(epoch, unit) {
                    if post(unit) {
                        self.messenger.partitioned.attention.done();
                        self.count_posted(epoch, 1);
                        break;
                    }
                    self.arrivals.enqueue(epoch, unit);
                    if !self.has_credit(epoch) {
                        return;
                    }
                }
            }
        }
    }

    /// Whether a channel's post would succeed: nobody may have looked since it was queued.
    fn has_credit(&self, epoch: u64) -> bool {
        match self.way.get() {
            Some(Ok(Carrier::Channel(channel, _))) => channel.post(epoch, 0..0) == Post::Posted,
            _ => false,
        }
    }

    /// Posts and moves what there is. Returns whether everything is over.
    fn advance(&self, layer: &mut Layer, epoch: u64) -> Result<bool> {
        let Some(way) = self.settle(layer)? else {
            return Ok(false);
        };
        self.flush(epoch, Some(layer));
        let posted = self.posted.load(Acquire) == self.all(epoch);
        match way {
            Carrier::Channel(channel, _) => {
                channel.advance(epoch);
                let is_complete = || posted && channel.is_complete(epoch);
                if is_complete() {
                    return Ok(true);
                }
                let over = self.looks.is_time() && channel.is_over(epoch);
                match over && !is_complete() {
                    true => Err(GIVEN_UP),
                    false => Ok(false),
                }
            }
            Carrier::Messages(requests) => Ok(posted && finish(layer, requests)?),
        }
    }

    /// The way, once the receiver has replied.
    fn settle(&self, layer: &mut Layer) -> Result<Option<&Carrier>> {
        if self.way.get().is_none() {
            let mut joining = self.joining();
            if let Some(Joining { reply, region }) = joining.take() {
                let taken = reply.take(layer);
                if !matches!(taken, Ok(Err(_))) {
                    self.messenger.partitioned.attention.done();
                }
                match taken {
                    Ok(Err(reply)) => *joining = Some(Joining { reply, region }),
                    Ok(Ok(answer)) => {
                        let _ = self.way.set(self.join(layer, region, &answer));
                    }
                    Err(error) => {
                        let _ = self.way.set(Err(error));
                    }
                }
            }
        }
        match self.way.get() {
            None => Ok(None),
            Some(Err(error)) => Err(again(error)),
            Some(Ok(way)) => Ok(Some(way)),
        }
    }

    /// Makes the way that the receiver's reply names.
    #[allow(unsafe_code, reason = "parts of a buffer are lent that is lent itself")]
    fn join(&self, layer: &mut Layer, region: ReadRegion, answer: &Reply) -> Result<Carrier> {
        let bytes = self.plan.bytes() as u64;
        if answer.bytes != bytes {
            return Err(Error::Mismatch {
                sent: bytes,
                received: answer.bytes,
            });
        }
        if let Some(key) = answer.key() {
            // SAFETY: the buffer is lent in rounds until this end is settled, which it is not before the channel
            // has let go of it. One that is given up before is not joined here any more.
            let data = unsafe { SendBuffer::of(region) };
            let channel = layer.join_channel(self.to, &data, &self.plan.ends(), key)?;
            let departure = match channel.is_driven() {
                true => Departure::WithProgress,
                false => Departure::AtOnce,
            };
            return Ok(Carrier::Channel(channel, departure));
        }
        let make = |t| {
            let part = region.slice(self.plan.bytes_of(t)).ok_or(Error::Closed)?;
            let tag = message_tag(self.first_tag.wrapping_add(1 + t));
            let mode = SendMode::Standard;
            // SAFETY: as above, with the requests in place of the channel.
            let part = unsafe { SendBuffer::of(part) };
            layer.send_init(part, self.to, tag, self.peer_context, mode)
        };
        let requests = (0..self.plan.transport()).map(make);
        Ok(Carrier::Messages(requests.collect::<Result<_>>()?))
    }

    /// Tells a channel of the round. Several threads may do so at once, and one of them late, since a channel
    /// does not go back.
    #[inline]
    fn begin(&self, channel: &dyn SendChannel, epoch: u64) {
        if self.begun.load(Acquire) < epoch {
            channel.start(epoch);
            self.begun.fetch_max(epoch, AcqRel);
        }
    }

    fn joining(&self) -> MutexGuard<'_, Option<Joining>> {
        self.joining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `partition` was ready in the round that is under way.
    #[must_use]
    pub(super) fn is_ready(&self, partition: u32) -> bool {
        let epoch = self.round.active();
        epoch.is_some_and(|epoch| {
            partition < self.partitions() && self.arrivals.is_ready(epoch, partition)
        })
    }

    /// From here on nobody posts for this operation any more: not the timers' thread, nor whoever moves the
    /// rank on, nor the receiver's reply. Returns whether those who were at it are known to be done.
    fn let_go(&self) -> bool {
        self.messenger.partitioned.forget_sending(self);
        if let Some(joining) = self.joining().take() {
            // The receiver opens its end all the same, and is to be told.
            let orphan = Orphan::new(self.to, self.plan.ends(), joining.reply);
            self.messenger.partitioned.adopt(orphan);
        }
        // Another thread may have taken it out of the list before, and posts while it has the layer: it is waited
        // for. Where this thread may not, be it another thread's rank or a call from within a call, the copy may
        // be going on.
        self.messenger.call(|_| Ok(())).is_ok()
    }
}

impl Side for Sending {
    fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }

    fn peer(&self) -> Rank {
        self.to
    }

    fn round(&self) -> &Round {
        &self.round
    }

    fn partitions(&self) -> u32 {
        self.plan.sender()
    }

    fn start(&self) -> Result<()> {
        if let (Some(timer), None) = (&self.timer, self.round.active()) {
            // Before anybody finds the round open.
            timer.reset();
        }
        let epoch = self.round.start()?;
        match self.way.get() {
            Some(Ok(Carrier::Channel(channel, _))) => self.begin(&**channel, epoch),
            Some(Ok(Carrier::Messages(_))) => {}
            _ => {
                let settled = self.messenger.call(|layer| self.settle(layer).map(|_| ()));
                return settled.inspect_err(|_| self.round.fail());
            }
        }
        Ok(())
    }

    fn move_on(&self, layer: &mut Layer, epoch: u64) -> Result<bool> {
        let all = self.advance(layer, epoch)?;
        if !all {
            layer.receive_can_happen(SourceSelector::from(self.to))?;
        }
        Ok(all)
    }

    fn is_settled(&self) -> bool {
        if !self.let_go() {
            return false;
        }
        match self.way.get() {
            Some(Ok(Carrier::Channel(channel, _))) => {
                close(&self.messenger, channel.is_driven(), || channel.close())
            }
            Some(Ok(Carrier::Messages(requests))) => {
                let freed = self
                    .messenger
                    .call(|layer| Ok(requests.iter().all(|request| free(layer, *request))));
                freed.unwrap_or(false)
            }
            _ => true,
        }
    }

    fn describe(&self) -> Option<String> {
        let way = match self.way.get() {
            Some(Ok(Carrier::Channel(channel, _))) => channel.describe(),
            Some(Ok(Carrier::Messages(requests))) => {
                format!("a message for each of {} partitions", requests.len())
            }
            _ => return None,
        };
        Some(match self.policy {
            Policy::Model(Model { costs, .. }) => format!(
                "{way}; {} of them, for {} ns each and {} ps a byte",
                self.plan.transport(),
                costs.overhead,
                costs.gap
            ),
            _ => way,
        })
    }

    fn abandon(&self) {
        self.let_go();
        let epoch = self.round.last();
        if epoch > 0 {
            for unit in 0..self.plan.transport() {
                if self.arrivals.dequeue(epoch, unit) {
                    self.messenger.partitioned.attention.done();
                }
            }
        }
        // Tells the other end, too.
        let _ = self.is_settled();
    }
}

impl SendingEnd for Sending {
    fn has_timer(&self) -> bool {
        self.timer.is_some()
    }

    fn ring(&self) -> u64 {
        let (Some(timer), Some(epoch)) = (&self.timer, self.round.active()) else {
            return NEVER;
        };
        self.flush(epoch, None);
        let waits = || self.is_overdue(timer, epoch) || self.is_held_back();
        if waits() {
            // The receiver's reply, or its credit, may be here, or room, and nobody looks.
            self.messenger.nudge();
            self.flush(epoch, None);
        }
        timer.next(waits())
    }

    fn drive(&self, layer: &mut Layer) {
        if !matches!(self.settle(layer), Ok(Some(_))) {
            return;
        }
        if let Some(epoch) = self.round.active() {
            self.flush(epoch, Some(layer));
        }
    }
}

const TWICE: &str = "was ready before in this round";

/// Tells the receiver of a send, and awaits its reply.
fn introduce(
    layer: &mut Layer,
    to: Rank,
    context: ContextPair,
    init: &Init,
) -> Result<Awaited<Reply>> {
    let reply = Awaited::post(layer, to, reply_tag(init.first_tag), context.own)?;
    match say(layer, to, INIT_TAG, context.peer, init) {
        Ok(()) => Ok(reply),
        Err(error) => {
            reply.abandon(layer);
            Err(error)
        }
    }
}

/// The group of each user partition.
fn homes(groups: &Plan) -> Box<[GroupOf]> {
    let home = |partition| {
        let group = groups.transport_of(partition);
        let members = groups.senders_of(group).len() as u32;
        GroupOf { group, members }
    };
    (0..groups.sender()).map(home).collect()
}

/// Frees a send, once it is complete. Returns whether it is gone.
fn free(layer: &mut Layer, request: RequestId) -> bool {
    // How it ended matters to nobody any more.
    let _ = layer.take(request);
    matches!(layer.free(request), Ok(()) | Err(Error::StaleRequest))
}

/// Takes the ends of sends once all are complete. Returns whether they are.
fn finish(layer: &mut Layer, requests: &[RequestId]) -> Result<bool> {
    if !requests.iter().all(|request| layer.is_complete(*request)) {
        return Ok(false);
    }
    for request in requests {
        if let Some(status) = layer.take(*request)? {
            status.ok()?;
        }
    }
    Ok(true)
}
