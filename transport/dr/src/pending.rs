//! What is owed to peers, sent whenever the transport inside has room; and what time brings.

use tagwire_base::Time;
use tagwire_transport::{Class, EndpointId, Post, Upcalls};

use crate::intake::{Core, Intake, activate};
use crate::link::{Health, Link};
use crate::rail::Rail;
use crate::sender::Tick;
use crate::wire::{Header, Kind, write_seen};

impl Core {
    /// Sends what is owed to the peers that are listed. What finds no room stays listed.
    pub(crate) fn serve(&mut self, rail: &mut Rail) {
        for endpoint in std::mem::take(&mut self.listed) {
            let Some(link) = self.links.find(endpoint) else {
                continue;
            };
            link.is_listed = false;
            let clock = &self.options.clock;
            let mut waits = false;
            if link.owes_goodbye {
                waits |= say_goodbye(rail, endpoint, link, || clock.now());
                activate(link, &mut self.active, endpoint);
            }
            if link.owes_end {
                waits |= say_end(rail, endpoint, link);
            }
            if link.sender.has_lost() {
                let (sent, has_to_wait) = send_again(rail, endpoint, link, clock.now());
                self.counters.retransmitted += sent;
                waits |= has_to_wait;
            }
            if link.receiver.owes_note() && !link.health.is_over() {
                match send_note(rail, endpoint, link) {
                    Post::Posted => self.counters.notes += 1,
                    Post::Busy => waits = true,
                    Post::Gone | Post::Unsupported => {}
                }
            }
            if waits {
                self.list(endpoint);
            }
        }
    }

    /// Looks at the timers of active peers. Returns when the next goes off.
    pub(crate) fn tick(
        &mut self,
        now: Time,
        to_sleep: bool,
        above: &mut dyn Upcalls,
    ) -> Option<Time> {
        let patience = self.options.patience;
        let mut next: Option<Time> = None;
        let mut place = 0;
        while let Some(endpoint) = self.active.get(place).copied() {
            let Some(link) = self.links.find(endpoint) else {
                self.active.swap_remove(place);
                continue;
            };
            let tick = link.sender.tick(now, patience);
            let usual = link.sender.trip.usual();
            link.receiver.tick(now, usual, to_sleep);
            let has_words = link.tick_last_words(now);
            let has_something = tick == Tick::Resend || has_words || link.receiver.owes_note();
            let has_left = link.left_until.is_some_and(|until| now >= until);
            next = [link.deadline(), next].into_iter().flatten().min();
            if link.is_quiet() || link.health.is_over() && link.last_words.is_none() {
                link.is_active = false;
                self.active.swap_remove(place);
            } else {
                place += 1;
            }
            if has_something {
                self.list(endpoint);
            }
            if tick == Tick::Resend {
                self.counters.timeouts += 1;
            }
            let event = match tick {
                Tick::Failed => {
                    // It is told with the next look.
                    next = Some(now);
                    self.give_up(endpoint, now)
                }
                _ if has_left => self.ended(endpoint, true),
                _ => None,
            };
            if let Some(event) = event {
                above.peer(event);
            }
        }
        next
    }

    /// Tells peers that have broken the rules that contact has ended, and the transport inside.
    pub(crate) fn end_broken(&mut self, rail: &mut Rail, above: &mut dyn Upcalls) {
        while let Some(endpoint) = self.to_end.pop() {
            // Nobody says it again.
            if let Some(link) = self.links.find(endpoint) {
                for _ in 0..LAST_ENDS {
                    say_end(rail, endpoint, link);
                }
            }
            if let Some(rank) = self.links.rank(endpoint) {
                rail.peer_failed(rank, &mut Intake { core: self, above });
            }
        }
    }

