//! The tests of patterns.

use super::{Job, Sink, done};
use crate::environment::Used;
use crate::error::Result;
use crate::link::Message;
use crate::pattern::measure::{Target, measure};
use crate::port::partitioned::PartitionedPort;
use crate::port::profiled::Profiled;
use crate::port::window::Windows;
use crate::record::Row;

impl Job<'_> {
    /// Measures all sizes.
    pub(super) fn measure_pattern<P: PartitionedPort + Sync>(
        &self,
        port: &P,
        windows: Option<&dyn Windows>,
        used: &Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        match self.plan.profile {
            true => self.pattern_over(&Profiled::new(port), windows, used, sink),
            false => self.pattern_over(port, windows, used, sink),
        }
    }

    fn pattern_over<P: PartitionedPort + Sync>(
        &self,
        port: &P,
        windows: Option<&dyn Windows>,
        used: &Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        let leads = self.greet(port, used, sink)?;
        let row = |size| Row {
            oversubscribed: self.plan.callers_per_core > 1,
            ..self.row(self.plan.layers[0], size, port.size(), used)
        };
        let mut emit = |row: Row| sink(Message::Row(Box::new(row)));
        let mut target = Target {
            row: &row,
            emit: &mut emit,
        };
        measure(port, windows, self.plan, &mut target)?;
        self.report_profile(port, used, sink)?;
        done(leads, sink)
    }
}
