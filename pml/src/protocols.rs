//! Which protocol carries messages of which length: what a layer decides for a peer when it first
//! meets it, told beforehand to people who ask.

use std::fmt;

use tagwire_base::Config;
use tagwire_base::config::parse::format_bytes;
use tagwire_transport::{Capabilities, Limits, MatchLimits, Preference};

use crate::ob1::Ob1Options;

/// How standard sends of some lengths travel. Lengths are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// The shortest message that travels so.
    pub from: u64,
    /// The longest; `None` where there is no longer one.
    pub to: Option<u64>,
    /// What happens to it.
    pub how: String,
}

impl Protocol {
    /// What ob1 does with messages to a peer that a transport, with these capabilities and limits, has this
    /// preference for. A contiguous buffer, and credit for what is eager, are taken for granted.
    #[must_use]
    pub fn of_ob1(
        config: &Config,
        capabilities: Capabilities,
        limits: &Limits,
        preference: Preference,
    ) -> Vec<Self> {
        let options = Ob1Options::from_config(config);
        crate::ob1::protocols(&options, capabilities, limits, preference)
    }

    /// What cm does over a transport that matches within these limits.
    #[must_use]
    pub fn of_cm(limits: &MatchLimits) -> Vec<Self> {
        let how = |length: u64| {
            if length <= limits.max_short as u64 {
                "eager: sent with its envelope, and over before a receive has matched".to_owned()
            } else if length <= limits.max_message {
                "the transport's own protocol; over when the transport needs the buffer no more"
                    .to_owned()
            } else {
                "refused: longer than the transport takes".to_owned()
            }
        };
        of_lengths(&[limits.max_short as u64, limits.max_message], how)
    }
}

/// The protocols between the `ends`, each the longest message of something, by what is `how` of a length.
pub(crate) fn of_lengths(ends: &[u64], how: impl Fn(u64) -> String) -> Vec<Protocol> {
    let mut ends: Vec<u64> = ends
        .iter()
        .copied()
        .filter(|end| *end < Limits::ENDLESS)
        .collect();
    ends.sort_unstable();
    ends.dedup();
    let mut all: Vec<Protocol> = Vec::new();
    let mut from = 0;
    for to in ends.into_iter().map(Some).chain([None]) {
        let how = how(to.unwrap_or(Limits::ENDLESS));
        match all.last_mut() {
            Some(last) if last.how == how => last.to = to,
            _ => all.push(Protocol { from, to, how }),
        }
        from = to.map_or(u64::MAX, |to| to + 1);
    }
    all
}

/// The lengths and what happens to them: `41 to 8K: eager, ...`.
impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = format_bytes(self.from);
        match self.to {
            Some(to) if to == self.from => write!(f, "{from}: {}", self.how),
            Some(to) => write!(f, "{from} to {}: {}", format_bytes(to), self.how),
            None => write!(f, "from {from}: {}", self.how),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(all: &[Protocol]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lengths_with_the_same_fate_are_one_line() {
        let how = |length: u64| if length <= 64 { "short" } else { "long" }.to_owned();
        let all = of_lengths(&[8, 64, 64, 1024, i64::MAX as u64], how);
        assert_eq!(lines(&all), ["0 to 64: short", "from 65: long"]);
    }

    #[test]
    fn what_no_transport_takes_is_said_to_be_refused() {
        let mut limits = MatchLimits::UNLIMITED;
        (limits.max_short, limits.max_message) = (1 << 10, 1 << 20);
        let all = Protocol::of_cm(&limits);
        let ends: Vec<_> = all.iter().map(|one| (one.from, one.to)).collect();
        assert_eq!(
            ends,
            [
                (0, Some(1 << 10)),
                (1025, Some(1 << 20)),
                ((1 << 20) + 1, None)
            ]
        );
        assert!(all[2].how.starts_with("refused"));
        for endless in [u64::MAX, i64::MAX as u64] {
            limits.max_message = endless;
            assert_eq!(Protocol::of_cm(&limits).len(), 2, "nothing is refused");
        }
    }
}
