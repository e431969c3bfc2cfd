//! A model of hardware that holds part of the queues, over any engine that holds the rest.
//!
//! Hardware holds the oldest receives, up to N, and the inner engine, which is the software, the others: each receive in
//! hardware was posted before any in software, so that a message searches hardware first and then software, and the first that
//! accepts it is the earliest. A receive is posted into hardware where there is room and nothing in software; otherwise it is
//! *spilled*. As entries of hardware leave, the earliest of software are *refilled*. Likewise the first U unexpected messages
//! are in hardware and the others in software; they stay where they are, and hardware takes messages again once software has none.
//!
//! So do adapters whose lists have a bounded length: Portals 4 (a priority list and headers of unexpected messages) and HPE's
//! Cassini, which goes on in software where entries run out (US patents 11,882,025 and 11,765,074; `fi_cxi(7)`, hybrid
//! mode). Levy and Ferreira (EuroMPI 2019) study how many entries hardware has to have.
//!
//! What the model keeps of entries in hardware is the adapter's memory: it is not counted as lines of the engine.

use std::fmt;

use tagwire_base::ContextId;
use tagwire_base::named::{Named, Parameter, Range, Spec};

use super::ordered::{Left, Line};
use crate::description::{Description, Grade};
use crate::engine::{
    ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, QueueStats, Stats,
};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::registry::EngineName;
use crate::storage::{Capacity, Cells};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "offload",
        parameters: &[
            Parameter::number("n", 64, 0..=1 << 20, "receives that hardware holds"),
            Parameter::number(
                "u",
                64,
                0..=1 << 20,
                "unexpected messages that hardware holds",
            ),
            Parameter {
                name: "refill",
                range: Range::Word {
                    default: "each",
                    words: Refill::NAMES,
                },
                help: "receives of software move up when one of hardware leaves, or when hardware has none",
            },
            Parameter {
                name: "over",
                range: Range::Word {
                    default: "list",
                    words: &[
                        "list", "source", "bins", "ucx", "flajslik", "chunks", "lanes", "fuzzy",
                    ],
                },
                help: "the engine that is the software",
            },
        ],
    },
    about: "a model: hardware has the oldest receives and messages, another engine the rest",
    source: "ours, after Portals 4 and Cassini (US 11,882,025); Levy and Ferreira, EuroMPI 2019, on the lengths",
    limits: "a model of which searches end in hardware, not of its time ('tagwire match offload'); its own bookkeeping is in \
             what a call costs",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let shape = Shape {
        receives: spec.number("n"),
        messages: spec.number("u"),
        refill: Refill::by_name(spec.word("refill")).unwrap_or(Refill::Each),
    };
    let inner: EngineName = spec.word("over").parse().expect("the words are engines");
    Box::new(Offload::new(
        shape,
        capacity,
        inner.open_over::<C>(capacity),
    ))
}

/// How many entries hardware holds, and when it gets those of software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Receives in hardware, at most.
    pub receives: u32,
    /// Unexpected messages in hardware, at most.
    pub messages: u32,
    /// When receives move up from software.
    pub refill: Refill,
}

/// When receives move up from software into hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refill {
    /// Whenever hardware has room: one for each that leaves.
    Each,
    /// When hardware has none left: as many as it holds.
    Drained,
}

impl Refill {
    /// The policies by their names.
    pub const NAMES: &'static [&'static str] = &["each", "drained"];

    /// Returns the policy with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "each" => Some(Self::Each),
            "drained" => Some(Self::Drained),
            _ => None,
        }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Drained => "drained",
        }
    }
}

impl fmt::Display for Refill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one queue of an [`Offload`] has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OffloadCounts {
    /// Searches and probes while the queue had entries.
    pub searches: u64,
    /// Those that needed no software: the entry was in hardware, or software had none.
    pub in_hardware: u64,
    /// Entries that hardware looked at.
    pub hardware_looked: u64,
    /// Entries that software looked at.
    pub software_looked: u64,
    /// Entries that were put into hardware as they came.
    pub accepted: u64,
    /// Entries that were put into software, since hardware had no room or software older ones.
    pub spilled: u64,
    /// Entries that moved up from software into hardware.
    pub refilled: u64,
}

/// A queue with its counters.
#[derive(Debug)]
struct Side<T> {
    line: Line<T>,
    counts: OffloadCounts,
    hits: u64,
    misses: u64,
    probes: u64,
}

/// How a search of hardware ended.
enum Searched {
    /// The queue has no entries.
    Empty,
    /// In hardware, with this slot.
    Found(u32),
    /// Hardware has none, and software no entries.
    None,
    /// Software is to be searched.
    Undecided,
}

