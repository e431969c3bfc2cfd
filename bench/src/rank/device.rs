//! The tests whose vectors come from a device.

use super::{Job, Sink, done};
use crate::device::measure::measure;
use crate::environment::Used;
use crate::error::Result;
use crate::link::Message;
use crate::pattern::measure::Target;
use crate::port::Port;
use crate::record::Row;

impl Job<'_> {
    /// Measures all sizes.
    pub(super) fn measure_device<P: Port>(
        &self,
        port: &P,
        used: &Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        let leads = self.greet(port, used, sink)?;
        let row = |size| self.row(self.plan.layers[0], size, port.size(), used);
        let mut emit = |row: Row| sink(Message::Row(Box::new(row)));
        let mut target = Target {
            row: &row,
            emit: &mut emit,
        };
        measure(port, self.plan, &mut target)?;
        done(leads, sink)
    }
}
