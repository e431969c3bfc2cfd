//! Accumulates that the target does for their origin, on another host: they travel as messages of the window's own context, and the
//! target does them whenever it makes progress.
//!
//! ```text
//!     origin                                          target
//!     sends what is to be done, and goes on           has receives posted for it, from anybody
//!     posts a receive first, where a result is        does it in the order in which it came,
//!       wanted                                          and sends what was there
//!     flush: sends an end to each target,             answers an end, as all before it is done
//!       and waits for all answers
//! ```
//!
//! Messages of one origin stay in their order, and so do its accumulates (MPI-5.0, section 12.7.2). They are atomic beside those that
//! others do by themselves: the target takes the same ways as these, and never waits for one. What has to wait is tried again with the
//! next progress.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};

use tagwire_base::{ContextId, Rank, SourceSelector, TagSelector};
use tagwire_layout::Basic;
use tagwire_pml::{CancelOutcome, Driver, Messenger, RequestId, SendMode, Status};
use tagwire_transport::RecvBuffer;

use crate::error::{Class, Error, Result};
use crate::object::datatype::Span;
use crate::object::operation::predefined;
use crate::object::window::atomics::{self, Change, FEW};
use crate::object::window::block::Word;
use crate::object::window::delegation::{ANSWERS, END, HEADER, Header, MOST, REQUESTS, Towards};
use crate::object::window::exchange::{Serving, What};
use crate::object::window::locks::try_long_way;
use crate::object::window::{Flavor, Member, Window};
use crate::raw::{In, Out, StagingBuffer};

/// So many receives a target has posted for each member, in a window of few and of many.
const POSTED: usize = 16;
const FEWEST_POSTED: usize = 2;

/// Of a window of few members all have so many together.
const ALL_POSTED: usize = 64;

/// So many members are looked at in a call of progress, beside the one that something came of last.
const IN_TURN: usize = 16;

/// So many messages an origin has under way to a target before it waits for the first.
const UNDER_WAY: usize = 256;

/// The accumulates of this process that members on other hosts do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delegate<'w> {
    window: &'w Window,
    member: usize,
}

impl<'w> Delegate<'w> {
    /// Returns the member as one that does accumulates for this process; `None` where this process does them by itself: on its host, and in
    /// memory that is attached.
    pub(crate) fn of(window: &'w Window, member: usize) -> Option<Self> {
        let is_elsewhere = !window.members[member].block.is_mapped();
        let is_one = is_elsewhere && window.flavor != Flavor::Dynamic;
        is_one.then_some(Self { window, member })
    }

    /// Has it change `count` values by the packed ones of `data`. What was there is in `result` once the window is flushed.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn change(
        self,
        what: What,
        (offset, count): (i64, u64),
        data: Option<(&Span, In)>,
        result: Option<(&Span, Out)>,
    ) -> Result {
        let header = Header {
            what: what.encode(),
            offset: offset as u64,
            count,
            is_answered: result.is_some(),
        };
        let bytes = data.map_or(0, |(span, _)| span.bytes);
        let mut message = header.encode();
        message.resize(HEADER + bytes, 0);
        let message = StagingBuffer::from(message);
        if let Some((span, from)) = data {
            span.pack(from, message.part(HEADER, bytes))?;
        }
        self.send(message, result)
    }

    /// Has it compare a value with another, and write a third where they are equal. What was there is in `result` once the window is
    /// flushed.
    ///
    /// # Errors
    /// When the member is gone.
    pub(crate) fn compare_and_swap(
        self,
        (basic, offset): (Basic, i64),
        (compare, new): (In, In),
        result: (&Span, Out),
    ) -> Result {
        let header = Header {
            what: What::CompareSwap(basic).encode(),
            offset: offset as u64,
            count: 1,
            is_answered: true,
        };
        let size = basic.size();
        let mut message = header.encode();
        compare.append(size, &mut message);
        new.append(size, &mut message);
        self.send(message.into(), Some(result))
    }

    fn send(self, message: StagingBuffer, result: Option<(&Span, Out)>) -> Result {
        let messenger = self.window.messenger();
        let mut towards = self.towards();
        if let Some((span, to)) = result {
            towards.answers.push_back(self.receive(span.recv(to)?)?);
        }
        self.post(&mut towards, message)?;
        towards.is_open = true;
        while let Some((first, _)) = towards.sent.front() {
            let is_full = towards.sent.len() > UNDER_WAY;
            match messenger.take(*first)? {
                Some(_) => drop(towards.sent.pop_front()),
                None if is_full => {
                    messenger.progress()?;
                    self.window.check_members()?;
                }
                None => break,
            }
        }
        Ok(())
    }

    fn towards(self) -> MutexGuard<'w, Towards> {
        self.window.delegated.towards[self.member].lock()
    }

    fn receive(self, room: RecvBuffer) -> Result<RequestId> {
        let (rank, _) = self.window.team.peer(self.member)?;
        let (from, tag) = (SourceSelector::exact(rank), TagSelector::exact(ANSWERS));
        let messenger = self.window.messenger();
        Ok(messenger.irecv(room, from, tag, self.window.team.context())?)
    }

    fn post(self, towards: &mut Towards, message: StagingBuffer) -> Result {
        let (rank, context) = self.window.team.peer(self.member)?;
        let data = message.address().read().buffer(0, message.bytes());
        let messenger = self.window.messenger();
        let request = messenger.isend(data, rank, REQUESTS, context, SendMode::Standard)?;
        towards.sent.push_back((request, message));
        Ok(())
    }

    /// Asks it to say when all that was asked of it is done.
    fn ask_for_end(self) -> Result {
        let mut towards = self.towards();
        if !std::mem::take(&mut towards.is_open) {
            return Ok(());
        }
        let header = Header {
            what: END,
            offset: 0,
            count: 0,
            is_answered: true,
        };
        let answer = self.receive(Out::EMPTY.buffer(0, 0))?;
        towards.answers.push_back(answer);
        self.post(&mut towards, header.encode().into())
    }

    /// Waits for all answers that have been asked for. Other threads that flush wait until then.
    ///
    /// # Errors
    /// When the member is gone; then nothing is written any more.
    pub(crate) fn finish(self) -> Result {
        let mut towards = self.towards();
        let Towards { sent, answers, .. } = &mut *towards;
        let messenger = self.window.messenger();
        let answers = answers.drain(..).map(|request| (request, None));
        let sent = sent.drain(..);
        let sent = sent.map(|(request, message)| (request, Some(message)));
        let mut ended = Ok(());
        for (request, message) in answers.chain(sent) {
            let wait = ended.and_then(|()| {
                let is_complete = || Ok(messenger.is_complete(request)?);
                let what = "accumulates that their target does";
                self.window.wait(self.member, what, is_complete)
            });
            let over = end(messenger, request);
            ended = wait.and(over);
            drop(message);
        }
        ended
    }
}