/// Holds the oldest entries of both queues itself, as hardware of bounded length does, and the others in an inner engine.
///
/// Exact where the inner engine is; otherwise of its grade.
#[derive(Debug)]
pub struct Offload<E: ?Sized> {
    receives: Side<Pattern>,
    messages: Side<Envelope>,
    refill: Refill,
    inner: Box<E>,
}

impl<E: Engine + ?Sized> Offload<E> {
    /// Returns an empty engine of this shape over `inner`, which is empty and has room for `capacity`.
    #[must_use]
    pub fn new(shape: Shape, capacity: Capacity, inner: Box<E>) -> Self {
        Self {
            receives: Side::new(shape.receives, capacity.posted),
            messages: Side::new(shape.messages, capacity.unexpected),
            refill: shape.refill,
            inner,
        }
    }

    /// Returns what the two queues have seen: that of receives, and that of messages.
    #[must_use]
    pub fn counts(&self) -> [OffloadCounts; 2] {
        let inner = self.inner.stats();
        [
            OffloadCounts {
                software_looked: inner.posted.attempts,
                ..self.receives.counts
            },
            OffloadCounts {
                software_looked: inner.unexpected.attempts,
                ..self.messages.counts
            },
        ]
    }

    /// Takes the receive in a slot out, and moves others up.
    fn take_receive(&mut self, slot: u32) -> Option<Cookie> {
        self.receives.hits += 1;
        let left = self.receives.line.remove(slot)?;
        self.refill();
        Some(left.cookie)
    }

    fn take_message(&mut self, slot: u32) -> Option<(Envelope, Cookie)> {
        self.messages.hits += 1;
        let Left { what, cookie, .. } = self.messages.line.remove(slot)?;
        Some((what, cookie))
    }

    /// Moves receives up from software.
    fn refill(&mut self) {
        let Side { line, counts, .. } = &mut self.receives;
        if self.refill == Refill::Drained && !line.is_drained() {
            return;
        }
        while line.can_raise() {
            let Some(handle) = line.raise() else { return };
            let withdrawn = self.inner.cancel(handle);
            debug_assert!(
                withdrawn != CancelOutcome::AlreadyMatched,
                "software lost a receive"
            );
            counts.refilled += 1;
        }
    }

    /// The message that a receive takes, out of both places.
    fn search_messages(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let slot = match self.messages.search(|message| pattern.accepts(message)) {
            Searched::Found(slot) => Some(slot),
            Searched::Undecided => self.inner.claim(pattern).map(|(_, Cookie(slot))| slot),
            Searched::None => None,
            Searched::Empty => return None,
        };
        match slot {
            Some(slot) => self.take_message(slot),
            None => {
                self.messages.misses += 1;
                None
            }
        }
    }

    /// The receive that a message goes to, out of both places.
    fn search_receives(&mut self, envelope: Envelope) -> Option<Cookie> {
        let slot = match self.receives.search(|pattern| pattern.accepts(&envelope)) {
            Searched::Found(slot) => Some(slot),
            Searched::Undecided => self
                .inner
                .arrive_expected(envelope)
                .map(|Cookie(slot)| slot),
            Searched::None => None,
            Searched::Empty => return None,
        };
        match slot {
            Some(slot) => self.take_receive(slot),
            None => {
                self.receives.misses += 1;
                None
            }
        }
    }
}

