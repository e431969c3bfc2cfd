//! Disconnects over providers that have connections. A timeout of an hour ends only because everybody
//! was heard; no check says how long anything takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_ofi::{Ofi, OfiOptions};
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Class, EndpointId, Lane, Outcome, PeerEvent, Post, Token,
    Transport, Upcalls,
};

const HOUR: Duration = Duration::from_secs(3600);

/// What a rank was told.
#[derive(Debug, Default)]
struct Log {
    messages: usize,
    up: Vec<EndpointId>,
    left: usize,
    failed: usize,
}

impl Upcalls for Log {
    fn deliver(&mut self, _: Arrival<'_>) {
        assert_eq!(self.left, 0, "a message after the goodbye");
        self.messages += 1;
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, .. } => self.up.push(endpoint),
            PeerEvent::Left(_) => self.left += 1,
            _ => self.failed += 1,
        }
    }
}

struct Node {
    ofi: Ofi,
    log: Log,
    silent: Arc<AtomicBool>,
}

impl Node {
    fn turn(&mut self) {
        self.ofi.progress(Lane(0), &mut self.log);
    }

    /// Returns whether the peer can still be sent to.
    fn send(&mut self, to: EndpointId, mut meanwhile: impl FnMut()) -> bool {
        let header = AmHeader([0, 0]);
        loop {
            match self.ofi.send(Lane(0), to, Class::Data, header, &[7; 48]) {
                Post::Posted => return true,
                Post::Gone => return false,
                _ => {}
            }
            self.turn();
            meanwhile();
        }
    }

    fn leave(mut self) {
        self.ofi.leave();
    }
}

/// Two ranks that have heard each other.
fn pair(options: &OfiOptions, disconnect_timeout: Duration) -> [(Node, EndpointId); 2] {
    let job = LocalJob::new(2).unwrap();
    let [mut one, mut two] = [0, 1].map(|rank| {
        let options = OfiOptions {
            disconnect_timeout,
            silent: Arc::default(),
            ..options.clone()
        };
        Node {
            ofi: Ofi::open(&options, &job.member(Rank::new(rank))).unwrap(),
            log: Log::default(),
            silent: options.silent,
        }
    });
    let to_two = one.ofi.connect(Rank::new(1), &two.ofi.address()).unwrap();
    let to_one = two.ofi.connect(Rank::new(0), &one.ofi.address()).unwrap();
    assert!(one.send(to_two, || two.turn()));
    assert!(two.send(to_one, || one.turn()));
    while one.log.messages + two.log.messages < 2 {
        one.turn();
        two.turn();
    }
    [(one, to_two), (two, to_one)]
}

pub fn a_goodbye_comes_through_what_is_sent_to_the_one_that_leaves(options: &OfiOptions) {
    for _ in 0..3 {
        let [(one, _), (mut two, to_one)] = pair(options, HOUR);
        std::thread::scope(|scope| {
            let sender = scope.spawn(move || {
                while two.send(to_one, || {}) {
                    two.turn();
                }
                two
            });
            one.leave();
            let two = sender.join().unwrap();
            assert_eq!((two.log.left, two.log.failed), (1, 0), "{options:?}");
        });
    }
}

pub fn those_that_leave_at_once_hear_each_other(options: &OfiOptions) {
    let [(one, _), (two, _)] = pair(options, HOUR);
    std::thread::scope(|scope| {
        scope.spawn(|| one.leave());
        scope.spawn(|| two.leave());
    });
}

pub fn a_busy_peer_is_waited_for(options: &OfiOptions) {
    let [(one, _), (mut two, to_one)] = pair(options, HOUR);
    for _ in 0..5 {
        assert!(two.send(to_one, || {}));
    }
    std::thread::scope(|scope| {
        let leaving = scope.spawn(|| one.leave());
        while !leaving.is_finished() {
            two.turn();
            std::thread::yield_now();
        }
    });
    while two.log.left == 0 {
        two.turn();
    }
    assert_eq!((two.log.left, two.log.failed), (1, 0), "{options:?}");
}

pub fn one_that_stays_busy_hears_everything_when_it_comes_back(options: &OfiOptions) {
    const LAST: usize = 40;
    let [(mut one, to_two), (mut two, to_one)] = pair(options, Duration::from_millis(20));
    for _ in 0..LAST {
        assert!(one.send(to_two, || {}));
    }
    one.leave();
    while two.log.left + two.log.failed == 0 {
        two.turn();
    }
    let told = (two.log.messages, two.log.left, two.log.failed);
    assert_eq!(told, (1 + LAST, 1, 0), "{options:?}");
    assert!(!two.send(to_one, || {}));
}

pub fn the_dead_are_not_waited_for(options: &OfiOptions) {
    let [(mut one, _), (two, _)] = pair(options, HOUR);
    two.silent.store(true, Ordering::Relaxed);
    drop(two);
    one.ofi.peer_failed(Rank::new(1), &mut one.log);
    while one.log.failed == 0 {
        one.turn();
    }
    assert_eq!((one.log.left, one.log.failed), (0, 1), "{options:?}");
    one.leave();
}

/// The checks of goodbyes on one provider; they say so loudly where it is not there.
#[macro_export]
macro_rules! provider_farewell {
    ($name:ident, $library:expr, $provider:literal) => {
        $crate::provider_farewell!(@tests $name, $library, $provider:
            a_goodbye_comes_through_what_is_sent_to_the_one_that_leaves
            those_that_leave_at_once_hear_each_other
            a_busy_peer_is_waited_for
            one_that_stays_busy_hears_everything_when_it_comes_back
            the_dead_are_not_waited_for
        );
    };
    (@tests $name:ident, $library:expr, $provider:literal: $($check:ident)*) => {
        mod $name {
            $(
                #[test]
                fn $check() {
                    match $crate::common::bench($library, $provider) {
                        Ok(options) => $crate::common::disconnect::$check(&options),
                        Err(reason) => println!("SKIPPED: no {} here: {reason}", $provider),
                    }
                }
            )*
        }
    };
}
