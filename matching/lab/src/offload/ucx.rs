//! Which receives UCX has an adapter match, and which it keeps: `src/ucp/tag/offload.c` and `tag_match.h` of UCX 1.2x.
//!
//! An adapter of InfiniBand has a list of receives and none of unexpected messages: UCX holds those. A receive goes to the adapter as it
//! is posted, or stays with UCX, which is the software:
//!
//! - one shorter than the threshold stays (`UCX_TM_THRESH`, 1,024 bytes): to post it costs more than it saves;
//! - one of any source stays;
//! - one of any tag stays while UCX has any receive;
//! - an exact one stays while UCX has a wildcard, or a receive in the same of its 1,021 bins. From a second threshold on
//!   (`UCX_TM_FORCE_THRESH`, 8,192 bytes) it takes those of its bin with it, where all have room;
//! - one for which the adapter has no entry stays (`UCX_RC_MLX5_TM_LIST_SIZE`, 1,024 entries).
//!
//! So a message that two receives accept of which the younger is with the adapter finds the older one there too, and whatever the adapter
//! has for a message comes before what UCX has. Nothing moves to the adapter later but what is taken along.
//!
//! UCX goes by the buffer of a receive. A trace has the sizes of messages: a receive is as long as the message that it takes, and one that
//! takes none, or one of unknown size, is short. The model has all messages come through the one adapter, and all receives in memory without
//! gaps.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use serde::Serialize;
use tagwire_matching::offload::OffloadCounts;
use tagwire_matching::trace::Event;
use tagwire_matching::{
    ArriveOutcome, CancelOutcome, Capacity, Cookie, Engine, Envelope, Handle, Pattern, PostOutcome,
    ucx_bin,
};

use super::Traffic;
use crate::error::Result;
use crate::replay::bytes;
use crate::trace::{Call, Trace};
use crate::walk::{Search, Walk, cannot_be};

/// What the rules go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// Receives that the adapter holds.
    pub(super) entries: u32,
    /// Bytes from which on a receive may go to the adapter.
    pub(super) threshold: u64,
    /// Bytes from which on it takes those of its bin along.
    pub(super) force: u64,
}

/// Receives that stayed with UCX, by the first rule that kept them there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Kept {
    /// Below the threshold.
    pub(super) short: u64,
    pub(super) any_source: u64,
    /// Behind others that UCX has.
    pub(super) behind: u64,
    /// The adapter had no entry left.
    pub(super) without_room: u64,
}

/// The receives of one rank, with the adapter and with UCX, whose queues are an engine's.
pub(super) struct Receives {
    rules: Rules,
    /// Receives that may wait at all.
    most: usize,
    /// All that were ever queued, by number.
    all: Vec<Receive>,
    /// Those that the adapter has, in the order in which it got them.
    adapter: Vec<u32>,
    /// Those that UCX has, by bin; `None`: wildcards.
    software: HashMap<Option<u32>, BTreeSet<u32>>,
    waiting: usize,
    /// The handles of the messages that were ever queued.
    messages: Vec<Handle>,
    inner: Box<dyn Engine + Send>,
    counts: [OffloadCounts; 2],
    pub(super) kept: Kept,
}

#[derive(Debug, Clone, Copy)]
struct Receive {
    pattern: Pattern,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Adapter,
    Software(Handle),
    Gone,
}

impl Receives {
    /// None, over an engine that is empty and has room for `capacity`.
    pub(super) fn new(rules: Rules, capacity: Capacity, inner: Box<dyn Engine + Send>) -> Self {
        Self {
            rules,
            most: capacity.posted as usize,
            all: Vec::new(),
            adapter: Vec::new(),
            software: HashMap::new(),
            waiting: 0,
            messages: Vec::new(),
            inner,
            counts: Default::default(),
            kept: Kept::default(),
        }
    }

