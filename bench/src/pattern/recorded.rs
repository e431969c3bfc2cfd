//! What the threads of a pattern call, in place of doing it: for whoever does it on another machine.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::exchange::{Edge, Edges, Exchange};
use super::middleware::Middleware;
use crate::error::{Error, Result};

/// A call of a thread. Exchanges are known by their number, in the order in which a pattern sets them up, edges by their place in an
/// exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternStep {
    /// Begins a round of an exchange.
    Start(usize),
    /// Lets a part of an outgoing edge leave.
    Ready {
        /// Of which exchange.
        exchange: usize,
        /// Its outgoing edge.
        edge: usize,
        /// Which part of it.
        part: u32,
    },
    /// Waits for a part of an incoming edge.
    Arrive {
        /// Of which exchange.
        exchange: usize,
        /// Its incoming edge.
        edge: usize,
        /// Which part of it.
        part: u32,
    },
    /// Waits for all edges of an exchange.
    Finish(usize),
    /// Computes.
    Compute(Duration),
}

/// What moves the parts of an exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternCarrier {
    /// Blocking sends and receives.
    Calls,
    /// Messages into receives that the start posts.
    Posted,
    /// Partitioned operations with a policy, by its name.
    Partitioned(String),
}

/// Traffic with a peer in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternEdge {
    /// The rank at the other end.
    pub peer: u32,
    /// Tells edges between the same two ranks apart, the same number at both ends.
    pub number: u32,
    /// Parts in a row.
    pub parts: u32,
    /// Bytes of a part.
    pub len: usize,
}

/// The edges of a rank that begin and end their rounds together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternEdges {
    /// What moves their parts.
    pub carrier: PatternCarrier,
    /// To peers.
    pub outs: Vec<PatternEdge>,
    /// From peers.
    pub ins: Vec<PatternEdge>,
}

/// Writes down what is called.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    exchanges: Mutex<Vec<PatternEdges>>,
    steps: Mutex<Vec<PatternStep>>,
}

impl Recorder {
    /// Sets up edges whose calls are written down.
    ///
    /// # Errors
    /// [`Error::Usage`] for remote access, whose flags are memory that a thread looks at.
    pub(crate) fn exchange<'r>(
        &'r self,
        middleware: &Middleware,
        edges: &Edges,
    ) -> Result<Box<dyn Exchange + 'r>> {
        let carrier = match middleware {
            Middleware::Calls => PatternCarrier::Calls,
            Middleware::Posted => PatternCarrier::Posted,
            Middleware::Partitioned(policy) => PatternCarrier::Partitioned(policy.clone()),
            Middleware::Remote(_) => {
                let text = "remote access of patterns is not simulated: leave out --mode rma";
                return Err(Error::Usage(text.to_owned()));
            }
        };
        let seen = |list: &[Edge]| list.iter().map(PatternEdge::of).collect();
        let mut all = lock(&self.exchanges);
        all.push(PatternEdges {
            carrier,
            outs: seen(edges.outs()),
            ins: seen(edges.ins()),
        });
        Ok(Box::new(Recorded {
            recorder: self,
            number: all.len() - 1,
        }))
    }

    /// A thread computes.
    pub(crate) fn compute(&self, time: Duration) {
        self.note(PatternStep::Compute(time));
    }

    fn note(&self, step: PatternStep) {
        lock(&self.steps).push(step);
    }

    /// Takes what was called since the last time.
    pub(crate) fn take(&self) -> Vec<PatternStep> {
        std::mem::take(&mut *lock(&self.steps))
    }

    /// Returns the exchanges that were set up.
    pub(crate) fn exchanges(&self) -> Vec<PatternEdges> {
        lock(&self.exchanges).clone()
    }
}

impl PatternEdge {
    fn of(edge: &Edge) -> Self {
        Self {
            peer: edge.peer.as_u32(),
            number: edge.number,
            parts: edge.parts,
            len: edge.len,
        }
    }

    /// Returns it with so many times its bytes.
    pub(crate) const fn times(self, scale: usize) -> Self {
        Self {
            len: self.len * scale,
            ..self
        }
    }
}

/// An exchange whose calls are written down.
struct Recorded<'r> {
    recorder: &'r Recorder,
    number: usize,
}

impl Exchange for Recorded<'_> {
    fn start(&self) -> Result<()> {
        self.recorder.note(PatternStep::Start(self.number));
        Ok(())
    }

    fn ready(&self, edge: usize, part: u32) -> Result<()> {
        let exchange = self.number;
        let step = PatternStep::Ready {
            exchange,
            edge,
            part,
        };
        self.recorder.note(step);
        Ok(())
    }

    fn arrive(&self, edge: usize, part: u32) -> Result<()> {
        let exchange = self.number;
        let step = PatternStep::Arrive {
            exchange,
            edge,
            part,
        };
        self.recorder.note(step);
        Ok(())
    }

    fn finish_out(&self, _: usize) -> Result<()> {
        Err(single_ends())
    }

    fn finish_in(&self, _: usize) -> Result<()> {
        Err(single_ends())
    }

    fn finish(&self) -> Result<()> {
        self.recorder.note(PatternStep::Finish(self.number));
        Ok(())
    }
}

/// [`PatternStep`] has no end of one edge.
fn single_ends() -> Error {
    Error::Usage("rounds of single edges are not simulated".to_owned())
}

/// A thread that panicked has ended the test, so that what it left behind does not matter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
