//! The protocols by length, as `launch` in `send.rs` chooses them.

use tagwire_base::config::parse::format_bytes;
use tagwire_transport::{Capabilities, Limits, Preference};

use super::Ob1Options;
use super::path::LEND_FROM;
use super::reading::{WINDOW, piece};
use crate::protocols::{Protocol, of_lengths};

/// What happens to contiguous standard sends of which length, towards a peer with this preference.
pub(crate) fn protocols(
    options: &Ob1Options,
    capabilities: Capabilities,
    limits: &Limits,
    preference: Preference,
) -> Vec<Protocol> {
    let lengths = options.lengths(preference, limits);
    let inline = limits.max_inline.min(lengths.at_once) as u64;
    let (at_once, eager) = (lengths.at_once as u64, lengths.eager as u64);
    let (lend_from, lent) = (LEND_FROM as u64, lengths.lent as u64);
    let is_coalesced = |length: u64| length <= lengths.coalesce as u64;
    let size = |bytes: usize| format_bytes(bytes as u64);
    let how = |length: u64| {
        if length > eager {
            return rendezvous(capabilities, limits, lengths.packet);
        }
        let way = if length <= inline {
            "eager, beside its header".to_owned()
        } else if lend_from <= length && length <= lent {
            "eager, in one packet that the transport sends from the buffer".to_owned()
        } else if length <= at_once {
            "eager, in one packet".to_owned()
        } else {
            format!("eager, in packets of {}", size(lengths.packet))
        };
        match is_coalesced(length) {
            true => format!("{way}; several that are not waited for leave together"),
            false => way,
        }
    };
    let coalesced = lengths.coalesce as u64;
    let lend_ends = [lend_from.saturating_sub(1), lent];
    let ends = [
        inline,
        coalesced,
        at_once,
        eager,
        lend_ends[0],
        lend_ends[1],
    ];
    // An end of 0 bytes would be a line of its own for empty messages.
    let ends: Vec<u64> = ends.into_iter().filter(|end| *end > 0).collect();
    of_lengths(&ends, how)
}

/// How the bytes follow an envelope once it has matched.
fn rendezvous(capabilities: Capabilities, limits: &Limits, packet: usize) -> String {
    let piece = piece(capabilities, limits);
    if capabilities.contains(Capabilities::COOPERATIVE) {
        "rendezvous: copied once, in chunks, by whichever of the two ranks has time".to_owned()
    } else if piece > 0 {
        format!(
            "rendezvous: read by its receiver (get), {} at a time, {WINDOW} under way",
            format_bytes(piece as u64)
        )
    } else {
        format!(
            "rendezvous: sent in packets of {}",
            format_bytes(packet as u64)
        )
    }
}
