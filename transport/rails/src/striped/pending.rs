//! What is owed to peers, paid whenever the rails have room: greetings, acknowledgements, messages
//! that lost their rail, fragments.

use tagwire_transport::{Class, EndpointId, Post, Upcalls};

use super::core::{Core, RailUpcalls};
use super::links::{Link, State};
use super::rail::{LANE, Rail};
use super::wire::{Header, Kind};

/// Posts by `first`, or another open way where that has no room; returns which one took it.
pub(super) fn post(
    rails: &mut [Rail],
    link: &mut Link,
    first: usize,
    class: Class,
    header: Header,
    bytes: &[u8],
) -> Result<usize, Post> {
    let mut busy = false;
    let others = (0..rails.len()).filter(|rail| *rail != first);
    for rail in std::iter::once(first).chain(others) {
        match post_on(rails, link, rail, class, header, bytes) {
            Post::Posted => return Ok(rail),
            Post::Busy => busy = true,
            Post::Gone | Post::Unsupported => {}
        }
    }
    Err(if busy { Post::Busy } else { Post::Gone })
}

/// Posts by one way, if it is open. One that is found closed is so from now on; who calls sees to
/// what it had taken.
fn post_on(
    rails: &mut [Rail],
    link: &mut Link,
    rail: usize,
    class: Class,
    header: Header,
    bytes: &[u8],
) -> Post {
    let Some(way) = link.way(rail).filter(|way| way.state == State::Open) else {
        return Post::Gone;
    };
    let (transport, header) = (&mut rails[rail].transport, header.encode());
    let answer = transport.send(LANE, way.theirs, class, header, bytes);
    match answer {
        Post::Posted => link.incoming.tell(),
        Post::Busy => {}
        Post::Gone | Post::Unsupported => way.state = State::Mute,
    }
    answer
}

/// A header without a message behind it.
const fn word(link: &Link, kind: Kind, number: u32) -> Header {
    Header {
        kind,
        is_urgent: false,
        number,
        consumed: link.incoming.consumed(),
    }
}

/// Pays what is owed to a peer by each of its ways; returns whether something has to wait.
fn pay_by_each(rails: &mut [Rail], link: &mut Link) -> bool {
    let mut waits = false;
    for rail in 0..rails.len() {
        let (round, sent) = (link.rounds, link.out.sent());
        let Some(way) = link.way(rail) else { continue };
        let owed = [
            (way.owes_hello, Kind::Hello, 0),
            (
                way.owes_echo.is_some(),
                Kind::Echo,
                way.owes_echo.unwrap_or(0),
            ),
            (way.owes_probe, Kind::Probe, round),
            (way.owes_bye, Kind::Bye, sent),
        ];
        for (is_owed, kind, number) in owed {
            if !is_owed {
                continue;
            }
            let header = Header {
                // Who leaves waits for what it kept.
                is_urgent: kind == Kind::Bye,
                ..word(link, kind, number)
            };
            if post_on(rails, link, rail, Class::Control, header, &[]) == Post::Busy {
                waits = true;
                continue;
            }
            let Some(way) = link.way(rail) else { continue };
            match kind {
                Kind::Hello => way.owes_hello = false,
                Kind::Echo => way.owes_echo = None,
                Kind::Probe => way.owes_probe = false,
                _ => way.owes_bye = false,
            }
        }
    }
    waits
}

/// Pays what is owed to a peer by any of its ways; returns whether something has to wait.
fn pay_by_any(rails: &mut [Rail], link: &mut Link, spare: &mut Vec<u8>, now: u64) -> bool {
    link.write_off();
    let Some(first) = link.open().next() else {
        return false;
    };
    let mut waits = false;
    for rail in 0..rails.len() {
        if link.way(rail).is_some_and(|way| way.owes_down) {
            // By each that is left: one of them may be dead as well, and nobody know it yet.
            let header = word(link, Kind::Down, rail as u32);
            let mut is_busy = false;
            for by in 0..rails.len() {
                let answer = post_on(rails, link, by, Class::Control, header, &[]);
                is_busy |= answer == Post::Busy;
            }
            waits |= is_busy;
            if let Some(way) = link.way(rail) {
                way.owes_down = is_busy;
            }
        }
    }
    while let Some((number, bytes)) = link.out.first_homeless() {
        spare.clear();
        spare.extend_from_slice(bytes);
        let header = word(link, Kind::Message, number);
        match post(rails, link, first, Class::Data, header, spare) {
            Ok(rail) => link.out.rehouse(number, rail, now),
            Err(answer) => {
                waits |= answer == Post::Busy;
                break;
            }
        }
    }
    if link.owes_note {
        let header = word(link, Kind::Note, 0);
        match post(rails, link, first, Class::Control, header, &[]) {
            Ok(_) => link.owes_note = false,
            Err(answer) => waits |= answer == Post::Busy,
        }
    }
    waits
}

impl Core {
    /// Does what there is to do for peers; returns how many rails were told that one has failed.
    pub(super) fn advance_pending(&mut self, rails: &mut [Rail], above: &mut dyn Upcalls) -> usize {
        let mut ended = 0;
        while let Some((rail, rank)) = self.to_end.pop() {
            let mut face = RailUpcalls::new(rail, self, above);
            rails[rail].transport.peer_failed(rank, &mut face);
            ended += 1;
        }
        let mut scratch = self.spare.pop().unwrap_or_default();
        for ours in std::mem::take(&mut self.listed) {
            if self.serve(rails, ours, &mut scratch, above) {
                self.list(ours);
            }
        }
        self.spare.push(scratch);
        ended
    }

    /// Does what there is to do for one peer; returns whether something has to wait for room.
    fn serve(
        &mut self,
        rails: &mut [Rail],
        ours: EndpointId,
        scratch: &mut Vec<u8>,
        above: &mut dyn Upcalls,
    ) -> bool {
        let (now, has_left) = (self.options.now(), self.is_heard());
        let Some(link) = self.links.get(ours) else {
            return false;
        };
        link.is_listed = false;
        let mut waits = false;
        // Rails that leave are given nothing.
        if !link.is_gone && !has_left {
            waits |= pay_by_each(rails, link);
            waits |= pay_by_any(rails, link, scratch, now);
        }
        waits | self.read_on(rails, ours, above)
    }
}
