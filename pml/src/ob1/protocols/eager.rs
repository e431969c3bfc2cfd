//! Eager messages: the bytes follow the envelope at once, in packets, and are kept by the receiver when no receive is
//! posted.

use std::ops::RangeInclusive;

use tagwire_base::config::parse::format_bytes;
use tagwire_transport::Post;

use crate::ob1::common::Common;
use crate::ob1::header::Kind;
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::protocol::{Launch, PacketKinds, Protocol};

impl Kind {
    /// An eager message, whole.
    pub(in crate::ob1) const MATCH: Self = Self::envelope(1);
    /// The first packet of an eager message; `length` is the message's.
    pub(in crate::ob1) const HEAD: Self = Self::envelope(2);
    /// More bytes of the eager message that the last [`HEAD`](Self::HEAD) began.
    pub(in crate::ob1) const BODY: Self = Self::envelope(3);
}

/// An eager message under way.
#[derive(Debug)]
pub(in crate::ob1) enum Eager {
    /// A send, of which so many bytes are out.
    Sending { moved: usize },
    /// A receive whose packets are arriving.
    Receiving,
}

impl Protocol for Eager {
    const NAME: &'static str = "eager";
    const NEW: Self = Self::Sending { moved: 0 };
    const SENDS: Sends = Sends::Eager;
    const KINDS: PacketKinds = &[Kind::MATCH, Kind::HEAD, Kind::BODY];

    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>> {
        Some(0..=terms.eager)
    }

    fn describe(terms: &Terms, length: usize) -> Option<String> {
        Some(if length <= terms.inline {
            "eager, beside its header".to_owned()
        } else if length <= terms.at_once {
            "eager, in one packet".to_owned()
        } else {
            let packet = format_bytes(terms.packet as u64);
            format!("eager, in packets of {packet}")
        })
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        let Self::Sending { moved } = self else {
            debug_assert!(false, "a receive is not launched");
            return Launch::Declined;
        };
        let length = common.wanted;
        let before = link.posted();
        let terms = link.terms();
        let packet = match length > terms.eager {
            true => terms.ahead,
            false => terms.packet,
        };
        loop {
            let end = length.min(*moved + packet);
            let kind = match (*moved == 0, end == length) {
                (true, true) => Kind::MATCH,
                (true, false) => Kind::HEAD,
                (false, _) => Kind::BODY,
            };
            match link.send_eager(kind, common, *moved..end) {
                Post::Posted if end == length => return Launch::Complete,
                Post::Posted => *moved = end,
                Post::Busy if *moved == 0 => return Launch::Busy,
                Post::Busy => {
                    let moved = link.posted() > before;
                    return Launch::Begun { moved };
                }
                Post::Gone | Post::Unsupported => return Launch::Lost,
            }
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self::Sending { .. } => "packets are leaving",
            Self::Receiving => "packets are arriving",
        }
    }
}
