//! What peers and strangers have done that no rank of the job does, in the log.

use tagwire_base::log::is_logged;
use tagwire_transport::{EndpointId, Error};

/// Messages of strangers that are logged, each of them.
const EACH: u64 = 16;

/// What was logged.
#[derive(Debug, Default)]
pub(crate) struct Offences {
    /// Messages of strangers that the transport has refused.
    refused: u64,
}

impl Offences {
    /// Logs what has ended contact with the peer of `endpoint`, or, without one, what the transport has refused: the first of these, and
    /// then those by which their number has doubled. A stranger that sends many fills no log.
    #[cold]
    pub(crate) fn log(&mut self, endpoint: Option<EndpointId>, error: &Error) {
        if endpoint.is_some() {
            tracing::error!("{error}");
            return;
        }
        self.refused += 1;
        if is_logged(self.refused, EACH) {
            tracing::error!(refused = self.refused, "{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use tagwire_base::Rank;
    use tracing::span::{Attributes, Id, Record};
    use tracing::subscriber::with_default;
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Counts lines.
    #[derive(Clone, Default)]
    struct Counting(Arc<AtomicU64>);

    impl Subscriber for Counting {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn what_strangers_send_fills_no_log() {
        let error = Error::Protocol {
            transport: "test",
            peer: Rank::new(Rank::MAX),
            reason: "a stranger".to_owned(),
        };
        let (counting, mut offences) = (Counting::default(), Offences::default());
        let lines = || counting.0.load(Ordering::Relaxed);
        with_default(counting.clone(), || {
            (0..100_000).for_each(|_| offences.log(None, &error));
            // Those from 32 on that are powers of two.
            assert_eq!(lines(), EACH + 12);
            (0..10).for_each(|number| offences.log(Some(EndpointId(number)), &error));
            assert_eq!(lines(), EACH + 22, "each peer's is said");
        });
    }
}
