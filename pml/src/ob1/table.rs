//! The protocols by length, for people: the table that sends go by.

use tagwire_transport::{Capabilities, Limits, Preference};

use super::config::Ob1Options;
use super::protocols::{describe, path};
use crate::protocols::{Protocol, of_lengths};

/// Returns what happens to contiguous standard sends of which length, towards a peer with this preference.
pub(crate) fn protocols(
    options: &Ob1Options,
    capabilities: Capabilities,
    limits: &Limits,
    preference: Preference,
) -> Vec<Protocol> {
    let path = path(
        options.terms(preference, capabilities, limits),
        &options.rendezvous,
    );
    let terms = &path.terms;
    let how = |length: u64| {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let how = describe(&path, length);
        if length <= terms.coalesce {
            format!("{how}; several that are not waited for leave together")
        } else {
            how
        }
    };
    // An end of 0 bytes would be a line of its own for empty messages.
    let inside = [terms.inline, terms.coalesce, terms.at_once];
    let ends = path.ends().chain(inside).filter(|end| *end > 0);
    let ends: Vec<u64> = ends.map(|end| end as u64).collect();
    of_lengths(&ends, how)
}