    /// Does a call; `sizes` has the bytes of receives by number. Returns the number of the entry that it found or took out.
    pub(super) fn call(&mut self, call: &Call, sizes: &[u64]) -> Option<u32> {
        match call.event {
            Event::Post(pattern) => self.post(pattern, sizes),
            Event::Arrive(envelope, size) => match self.find(&envelope) {
                Some(found) => Some(self.take(found)),
                None => {
                    let number = Cookie(self.messages.len() as u32);
                    match self.inner.arrive_sized(envelope, number, bytes(size)) {
                        ArriveOutcome::Matched(Cookie(number)) => Some(self.take(number)),
                        ArriveOutcome::Queued(handle) => {
                            self.messages.push(handle);
                            self.counts[MESSAGES].spilled += 1;
                            None
                        }
                        ArriveOutcome::Full => None,
                    }
                }
            },
            Event::ArriveExpected(envelope) => {
                let found = self.find(&envelope);
                let found = found.or_else(|| number(self.inner.arrive_expected(envelope)));
                found.map(|number| self.take(number))
            }
            Event::Expects(envelope) => {
                let found = self.find(&envelope);
                found.or_else(|| number(self.inner.expects(envelope)))
            }
            Event::Probe(pattern) => {
                self.search_messages();
                number(self.inner.probe(pattern).map(|(_, cookie)| cookie))
            }
            Event::Claim(pattern) => {
                self.search_messages();
                number(self.inner.claim(pattern).map(|(_, cookie)| cookie))
            }
            Event::Cancel(number) => {
                match self.all.get(number as usize)?.place {
                    Place::Gone => return None,
                    Place::Software(handle) => {
                        let _ = self.inner.cancel(handle);
                    }
                    Place::Adapter => {}
                }
                Some(self.take(number))
            }
            Event::Discard(entry) => {
                let handle = *self.messages.get(entry as usize)?;
                match self.inner.discard(handle) {
                    CancelOutcome::Cancelled(cookie) => number(Some(cookie)),
                    CancelOutcome::AlreadyMatched => None,
                }
            }
            Event::Promise(context, promise) => {
                self.inner.set_assertions(context, promise);
                None
            }
            _ => None,
        }
    }

    /// What the queues have seen: that of receives, and that of messages.
    pub(super) fn counts(&self) -> [OffloadCounts; 2] {
        let inner = self.inner.stats();
        let [mut receives, mut messages] = self.counts;
        receives.software_looked = inner.posted.attempts;
        messages.software_looked = inner.unexpected.attempts;
        [receives, messages]
    }

    fn post(&mut self, pattern: Pattern, sizes: &[u64]) -> Option<u32> {
        self.search_messages();
        let next = self.all.len() as u32;
        let bytes = sizes.get(next as usize).copied().unwrap_or_default();
        let is_full = self.adapter.len() + self.waiting >= self.most;
        let kept = self.why_kept(pattern, bytes);
        if is_full || kept.is_none() {
            // Software must not queue it.
            if let Some((_, cookie)) = self.inner.claim(pattern) {
                return number(Some(cookie));
            }
            if !is_full {
                self.take_along(pattern);
                self.push(pattern, Place::Adapter);
                self.adapter.push(next);
                self.counts[RECEIVES].accepted += 1;
            }
            return None;
        }
        match self.inner.post(pattern, Cookie(next)) {
            PostOutcome::Matched(cookie) => return number(Some(cookie)),
            PostOutcome::Queued(handle) => {
                self.push(pattern, Place::Software(handle));
                let bin = bin(pattern);
                self.software.entry(bin).or_default().insert(next);
                self.waiting += 1;
                self.counts[RECEIVES].spilled += 1;
                if let Some(why) = kept {
                    *why(&mut self.kept) += 1;
                }
            }
            PostOutcome::Full => {}
        }
        None
    }

    /// The count of the rule by which a receive stays with UCX; none for one that goes to the adapter.
    fn why_kept(&self, pattern: Pattern, bytes: u64) -> Option<fn(&mut Kept) -> &mut u64> {
        let Rules {
            entries,
            threshold,
            force,
        } = self.rules;
        let room = (entries as usize).saturating_sub(self.adapter.len());
        let own = self.waiting_in(bin(pattern));
        let is_behind = match bin(pattern) {
            None => self.waiting > 0,
            Some(_) => self.waiting_in(None) > 0 || (own > 0 && (bytes < force || own >= room)),
        };
        if bytes < threshold {
            return Some(|kept| &mut kept.short);
        }
        if pattern.source.rank().is_none() {
            return Some(|kept| &mut kept.any_source);
        }
        if is_behind {
            return Some(|kept| &mut kept.behind);
        }
        match room {
            0 => Some(|kept| &mut kept.without_room),
            _ => None,
        }
    }

