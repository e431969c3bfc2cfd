//! How the two ends find each other, once.
//!
//! ```text
//!   sender                                      receiver
//!   init: tag, counts, bytes      ---------->   the inits of a rank, in order, against the receives of
//!         (internal tag 0)                      that rank, in order: the first with the same tag
//!   join the channel              <----------   reply: counts, bytes, the channel's key
//!         (an internal tag of the sender's)
//! ```
//!
//! Both are short messages in the context of the operation. All inits have one tag, so that their order is
//! that of the calls; the user's tag is inside.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tagwire_base::sync::{AtomicU32, Ordering::Relaxed};
use tagwire_base::{Clock, ContextId, Rank, Tag};
use tagwire_transport::RecvBuffer;

use super::awaited::{Awaited, say};
use super::ends::{ReceivingEnd, SendingEnd};
use super::matched::{Carrier, Matched};
use super::orphan::Orphan;
use super::plan::Plan;
use super::policy::Costs;
use super::timer::{Alarm, AlarmThread};
use super::wire::{INIT_TAG, Init, Reply, Room, VERSION, again, reply_tag};
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::types::{ContextPair, Failure};

/// Most sends of one peer that are kept for receives to come: more than any program has.
const MOST_UNMATCHED: usize = 1 << 16;

/// A receive that no sender has matched.
struct Pending {
    tag: Tag,
    room: Room,
    /// The sender's id of the context.
    peer_context: ContextId,
    end: Arc<dyn ReceivingEnd>,
}

/// The matching of one peer and context, by this rank's id.
struct Port {
    from: Rank,
    context: ContextId,
    awaited: Option<Awaited<Init>>,
    /// In the order of their calls.
    pending: VecDeque<Pending>,
    /// In the order of their arrival.
    unmatched: VecDeque<Init>,
}

/// The partitioned operations of a rank that are not matched.
#[derive(Default)]
pub(crate) struct Registry {
    next_tag: AtomicU32,
    /// What transport partitions cost here, once that was asked for.
    costs: OnceLock<Costs>,
    /// The alarm of timers, once there were any.
    bell: OnceLock<AlarmThread>,
    /// The rank's clock.
    pub(crate) clock: Clock,
    /// Receives that are not matched, sends that are not joined, and partitions that wait to be posted.
    pub(super) attention: Attention,
    ports: Mutex<Vec<Port>>,
    sendings: Mutex<Vec<Weak<dyn SendingEnd>>>,
    orphans: Mutex<Vec<Orphan>>,
}

/// How many things wait for a call that moves this rank on. A load is all that a rank without any pays.
#[derive(Debug, Default)]
pub(super) struct Attention(AtomicU32);

