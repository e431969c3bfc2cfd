//! Which protocols carry messages of which length to a peer: a table that is made once for each peer.

use std::ops::RangeInclusive;

use tagwire_transport::{AmHeader, Capabilities};

/// Most bytes of messages that leave together: their receiver is to begin while their sender goes on.
pub(super) const FULL: usize = 8 << 10;

/// Length of a message's header among messages that leave together.
pub(super) const HEADER: usize = size_of::<AmHeader>();

/// What the table follows from: the transport's limits and preference, and the user's settings. Lengths are in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    /// Most payload in one packet.
    pub packet: usize,
    /// The longest message that is sent before it is matched.
    pub eager: usize,
    /// The longest of these that goes in one packet.
    pub at_once: usize,
    /// Most payload in one packet of a longer message that [goes ahead](tagwire_transport::CooperativeTransfers::goes_ahead) of its match.
    pub ahead: usize,
    /// The longest message that shares its header's slot.
    pub inline: usize,
    /// The longest message that goes in one packet without a copy; 0 where none does.
    pub zero_copy: usize,
    /// The longest message that may wait for others; 0 where none may.
    pub coalesce: usize,
    /// Most bytes of messages that leave together.
    pub batch: usize,
    /// The longest piece of one get or put.
    pub piece: usize,
    /// What the transport can do with this peer.
    pub capabilities: Capabilities,
}

impl Default for Terms {
    /// Returns the terms with a peer that is not connected: nothing can be sent.
    fn default() -> Self {
        Self {
            packet: 0,
            eager: 0,
            at_once: 0,
            ahead: 0,
            inline: 0,
            zero_copy: 0,
            coalesce: 0,
            batch: 0,
            piece: 0,
            capabilities: Capabilities::empty(),
        }
    }
}

/// Names a protocol in the tables of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ProtocolId(pub u8);

/// The sends that a protocol is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sends {
    /// Those that are complete before they match, where the receiver has granted so many bytes.
    Eager,
    /// Short ones that are complete when they match; the same.
    Synchronous,
    /// All: the bytes stay with the sender until the message is matched.
    Rendezvous,
}

/// A protocol, as the table sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub id: ProtocolId,
    pub sends: Sends,
    /// Returns the lengths that the protocol can carry on these terms.
    pub serves: fn(&Terms) -> Option<RangeInclusive<usize>>,
}

/// The protocols for a range of lengths, in the order in which they are tried.
#[derive(Debug)]
struct Row {
    longest: usize,
    protocols: Box<[ProtocolId]>,
}

/// The tables of one peer.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub terms: Terms,
    eager: Vec<Row>,
    synchronous: Vec<Row>,
    rendezvous: Vec<Row>,
}

impl Path {
    /// Makes the tables of `protocols`, of which earlier ones are preferred.
    pub(super) fn new(terms: Terms, protocols: &[Entry]) -> Self {
        let table = |sends| {
            let entries = protocols.iter().filter(|entry| entry.sends == sends);
            rows(&terms, entries)
        };
        Self {
            terms,
            eager: table(Sends::Eager),
            synchronous: table(Sends::Synchronous),
            rendezvous: table(Sends::Rendezvous),
        }
    }

    /// Returns the protocols for a message of `length`, in the order in which they are to be tried. `has_credit` where its
    /// receiver has granted so many bytes.
    pub(super) fn choose(
        &self,
        length: usize,
        synchronous: bool,
        has_credit: bool,
    ) -> &[ProtocolId] {
        let table = match synchronous {
            true => &self.synchronous,
            false => &self.eager,
        };
        if has_credit && let Some(protocols) = find(table, length) {
            return protocols;
        }
        find(&self.rendezvous, length).unwrap_or_default()
    }

    /// Returns the lengths after which the protocols of standard sends change.
    pub(super) fn ends(&self) -> impl Iterator<Item = usize> {
        let rows = self.eager.iter().chain(&self.rendezvous);
        rows.map(|row| row.longest)
    }
}

/// Returns the protocols of a table for a message of `length`, where it has any.
fn find(rows: &[Row], length: usize) -> Option<&[ProtocolId]> {
    let row = rows.get(rows.partition_point(|row| row.longest < length))?;
    (!row.protocols.is_empty()).then_some(&row.protocols)
}