    /// Waits for nobody any more: who lacks something, or may, is told that nothing comes. Nobody says it again, so it is said more
    /// than once.
    pub(crate) fn abandon(&mut self, rail: &mut Rail) {
        for (endpoint, link) in self.links.iter_mut() {
            if link.health != Health::Alive || !link.is_waited_for() {
                continue;
            }
            link.abandon();
            for _ in 0..LAST_ENDS {
                say_end(rail, endpoint, link);
            }
        }
        let unheard = self.links.iter().filter(|(_, _, link)| link.is_unheard);
        let ranks: Vec<_> = unheard.map(|(_, rank, _)| rank.as_u32()).collect();
        if !ranks.is_empty() {
            tracing::error!(
                ?ranks,
                "dr: this rank has left before these had acknowledged all that was sent to them"
            );
        }
    }
}

/// Ends that are said where nobody is left to say them again.
const LAST_ENDS: usize = 3;

/// A header of `kind` with what was consumed.
const fn header(link: &Link, kind: Kind, number: u32) -> Header {
    Header {
        kind,
        is_urgent: false,
        is_overdue: false,
        is_final: false,
        is_again: false,
        number,
        consumed: link.receiver.consumed(),
    }
}

/// Sends the goodbye behind the last message; returns whether it has to wait.
fn say_goodbye(
    rail: &mut Rail,
    endpoint: EndpointId,
    link: &mut Link,
    now: impl FnOnce() -> Time,
) -> bool {
    if !link.sender.has_room(Class::Control) {
        return true;
    }
    let header = Header {
        // Who leaves waits for it.
        is_urgent: true,
        ..header(link, Kind::Goodbye, link.sender.next())
    };
    let sealed = header.seal(link.starts.0, &[]);
    let post = rail.post(endpoint, Class::Control, sealed, &[]);
    if post == Post::Posted {
        link.receiver.tell();
        link.sender.keep(Vec::new(), Kind::Goodbye, now);
    }
    link.owes_goodbye = post == Post::Busy;
    link.owes_goodbye
}

/// Says that the peer is given up, or that this is known; returns whether that has to wait.
fn say_end(rail: &mut Rail, endpoint: EndpointId, link: &mut Link) -> bool {
    let header = Header {
        is_urgent: link.last_words.is_some(),
        ..header(link, Kind::End, 0)
    };
    let sealed = header.seal(link.starts.0, &[]);
    let post = rail.post(endpoint, Class::Control, sealed, &[]);
    link.owes_end = post == Post::Busy;
    link.owes_end
}

/// Sends messages again that were lost. Returns how many, and whether others have to wait.
fn send_again(rail: &mut Rail, endpoint: EndpointId, link: &mut Link, now: Time) -> (u64, bool) {
    let mut sent = 0;
    while let Some((number, kind, bytes)) = link.sender.first_lost() {
        let header = Header {
            is_urgent: true,
            ..header(link, kind, number)
        };
        let sealed = header.seal(link.starts.0, bytes);
        let class = match kind {
            Kind::Message => Class::Data,
            Kind::Note | Kind::Goodbye | Kind::End => Class::Control,
        };
        match rail.post(endpoint, class, sealed, bytes) {
            Post::Posted => {}
            Post::Busy => return (sent, true),
            // The transport inside is to say so.
            Post::Gone | Post::Unsupported => break,
        }
        link.sender.resent(number, now);
        link.receiver.tell();
        sent += 1;
    }
    (sent, false)
}

fn send_note(rail: &mut Rail, endpoint: EndpointId, link: &mut Link) -> Post {
    let header = Header {
        // One that is said again wants the final note.
        is_urgent: link.last_words.is_some(),
        is_overdue: link.receiver.is_overdue(),
        is_final: link.has_parted(),
        is_again: link.receiver.has_come_again(),
        ..header(link, Kind::Note, 0)
    };
    let seen = write_seen(&link.receiver.seen());
    let bytes: &[u8] = match link.receiver.has_gap() {
        true => &seen,
        false => &[],
    };
    let sealed = header.seal(link.starts.0, bytes);
    let post = rail.post(endpoint, Class::Control, sealed, bytes);
    if post == Post::Posted {
        link.receiver.noted();
    }
    post
}
