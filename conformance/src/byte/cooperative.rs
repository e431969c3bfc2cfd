//! Checks of cooperative transfers: whoever has time moves the bytes.

use std::rc::Rc;

use super::Factory;
use super::failure::offer;
use super::rig::Rig;
use crate::common::{LANE, ensure, pattern};
use crate::memory::{Backwards, Memory, Sink};
use tagwire_transport::data::{RecvBuffer, SendBuffer};
use tagwire_transport::message::{EndpointId, Outcome, Token};
use tagwire_transport::{Offer, Post, Ticket};

const SIZES: [usize; 12] = [
    0,
    1,
    63,
    4095,
    4096,
    4097,
    (64 << 10) - 1,
    64 << 10,
    (64 << 10) + 1,
    200_000,
    1 << 20,
    (1 << 20) + 3,
];

/// A transfer under way: its buffers, and the tokens of both sides.
struct Transfer {
    source: Rc<Memory>,
    target: Rc<Memory>,
    ticket: Ticket,
    offered: Token,
    claimed: Token,
}

/// The two ranks of a transfer and their endpoints.
struct Pair {
    rig: Rig,
    a: usize,
    b: usize,
    to: EndpointId,
    back: EndpointId,
}

impl Pair {
    fn open(factory: &Factory) -> Result<Self, String> {
        let (mut rig, a, b, _) = Rig::pair(factory)?;
        let (to, back) = rig.contact(a, b)?;
        Ok(Self {
            rig,
            a,
            b,
            to,
            back,
        })
    }

    /// The same two ranks, the other way round.
    fn turn(&mut self) {
        (self.a, self.b) = (self.b, self.a);
        (self.to, self.back) = (self.back, self.to);
    }

    fn offer(&mut self, seed: u64, len: usize, room: usize) -> Result<Transfer, String> {
        let source = self.rig.patterned_at(self.a, seed, len);
        let target = self.rig.zeroed_at(self.b, room);
        let (offered, claimed) = (self.rig.token(), self.rig.token());
        let ticket = offer(
            &mut self.rig,
            self.a,
            self.to,
            &source.send_buffer(),
            offered,
        )?;
        Ok(Transfer {
            source,
            target,
            ticket,
            offered,
            claimed,
        })
    }

    fn claim(&mut self, transfer: &Transfer) -> Result<(), String> {
        let buffer = transfer.target.recv_buffer();
        self.claim_into(transfer, &buffer)
    }

    fn claim_into(&mut self, transfer: &Transfer, buffer: &RecvBuffer) -> Result<(), String> {
        // Only the claimer: the offerer may be one that makes no progress.
        for _ in 0..100_000 {
            let back = self.back;
            let post = self.rig.transport(self.b).claim(
                LANE,
                back,
                transfer.ticket,
                buffer,
                transfer.claimed,
            );
            match post {
                Post::Posted => return Ok(()),
                Post::Busy => self.rig.progress(self.b),
                other => return Err(format!("a claim was answered {other:?}")),
            };
        }
        Err("a claim stays busy".to_owned())
    }

    fn is_done(rig: &Rig, a: usize, b: usize, transfer: &Transfer) -> bool {
        rig.log(a).is_complete(transfer.offered) && rig.log(b).is_complete(transfer.claimed)
    }

    fn finish(&mut self, transfer: &Transfer) -> Result<(), String> {
        let (a, b) = (self.a, self.b);
        let what = format!("a transfer of {} bytes ends", transfer.source.len());
        self.rig
            .drive(&what, |rig| Self::is_done(rig, a, b, transfer))
    }

    /// Both tokens ended once, with what both sides have, and the bytes are there.
    fn verify(&self, transfer: &Transfer) -> Result<(), String> {
        let (len, room) = (transfer.source.len(), transfer.target.len());
        let count = len.min(room);
        let done = Outcome::Done(count as u64);
        self.rig.expect_outcome(self.a, transfer.offered, done)?;
        self.rig.expect_outcome(self.b, transfer.claimed, done)?;
        let (source, target) = (transfer.source.bytes(), transfer.target.bytes());
        let wrong = (0..count).find(|place| source[*place] != target[*place]);
        ensure(wrong.is_none(), || {
            format!("{len} bytes into {room}: byte {wrong:?} differs")
        })?;
        ensure(target[count..].iter().all(|byte| *byte == 0), || {
            format!("{len} bytes into {room}: bytes beyond were written")
        })?;
        ensure(
            transfer.target.guards_hold() && transfer.source.guards_hold(),
            || format!("{len} bytes into {room}: memory around the buffer was written"),
        )
    }
}