impl Attention {
    pub(super) fn wanted(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    pub(super) fn done(&self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Registry {
    /// Returns what transport partitions cost; calls `measure` the first time.
    pub(super) fn costs(&self, measure: impl FnOnce() -> Option<Costs>) -> Costs {
        // Another thread that wants to know waits: two at once would take each other's rounds.
        *self.costs.get_or_init(|| measure().unwrap_or(Costs::SHM))
    }

    /// Internal tags for a reply and `messages` messages; returns the number of the first.
    pub(super) fn take_tags(&self, messages: u32) -> u32 {
        self.next_tag.fetch_add(messages + 1, Relaxed)
    }

    /// Whether nothing waits to be matched, joined or posted.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.attention.0.load(Relaxed) == 0
    }

    /// Matches, joins and posts what waits for that, on behalf of whoever moves this rank on.
    #[inline]
    pub(crate) fn drive(&self, layer: &mut Layer) {
        if !self.is_idle() {
            self.drive_all(layer);
        }
    }

    #[cold]
    #[inline(never)]
    fn drive_all(&self, layer: &mut Layer) {
        self.settle(layer);
        self.see_orphans_off(layer);
        let sendings: Vec<_> = self.sendings().iter().filter_map(Weak::upgrade).collect();
        sendings.iter().for_each(|sending| sending.drive(layer));
    }

    /// Takes care of a send that was given up before its receiver has replied.
    pub(super) fn adopt(&self, orphan: Orphan) {
        self.orphans().push(orphan);
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<Orphan>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the channels of which their receivers have told meanwhile, to close them at once.
    fn see_orphans_off(&self, layer: &mut Layer) {
        let orphans = std::mem::take(&mut *self.orphans());
        for orphan in orphans {
            if let Some(waits) = orphan.see_off(layer) {
                self.orphans().push(waits);
            } else {
                self.attention.done();
            }
        }
    }

    fn sendings(&self) -> MutexGuard<'_, Vec<Weak<dyn SendingEnd>>> {
        self.sendings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the alarm of this rank's timers.
    pub(super) fn alarm(&self) -> Arc<Alarm> {
        let bell = || AlarmThread::hang(self.clock.clone());
        self.bell.get_or_init(bell).alarm()
    }

    /// Takes a send into the rank's care.
    pub(super) fn attend_to(&self, sending: &Arc<dyn SendingEnd>) {
        self.sendings().push(Arc::downgrade(sending));
        if sending.has_timer() {
            self.alarm().attend_to(sending);
        }
    }

    /// Lets it go.
    pub(super) fn forget_sending(&self, gone: &dyn SendingEnd) {
        if gone.has_timer() {
            self.alarm().forget(gone);
        }
        let is_gone = |sending: &Weak<dyn SendingEnd>| std::ptr::addr_eq(sending.as_ptr(), gone);
        self.sendings().retain(|sending| !is_gone(sending));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Port>> {
        self.ports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a receive; `end` gets to know what came of it.
    pub(super) fn enter(
        &self,
        layer: &mut Layer,
        from: Rank,
        context: ContextPair,
        receive: (Tag, Room),
        end: Arc<dyn ReceivingEnd>,
    ) {
        self.attention.wanted();
        let (tag, room) = receive;
        let mut ports = self.lock();
        let at = ports
            .iter()
            .position(|port| port.from == from && port.context == context.own);
        let at = at.unwrap_or_else(|| {
            ports.push(Port {
                from,
                context: context.own,
                awaited: None,
                pending: VecDeque::new(),
                unmatched: VecDeque::new(),
            });
            ports.len() - 1
        });
        ports[at].pending.push_back(Pending {
            tag,
            room,
            peer_context: context.peer,
            end,
        });
        ports[at].settle_or_end(layer, &self.attention);
    }

    /// Takes a receive out again.
    pub(super) fn forget(&self, gone: &dyn ReceivingEnd) {
        for port in &mut *self.lock() {
            let before = port.pending.len();
            port.pending
                .retain(|pending| !std::ptr::addr_eq(&raw const *pending.end, gone));
            (port.pending.len()..before).for_each(|_| self.attention.done());
        }
    }

    /// Forgets what is not matched in a context that is gone: its number comes again.
    pub(crate) fn forget_context(&self, layer: &mut Layer, context: ContextId) {
        let mut ports = self.lock();
        for port in ports.iter_mut().filter(|port| port.context == context) {
            if let Some(awaited) = port.awaited.take() {
                awaited.abandon(layer);
            }
            for pending in port.pending.drain(..) {
                self.attention.done();
                pending
                    .end
                    .matched(layer, Err(Error::NoSuchContext(context.as_u16())));
            }
        }
        ports.retain(|port| port.context != context);
    }

    /// Looks for inits that have come, and replies to them.
    pub(super) fn settle(&self, layer: &mut Layer) {
        for port in &mut *self.lock() {
            port.settle_or_end(layer, &self.attention);
        }
    }
}

impl Port {
    /// As [`Port::settle`]; what went wrong is the end of all that waits.
    fn settle_or_end(&mut self, layer: &mut Layer, attention: &Attention) {
        let waiting = self.pending.len();
        if let Err(error) = self.settle(layer) {
            for pending in self.pending.drain(..) {
                pending.end.matched(layer, Err(again(&error)));
            }
        }
        (self.pending.len()..waiting).for_each(|_| attention.done());
    }

    /// Matches what is here, and awaits the next init while a receive waits for one.
    fn settle(&mut self, layer: &mut Layer) -> Result<()> {
        while let Some(place) = self
            .unmatched
            .iter()
            .position(|init| self.find(init).is_some())
        {
            self.join(layer, place);
        }
        while !self.pending.is_empty() {
            if self.unmatched.len() >= MOST_UNMATCHED {
                return Err(Error::Failed(Failure::Protocol(self.from)));
            }
            let awaited = match self.awaited.take() {
                Some(awaited) => awaited,
                None => Awaited::post(layer, self.from, INIT_TAG, self.context)?,
            };
            match awaited.take(layer)? {
                Err(awaited) => {
                    self.awaited = Some(awaited);
                    break;
                }
                Ok(init) => {
                    self.unmatched.push_back(init);
                    let place = self.unmatched.len() - 1;
                    self.join(layer, place);
                }
            }
        }
        Ok(())
    }

    /// The earliest receive that `init` matches.
    fn find(&self, init: &Init) -> Option<usize> {
        self.pending
            .iter()
            .position(|pending| pending.tag.as_i32() == init.tag)
    }

    /// Matches the init at `place`, if a receive waits for it.
    fn join(&mut self, layer: &mut Layer, place: usize) {
        let Some(at) = self.find(&self.unmatched[place]) else {
            return;
        };
        if let (Some(init), Some(pending)) = (self.unmatched.remove(place), self.pending.remove(at))
        {
            pending.end.opens();
            let matched = pending.answer(layer, self.from, self.context, &init);
            pending.end.matched(layer, matched);
        }
    }
}

impl Pending {
    /// Opens the channel that `init` asks for, and informs its sender.
    #[allow(
        unsafe_code,
        reason = "a buffer is lent to a channel that is lent itself"
    )]
    fn answer(
        &self,
        layer: &mut Layer,
        from: Rank,
        context: ContextId,
        init: &Init,
    ) -> Result<Matched> {
        let Room {
            partitions,
            region,
            buffering,
        } = self.room;
        let bytes = self.room.bytes();
        let mut reply = Reply {
            bytes: bytes as u64,
            receiver: partitions,
            key_len: 0,
            key: [0; Reply::MOST],
        };
        let reply_tag = reply_tag(init.first_tag);
        if init.version != VERSION || init.bytes != reply.bytes {
            say(layer, from, reply_tag, self.peer_context, &reply)?;
            return Err(Error::Mismatch {
                sent: init.bytes,
                received: reply.bytes,
            });
        }
        let plan = Plan::new(init.sender, partitions, init.transport, bytes)?;
        // SAFETY: the buffer is lent in rounds until the receiving end is settled, which it is not before the
        // channel, or the requests, that get this buffer have let go of it.
        let buffer = unsafe { RecvBuffer::of(region) };
        let channel = match init.messages {
            0 => layer.open_channel(from, &buffer, &plan.ends(), buffering)?,
            _ => None,
        };
        let way = match channel {
            Some(channel) if channel.key.len() <= Reply::MOST => {
                reply.key_len = channel.key.len() as u32;
                reply.key[..channel.key.len()].copy_from_slice(&channel.key);
                Carrier::Channel(channel.end)
            }
            _ => {
                let source = (from, context, init.first_tag);
                Carrier::messages(layer, &plan, self.room, source)?
            }
        };
        let matched = Matched::new(plan, way);
        if let Err(error) = say(layer, from, reply_tag, self.peer_context, &reply) {
            // The sender never hears of it.
            matched.close();
            return Err(error);
        }
        Ok(matched)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = |port: &Port| port.pending.len();
        let waiting: usize = self.lock().iter().map(waiting).sum();
        write!(f, "Registry({waiting} not matched)")
    }
}