/// Takes the end of a request that is over, or is called off.
fn end(messenger: &Messenger, request: RequestId) -> Result {
    let status = match messenger.take(request)? {
        Some(status) => Some(status),
        None => call_off(messenger, request)?,
    };
    match status.and_then(|status| status.failure) {
        None => Ok(()),
        Some(failure) => Err(tagwire_pml::Error::Failed(failure).into()),
    }
}

/// Takes back a receive, and waits for what cannot be taken back. Returns how it ended.
fn call_off(messenger: &Messenger, request: RequestId) -> Result<Option<Status>> {
    // A send is not taken back.
    let called_off = messenger.cancel(request);
    if !matches!(called_off, Ok(CancelOutcome::Cancelled)) {
        messenger.progress_until(None, || Ok(messenger.is_complete(request)?.then_some(())))?;
    }
    Ok(messenger.take(request)?)
}

/// Completes what members that are meant do for this process.
///
/// # Errors
/// When one is gone.
#[inline]
pub(super) fn flush(window: &Window, is_meant: impl Fn(usize) -> bool) -> Result {
    match window.delegated.towards.is_empty() {
        // All members are of one host.
        true => Ok(()),
        false => complete(window, is_meant),
    }
}

#[inline(never)]
fn complete(window: &Window, is_meant: impl Fn(usize) -> bool) -> Result {
    let members = 0..window.delegated.towards.len();
    let meant = members.filter(|member| is_meant(*member));
    let meant: Vec<_> = meant
        .filter_map(|member| Delegate::of(window, member))
        .collect();
    let asked = meant.iter().try_for_each(|one| one.ask_for_end());
    let ended = meant.iter().map(|one| one.finish());
    let ended = ended.fold(Ok(()), Result::and);
    asked.and(ended)
}

/// A receive that a server has posted.
struct Posted {
    request: RequestId,
    buffer: StagingBuffer,
    /// What came, where it waits for others.
    came: Option<Status>,
}

/// What a server has posted for a member, and sent to it.
struct Queue {
    member: usize,
    posted: VecDeque<Posted>,
    answers: VecDeque<(RequestId, StagingBuffer)>,
    /// The first message waits for others, and the window's control block says so.
    waits: bool,
}

/// The members that may ask, and which of them are looked at next.
#[derive(Default)]
struct Queues {
    all: Vec<Queue>,
    next: usize,
    recent: usize,
}

/// Does what members on other hosts ask for.
struct Server {
    messenger: Arc<Messenger>,
    window: Weak<Window>,
    context: ContextId,
    queues: Mutex<Queues>,
}