    /// How many UCX has in a bin, or of wildcards.
    fn waiting_in(&self, bin: Option<u32>) -> usize {
        self.software.get(&bin).map_or(0, BTreeSet::len)
    }

    /// Gives the adapter what UCX has in the bin of a receive that follows.
    fn take_along(&mut self, pattern: Pattern) {
        let along = self.software.remove(&bin(pattern)).unwrap_or_default();
        self.waiting -= along.len();
        self.counts[RECEIVES].refilled += along.len() as u64;
        for number in along {
            let place = &mut self.all[number as usize].place;
            if let Place::Software(handle) = *place {
                let _ = self.inner.cancel(handle);
            }
            *place = Place::Adapter;
            self.adapter.push(number);
        }
    }

    fn push(&mut self, pattern: Pattern, place: Place) {
        self.all.push(Receive { pattern, place });
    }

    /// The receive of the adapter that a message goes to, which is counted as a search.
    fn find(&mut self, envelope: &Envelope) -> Option<u32> {
        let counts = &mut self.counts[RECEIVES];
        if self.adapter.is_empty() && self.waiting == 0 {
            return None;
        }
        let all = &self.all;
        let accepts = |number: &&u32| all[**number as usize].pattern.accepts(envelope);
        let mut looked = 0;
        let found = self.adapter.iter().inspect(|_| looked += 1).find(accepts);
        counts.searches += 1;
        counts.hardware_looked += looked;
        counts.in_hardware += u64::from(found.is_some() || self.waiting == 0);
        found.copied()
    }

    /// Counts a search among messages, of which the adapter has none.
    fn search_messages(&mut self) {
        self.counts[MESSAGES].searches += u64::from(self.inner.unexpected_len() > 0);
    }

    /// Takes a receive out, which the engine has not any more.
    fn take(&mut self, number: u32) -> u32 {
        let Receive { pattern, place } = &mut self.all[number as usize];
        match place {
            Place::Adapter => self.adapter.retain(|other| *other != number),
            Place::Software(_) => {
                self.waiting -= 1;
                if let Some(own) = self.software.get_mut(&bin(*pattern)) {
                    own.remove(&number);
                }
            }
            Place::Gone => {}
        }
        *place = Place::Gone;
        number
    }
}

impl Kept {
    pub(super) const fn add(&mut self, other: Self) {
        self.short += other.short;
        self.any_source += other.any_source;
        self.behind += other.behind;
        self.without_room += other.without_room;
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} short, {} of any source, {} behind others in software, {} without room",
            self.short, self.any_source, self.behind, self.without_room
        )
    }
}

/// The bytes of the messages that the receives of each trace take, by the number of the receive; 0 where nobody knows.
///
/// # Errors
/// [`Error::Trace`](crate::Error::Trace) with the first call whose answer cannot be.
pub(super) fn sizes_of(traffic: &Traffic) -> Result<Vec<Vec<u64>>> {
    traffic.each(sizes)
}

fn sizes(trace: &Trace) -> Result<Vec<u64>, String> {
    let mut walk = Walk::new(trace.header.capacity);
    let mut sizes = Vec::new();
    for (index, call) in trace.calls.iter().enumerate() {
        let search = walk.search(&call.event);
        if let (Event::Arrive(_, size), Some(Search::Receives(Some(place)))) = (call.event, search)
        {
            let number = walk.receives.entries[place].number as usize;
            sizes.resize(sizes.len().max(number + 1), 0);
            sizes[number] = size.bytes();
        }
        let done = walk.apply(call, search);
        done.map_err(|why| cannot_be(index, &why))?;
    }
    Ok(sizes)
}

/// The bin of an exact receive; none of a wildcard.
fn bin(pattern: Pattern) -> Option<u32> {
    let source = pattern.source.rank()?;
    if pattern.tag.is_any() {
        return None;
    }
    let (tag, context) = (pattern.tag.as_i32() as u64, pattern.context.as_u16());
    Some(ucx_bin(tag, source.as_u32().into(), context.into(), BINS))
}

