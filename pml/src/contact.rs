//! How ranks find each other's transport: by the bootstrap, on first contact.

use std::time::Duration;

use tagwire_base::{Bootstrap, Rank, Sequence};

use crate::error::{Error, Result};

/// How long a rank's address is waited for. Every rank publishes before any opens fully, so that
/// only a slow store makes this pass.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a rank that opens waits for the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenTimeout {
    /// Without a limit where the launcher reports the end of every rank, as `tagwire run` does; else
    /// [`OpenTimeout::DEFAULT`].
    Auto,
    /// So long.
    Limit(Duration),
}

impl OpenTimeout {
    /// The limit where nobody reports that a rank has ended.
    pub const DEFAULT: Duration = Duration::from_secs(30);

    fn of(self, bootstrap: &dyn Bootstrap) -> Duration {
        match self {
            Self::Limit(limit) => limit,
            Self::Auto if bootstrap.reports_ends() => Duration::MAX,
            Self::Auto => Self::DEFAULT,
        }
    }
}

/// Under which key a rank publishes its address. One for all, so that a rank of another stack is told so.
pub const KEY: &str = "transport";

/// What a rank speaks: a layer over a transport. Ranks understand each other where both agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    layer: &'static str,
    transport: &'static str,
    /// What messages between two ranks are counted from.
    first: Sequence,
}

impl Stack {
    /// That of `layer` over `transport`.
    #[must_use]
    pub const fn new(layer: &'static str, transport: &'static str) -> Self {
        Self {
            layer,
            transport,
            first: Sequence::new(0),
        }
    }

    /// The same, which counts messages from `first`.
    pub(crate) const fn counts_from(self, first: Sequence) -> Self {
        Self { first, ..self }
    }

    /// What a rank publishes: this, its length before it, and the address.
    #[must_use]
    pub fn card(self, address: &[u8]) -> Vec<u8> {
        let name = self.name();
        let mut card = vec![name.len() as u8];
        card.extend_from_slice(name.as_bytes());
        card.extend_from_slice(address);
        card
    }

    fn name(self) -> String {
        let own = format!("{} over {}", self.layer, self.transport);
        match self.first.as_u32() {
            0 => own,
            first => format!("{own} from {first}"),
        }
    }

    /// Publishes this rank's address, and waits until every rank of the job has done so.
    pub(crate) fn publish(
        self,
        bootstrap: &mut dyn Bootstrap,
        address: &[u8],
        timeout: OpenTimeout,
    ) -> Result<()> {
        bootstrap.put(KEY, &self.card(address))?;
        match bootstrap.fence(timeout.of(bootstrap)) {
            Err(tagwire_base::Error::FenceTimeout(limit)) => Err(Error::OpenTimeout(limit)),
            other => Ok(other?),
        }
    }

    /// The address that `rank` has published.
    pub(crate) fn address(self, bootstrap: &mut dyn Bootstrap, rank: Rank) -> Result<Vec<u8>> {
        let card = bootstrap.get(rank, KEY, ADDRESS_TIMEOUT)?;
        let (theirs, address) = card
            .split_first()
            .and_then(|(len, rest)| rest.split_at_checked(usize::from(*len)))
            .unwrap_or_default();
        let own = self.name();
        if theirs != own.as_bytes() {
            let theirs = String::from_utf8_lossy(theirs).into_owned();
            return Err(Error::OtherStack { rank, theirs, own });
        }
        Ok(address.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::bootstrap::LocalJob;

    use super::*;

    const OWN: Stack = Stack::new("ob1", "shm");

    #[test]
    fn ranks_that_differ_in_layer_or_transport_are_told_so() {
        for (layer, transport, well) in [
            ("ob1", "shm", true),
            ("cm", "shm", false),
            ("ob1", "ofi", false),
        ] {
            let job = LocalJob::new(2).unwrap();
            let theirs = Stack::new(layer, transport);
            let card = theirs.card(b"here");
            job.member(Rank::new(1)).put(KEY, &card).unwrap();
            match OWN.address(&mut job.member(Rank::new(0)), Rank::new(1)) {
                Ok(address) => assert!(well && address == b"here"),
                Err(error) => {
                    assert!(!well);
                    let text = error.to_string();
                    for part in ["rank 1", &theirs.name(), "ob1 over shm"] {
                        assert!(text.contains(part), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn whatever_a_rank_publishes_is_read_or_refused() {
        for card in [&[][..], &[0], &[255], &[13, 1, 2], &[12; 20]] {
            let job = LocalJob::new(2).unwrap();
            job.member(Rank::new(1)).put(KEY, card).unwrap();
            let address = OWN.address(&mut job.member(Rank::new(0)), Rank::new(1));
            assert!(address.is_err(), "{card:?}");
        }
    }
}