/// Every size arrives while both sides make progress, in both directions.
pub(super) fn transfers_every_size(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    for (seed, len) in SIZES.into_iter().enumerate() {
        let transfer = pair.offer(seed as u64, len, len)?;
        pair.claim(&transfer)?;
        pair.finish(&transfer)?;
        pair.rig.settle()?;
        pair.verify(&transfer)?;
        pair.turn();
    }
    Ok(())
}

/// The receiver moves all bytes while the sender computes.
pub(super) fn receiver_alone_transfers(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    let (a, b) = (pair.a, pair.b);
    for (seed, len) in SIZES.into_iter().enumerate() {
        let transfer = pair.offer(seed as u64, len, len)?;
        pair.claim(&transfer)?;
        let what = format!("the receiver alone moves {len} bytes");
        pair.rig
            .drive_only(&[b], &what, |rig| rig.log(b).is_complete(transfer.claimed))?;
        ensure(!pair.rig.log(a).is_complete(transfer.offered), || {
            "a rank was told of completions outside its progress".to_owned()
        })?;
        pair.finish(&transfer)?;
        pair.rig.settle()?;
        pair.verify(&transfer)?;
    }
    Ok(())
}

/// The sender moves all bytes while the receiver computes.
pub(super) fn sender_alone_transfers(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    let (a, b) = (pair.a, pair.b);
    for (seed, len) in SIZES.into_iter().enumerate() {
        let transfer = pair.offer(seed as u64, len, len)?;
        pair.claim(&transfer)?;
        let what = format!("the sender alone moves {len} bytes");
        pair.rig
            .drive_only(&[a], &what, |rig| rig.log(a).is_complete(transfer.offered))?;
        let there = transfer.target.bytes() == pattern(seed as u64, len);
        ensure(there, || {
            format!("{len} bytes were not there when the sender was told")
        })?;
        ensure(!pair.rig.log(b).is_complete(transfer.claimed), || {
            "a rank was told of completions outside its progress".to_owned()
        })?;
        pair.finish(&transfer)?;
        pair.rig.settle()?;
        pair.verify(&transfer)?;
    }
    Ok(())
}

/// A buffer that is shorter than the offer gets what fits; a longer one is filled in part.
pub(super) fn short_receives_get_what_fits(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    for (len, room) in [
        (10_000, 100),
        (300_000, 131_073),
        (1, 0),
        (0, 50),
        (5000, 9000),
    ] {
        let transfer = pair.offer(len as u64, len, room)?;
        pair.claim(&transfer)?;
        pair.finish(&transfer)?;
        pair.rig.settle()?;
        pair.verify(&transfer)?;
    }
    Ok(())
}

/// An offer that nobody claims ends as withdrawn, once, and its ticket is worth nothing.
pub(super) fn offers_can_be_withdrawn(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    let (a, to) = (pair.a, pair.to);
    let most = pair.rig.limits(a).max_offers as u64;
    // More than can be open at once, so that what a withdrawal frees is used again.
    for seed in 0..3 * most {
        let transfer = pair.offer(seed, 5000, 5000)?;
        pair.rig.transport(a).withdraw(to, transfer.ticket);
        let offered = transfer.offered;
        pair.rig
            .drive("a withdrawal", |rig| rig.log(a).is_complete(offered))?;
        pair.rig.settle()?;
        pair.rig.expect_outcome(a, offered, Outcome::Withdrawn)?;
        expect_worthless(&mut pair, transfer.ticket, &transfer.target)?;
    }
    let transfer = pair.offer(9, 5000, 5000)?;
    pair.claim(&transfer)?;
    pair.finish(&transfer)?;
    pair.verify(&transfer)
}

/// Claims `ticket`: whatever is returned, nothing is moved and nothing is done.
fn expect_worthless(pair: &mut Pair, ticket: Ticket, target: &Memory) -> Result<(), String> {
    let (b, back) = (pair.b, pair.back);
    let token = pair.rig.token();
    let mut post = Post::Busy;
    for _ in 0..500 {
        let buffer = target.recv_buffer();
        post = pair
            .rig
            .transport(b)
            .claim(LANE, back, ticket, &buffer, token);
        if post != Post::Busy {
            break;
        }
    }
    pair.rig.settle()?;
    let done = pair.rig.log(b).outcomes(token);
    ensure(
        !done
            .iter()
            .any(|outcome| matches!(outcome, Outcome::Done(_))),
        || format!("a worthless ticket was answered {post:?} and then {done:?}"),
    )?;
    let untouched = target.bytes().iter().all(|byte| *byte == 0);
    ensure(untouched, || "a worthless ticket moved bytes".to_owned())
}

