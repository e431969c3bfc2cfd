//! `device-copy`: what a vector's copy from the device to the host takes, as one and in pieces.

use std::sync::mpsc::Receiver;

use super::engine::{Copy, Order};
use super::parts::parts;
use super::reduce::{Event, Trace, produced};
use crate::body::partitioned::now;
use crate::buffer::Memory;
use crate::error::Result;

/// Returns the copies of a vector of so many bytes in so many pieces; empty ones are left out.
pub(super) fn order(device: &Memory, host: &Memory, bytes: usize, count: usize) -> Order {
    let filled = parts(bytes, count).into_iter().enumerate();
    let filled = filled.filter(|(_, part)| !part.is_empty());
    let copy = |(number, part): (usize, std::ops::Range<usize>)| {
        let (from, to) = (device.outgoing(part.clone()), host.incoming(part));
        (number, Copy { from, to })
    };
    Order {
        input: None,
        parts: filled.map(copy).collect(),
    }
}

/// Waits until all pieces have come.
pub(super) fn wait(events: &Receiver<Event<'_>>) -> Result<Trace> {
    let trace = produced(events)?;
    let end = now();
    Ok(Trace {
        start: end,
        end,
        ..trace
    })
}
