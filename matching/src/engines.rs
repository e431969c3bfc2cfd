//! Published engines, for comparison: each is an [`Arrangement`] of entries in a file of its own.
//!
//! What all engines do alike (slots, handles, capacity, counters, the order of visits) is in [`arranged`].

pub(crate) mod adaptive;
mod arranged;
mod binned;
pub(crate) mod chunks;
pub(crate) mod contexts;
pub(crate) mod flajslik;
pub(crate) mod fuzzy;
pub(crate) mod lanes;
pub mod offload;
mod ordered;
pub(crate) mod partner;
pub(crate) mod portals;
pub(crate) mod ucx;
mod vectors;

use tagwire_base::named::{Refused, Spec};

use crate::storage::Capacity;
use arranged::{Arranged, Arrangement, Found};

/// Says whether an engine can be opened on this machine.
///
/// # Errors
/// [`Refused::Value`] with what can be chosen here instead.
pub(crate) fn usable(spec: &Spec) -> Result<(), Refused> {
    match spec.name() {
        "lanes" | "fuzzy" => vectors::kernels(spec).map(|_| ()),
        _ => Ok(()),
    }
}

/// Returns how many entries an engine holds that is opened with these bounds: fewer where its parameters say so.
pub(crate) fn bounded(spec: &Spec, capacity: Capacity) -> Capacity {
    match spec.name() {
        "portals" => portals::bounded(spec, capacity),
        _ => capacity,
    }
}

/// Returns whether an engine may refuse a message for its bytes.
pub(crate) fn is_bounded_by_bytes(spec: &Spec) -> bool {
    spec.name() == "portals" && spec.number("overflow") != 0
}
