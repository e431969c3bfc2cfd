//! What a test has on its rank.

use tagwire_base::Rank;

use super::blocks::Sample;
use crate::args::{Begin, MemoryChoice};
use crate::body::Traffic;
use crate::buffer::Memory;
use crate::error::{Error, Result};
use crate::load::Load;
use crate::plan::Plan;
use crate::port::Port;
use crate::record::Row;
use crate::units::Unit;

/// A rank's part in a test of callers.
pub(crate) struct Run<'a, P: Port> {
    pub port: &'a P,
    plan: &'a Plan,
    unit: Unit,
    /// A row of a size with everything but figures.
    row: &'a dyn Fn(usize) -> Row,
    emit: &'a mut dyn FnMut(Row) -> Result<()>,
}

impl<'a, P: Port> Run<'a, P> {
    pub(crate) fn new(
        port: &'a P,
        plan: &'a Plan,
        row: &'a dyn Fn(usize) -> Row,
        emit: &'a mut dyn FnMut(Row) -> Result<()>,
    ) -> Result<Self> {
        let unit = plan.unit;
        Ok(Self {
            port,
            plan,
            unit: unit.ok_or_else(|| Error::Usage("a plan without a unit".to_owned()))?,
            row,
            emit,
        })
    }

    pub(crate) const fn plan(&self) -> &'a Plan {
        self.plan
    }

    pub(crate) const fn unit(&self) -> Unit {
        self.unit
    }

    /// Whether this is rank 0, which leads and reports.
    pub(crate) fn leads(&self) -> bool {
        self.port.rank().as_u32() == 0
    }

    /// How many callers this process has.
    pub(crate) fn callers(&self) -> u32 {
        if self.unit.is_threads() {
            self.unit.count
        } else {
            1
        }
    }

    /// The message sizes.
    pub(crate) fn sizes(&self) -> Result<Vec<usize>> {
        self.plan.largest()?;
        let sizes = self.plan.sizes.iter();
        // All sizes fit where the largest does.
        Ok(sizes
            .filter_map(|&size| usize::try_from(size).ok())
            .collect())
    }

    /// What validation draws its patterns from; `None` without.
    pub(crate) fn seed(&self) -> Option<u64> {
        self.plan.validate.then_some(self.plan.seed)
    }

    /// Memory for messages, from where the plan says.
    pub(crate) fn memory(&self, len: usize) -> Result<Memory> {
        if self.plan.memory != Some(MemoryChoice::Arena) || len == 0 {
            return Memory::new(len);
        }
        let memory = self.port.allocate(len)?;
        let needed = len as u64;
        memory.map(Memory::of).ok_or(Error::Arena { needed })
    }

    /// The buffers of a caller for messages of at most `largest` bytes, one at a time.
    pub(crate) fn traffic(
        &self,
        thread: u32,
        largest: usize,
        seed: Option<u64>,
    ) -> Result<Traffic> {
        let rank = self.port.rank();
        Traffic::new(rank, thread, largest, 1, seed, |len| self.memory(len))
    }

    /// A row of a size with everything but figures.
    pub(crate) fn row(&self, size: usize, load: &Load) -> Row {
        let mut row = (self.row)(size);
        row.load = Some(load.ranks.clone());
        load.add_to(&mut row.figures);
        row
    }

    /// A row of a sample with everything but its figures.
    pub(super) fn row_of(&self, sample: &Sample) -> Row {
        let mut row = self.row(sample.size, &sample.load);
        (row.iterations, row.repetitions) = (sample.iterations, sample.repetitions);
        let is_staggered = self.plan.concurrent.start == Begin::Staggered;
        row.start = is_staggered.then(|| "staggered".to_owned());
        row
    }

    /// Reports a row.
    pub(crate) fn emit(&mut self, row: Row) -> Result<()> {
        (self.emit)(row)
    }
}

/// The other rank of a pair of neighbours.
pub(crate) const fn partner(rank: Rank) -> Rank {
    Rank::new(rank.as_u32() ^ 1)
}

/// Whether a rank of a pair sends.
pub(crate) const fn sends(rank: Rank) -> bool {
    rank.as_u32().is_multiple_of(2)
}
