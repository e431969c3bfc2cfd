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

/// An eager message that leaves its buffer.
#[derive(Debug)]
pub(in crate::ob1) enum ZeroCopy {
    /// A send that is to be launched.
    New,
    /// A send whose message is out, and its buffer with the transport.
    Leaving,
}

impl Protocol for ZeroCopy {
    const NAME: &'static str = "zero-copy";
    const NEW: Self = Self::New;
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
            Post::Posted => {
                *self = Self::Leaving;
                Launch::Out
            }
            Post::Busy => Launch::Busy,
            Post::Gone => Launch::Lost,
            // Not this buffer.
            Post::Unsupported => Launch::Declined,
        }
    }

    fn abort(&mut self, failure: Failure) -> Step {
        match self {
            Self::New => Step::Done(Some(failure)),
            Self::Leaving => Step::Wait,
        }
    }

    fn state(&self) -> &'static str {
        "its bytes are leaving"
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::Rank;

    use super::*;

    /// A buffer that the transport never got does not wait for the transport.
    #[test]
    fn what_the_transport_has_not_taken_ends_with_the_peer() {
        let failure = Failure::PeerFailed(Rank::new(1));
        assert_eq!(ZeroCopy::New.abort(failure), Step::Done(Some(failure)));
        assert_eq!(ZeroCopy::Leaving.abort(failure), Step::Wait);
    }
}
