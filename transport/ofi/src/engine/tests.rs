//! What peers tell that no correct one does. Skipped, loudly, where there is no libfabric.

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_transport::{Arrival, Disposition, EndpointId, Error, Outcome, PeerEvent, Post, Token};

use super::{Engine, Sink};
use crate::config::OfiOptions;
use crate::open::{Use, open_info};
use crate::wire::Kind;

#[derive(Default)]
struct Events(Vec<PeerEvent>);

impl Sink for Events {
    fn deliver(&mut self, _: Arrival<'_>) -> Disposition {
        Disposition::Released
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, event: PeerEvent) {
        self.0.push(event);
    }
}

#[test]
fn answers_to_no_goodbye_end_contact() {
    let options = OfiOptions {
        provider: "tcp;ofi_rxm".to_owned(),
        source: "127.0.0.1".to_owned(),
        ..OfiOptions::default()
    };
    let job = LocalJob::new(2).unwrap();
    let [mut one, mut two] = match open_info(&options, 2, Use::Bytes) {
        Ok(_) => [0, 1].map(|rank| {
            let info = open_info(&options, 2, Use::Bytes).unwrap();
            Engine::open(info, &options, &job.member(Rank::new(rank))).unwrap()
        }),
        Err(error) => return println!("SKIPPED: {error}"),
    };
    let to: EndpointId = one.connect(Rank::new(1), &two.address()).unwrap();
    let mut events = Events::default();
    while one.post_own(to, Kind::GoodbyeHeard, 0) == Post::Busy {
        one.progress(&mut Events::default());
        two.progress(&mut events);
    }
    let breach = |event: &PeerEvent| match event {
        PeerEvent::Protocol(Some(_), Error::Protocol { reason, .. }) => {
            reason.contains("not asked for")
        }
        _ => false,
    };
    while !events.0.iter().any(breach) {
        one.progress(&mut Events::default());
        two.progress(&mut events);
    }
}
