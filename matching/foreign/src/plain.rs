//! An engine of a library's calls, whatever is answered.

use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};
use tagwire_matching::{
    ArriveOutcome, CancelOutcome, ContextAssertions, Cookie, Engine, Envelope, Handle, Pattern,
    PostOutcome, QueueStats, Stats,
};

use crate::guard::strange;
use crate::library::{
    ANY_SOURCE, ANY_TAG, Answer, EXPECTED_ONLY, FULL, Instance, Key, LOOK, MATCHED, NONE, QUEUE,
    QUEUED, QueueFigures,
};
use tagwire_matching::judged::Impossible;

/// An engine that believes its library.
#[derive(Debug)]
pub(crate) struct Plain {
    instance: Instance,
    /// Entries of each queue: asked for with every message, which the library is not.
    posted: usize,
    unexpected: usize,
    impossible: Impossible,
}

/// What an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    Nothing,
    Queued(u64),
    Matched(u32, u64),
    Full,
    /// What no call answers.
    Status(u32),
}

impl Plain {
    pub(crate) fn new(instance: Instance) -> Self {
        Self {
            instance,
            posted: 0,
            unexpected: 0,
            impossible: Impossible::default(),
        }
    }

    /// What the library answered that no engine can, where nobody else looks at its answers.
    pub(crate) const fn impossible(&self) -> &Impossible {
        &self.impossible
    }

    #[cold]
    fn note(&self, said: Said, call: &str) {
        self.impossible.note(|| strange(said, call));
    }

    /// A receive or a message that the library has shown.
    fn shown<T>(&self, made: Option<T>, key: Key, call: &str) -> Option<T> {
        if made.is_none() {
            self.impossible.note(|| {
                let Key {
                    source,
                    tag,
                    context,
                    flags,
                } = key;
                format!(
                    "{call} what cannot be: source {source}, tag {tag}, context {context}, flags {flags}"
                )
            });
        }
        made
    }

    fn expected(&self, said: Said, call: &str) -> Option<Cookie> {
        match said {
            Said::Matched(cookie, _) => Some(Cookie(cookie)),
            Said::Nothing => None,
            other => {
                self.note(other, call);
                None
            }
        }
    }

    fn looked(&self, (said, found): (Said, Key)) -> Option<(Envelope, Cookie)> {
        let cookie = self.expected(said, "a probe")?;
        Some((self.shown(envelope(found), found, "found")?, cookie))
    }

    #[inline]
    pub(crate) fn say_post(&mut self, pattern: Pattern, cookie: Cookie) -> Said {
        let said = Said::of(self.instance.post(receive(pattern), cookie.0));
        match said {
            Said::Matched(..) => self.unexpected = self.unexpected.saturating_sub(1),
            Said::Queued(_) => self.posted += 1,
            _ => {}
        }
        said
    }

    #[inline]
    pub(crate) fn say_arrive(&mut self, envelope: Envelope, cookie: Cookie, how: u32) -> Said {
        let said = Said::of(self.instance.arrive(message(envelope), cookie.0, how));
        match said {
            Said::Matched(..) if how != LOOK => self.posted = self.posted.saturating_sub(1),
            Said::Queued(_) => self.unexpected += 1,
            _ => {}
        }
        said
    }

    #[inline]
    pub(crate) fn say_look(&mut self, pattern: Pattern, take: bool) -> (Said, Key) {
        let (answer, found) = self.instance.look(receive(pattern), take);
        let said = Said::of(answer);
        if take && matches!(said, Said::Matched(..)) {
            self.unexpected = self.unexpected.saturating_sub(1);
        }
        (said, found)
    }

    pub(crate) fn say_withdraw(&mut self, handle: u64, is_message: bool) -> Said {
        let said = Said::of(self.instance.withdraw(handle, is_message));
        if matches!(said, Said::Matched(..)) {
            let length = match is_message {
                true => &mut self.unexpected,
                false => &mut self.posted,
            };
            *length = length.saturating_sub(1);
        }
        said
    }

    fn withdrawn(&mut self, handle: Handle, is_message: bool) -> CancelOutcome {
        match self.say_withdraw(whole(handle), is_message) {
            Said::Matched(cookie, _) => CancelOutcome::Cancelled(Cookie(cookie)),
            Said::Nothing => CancelOutcome::AlreadyMatched,
            other => {
                self.note(other, "a cancel");
                CancelOutcome::AlreadyMatched
            }
        }
    }
}

impl Said {
    #[inline]
    const fn of(answer: Answer) -> Self {
        let Answer {
            status,
            cookie,
            handle,
        } = answer;
        match status {
            NONE => Self::Nothing,
            QUEUED => Self::Queued(handle),
            MATCHED => Self::Matched(cookie, handle),
            FULL => Self::Full,
            other => Self::Status(other),
        }
    }
}

