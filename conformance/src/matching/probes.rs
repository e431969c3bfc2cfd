//! Looking, and taking by name.

use super::Factory;
use super::rig::{Checked, Rig, exact, from};
use crate::common::{LANE, ensure};
use tagwire_transport::matching::{ClaimId, Posted, Refusal};

pub(super) fn probes_see_and_leave(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    for (seed, len) in factory.claims.lengths.clone().into_iter().enumerate() {
        let seed = seed as u64;
        let nothing = rig.probe(1, exact(2), false)?;
        ensure(nothing.is_none(), || {
            format!("a probe of nothing found {nothing:?}")
        })?;
        rig.send(0, 1, 2, seed, len)?;
        rig.send(0, 1, 2, seed + 1, 3)?;
        for pattern in [exact(2), from(0, exact(2)), rig.wild(0), exact(2)] {
            let found = rig.see(1, pattern, false)?;
            ensure(
                found.claim.is_none()
                    && found.envelope.length == len as u64
                    && found.envelope.bits == 2
                    && found.envelope.source.index() == 0,
                || format!("a probe for {len} bytes found {found:?}"),
            )?;
        }
        for (seed, len) in [(seed, len), (seed + 1, 3)] {
            let receiving = rig.post(1, exact(2), len)?;
            rig.got(&receiving, 0, 2, seed, len)?;
        }
    }
    rig.is_empty()
}

/// A claimed message is out of matching, and received by its name alone, in any order.
pub(super) fn claims_take_out_of_matching(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    let lengths = factory.claims.lengths.clone();
    let mut sends = Vec::new();
    let mut claims = Vec::new();
    for (seed, len) in lengths.iter().enumerate() {
        let synchronous = seed % 2 == 0;
        sends.push(rig.send_as(0, 1, 2, seed as u64, *len, synchronous)?);
        let found = rig.see(1, exact(2), true)?;
        ensure(found.envelope.length == *len as u64, || {
            format!("a claim of {len} bytes found {found:?}")
        })?;
        claims.push((seed, *len, found));
        let again = rig.probe(1, rig.wild(0), false)?;
        ensure(again.is_none(), || {
            format!("what was claimed is still in matching: {again:?}")
        })?;
    }
    let late = rig.post(1, exact(2), 8)?;
    rig.settle()?;
    ensure(!rig.is_received(&late), || {
        "a receive took a claimed message".to_owned()
    })?;
    for (seed, len, found) in claims.into_iter().rev() {
        // Also into too little room.
        let room = if seed % 3 == 0 { len / 2 } else { len };
        let receiving = rig.receive(1, found, room)?;
        rig.got(&receiving, 0, 2, seed as u64, len)?;
    }
    for sending in sends {
        rig.sent_well(sending)?;
    }
    rig.send(0, 1, 2, 99, 8)?;
    rig.got(&late, 0, 2, 99, 8)?;
    rig.is_empty()
}

pub(super) fn unknown_claims_are_refused(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.send(0, 1, 2, 1, 8)?;
    let found = rig.see(1, exact(2), true)?;
    let receiving = rig.receive(1, found, 8)?;
    rig.got(&receiving, 0, 2, 1, 8)?;
    let memory = rig.zeroed(8);
    for claim in [
        found.claim.unwrap_or(ClaimId(0)),
        ClaimId(u64::MAX),
        ClaimId(77),
    ] {
        let token = rig.token();
        let data = memory.recv_buffer();
        // A transport may be busy before it looks.
        let mut answer = Posted::Busy;
        for _ in 0..1000 {
            answer = rig.transport(1).receive_claimed(LANE, claim, &data, token);
            if answer != Posted::Busy {
                break;
            }
            rig.progress(1);
        }
        ensure(answer == Posted::Refused(Refusal::Unknown), || {
            format!("{claim:?} was answered {answer:?}")
        })?;
    }
    rig.is_empty()
}
