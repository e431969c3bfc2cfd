//! The protocols of ob1. A new one is a file, and a line in `protocols!`: before those that it is preferred to.

pub(super) mod eager;
pub(super) mod get;
pub(super) mod offer;
pub(super) mod push;
pub(super) mod put;
pub(super) mod synchronous;
pub(super) mod zero_copy;

use tagwire_transport::{Outcome, Payload, Ticket};

use super::common::Common;
use super::header::{Kind, RendezvousBody};
use super::link::Link;
use super::matcher::Place;
use super::path::{Entry, Path, ProtocolId, Sends, Terms};
use super::protocol::{Fallback, Launch, Packet, PacketKinds, Protocol, Step, Turn};
use crate::slab::Handle;
use crate::types::Failure;

macro_rules! protocols {
    ($($name:ident: $module:ident,)*) => {
        /// Where a request stands.
        ///
        /// The tag is a word of its own: one that the compiler hides in a field's unused values costs instructions in
        /// every message.
        #[derive(Debug)]
        #[repr(u32)]
        pub(super) enum State {
            /// Persistent, and not started; or a slot that is not in use.
            Inactive,
            /// A receive that is not matched.
            Posted(Place),
            /// A send that waits for its turn at its peer.
            Queued,
            /// Done; the status waits to be taken.
            Complete,
            $(
                /// Under way by this protocol.
                $name($module::$name),
            )*
        }

        /// The places of the protocols in the table.
        #[derive(Clone, Copy)]
        #[repr(u8)]
        enum Number {
            $($name,)*
        }

        /// All protocols, in the order of preference.
        const TABLE: &[Entry] = &[$(
            Entry {
                id: ProtocolId(Number::$name as u8),
                sends: <$module::$name as Protocol>::SENDS,
                serves: <$module::$name as Protocol>::serves,
            },
        )*];

        /// The names of the protocols.
        const NAMES: &[&str] = &[$(<$module::$name as Protocol>::NAME,)*];

        /// The packets of all protocols.
        const KINDS: &[PacketKinds] = &[$(<$module::$name as Protocol>::KINDS,)*];

        impl State {
            /// Returns the state of a send that is to be launched by a protocol.
            pub(super) fn new(id: ProtocolId) -> Self {
                $(
                    if id.0 == Number::$name as u8 {
                        return Self::$name(Protocol::NEW);
                    }
                )*
                unreachable!("the table has no other protocols")
            }

            /// Describes to the user how a contiguous message of `length` travels by a protocol.
            fn about(id: ProtocolId, terms: &Terms, length: usize) -> Option<String> {
                $(
                    if id.0 == Number::$name as u8 {
                        return <$module::$name as Protocol>::describe(terms, length);
                    }
                )*
                None
            }

            /// As [`Protocol::announced`], of the protocol that sends envelopes of `kind`; `None` also where none does.
            pub(super) fn announced(
                kind: Kind,
                body: &RendezvousBody,
                rest: Payload<'_>,
            ) -> Option<Self> {
                $(
                    if <$module::$name as Protocol>::KINDS.contains(&kind) {
                        return Protocol::announced(body, rest).map(Self::$name);
                    }
                )*
                None
            }

            /// As [`Protocol::launch`].
            pub(super) fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
                match self {
                    $(Self::$name(state) => state.launch(common, link),)*
                    _ => Launch::Declined,
                }
            }

            /// As [`Protocol::matched`].
            pub(super) fn matched(&mut self, common: &mut Common, turn: &mut Turn<'_>) -> Step {
                match self {
                    $(Self::$name(state) => state.matched(common, turn),)*
                    _ => Step::Wait,
                }
            }

            /// As [`Protocol::on_packet`]; `None` where the operation is under way by no protocol.
            pub(super) fn on_packet(
                &mut self,
                common: &mut Common,
                packet: Packet<'_>,
                turn: &mut Turn<'_>,
            ) -> Option<Step> {
                match self {
                    $(Self::$name(state) => Some(state.on_packet(common, packet, turn)),)*
                    _ => None,
                }
            }

            /// As [`Protocol::on_complete`].
            pub(super) fn on_complete(
                &mut self,
                common: &mut Common,
                outcome: Outcome,
                gone: Option<Failure>,
                turn: &mut Turn<'_>,
            ) -> Step {
                match self {
                    $(Self::$name(state) => state.on_complete(common, outcome, gone, turn),)*
                    _ => Step::Wait,
                }
            }

            /// As [`Protocol::advance`].
            pub(super) fn advance(
                &mut self,
                common: &mut Common,
                link: &mut Link<'_>,
                turn: &mut Turn<'_>,
            ) -> Step {
                match self {
                    $(Self::$name(state) => state.advance(common, link, turn),)*
                    _ => Step::Wait,
                }
            }

            /// As [`Protocol::abort`], for operations that are under way by a protocol or wait for their turn.
            pub(super) fn abort(&mut self, failure: Failure) -> Step {
                match self {
                    $(Self::$name(state) => state.abort(failure),)*
                    Self::Queued => Step::Done(Some(failure)),
                    Self::Inactive | Self::Posted(_) | Self::Complete => Step::Wait,
                }
            }

            /// Whether the message stays with its sender until it is matched.
            pub(super) fn is_rendezvous(&self) -> bool {
                match self {
                    $(Self::$name(_) => {
                        matches!(<$module::$name as Protocol>::SENDS, Sends::Rendezvous)
                    })*
                    _ => false,
                }
            }

            /// Describes for the dump what the operation waits for.
            pub(super) fn describe(&self) -> &'static str {
                match self {
                    $(Self::$name(state) => state.state(),)*
                    Self::Queued => "waits for credit or room",
                    Self::Posted(_) => "not matched",
                    Self::Inactive | Self::Complete => "at rest",
                }
            }
        }
    };
}

