//! One rail, and what names it.

use tagwire_transport::{ByteTransport, Lane};

/// The name in reports.
pub(super) const NAME: &str = "striped";

/// More rails than this are refused.
pub(super) const MOST: usize = 4;

/// Where a retained buffer's number has its rail: below the bits that a mixture around this uses.
pub(super) const RAIL_SHIFT: u32 = 58;

/// The rail of buffers that are kept here.
pub(super) const OWN: u64 = 7;

/// All traffic is on one lane.
pub(super) const LANE: Lane = Lane(0);

/// One transport of the bundle.
pub(super) struct Rail {
    pub(super) transport: Box<dyn ByteTransport>,
}
