//! What one rank was told, in order.

use tagwire_base::Rank;

use tagwire_transport::message::{
    AmHeader, Arrival, EndpointId, Outcome, PeerEvent, Token, Upcalls,
};

/// A message as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) from: EndpointId,
    pub(super) header: AmHeader,
    pub(super) bytes: Vec<u8>,
}

/// One upcall.
#[derive(Debug)]
pub(super) enum Entry {
    Up(EndpointId, Rank),
    Message(Message),
    Complete(Token, Outcome),
    Notice(u64),
    Left(EndpointId),
    Failed(EndpointId),
    Odd(String),
}

/// Writes down every upcall.
#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
}

impl Log {
    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Message(message) => Some(message),
            _ => None,
        })
    }

    pub(super) fn message_count(&self) -> usize {
        self.messages().count()
    }

    /// How the operation with `token` ended, each time that it was told.
    pub(super) fn outcomes(&self, token: Token) -> Vec<Outcome> {
        self.entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Complete(of, outcome) if *of == token => Some(*outcome),
                _ => None,
            })
            .collect()
    }

    pub(super) fn is_complete(&self, token: Token) -> bool {
        !self.outcomes(token).is_empty()
    }

    /// What puts have told.
    pub(super) fn notices(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Notice(immediate) => Some(*immediate),
            _ => None,
        })
    }

    /// The endpoint by which `rank` came, each time that it was told.
    pub(super) fn greetings(&self, rank: Rank) -> Vec<EndpointId> {
        self.entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Up(endpoint, who) if *who == rank => Some(*endpoint),
                _ => None,
            })
            .collect()
    }

    pub(super) fn count(&self, wanted: impl Fn(&Entry) -> bool) -> usize {
        self.entries.iter().filter(|entry| wanted(entry)).count()
    }

    /// What no transport reports whose peers are all correct.
    pub(super) fn oddity(&self) -> Option<&str> {
        self.entries.iter().find_map(|entry| match entry {
            Entry::Odd(what) => Some(what.as_str()),
            _ => None,
        })
    }
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.entries.push(Entry::Message(Message {
            from: arrival.from,
            header: arrival.header,
            bytes: arrival.payload.to_vec(),
        }));
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.entries.push(Entry::Complete(token, outcome));
    }

    fn notice(&mut self, immediate: u64) {
        self.entries.push(Entry::Notice(immediate));
    }

    fn peer(&mut self, event: PeerEvent) {
        self.entries.push(match event {
            PeerEvent::Up { endpoint, rank } => Entry::Up(endpoint, rank),
            PeerEvent::Left(endpoint) => Entry::Left(endpoint),
            PeerEvent::Failed(endpoint) => Entry::Failed(endpoint),
            PeerEvent::Protocol(endpoint, error) => Entry::Odd(format!("{endpoint:?}: {error}")),
            other => Entry::Odd(format!("{other:?}")),
        });
    }
}