protocols! {
    ZeroCopy: zero_copy,
    Eager: eager,
    Synchronous: synchronous,
    Offer: offer,
    Get: get,
    Put: put,
    Push: push,
}

impl State {
    /// Returns the state of a receive of an eager message whose packets are arriving.
    pub(super) const STREAMING: Self = Self::Eager(eager::Eager::Receiving);

    /// Returns the state of a receive whose sender is to be asked for the bytes.
    pub(super) const fn ask(send: Handle) -> Self {
        Self::Offer(offer::Offer::ask(send))
    }

    /// Returns the state of a send that is to fill a receive.
    pub(super) const fn fill(target: Ticket) -> Self {
        Self::Offer(offer::Offer::Filling { target })
    }

    /// Returns the state of a receive that waited, whose memory may be filled just now, and that ends with `failure`.
    pub(super) const fn leaving(failure: Failure) -> Self {
        Self::Offer(offer::Offer::Leaving { failure })
    }

    /// Returns what a receive ends with whose memory may be filled just now.
    pub(super) const fn leaves(&self) -> Option<Failure> {
        match self {
            Self::Offer(offer::Offer::Leaving { failure }) => Some(*failure),
            _ => None,
        }
    }

    /// The memory of a receive that has its envelope is being filled, or has been.
    pub(super) fn is_filled(&mut self) {
        if let Self::Offer(offer) = self {
            offer.is_filled();
        }
    }

    /// Returns the ticket of a send that its receiver may claim, and has not asked about.
    pub(super) const fn open_offer(&mut self) -> Option<&mut Ticket> {
        match self {
            Self::Offer(offer::Offer::Offered {
                ticket,
                asked: None,
            }) => Some(ticket),
            _ => None,
        }
    }

    /// Returns the state of a send whose envelope went alone.
    pub(super) const ANNOUNCED: Self = Self::Offer(offer::Offer::Announced);

    /// Whether the envelope of this send went alone, and nobody has asked for the bytes.
    pub(super) const fn is_unasked(&self) -> bool {
        matches!(self, Self::Offer(offer::Offer::Announced))
    }

    /// Whether a peer, the transport or the matcher still has something to do.
    #[inline]
    pub(super) const fn is_active(&self) -> bool {
        !matches!(self, Self::Inactive | Self::Complete)
    }
}

impl From<Fallback> for State {
    fn from(fallback: Fallback) -> Self {
        Self::Push(fallback.into())
    }
}

/// Returns the tables of a peer. The protocol called `preferred` is tried before the others, where there is one.
pub(super) fn path(terms: Terms, preferred: &str) -> Path {
    let mut table = TABLE.to_vec();
    table.sort_by_key(|entry| NAMES[usize::from(entry.id.0)] != preferred);
    Path::new(terms, &table)
}

/// Describes to the user how a contiguous standard message of `length` travels to a peer.
pub(super) fn describe(path: &Path, length: usize) -> String {
    // The first that carries messages from any memory.
    let protocols = path.choose(length, false, true).iter();
    let mut described = protocols.filter_map(|id| State::about(*id, &path.terms, length));
    described.next().unwrap_or_default()
}

/// Whether packets of `kind` are a protocol's.
pub(super) fn is_known(kind: Kind) -> bool {
    KINDS.iter().any(|kinds| kinds.contains(&kind))
}

/// Returns the packets of all protocols.
#[cfg(test)]
pub(super) fn kinds() -> impl Iterator<Item = Kind> {
    KINDS.iter().copied().flatten().copied()
}
