//! Eager messages in one packet of which the transport copies nothing.

use std::ops::RangeInclusive;

use tagwire_transport::Post;

use crate::ob1::common::Common;
use crate::ob1::header::Kind;
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::protocol::{Launch, PacketKinds, Protocol, Step};
use crate::types::Failure;

/// The shortest message that is sent without a copy: what is shorter is copied in less time than it takes to look
/// after its end.
pub(in crate::ob1) const SHORTEST: usize = 4 << 10;

/// A send whose message is out, and its buffer with the transport.
#[derive(Debug)]
pub(in crate::ob1) struct ZeroCopy;

impl Protocol for ZeroCopy {
    const NAME: &'static str = "zero-copy";
    const NEW: Self = Self;
    const SENDS: Sends = Sends::Eager;
    const KINDS: PacketKinds = &[];

    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>> {
        Some(SHORTEST..=terms.zero_copy)
    }

    fn describe(_: &Terms, _: usize) -> Option<String> {
        Some("eager, in one packet that the transport sends from the buffer".to_owned())
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        if common.send_buffer().region().is_none() {
            return Launch::Declined;
        }
        match link.send_zero_copy(Kind::MATCH, common) {
            Post::Posted => Launch::Out,
            Post::Busy => Launch::Busy,
            Post::Gone => Launch::Lost,
            // Not this buffer.
            Post::Unsupported => Launch::Declined,
        }
    }

    fn abort(&mut self, _: Failure) -> Step {
        Step::Wait
    }

    fn state(&self) -> &'static str {
        "its bytes are leaving"
    }
}