impl<E: Engine + ?Sized> Engine for Offload<E> {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        if self.receives.line.takes_hardware() || self.receives.line.is_full() {
            if let Some((_, taken)) = self.search_messages(pattern) {
                return PostOutcome::Matched(taken);
            }
            if self.receives.line.is_full() {
                return PostOutcome::Full;
            }
            return PostOutcome::Queued(self.receives.accept(pattern, cookie));
        }
        // The receive is software's, if it is queued: one call searches there and queues it.
        let searched = self.messages.search(|message| pattern.accepts(message));
        if let Searched::Found(slot) = searched {
            let taken = self.take_message(slot);
            return taken.map_or(PostOutcome::Full, |(_, cookie)| {
                PostOutcome::Matched(cookie)
            });
        }
        let slot = Cookie(self.receives.line.next_slot());
        match self.inner.post(pattern, slot) {
            PostOutcome::Matched(Cookie(slot)) => {
                let taken = self.take_message(slot);
                taken.map_or(PostOutcome::Full, |(_, cookie)| {
                    PostOutcome::Matched(cookie)
                })
            }
            PostOutcome::Queued(handle) => {
                self.messages.misses += u64::from(!matches!(searched, Searched::Empty));
                PostOutcome::Queued(self.receives.spill(pattern, cookie, handle))
            }
            PostOutcome::Full => PostOutcome::Full,
        }
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        self.arrive_sized(envelope, cookie, 0)
    }

    fn arrive_sized(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        if self.messages.line.takes_hardware() || self.messages.line.is_full() {
            if let Some(taken) = self.search_receives(envelope) {
                return ArriveOutcome::Matched(taken);
            }
            if self.messages.line.is_full() {
                return ArriveOutcome::Full;
            }
            return ArriveOutcome::Queued(self.messages.accept(envelope, cookie));
        }
        let searched = self.receives.search(|pattern| pattern.accepts(&envelope));
        if let Searched::Found(slot) = searched {
            let taken = self.take_receive(slot);
            return taken.map_or(ArriveOutcome::Full, ArriveOutcome::Matched);
        }
        let slot = Cookie(self.messages.line.next_slot());
        match self.inner.arrive_sized(envelope, slot, bytes) {
            ArriveOutcome::Matched(Cookie(slot)) => {
                let taken = self.take_receive(slot);
                taken.map_or(ArriveOutcome::Full, ArriveOutcome::Matched)
            }
            ArriveOutcome::Queued(handle) => {
                self.receives.misses += u64::from(!matches!(searched, Searched::Empty));
                ArriveOutcome::Queued(self.messages.spill(envelope, cookie, handle))
            }
            ArriveOutcome::Full => ArriveOutcome::Full,
        }
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        self.search_receives(envelope)
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let slot = match self.receives.search(|pattern| pattern.accepts(&envelope)) {
            Searched::Empty => return None,
            Searched::Found(slot) => Some(slot),
            Searched::None => None,
            Searched::Undecided => self.inner.expects(envelope).map(|Cookie(slot)| slot),
        };
        self.receives.probes += 1;
        let (_, cookie) = self.receives.line.entry(slot?)?;
        Some(cookie)
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let slot = match self.messages.search(|message| pattern.accepts(message)) {
            Searched::Empty => return None,
            Searched::Found(slot) => Some(slot),
            Searched::None => None,
            Searched::Undecided => self.inner.probe(pattern).map(|(_, Cookie(slot))| slot),
        };
        self.messages.probes += 1;
        self.messages.line.entry(slot?)
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        self.search_messages(pattern)
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let line = &mut self.receives.line;
        let Some(left) = line.named(handle).and_then(|slot| line.remove(slot)) else {
            return CancelOutcome::AlreadyMatched;
        };
        if let Some(inner) = left.inner {
            let _ = self.inner.cancel(inner);
        }
        self.refill();
        CancelOutcome::Cancelled(left.cookie)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let line = &mut self.messages.line;
        let Some(left) = line.named(handle).and_then(|slot| line.remove(slot)) else {
            return CancelOutcome::AlreadyMatched;
        };
        if let Some(inner) = left.inner {
            let _ = self.inner.discard(inner);
        }
        CancelOutcome::Cancelled(left.cookie)
    }

    fn posted_len(&self) -> usize {
        self.receives.line.len() as usize
    }

    fn unexpected_len(&self) -> usize {
        self.messages.line.len() as usize
    }

    fn stats(&self) -> Stats {
        let inner = self.inner.stats();
        Stats {
            posted: self.receives.stats(inner.posted),
            unexpected: self.messages.stats(inner.unexpected),
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.receives.line.visit(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.messages.line.visit(visit);
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        self.inner.set_assertions(context, assertions);
    }
}

impl<T: Copy> Side<T> {
    fn new(room: u32, capacity: u32) -> Self {
        Self {
            line: Line::new(room, capacity),
            counts: OffloadCounts::default(),
            hits: 0,
            misses: 0,
            probes: 0,
        }
    }

    /// Searches hardware.
    fn search(&mut self, fits: impl Fn(&T) -> bool) -> Searched {
        if self.line.len() == 0 {
            return Searched::Empty;
        }
        let (found, looked) = self.line.find(fits);
        self.counts.searches += 1;
        self.counts.hardware_looked += looked;
        let has_software = self.line.has_software();
        if found.is_some() || !has_software {
            self.counts.in_hardware += 1;
        }
        match found {
            Some(slot) => Searched::Found(slot),
            None if has_software => Searched::Undecided,
            None => Searched::None,
        }
    }

    /// Queues an entry in hardware.
    fn accept(&mut self, what: T, cookie: Cookie) -> Handle {
        self.counts.accepted += 1;
        self.line.push(what, cookie, None)
    }

    /// Queues an entry that has this handle in software.
    fn spill(&mut self, what: T, cookie: Cookie, inner: Handle) -> Handle {
        self.counts.spilled += 1;
        self.line.push(what, cookie, Some(inner))
    }

    /// What the queue has seen, with what the inner engine has of it.
    fn stats(&self, inner: QueueStats) -> QueueStats {
        QueueStats {
            hits: self.hits,
            misses: self.misses,
            probes: self.probes,
            attempts: self.counts.hardware_looked + inner.attempts,
            false_hits: inner.false_hits,
            ..self.line.stats()
        }
    }
}
