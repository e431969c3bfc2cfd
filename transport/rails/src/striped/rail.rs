//! One rail, and what names it.

use tagwire_transport::{ByteTransport, Lane};

/// The name in reports.
pub(super) const NAME: &str = "striped";

/// More rails than this are refused.
pub(super) const MOST: usize = 4;

/// All traffic is on one lane.
pub(super) const LANE: Lane = Lane(0);

/// One transport of the bundle.
pub(super) struct Rail {
    pub(super) transport: Box<dyn ByteTransport>,
}
