//! Checks of retained buffers.
#![allow(unsafe_code)]

use super::Factory;
use super::log::Log;
use super::rig::{Rig, header};
use crate::common::{LANE, Patience, ensure, pattern};
use tagwire_transport::byte::{Class, Post};
use tagwire_transport::message::{
    Arrival, Disposition, Outcome, Payload, PeerEvent, Retained, Token, Upcalls,
};

/// A buffer that was kept: its name, its bytes in place, and what they were.
struct Kept {
    buffer: Retained,
    payload: Payload<'static>,
    number: u64,
    len: usize,
}

/// Keeps every message whose number is odd, where the transport lets it.
#[derive(Default)]
struct Keeper {
    kept: Vec<Kept>,
    seen: usize,
    broken: usize,
}

impl Upcalls for Keeper {
    fn deliver(&mut self, arrival: Arrival<'_>) -> Disposition {
        let (number, len) = (arrival.header.0[0], arrival.payload.len());
        if arrival.payload.to_vec() != pattern(number, len) {
            self.broken += 1;
        }
        self.seen += 1;
        match arrival.retainable {
            Some(buffer) if number % 2 == 1 => {
                // SAFETY: the transport promises that a retained buffer stays as it is until it
                // is released, and the check looks at it only before that.
                let payload = unsafe {
                    std::mem::transmute::<Payload<'_>, Payload<'static>>(arrival.payload)
                };
                self.kept.push(Kept {
                    buffer,
                    payload,
                    number,
                    len,
                });
                Disposition::Retained
            }
            _ => Disposition::Released,
        }
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}

/// What an upcall retained stays as it is while other messages pass, until it is released, in
/// any order; then its room is used again.
pub(super) fn retained_bytes_stay(factory: &Factory) -> Result<(), String> {
    let (mut rig, a, b, _) = Rig::pair(factory)?;
    let (to, _) = rig.contact(a, b)?;
    let max_send = rig.limits(a).max_send;
    let mut number = 0;
    let mut ever_kept = 0;
    for round in 0..20 {
        let mut keeper = Keeper::default();
        let first = number;
        // What is kept takes room: past some number the transport may be full, and says so.
        while number < first + 40 {
            let len = (number as usize * 37) % (max_send + 1);
            let bytes = pattern(number + 1, len);
            match rig.post(a, to, Class::Data, header(number + 1), &bytes) {
                Post::Posted => number += 1,
                Post::Busy => break,
                other => return Err(format!("a send was answered {other:?}")),
            }
        }
        let sent = (number - first) as usize;
        ensure(sent > 0, || {
            format!("round {round}: released room is not used again")
        })?;
        drain(&mut rig, a, b, &mut keeper, sent)?;
        // More messages must not touch what is kept.
        let mut more = 0;
        while more < 10 && rig.post(a, to, Class::Data, header(0), &[]) == Post::Posted {
            more += 1;
        }
        drain(&mut rig, a, b, &mut keeper, sent + more)?;
        ever_kept += keeper.kept.len();
        verify(&mut rig, b, keeper.kept, round)?;
        ensure(keeper.broken == 0, || {
            "a message arrived with wrong bytes".to_owned()
        })?;
    }
    ensure(ever_kept > 0, || {
        "no message was ever retainable".to_owned()
    })
}

/// Drives both ranks until `keeper` has seen `wanted` messages.
fn drain(
    rig: &mut Rig,
    a: usize,
    b: usize,
    keeper: &mut Keeper,
    wanted: usize,
) -> Result<(), String> {
    let mut patience = Patience::new();
    while keeper.seen < wanted {
        let mut events = rig.transport(b).progress(LANE, keeper);
        if a != b {
            events += rig.transport(a).progress(LANE, &mut Log::default());
        }
        if !patience.goes_on(events) {
            return Err(format!("{} of {wanted} messages arrived", keeper.seen));
        }
    }
    Ok(())
}

/// Compares what was kept with what was sent, then releases it from the middle outwards.
fn verify(rig: &mut Rig, b: usize, mut kept: Vec<Kept>, round: usize) -> Result<(), String> {
    for one in &kept {
        ensure(one.payload.to_vec() == pattern(one.number, one.len), || {
            format!("round {round}: retained message {} has changed", one.number)
        })?;
    }
    while !kept.is_empty() {
        let one = kept.remove(kept.len() / 2);
        ensure(one.payload.to_vec() == pattern(one.number, one.len), || {
            format!(
                "round {round}: message {} changed when others were released",
                one.number
            )
        })?;
        rig.transport(b).release(one.buffer);
    }
    Ok(())
}
