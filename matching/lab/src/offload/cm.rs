//! What cm's transports count of the same traces, beside the model.

use serde::Serialize;
use tagwire_matching::Engines;

use super::Traffic;
use crate::error::Result;
use crate::real::{self, Plan, RealArgs, Way};

/// What a transport that matches counted, over the ranks of traces.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Counts {
    transport: String,
    /// Entries that were ever queued, and those that searches looked at; `None` where a library matches.
    receives_queued: Option<u64>,
    messages_queued: Option<u64>,
    looked: Option<u64>,
    /// The most that any rank had at once.
    most_receives: usize,
    most_messages: usize,
    most_bytes: usize,
    /// Messages that their senders kept back for want of room at the receiver.
    kept_back: u64,
    /// The most that waited at once outside of the receiver's lists.
    most_outside: usize,
    /// Long messages of which only the envelope was unexpected.
    fetched: u64,
}

/// Has real ranks under cm make the calls of traces.
///
/// # Errors
/// [`Error::Trace`](crate::Error::Trace) where the transport does not match or a setting is wrong, and for a call that cannot be made or
/// whose outcome is not that of the rules.
pub(super) fn count(traffic: &Traffic, ranks: &RealArgs, known: &Engines) -> Result<Counts> {
    let way = Way {
        layer: "cm",
        ..ranks.way()
    };
    let mut sum = Counts {
        transport: way.transport.to_owned(),
        ..Counts::default()
    };
    let ran = traffic.each(|trace| real::run(&Plan::new(trace)?, way, known))?;
    ran.iter().for_each(|ran| sum.add(ran));
    Ok(sum)
}

impl Counts {
    fn add(&mut self, ran: &real::Ran) {
        if let Some(stats) = ran.engine {
            for (sum, own) in [
                (&mut self.receives_queued, stats.posted.queued),
                (&mut self.messages_queued, stats.unexpected.queued),
                (&mut self.looked, stats.attempts()),
            ] {
                *sum = Some(sum.unwrap_or(0) + own);
            }
        }
        for (most, own) in [
            (&mut self.most_receives, ran.most.posted),
            (&mut self.most_messages, ran.most.unexpected),
            (&mut self.most_bytes, ran.most.unexpected_bytes),
            (&mut self.most_outside, ran.most.held),
        ] {
            *most = own.max(*most);
        }
        let counts = ran.counts.unwrap_or_default();
        self.kept_back += counts.kept_back;
        self.fetched += counts.fetched;
    }

    /// The counts as lines of a report.
    pub(super) fn to_text(&self) -> String {
        let told = |number: Option<u64>| {
            number.map_or_else(|| "-".to_owned(), |number| number.to_string())
        };
        format!(
            "# cm over {}: receives queued {}, at once {}; messages queued {}, at once {} with {} bytes; kept back by senders {}, \
             outside of the lists at once {}; fetched after the match {}; entries looked at {}\n",
            self.transport,
            told(self.receives_queued),
            self.most_receives,
            told(self.messages_queued),
            self.most_messages,
            self.most_bytes,
            self.kept_back,
            self.most_outside,
            self.fetched,
            told(self.looked),
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::apps::AppName;
    use crate::traffic::Model;

    fn ranks(settings: &[&str]) -> RealArgs {
        RealArgs::of("shm", settings)
    }

    fn traffic(app: &str) -> Traffic {
        let model: Model = "random:seed=3".parse().unwrap();
        Traffic::of_app(&AppName::parse(app).unwrap(), &model).unwrap()
    }

    /// cm over shared memory has the queues of the trace, however little room it has for unexpected messages: senders keep those
    /// for which there is none.
    #[test]
    fn cm_queues_what_the_trace_does_and_senders_keep_the_rest() {
        let traffic = traffic("storm:senders=4,messages=40");
        let known = Engines::default();
        let roomy = count(&traffic, &ranks(&[]), &known).unwrap();
        assert!(roomy.most_messages > 16, "{roomy:?}");
        assert_eq!((roomy.kept_back, roomy.most_outside), (0, 0), "{roomy:?}");
        let narrow = count(&traffic, &ranks(&["shm-headers=16"]), &known).unwrap();
        assert!(narrow.most_outside > 0, "{narrow:?}");
        assert!(narrow.most_messages < roomy.most_messages, "{narrow:?}");
        assert_eq!(
            narrow.most_messages + narrow.most_outside,
            roomy.most_messages
        );
        let text = narrow.to_text();
        assert!(
            text.starts_with("# cm over shm: receives queued "),
            "{text}"
        );
    }
}