/// As many offers as the limit says are open at once, and may be claimed in any order.
pub(super) fn many_offers_are_open_at_once(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    let (a, to) = (pair.a, pair.to);
    let most = pair.rig.limits(a).max_offers.min(1000);
    for _ in 0..2 {
        let mut open = Vec::new();
        for seed in 0..most {
            let len = 1000 + 977 * seed;
            open.push(pair.offer(seed as u64, len, len)?);
        }
        let refused = pair.rig.token();
        let extra = pair.rig.patterned(0, 100);
        if most < 1000 {
            let answer = pair
                .rig
                .transport(a)
                .offer(LANE, to, &extra.send_buffer(), refused);
            ensure(answer == Offer::Busy, || {
                format!("offer {} of {most} was answered {answer:?}", most + 1)
            })?;
        }
        // Every third from the back, then the rest: in no order that a queue would like.
        let order = (0..3).flat_map(|rest| (0..most).rev().filter(move |i| i % 3 == rest));
        for place in order {
            pair.claim(&open[place])?;
        }
        for transfer in &open {
            pair.finish(transfer)?;
        }
        pair.rig.settle()?;
        for transfer in &open {
            pair.verify(transfer)?;
        }
        ensure(!pair.rig.log(a).is_complete(refused), || {
            "an offer that was refused has completed".to_owned()
        })?;
    }
    Ok(())
}

/// Transfers go both ways between two ranks at the same time.
pub(super) fn both_ways_at_once(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    let mut there = Vec::new();
    let mut back = Vec::new();
    let each = pair.rig.limits(pair.a).max_offers.min(2) as u64;
    for seed in 0..each {
        there.push(pair.offer(seed, 700_001, 700_001)?);
        pair.turn();
        back.push(pair.offer(seed + 10, 300_003, 300_003)?);
        pair.turn();
    }
    for (one, other) in there.iter().zip(&back) {
        pair.claim(one)?;
        pair.turn();
        pair.claim(other)?;
        pair.turn();
    }
    for transfers in [&there, &back] {
        for transfer in transfers {
            pair.finish(transfer)?;
        }
        pair.rig.settle()?;
        for transfer in transfers {
            pair.verify(transfer)?;
        }
        pair.turn();
    }
    Ok(())
}

/// A ticket is what a peer says it is: one that was never given moves nothing.
pub(super) fn forged_tickets_move_nothing(factory: &Factory) -> Result<(), String> {
    let mut pair = Pair::open(factory)?;
    let transfer = pair.offer(3, 5000, 5000)?;
    let [first, second] = transfer.ticket.0;
    let forged = [
        [0, 0],
        [u64::MAX, u64::MAX],
        [first.wrapping_add(1), second],
        [first, second.wrapping_add(1)],
        [first ^ (1 << 63), second],
        [first, second ^ (1 << 63)],
        [first.wrapping_add(1 << 32), second.wrapping_add(1 << 32)],
    ];
    for words in forged {
        let spare = pair.rig.zeroed(5000);
        expect_worthless(&mut pair, Ticket(words), &spare)?;
    }
    pair.claim(&transfer)?;
    pair.finish(&transfer)?;
    pair.rig.settle()?;
    pair.verify(&transfer)
}

/// Pieces and callbacks are moved as they should be, or refused by value.
pub(super) fn odd_shapes_are_moved_or_refused(factory: &Factory) -> Result<(), String> {
    const LEN: usize = 150_000;
    let mut pair = Pair::open(factory)?;
    let source = pair.rig.patterned_at(pair.a, 1, LEN);
    let mut backwards = pattern(1, LEN);
    backwards.reverse();
    let shapes = [
        source.gathered(&[10, 70_000]),
        SendBuffer::packed(Box::new(Backwards(backwards))),
    ];
    for shape in &shapes {
        let (offered, claimed) = (pair.rig.token(), pair.rig.token());
        let target = pair.rig.zeroed_at(pair.b, LEN);
        let Ok(ticket) = offer(&mut pair.rig, pair.a, pair.to, shape, offered) else {
            continue;
        };
        let transfer = Transfer {
            source: Rc::clone(&source),
            target,
            ticket,
            offered,
            claimed,
        };
        pair.claim(&transfer)?;
        pair.finish(&transfer)?;
        pair.verify(&transfer)?;
    }
    for buffer in [
        pair.rig.zeroed(LEN).scattered(100),
        RecvBuffer::unpacked(Box::new(Sink(LEN))),
    ] {
        let transfer = pair.offer(2, LEN, LEN)?;
        if pair.claim_into(&transfer, &buffer).is_ok() {
            pair.finish(&transfer)?;
        } else {
            // A refused claim leaves the offer open.
            pair.claim(&transfer)?;
            pair.finish(&transfer)?;
            pair.verify(&transfer)?;
        }
    }
    pair.rig.settle()
}
