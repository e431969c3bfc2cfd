//! The settings of collectives and of everything below.

use tagwire_base::config::Setting;

use crate::selection::SETTINGS;

/// Returns the lists of settings that opening a rank and its groups reads, for a registry.
#[must_use]
pub fn all() -> Vec<&'static [Setting]> {
    let mut lists = tagwire_pml::settings::all();
    lists.push(SETTINGS);
    lists
}