/// Returns the table of `entries`: a row ends where a protocol begins or ends to serve.
fn rows<'a>(terms: &Terms, entries: impl Iterator<Item = &'a Entry>) -> Vec<Row> {
    let serving: Vec<_> = entries
        .filter_map(|entry| Some((entry.id, (entry.serves)(terms)?)))
        .filter(|(_, lengths)| !lengths.is_empty())
        .collect();
    let mut ends: Vec<usize> = serving
        .iter()
        .flat_map(|(_, lengths)| [lengths.start().checked_sub(1), Some(*lengths.end())])
        .flatten()
        .collect();
    ends.sort_unstable();
    ends.dedup();
    let row = |longest| Row {
        longest,
        protocols: serving
            .iter()
            .filter(|(_, lengths)| lengths.contains(&longest))
            .map(|(id, _)| *id)
            .collect(),
    };
    ends.into_iter().map(row).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SHORT: ProtocolId = ProtocolId(0);
    const MIDDLE: ProtocolId = ProtocolId(1);
    const WAITS: ProtocolId = ProtocolId(2);
    const LONG: ProtocolId = ProtocolId(3);
    const NEVER: ProtocolId = ProtocolId(4);

    const PROTOCOLS: [Entry; 5] = [
        Entry {
            id: MIDDLE,
            sends: Sends::Eager,
            serves: |terms| Some(terms.inline..=terms.zero_copy),
        },
        Entry {
            id: SHORT,
            sends: Sends::Eager,
            serves: |terms| Some(0..=terms.eager),
        },
        Entry {
            id: WAITS,
            sends: Sends::Synchronous,
            serves: |terms| Some(0..=terms.packet),
        },
        Entry {
            id: NEVER,
            sends: Sends::Rendezvous,
            serves: |_| None,
        },
        Entry {
            id: LONG,
            sends: Sends::Rendezvous,
            serves: |_| Some(0..=usize::MAX),
        },
    ];

    fn path(inline: usize, zero_copy: usize, eager: usize, packet: usize) -> Path {
        let terms = Terms {
            packet,
            eager,
            inline,
            zero_copy,
            ..Terms::default()
        };
        Path::new(terms, &PROTOCOLS)
    }

    #[test]
    fn the_preferred_protocol_is_first_and_others_follow() {
        let path = path(10, 20, 100, 50);
        assert_eq!(path.choose(9, false, true), [SHORT]);
        assert_eq!(path.choose(10, false, true), [MIDDLE, SHORT]);
        assert_eq!(path.choose(20, false, true), [MIDDLE, SHORT]);
        assert_eq!(path.choose(21, false, true), [SHORT]);
        assert_eq!(path.choose(101, false, true), [LONG]);
        assert_eq!(path.choose(usize::MAX, false, true), [LONG]);
    }

    #[test]
    fn without_credit_and_for_synchronous_sends_there_is_the_rest() {
        let path = path(10, 20, 100, 50);
        assert_eq!(path.choose(0, false, false), [LONG]);
        assert_eq!(path.choose(50, true, true), [WAITS]);
        assert_eq!(path.choose(50, true, false), [LONG]);
        assert_eq!(path.choose(51, true, true), [LONG]);
    }

    #[test]
    fn who_is_not_connected_has_no_protocols() {
        assert!(Path::default().choose(0, false, true).is_empty());
    }

    proptest! {
        #[test]
        fn each_length_has_those_that_serve_it(
            inline in 0..40_usize,
            zero_copy in 0..40_usize,
            eager in 0..40_usize,
            packet in 0..40_usize,
            length in 0..40_usize,
            synchronous: bool,
            has_credit: bool,
        ) {
            let path = path(inline, zero_copy, eager, packet);
            let serves = |sends| {
                let entries = PROTOCOLS.iter().filter(move |entry| entry.sends == sends);
                let serving = entries.filter(|entry| {
                    (entry.serves)(&path.terms).is_some_and(|lengths| lengths.contains(&length))
                });
                serving.map(|entry| entry.id).collect::<Vec<_>>()
            };
            let early = match (has_credit, synchronous) {
                (false, _) => Vec::new(),
                (true, true) => serves(Sends::Synchronous),
                (true, false) => serves(Sends::Eager),
            };
            let expected = if early.is_empty() { serves(Sends::Rendezvous) } else { early };
            prop_assert_eq!(path.choose(length, synchronous, has_credit), expected);
        }
    }
}