fn number(found: Option<Cookie>) -> Option<u32> {
    found.map(|Cookie(number)| number)
}

const BINS: u32 = 1021;
const RECEIVES: usize = 0;
const MESSAGES: usize = 1;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_base::{SourceSelector, TagSelector};
    use tagwire_matching::EngineName;
    use tagwire_matching::storage::Local;
    use tagwire_matching::trace::Size;

    use super::*;
    use crate::program::{Operation, Program};
    use crate::random::Random;
    use crate::trace::tests::{message, trace};
    use crate::walk::Change;

    fn receives(entries: u32, capacity: Capacity, engine: &str) -> Receives {
        let rules = Rules {
            entries,
            threshold: 1024,
            force: 8192,
        };
        let engine: EngineName = engine.parse().unwrap();
        Receives::new(rules, capacity, engine.open_over::<Local>(capacity))
    }

    fn event(operation: Operation, walk: &Walk) -> Option<Event> {
        let among = |number: u32, queued: u32| (queued > 0).then(|| number % queued);
        Some(match operation {
            Operation::Post(pattern) => Event::Post(pattern),
            Operation::Arrive(envelope, bytes) => Event::Arrive(envelope, Size::of(bytes as u64)),
            Operation::ArriveExpected(envelope) => Event::ArriveExpected(envelope),
            Operation::Expects(envelope) => Event::Expects(envelope),
            Operation::Probe(pattern) => Event::Probe(pattern),
            Operation::Claim(pattern) => Event::Claim(pattern),
            Operation::Cancel(number) => Event::Cancel(among(number, walk.receives.queued())?),
            Operation::Discard(number) => Event::Discard(among(number, walk.messages.queued())?),
            Operation::Promise(context, promise) => Event::Promise(context, promise),
        })
    }

    /// The number of the entry that a search finds.
    fn found(walk: &Walk, search: Option<Search>) -> Option<u32> {
        match search? {
            Search::Receives(place) => Some(walk.receives.entries[place?].number),
            Search::Messages(place) => Some(walk.messages.entries[place?].number),
        }
    }

    /// Whatever the sizes of receives and the room are, each call finds what the rules of MPI give it.
    #[test]
    fn what_is_found_is_what_one_queue_would_give() {
        let mut random = Random::new(5);
        let mut seen = (Kept::default(), 0, 0);
        for turn in 0..400 {
            let program = Program::random(&mut random);
            let entries = [0, 3, 20, 1000][turn % 4];
            let engine = ["list", "bins", "ucx"][turn % 3];
            let mut own = receives(entries, program.capacity, engine);
            let mut walk = Walk::new(program.capacity);
            let sizes: Vec<u64> = (0..2000)
                .map(|_| [100, 1024, 2000, 8192][random.below(4) as usize])
                .collect();
            for operation in program.operations {
                let Some(event) = event(operation, &walk) else {
                    continue;
                };
                let mut call = Call {
                    at: 0,
                    event,
                    matched: false,
                };
                let answer = own.call(&call, &sizes);
                call.matched = answer.is_some();
                let search = walk.search(&event);
                let wanted = found(&walk, search);
                let change = walk.apply(&call, search);
                let change = change.unwrap_or_else(|why| panic!("{turn}: {operation}: {why}"));
                let wanted = match change {
                    Change::ReceiveLeft(entry, _) => Some(entry.number),
                    Change::MessageLeft(entry, _) => Some(entry.number),
                    _ => wanted,
                };
                assert_eq!(answer, wanted, "{turn}: {operation}");
            }
            let waiting = own.adapter.len() + own.waiting;
            assert_eq!(waiting, walk.receives.entries.len(), "{turn}");
            assert!(own.adapter.len() <= entries as usize, "{turn}");
            seen.0.add(own.kept);
            seen.1 += own.counts()[RECEIVES].accepted;
            seen.2 += own.counts()[RECEIVES].refilled;
        }
        let (kept, accepted, refilled) = seen;
        let all = [kept.short, kept.any_source, kept.behind, kept.without_room];
        // Each rule was there.
        assert!(
            all.iter().all(|one| *one > 100) && accepted > 1000 && refilled > 10,
            "{kept:?}, {accepted}, {refilled}"
        );
    }

    const SHORT: u64 = 1000;
    const LONG: u64 = 1024;
    const FORCED: u64 = 8192;

    fn exact(source: u32, tag: i32) -> Pattern {
        Pattern::exact(message(source, tag))
    }

    /// Posts receives of these sizes; returns what is with the adapter then, and why the others are not.
    fn posted(entries: u32, posts: &[(Pattern, u64)]) -> (Vec<u32>, Kept, u64) {
        let mut own = receives(entries, Capacity::default(), "list");
        let sizes: Vec<u64> = posts.iter().map(|(_, bytes)| *bytes).collect();
        for (pattern, _) in posts {
            let call = Call {
                at: 0,
                event: Event::Post(*pattern),
                matched: false,
            };
            assert_eq!(own.call(&call, &sizes), None);
        }
        let refilled = own.counts()[RECEIVES].refilled;
        (own.adapter, own.kept, refilled)
    }

    #[test]
    fn each_rule_keeps_what_it_says() {
        let any_source = Pattern {
            source: SourceSelector::ANY,
            ..exact(0, 1)
        };
        let any_tag = Pattern {
            tag: TagSelector::ANY,
            ..exact(0, 1)
        };
        // Below the threshold, and another bin beside it.
        let (adapter, kept, _) = posted(9, &[(exact(0, 1), SHORT), (exact(0, 2), LONG)]);
        assert_eq!((adapter, kept.short), (vec![1], 1), "{kept:?}");
        // A wildcard stays, and all behind it do; before it they do not.
        let behind = [
            (exact(0, 1), LONG),
            (any_source, LONG),
            (exact(0, 2), FORCED),
        ];
        let (adapter, kept, _) = posted(9, &behind);
        assert_eq!(adapter, [0]);
        assert_eq!((kept.any_source, kept.behind), (1, 1), "{kept:?}");
        // One of any tag goes where software has none.
        let (adapter, ..) = posted(9, &[(exact(0, 1), LONG), (any_tag, LONG)]);
        assert_eq!(adapter, [0, 1]);
        let (adapter, kept, _) = posted(9, &[(exact(0, 1), SHORT), (any_tag, FORCED)]);
        assert_eq!((adapter, kept.behind), (vec![], 1), "{kept:?}");
        // The same bin by chance: tags that lie the prime apart.
        let (adapter, kept, _) = posted(9, &[(exact(0, 1), SHORT), (exact(0, 1022), LONG)]);
        assert_eq!((adapter, kept.behind), (vec![], 1), "{kept:?}");
        let (adapter, ..) = posted(9, &[(exact(0, 1), SHORT), (exact(0, 1023), LONG)]);
        assert_eq!(adapter, [1]);
        let (adapter, kept, _) = posted(1, &[(exact(0, 1), LONG), (exact(0, 2), FORCED)]);
        assert_eq!((adapter, kept.without_room), (vec![0], 1), "{kept:?}");
    }

    #[test]
    fn a_long_receive_takes_those_before_it_along_where_all_have_room() {
        let posts = [
            (exact(0, 1), SHORT),
            (exact(0, 2), SHORT),
            (exact(0, 1), SHORT),
            (exact(0, 1), FORCED),
        ];
        let (adapter, _, refilled) = posted(3, &posts);
        assert_eq!((adapter, refilled), (vec![0, 2, 3], 2));
        let (adapter, kept, refilled) = posted(2, &posts);
        assert_eq!((adapter, refilled, kept.behind), (vec![], 0, 1));
    }

    /// A receive is as long as its message; one that found its message there is none, and has no number.
    #[test]
    fn receives_have_the_bytes_of_their_messages() {
        let arrive = |tag, bytes| Event::Arrive(message(0, tag), Size::of(bytes));
        let one = trace(&[
            (arrive(9, 64), false),
            (Event::Post(exact(0, 9)), true),
            (Event::Post(exact(0, 1)), false),
            (Event::Post(exact(0, 2)), false),
            (Event::Post(exact(0, 3)), false),
            (arrive(3, 4096), true),
            (arrive(1, 1024), true),
        ]);
        assert_eq!(sizes(&one).unwrap(), [1024, 0, 4096]);
    }
}