impl Server {
    /// Posts a receive for messages of a member. Receives from anybody would end with the death of any process.
    fn post(&self, from: Rank, buffer: StagingBuffer) -> Result<Posted> {
        let room = buffer.address().buffer(0, buffer.bytes());
        let (from, tag) = (SourceSelector::exact(from), TagSelector::exact(REQUESTS));
        let request = self.messenger.irecv(room, from, tag, self.context)?;
        Ok(Posted {
            request,
            buffer,
            came: None,
        })
    }

    /// Does what has come of some members. Returns how much was done.
    fn serve(&self, window: &Window, queues: &mut Queues) -> Result<usize> {
        let count = queues.all.len();
        let turn = (0..count.min(IN_TURN)).map(|step| (queues.next + step) % count);
        let recent = (count > IN_TURN).then_some(queues.recent);
        let mut served = 0;
        for place in recent.into_iter().chain(turn) {
            let done = self.serve_one(window, &mut queues.all[place])?;
            if done > 0 {
                queues.recent = place;
            }
            served += done;
        }
        if count > IN_TURN {
            queues.next = (queues.next + IN_TURN) % count;
        }
        Ok(served)
    }

    /// Does what has come of a member, in its order. Returns how much was done.
    fn serve_one(&self, window: &Window, queue: &mut Queue) -> Result<usize> {
        let (mut done, (rank, context)) = (0, window.team.peer(queue.member)?);
        while let Some(first) = queue.posted.front_mut() {
            if first.came.is_none() {
                first.came = self.messenger.take(first.request)?;
            }
            let Some(status) = &first.came else { break };
            if status.failure.is_some() {
                // It has died, or its message was longer than any is. Nothing more is done for it.
                queue.posted.pop_front();
                continue;
            }
            let message = first.buffer.address().read();
            let answer = act(window, (message, status.length));
            if matches!(answer, Ok(None)) {
                // Who is in its way says when it is not, to those that say that they wait.
                if !std::mem::replace(&mut queue.waits, true) {
                    self.say_waiting(window, true)?;
                    continue;
                }
                break;
            }
            if std::mem::take(&mut queue.waits) {
                self.say_waiting(window, false)?;
            }
            let posted = queue.posted.pop_front();
            if let Some(Some(answer)) = answer? {
                let data = answer.address().read().buffer(0, answer.bytes());
                let mode = SendMode::Standard;
                let sent = (self.messenger).isend(data, rank, ANSWERS, context, mode)?;
                queue.answers.push_back((sent, answer));
            }
            if let Some(posted) = posted {
                queue.posted.push_back(self.post(rank, posted.buffer)?);
            }
            done += 1;
        }
        while let Some((first, _)) = queue.answers.front() {
            if self.messenger.take(*first)?.is_none() {
                break;
            }
            queue.answers.pop_front();
        }
        Ok(done)
    }

    fn say_waiting(&self, window: &Window, waits: bool) -> Result {
        let block = &window.members[window.me()].block;
        match waits {
            true => block.add(&self.messenger, Word::Waiting, 1).map(drop),
            false => block.subtract(&self.messenger, Word::Waiting, 1),
        }
    }
}