impl Engine for Plain {
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        match self.say_post(pattern, cookie) {
            Said::Matched(cookie, _) => PostOutcome::Matched(Cookie(cookie)),
            Said::Queued(handle) => PostOutcome::Queued(halves(handle)),
            Said::Full => PostOutcome::Full,
            other => {
                self.note(other, "a post");
                PostOutcome::Full
            }
        }
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        match self.say_arrive(envelope, cookie, QUEUE) {
            Said::Matched(cookie, _) => ArriveOutcome::Matched(Cookie(cookie)),
            Said::Queued(handle) => ArriveOutcome::Queued(halves(handle)),
            Said::Full => ArriveOutcome::Full,
            other => {
                self.note(other, "a message that is to be queued");
                ArriveOutcome::Full
            }
        }
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let said = self.say_arrive(envelope, Cookie(0), EXPECTED_ONLY);
        self.expected(said, "a message that is not to be queued")
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let said = self.say_arrive(envelope, Cookie(0), LOOK);
        self.expected(said, "a look for a receive")
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let looked = self.say_look(pattern, false);
        self.looked(looked)
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let looked = self.say_look(pattern, true);
        self.looked(looked)
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        self.withdrawn(handle, false)
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        self.withdrawn(handle, true)
    }

    fn posted_len(&self) -> usize {
        self.posted
    }

    fn unexpected_len(&self) -> usize {
        self.unexpected
    }

    fn stats(&self) -> Stats {
        let figures = self.instance.figures();
        Stats {
            posted: queue(figures.posted),
            unexpected: queue(figures.unexpected),
        }
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.instance.visit(false, &mut |key, cookie| {
            if let Some(pattern) = self.shown(pattern(key), key, "has posted") {
                visit(pattern, Cookie(cookie));
            }
        });
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.instance.visit(true, &mut |key, cookie| {
            if let Some(envelope) = self.shown(envelope(key), key, "has queued") {
                visit(envelope, Cookie(cookie));
            }
        });
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        let ContextAssertions {
            no_any_source,
            no_any_tag,
            overtaking,
        } = assertions;
        let promises =
            u32::from(no_any_source) | u32::from(no_any_tag) << 1 | u32::from(overtaking) << 2;
        self.instance.promise(context.as_u16().into(), promises);
    }
}

/// A handle of 64 bits, whatever the library names by it.
const fn halves(handle: u64) -> Handle {
    Handle::from_parts(handle as u32, (handle >> 32) as u32)
}

const fn whole(handle: Handle) -> u64 {
    handle.slot() as u64 | (handle.generation() as u64) << 32
}

fn message(envelope: Envelope) -> Key {
    Key {
        source: envelope.source.as_u32(),
        tag: envelope.tag.as_i32(),
        context: envelope.context.as_u16().into(),
        flags: 0,
    }
}

fn receive(pattern: Pattern) -> Key {
    let any_source = if pattern.source.is_any() {
        ANY_SOURCE
    } else {
        0
    };
    let any_tag = if pattern.tag.is_any() { ANY_TAG } else { 0 };
    Key {
        source: pattern.source.as_u32(),
        tag: pattern.tag.as_i32(),
        context: pattern.context.as_u16().into(),
        flags: any_source | any_tag,
    }
}

/// The message that a key is of; `None` where it is of none.
pub(crate) fn envelope(key: Key) -> Option<Envelope> {
    let context = u16::try_from(key.context).ok()?;
    Some(Envelope {
        source: SourceSelector::from_u32(key.source).rank()?,
        tag: Tag::from_wire(key.tag)?,
        context: ContextId::new(context),
    })
}

fn pattern(key: Key) -> Option<Pattern> {
    let context = u16::try_from(key.context).ok()?;
    Some(Pattern {
        source: match key.flags & ANY_SOURCE {
            0 => SourceSelector::from_u32(key.source),
            _ => SourceSelector::ANY,
        },
        tag: match key.flags & ANY_TAG {
            0 => TagSelector::from_i32(key.tag),
            _ => TagSelector::ANY,
        },
        context: ContextId::new(context),
    })
}

fn queue(figures: QueueFigures) -> QueueStats {
    QueueStats {
        queued: figures.queued,
        high_water: u32::try_from(figures.high_water).unwrap_or(u32::MAX),
        hits: figures.hits,
        misses: figures.misses,
        probes: figures.probes,
        attempts: figures.attempts,
        // The interface has no count of these.
        false_hits: 0,
        deepest: None,
    }
}
