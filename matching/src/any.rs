//! The engines behind one type, chosen by name at run time.

use tagwire_base::ContextId;
use tagwire_base::nearest::distance;

use crate::bins::HashBins;
use crate::engine::{ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::error::{Error, Result};
use crate::list::PlainList;
use crate::sources::PerSource;
use crate::storage::Capacity;

/// Any of the engines, in private memory.
///
/// The tag is a word of its own: one that the compiler hides in a field's unused values costs
/// seven instructions more in every call.
#[derive(Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum AnyEngine {
    /// One list for each queue.
    List(PlainList),
    /// Lists for each source.
    Source(PerSource),
    /// Hash bins, lists while short: the default.
    Bins(HashBins),
}

impl AnyEngine {
    /// The names of the engines.
    pub const NAMES: &'static [&'static str] = &["list", "source", "bins"];

    /// The name of the engine that is used when the user names none.
    pub const DEFAULT: &'static str = "bins";

    /// The engine called `name`, empty, with these bounds.
    ///
    /// # Errors
    /// [`Error::UnknownEngine`] when no engine has the name; it holds the nearest that exists.
    pub fn by_name(name: &str, capacity: Capacity) -> Result<Self> {
        match name {
            "list" => Ok(Self::List(PlainList::with_capacity(capacity))),
            "source" => Ok(Self::Source(PerSource::with_capacity(capacity))),
            "bins" => Ok(Self::Bins(HashBins::with_capacity(capacity))),
            _ => Err(Error::UnknownEngine {
                name: name.to_owned(),
                nearest: nearest(name),
            }),
        }
    }

    /// The name of this engine.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Source(_) => "source",
            Self::Bins(_) => "bins",
        }
    }
}

/// Calls the same method on whichever engine it is.
macro_rules! each {
    ($any:expr, $engine:ident => $call:expr) => {
        match $any {
            AnyEngine::List($engine) => $call,
            AnyEngine::Source($engine) => $call,
            AnyEngine::Bins($engine) => $call,
        }
    };
}

impl Engine for AnyEngine {
    #[inline(always)]
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        each!(self, engine => engine.post(pattern, cookie))
    }

    #[inline(always)]
    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        each!(self, engine => engine.arrive(envelope, cookie))
    }

    #[inline(always)]
    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        each!(self, engine => engine.arrive_expected(envelope))
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        each!(self, engine => engine.expects(envelope))
    }

    #[inline]
    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        each!(self, engine => engine.probe(pattern))
    }

    #[inline]
    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        each!(self, engine => engine.claim(pattern))
    }

    #[inline]
    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        each!(self, engine => engine.cancel(handle))
    }

    #[inline]
    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        each!(self, engine => engine.discard(handle))
    }

    #[inline]
    fn posted_len(&self) -> usize {
        each!(self, engine => engine.posted_len())
    }

    #[inline]
    fn unexpected_len(&self) -> usize {
        each!(self, engine => engine.unexpected_len())
    }

    fn stats(&self) -> Stats {
        each!(self, engine => engine.stats())
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        each!(self, engine => engine.for_each_posted(visit));
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        each!(self, engine => engine.for_each_unexpected(visit));
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        each!(self, engine => engine.set_assertions(context, assertions));
    }
}

/// The engine whose name is the fewest edits away, however many they are.
fn nearest(name: &str) -> &'static str {
    let by_distance = |known: &&&str| distance(known, name);
    let nearest = AnyEngine::NAMES.iter().min_by_key(by_distance);
    nearest.copied().unwrap_or(AnyEngine::DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_the_engine_of_that_name() {
        for name in AnyEngine::NAMES {
            let engine = AnyEngine::by_name(name, Capacity::default()).unwrap();
            assert_eq!(engine.name(), *name);
        }
        assert!(AnyEngine::NAMES.contains(&AnyEngine::DEFAULT));
    }

    #[test]
    fn a_mistyped_name_is_refused_with_the_nearest() {
        for (typed, meant) in [
            ("lsit", "list"),
            ("sources", "source"),
            ("hashbins", "bins"),
        ] {
            let error = AnyEngine::by_name(typed, Capacity::default()).unwrap_err();
            assert_eq!(error.code(), 200);
            let text = format!("unknown matching engine '{typed}'; did you mean '{meant}'?");
            assert_eq!(error.to_string(), text);
        }
    }
}
