//! The match lists of one rank: receives that wait for messages, messages that wait for receives.

use std::collections::{BTreeMap, VecDeque};

use tagwire_base::Rank;

use super::config::MatchOptions;
use crate::picture::Noted;
use tagwire_transport::data::{ReadRegion, WriteRegion};
use tagwire_transport::matching::{ClaimId, MatchEnvelope, MatchPattern};
use tagwire_transport::message::Token;

/// Where a message's bytes are.
#[derive(Debug)]
pub(super) enum Content {
    /// Copied when it was sent.
    Kept(Box<[u8]>),
    /// With the sender, who has lent them.
    Lent(ReadRegion),
    /// Nowhere: the sender is gone.
    Lost,
}

/// A message that no receive has taken.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) envelope: MatchEnvelope,
    pub(super) content: Content,
    /// What the sender hears of the end under.
    pub(super) notice: Option<Token>,
    /// The receiver has no room for the envelope: it counts as the sender's.
    pub(super) held: bool,
    /// Its place in a picture, until it is taken.
    pub(super) noted: Option<Noted>,
}

impl Message {
    /// How many bytes of payload the receiver keeps.
    pub(super) fn kept(&self) -> usize {
        match &self.content {
            Content::Kept(bytes) => bytes.len(),
            _ => 0,
        }
    }

    /// Whether it is longer than what is copied when it is sent, and its sender has its bytes.
    pub(super) fn is_long(&self, options: &MatchOptions) -> bool {
        matches!(self.content, Content::Lent(_)) && self.envelope.length > options.max_short as u64
    }

    /// How many bytes of payload travel with the envelope, where long messages travel `whole`.
    pub(super) fn travelling(&self, whole: bool) -> usize {
        match &self.content {
            Content::Lent(bytes) if whole => bytes.len(),
            _ => self.kept(),
        }
    }

    /// Whether its bytes are in memory that `rank` has lent.
    pub(super) fn is_lent_by(&self, rank: Rank) -> bool {
        self.envelope.source == rank && matches!(self.content, Content::Lent(_))
    }
}

/// A posted receive.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) pattern: MatchPattern,
    pub(super) target: WriteRegion,
    pub(super) token: Token,
}

/// One rank's lists, and what they cost it. Searches are plain walks: this is the network that
/// others are compared with.
#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) posted: VecDeque<Receive>,
    pub(super) unexpected: VecDeque<Message>,
    pub(super) claimed: BTreeMap<u64, Message>,
    next_claim: u64,
    /// Envelopes and bytes of messages that are under way to this rank or unexpected.
    pub(super) envelopes: usize,
    pub(super) bytes: usize,
}

impl Lists {
    /// Whether there is room for another envelope, and for `len` bytes with it.
    pub(super) fn has_room(&self, options: &MatchOptions, len: usize) -> bool {
        self.envelopes < options.unexpected_messages
            && self.bytes.saturating_add(len) <= options.unexpected_bytes
    }

    /// Counts a message that was sent to this rank.
    pub(super) fn charge(&mut self, message: &Message) {
        if !message.held {
            self.envelopes += 1;
            self.bytes += message.kept();
        }
    }

    /// A message is not in the lists any more.
    pub(super) fn refund(&mut self, message: &Message) {
        if !message.held {
            self.envelopes -= 1;
            self.bytes -= message.kept();
        }
    }

    /// Takes out the earliest receive that accepts `envelope`.
    pub(super) fn take_receive(&mut self, envelope: &MatchEnvelope) -> Option<Receive> {
        let place = self
            .posted
            .iter()
            .position(|receive| receive.pattern.accepts(envelope))?;
        self.posted.remove(place)
    }

    /// The earliest unexpected message that `pattern` accepts.
    pub(super) fn find(&self, pattern: &MatchPattern) -> Option<&Message> {
        self.unexpected
            .iter()
            .find(|message| pattern.accepts(&message.envelope))
    }

    /// Takes out the earliest unexpected message that `pattern` accepts.
    pub(super) fn take_message(&mut self, pattern: &MatchPattern) -> Option<Message> {
        let place = self
            .unexpected
            .iter()
            .position(|message| pattern.accepts(&message.envelope))?;
        self.unexpected.remove(place)
    }

    /// Puts a message where only its name finds it.
    pub(super) fn claim(&mut self, message: Message) -> ClaimId {
        self.next_claim += 1;
        self.claimed.insert(self.next_claim, message);
        ClaimId(self.next_claim)
    }

    /// Forgets the messages whose bytes `peer` has lent, who is gone; but those claimed are only
    /// lost. Returns what `peer` would have heard of.
    pub(super) fn forget_lent_by(&mut self, peer: Rank) -> Vec<Token> {
        let mut notices = Vec::new();
        let mut kept = VecDeque::with_capacity(self.unexpected.len());
        for message in std::mem::take(&mut self.unexpected) {
            if message.is_lent_by(peer) {
                self.refund(&message);
                notices.extend(message.notice);
            } else {
                kept.push_back(message);
            }
        }
        self.unexpected = kept;
        for message in self.claimed.values_mut() {
            if message.is_lent_by(peer) {
                message.content = Content::Lost;
                notices.extend(message.notice.take());
            }
        }
        notices
    }
}
