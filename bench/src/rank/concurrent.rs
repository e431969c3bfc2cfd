//! The tests that compare processes with threads.

use super::{Job, Sink, done};
use crate::concurrent::{self, Run};
use crate::environment::Used;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::plan::Carrier;
use crate::port::Port;
use crate::record::Row;

impl Job<'_> {
    /// Refuses a number of ranks that the test cannot use.
    pub(super) fn check_ranks(&self, ranks: u32) -> Result<()> {
        let (test, wanted) = (self.plan.test, self.plan.ranks);
        if let Some(pattern) = &self.plan.pattern {
            return crate::pattern::check_ranks(pattern, ranks);
        }
        if let Some(device) = &self.plan.device {
            device.group_among(ranks)?;
        }
        match self.plan.unit {
            None => crate::args::check_ranks(test, ranks),
            Some(_) if ranks == wanted => Ok(()),
            Some(unit) => Err(Error::Usage(format!(
                "{test} on {unit} has {wanted} ranks, not {ranks}"
            ))),
        }
    }

    /// Whether the test needs a session at level single beside its own.
    pub(super) fn needs_single(&self) -> bool {
        let test = concurrent::of(self.plan.test);
        let is_ours = matches!(self.plan.carrier, Carrier::Ours(_));
        is_ours && !self.plan.opens_only && test.is_some_and(|test| test.sessions)
    }

    /// Measures all sizes.
    pub(super) fn measure_concurrent<P: Port + Sync>(
        &self,
        port: &P,
        single: Option<&P>,
        used: &Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        let leads = self.greet(port, used, sink)?;
        let plan = self.plan;
        let row = |size| Row {
            unit: plan.unit.map(|unit| unit.to_string()),
            progress: plan.progress.map(|by| by.as_str().to_owned()),
            threads: Some(plan.threads),
            oversubscribed: plan.callers_per_core > 1,
            window: None,
            ..self.row(plan.layers[0], size, port.size(), used)
        };
        let mut emit = |row: Row| sink(Message::Row(Box::new(row)));
        concurrent::measure(&mut Run::new(port, plan, &row, &mut emit)?, single)?;
        done(leads, sink)
    }
}
