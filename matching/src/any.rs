//! The engines behind one type, chosen by name at run time.

use std::convert::Infallible;
use std::fmt;

use tagwire_base::ContextId;

use crate::bins::HashBins;
use crate::engine::{ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::error::Result;
use crate::list::PlainList;
use crate::registry::EngineName;
use crate::sources::PerSource;
use crate::storage::Capacity;

/// Any of the engines, in private memory; beside them one of a type that the program knows, by default of none.
///
/// The tag is a word of its own: one that the compiler hides in a field's unused values costs
/// seven instructions more in every call.
#[derive(Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum AnyEngine<D = Infallible> {
    /// Hash bins, lists while short: the default.
    Bins(HashBins),
    /// Any other.
    Other(Other<D>),
}

/// The engines beside the default one.
///
/// A choice of its own, with a tag of its own: one among three costs each call of the default engine instructions, one among more
/// is a jump through a table.
#[derive(Debug)]
#[repr(u32)]
#[non_exhaustive]
#[allow(
    clippy::large_enum_variant,
    reason = "a rank has one, and calls are not to go through a pointer"
)]
pub enum Other<D = Infallible> {
    /// One of a type that the program knows, so that calls are direct.
    Direct {
        /// Its name.
        name: &'static str,
        /// The engine.
        engine: D,
    },
    /// One of the table.
    Table(OfTable),
}

/// The engines of the table, without the default one.
#[derive(Debug)]
#[repr(u32)]
#[non_exhaustive]
pub enum OfTable {
    /// One list for each queue.
    List(PlainList),
    /// Lists for each source.
    Source(PerSource),
    /// Any other: each call is an indirect one.
    Boxed(Boxed),
}

/// An engine behind a pointer, with its name.
pub struct Boxed {
    name: &'static str,
    engine: Box<dyn Engine + Send>,
}

impl fmt::Debug for Boxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Boxed").field(&self.name).finish()
    }
}

impl AnyEngine {
    /// The name of the engine that is used when the user names none.
    pub const DEFAULT: &'static str = "bins";

    /// The engine called `name`, with its parameters behind a colon, empty and with these bounds.
    ///
    /// # Errors
    /// [`UnknownEngine`](crate::Error::UnknownEngine) when no engine has the name,
    /// [`BadEngine`](crate::Error::BadEngine) when it does not take the parameters; both hold the nearest that exists.
    pub fn by_name(name: &str, capacity: Capacity) -> Result<Self> {
        Ok(name.parse::<EngineName>()?.open(capacity))
    }

    /// Returns an engine of any type under this name.
    #[must_use]
    pub fn boxed(name: &'static str, engine: Box<dyn Engine + Send>) -> Self {
        Self::Other(Other::Table(OfTable::Boxed(Boxed { name, engine })))
    }

    /// Returns the same engine, where one of the type `D` may stand too.
    #[must_use]
    pub fn beside<D>(self) -> AnyEngine<D> {
        match self {
            Self::Bins(engine) => AnyEngine::Bins(engine),
            Self::Other(Other::Table(engine)) => AnyEngine::Other(Other::Table(engine)),
            Self::Other(Other::Direct { engine, .. }) => match engine {},
        }
    }
}

impl<D> AnyEngine<D> {
    /// Returns an engine of the type `D` under this name.
    #[must_use]
    pub const fn direct(name: &'static str, engine: D) -> Self {
        Self::Other(Other::Direct { name, engine })
    }

    /// The name of this engine, without its parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Bins(_) => "bins",
            Self::Other(Other::Direct { name, .. }) => name,
            Self::Other(Other::Table(OfTable::List(_))) => "list",
            Self::Other(Other::Table(OfTable::Source(_))) => "source",
            Self::Other(Other::Table(OfTable::Boxed(boxed))) => boxed.name,
        }
    }
}

/// Calls the same method on whichever engine it is.
macro_rules! each {
    ($any:expr, $engine:ident => $call:expr) => {
        match $any {
            AnyEngine::Bins($engine) => $call,
            AnyEngine::Other(Other::Direct {
                engine: $engine, ..
            }) => $call,
            AnyEngine::Other(Other::Table(engine)) => match engine {
                OfTable::List($engine) => $call,
                OfTable::Source($engine) => $call,
                OfTable::Boxed(Boxed {
                    engine: $engine, ..
                }) => $call,
            },
        }
    };
}

impl<D: Engine> Engine for AnyEngine<D> {
    #[inline(always)]
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        each!(self, engine => engine.post(pattern, cookie))
    }

    #[inline(always)]
    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        each!(self, engine => engine.arrive(envelope, cookie))
    }

    #[inline(always)]
    fn arrive_sized(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        each!(self, engine => engine.arrive_sized(envelope, cookie, bytes))
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

    #[inline(always)]
    fn posted_len(&self) -> usize {
        each!(self, engine => engine.posted_len())
    }

    #[inline(always)]
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

/// There is none.
impl Engine for Infallible {
    fn post(&mut self, _: Pattern, _: Cookie) -> PostOutcome {
        match *self {}
    }

    fn arrive(&mut self, _: Envelope, _: Cookie) -> ArriveOutcome {
        match *self {}
    }

    fn arrive_expected(&mut self, _: Envelope) -> Option<Cookie> {
        match *self {}
    }

    fn expects(&mut self, _: Envelope) -> Option<Cookie> {
        match *self {}
    }

    fn probe(&mut self, _: Pattern) -> Option<(Envelope, Cookie)> {
        match *self {}
    }

    fn claim(&mut self, _: Pattern) -> Option<(Envelope, Cookie)> {
        match *self {}
    }

    fn cancel(&mut self, _: Handle) -> CancelOutcome {
        match *self {}
    }

    fn discard(&mut self, _: Handle) -> CancelOutcome {
        match *self {}
    }

    fn posted_len(&self) -> usize {
        match *self {}
    }

    fn unexpected_len(&self) -> usize {
        match *self {}
    }

    fn stats(&self) -> Stats {
        match *self {}
    }

    fn for_each_posted(&self, _: &mut dyn FnMut(Pattern, Cookie)) {
        match *self {}
    }

    fn for_each_unexpected(&self, _: &mut dyn FnMut(Envelope, Cookie)) {
        match *self {}
    }
}