impl Driver for Server {
    fn drive(&self) -> usize {
        let Some(window) = self.window.upgrade() else {
            return 0;
        };
        let mut queues = match self.queues.try_lock() {
            Ok(queues) => queues,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread does it.
            Err(TryLockError::WouldBlock) => return 0,
        };
        match self.serve(&window, &mut queues) {
            Ok(done) => done,
            Err(error) => {
                // What is broken for one is for all: who waits for this process is told by what it does next.
                window.give_up(&error);
                0
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let queues = self
            .queues
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for queue in queues.all.drain(..) {
            let posted = queue.posted.into_iter().filter(|one| one.came.is_none());
            let posted = posted.map(|one| (one.request, one.buffer));
            for (request, buffer) in posted.chain(queue.answers) {
                if call_off(&self.messenger, request).is_err() {
                    // On a thread that may not call: what is under way still has its room.
                    std::mem::forget(buffer);
                }
            }
        }
    }
}

/// Has this process do what members on other hosts ask for, whenever it makes progress, until the window is freed.
///
/// # Errors
/// When nothing can be received any more.
pub(crate) fn start(window: &Arc<Window>) -> Result {
    if window.delegated.towards.is_empty() || window.flavor == Flavor::Dynamic {
        return Ok(());
    }
    let server = Server {
        messenger: Arc::clone(&window.messenger),
        window: Arc::downgrade(window),
        context: window.team.context(),
        queues: Mutex::default(),
    };
    let has_memory = window.members[window.me()].size > 0;
    let members = window.members.iter().enumerate();
    let askers = members.filter(|(_, member)| has_memory && !member.block.is_mapped());
    let askers: Vec<_> = askers.map(|(member, to)| (member, to.rank)).collect();
    let each = ALL_POSTED / askers.len().max(1);
    let mut all = Vec::new();
    for (member, rank) in askers {
        let posted = 0..each.clamp(FEWEST_POSTED, POSTED);
        let posted = posted.map(|_| server.post(rank, StagingBuffer::new(HEADER + MOST)));
        all.push(Queue {
            member,
            posted: posted.collect::<Result<_>>()?,
            answers: VecDeque::new(),
            waits: false,
        });
    }
    server
        .queues
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .all = all;
    let server: Arc<dyn Driver> = Arc::new(server);
    let driven = window.messenger.drive_with(Arc::clone(&server));
    *window.delegated.serving.lock() = Some(Serving::new(server, driven));
    Ok(())
}

/// Does what a message asks for. Returns what was there, where that is wanted; `None` where somebody is in its way.
///
/// # Errors
/// Where the message asks for what cannot be.
fn act(window: &Window, (message, length): (In, usize)) -> Result<Option<Option<StagingBuffer>>> {
    let wrong = || Error::new(Class::Intern, "an accumulate that cannot be");
    let header = Header::decode(&message.to_vec(length.min(HEADER))).ok_or_else(wrong)?;
    let (data, bytes) = (message.moved(HEADER as i64), length - HEADER);
    if header.what == END {
        return Ok(Some(Some(StagingBuffer::new(0))));
    }
    let Member { size, start, .. } = &window.members[window.me()];
    let what = What::decode(header.what).ok_or_else(wrong)?;
    let (What::Change(_, basic) | What::CompareSwap(basic)) = what else {
        return Err(wrong());
    };
    let extent = basic.extent() as u64;
    let range = header.count.checked_mul(extent);
    let end = range.and_then(|range| header.offset.checked_add(range));
    let packed = usize::try_from(header.count).ok();
    let packed = packed.and_then(|count| count.checked_mul(basic.size()));
    let packed = packed.filter(|bytes| *bytes <= MOST).ok_or_else(wrong)?;
    // The last value may end before its padding.
    let padding = extent - basic.size() as u64;
    if end.is_none_or(|end| end > size + padding) {
        return Err(wrong());
    }
    let at = start.inside(header.offset as i64);
    let old = StagingBuffer::new(if header.is_answered { packed } else { 0 });
    let room = header.is_answered.then(|| old.address());
    let done = match what {
        What::CompareSwap(_) if bytes == 2 * packed => {
            let values = (data, data.moved(packed as i64));
            swap(window, (basic, at), values, old.address())?
        }
        What::Change(op, _) => {
            let change = Change::new(predefined(op).ok_or_else(wrong)?, basic)?;
            let is_read = bytes > 0;
            if is_read && bytes != packed || is_read != change.reads() {
                return Err(wrong());
            }
            combine(window, &change, (at, header.count), data, room)?
        }
        _ => return Err(wrong()),
    };
    Ok(done.map(|()| header.is_answered.then_some(old)))
}

/// Changes values by packed ones. `None` where somebody is in its way.
fn combine(
    window: &Window,
    change: &Change,
    (at, count): (Out, u64),
    from: In,
    old: Option<Out>,
) -> Result<Option<()>> {
    let (me, basic) = (window.me(), change.basic);
    if count <= FEW as u64 && change.has_instructions(at) {
        return window.try_short_way(me, || change.apply(at, from, old, count as usize));
    }
    let values = Span::array(basic, count as usize);
    try_long_way(window, || {
        if let Some(old) = old {
            values.pack(at.read(), old)?;
        }
        if !change.reads() {
            return Ok(());
        }
        if change.replaces() {
            return values.unpack(from, at);
        }
        let bytes = count as usize * basic.extent();
        if basic.size() == basic.extent() {
            change.combine_at(at, from, bytes);
            return Ok(());
        }
        // Padding is the program's: it is not written.
        let [packed, there, operand] = [values.bytes, bytes, bytes].map(StagingBuffer::new);
        values.pack(at.read(), packed.address())?;
        values.unpack(packed.address().read(), there.address())?;
        values.unpack(from, operand.address())?;
        change.combine_at(there.address(), operand.address().read(), bytes);
        values.pack(there.address().read(), packed.address())?;
        values.unpack(packed.address().read(), at)
    })
}

/// Compares a value, and writes another where they are equal. `None` where somebody is in its way.
fn swap(
    window: &Window,
    (basic, at): (Basic, Out),
    (compare, new): (In, In),
    old: Out,
) -> Result<Option<()>> {
    atomics::check_compared(basic)?;
    if let Some(word) = atomics::word(basic).filter(|word| atomics::is_aligned(*word, at)) {
        return window.try_short_way(window.me(), || {
            atomics::compare_and_swap(word, at, compare, new, old);
        });
    }
    try_long_way(window, || {
        atomics::swap_alone(basic.size(), at, compare, new, old);
        Ok(())
    })
}
