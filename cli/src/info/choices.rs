//! What can be chosen by a setting, and what is.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_base::config::{Kind, Value};

/// The setting that chooses the matching engine.
pub const ENGINE: &str = "engine";
/// The setting that chooses the pml.
pub const PML: &str = "pml";

/// One of several that can be chosen.
#[derive(Debug, Serialize)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// Whether it is used when nobody chooses.
    pub default: bool,
    /// Whether it would be used here and now.
    pub used: bool,
}

/// The names that the setting called `name` chooses from.
pub fn choices(config: &Config, name: &str) -> Vec<Named> {
    let Ok(entry) = config.entry(name) else {
        return Vec::new();
    };
    let (default, names) = match entry.setting().kind() {
        Kind::Choice { default, names } | Kind::Stack { default, names, .. } => {
            (default, names.to_vec())
        }
        Kind::Named { default, known } => {
            let names = known.iter().filter(|one| !one.is_of_files());
            (default, names.map(|one| one.name).collect())
        }
        _ => return Vec::new(),
    };
    let used = match entry.value() {
        Value::Stack(parts) => parts.iter().map(|part| part.name.to_owned()).collect(),
        Value::Named(spec) => vec![spec.name().to_owned()],
        value => vec![value.to_string()],
    };
    let named = |name: &'static str| Named {
        name,
        default: name == default,
        used: used.iter().any(|used| used == name),
    };
    names.into_iter().map(named).collect()
}
