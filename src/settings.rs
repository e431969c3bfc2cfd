//! All settings of Tagwire, gathered from the crates that read them.

use tagwire_base::Registry;
use tagwire_pml::Engines;

use crate::coll;

/// The registry of every setting. Variables that a launcher sets for its ranks are no settings
/// and pass.
///
/// ```
/// use tagwire_base::Config;
///
/// let config = Config::from_process(&tagwire::settings::registry(), [("log", "error")])?;
/// assert_eq!(config.choice("log"), "error");
/// # Ok::<(), tagwire_base::Error>(())
/// ```
#[must_use]
pub fn registry() -> Registry {
    Registry::new(&coll::settings()).with_reserved(&tagwire_launch::detect::RESERVED)
}

/// The same, with engines of the program among the values of the setting `engine`.
#[must_use]
pub fn registry_with(engines: &Engines) -> Registry {
    let registry = registry().with_names("engine", engines.names());
    registry.with_value(engines.clone())
}

/// The page `docs/settings.md`.
#[must_use]
pub fn page() -> String {
    format!("{PREFACE}\n{}", registry().to_markdown())
}

const PREFACE: &str = "\
# Settings

<!-- Generated: cargo run -- info --settings-markdown > docs/settings.md -->

A setting is given as a flag (`--log debug`, with `tagwire run`, `bench` and `info`) or as an
environment variable (`TAGWIRE_LOG=debug`). A flag wins over the environment, the environment over
the default. A variable that is set to nothing counts as not set. Whatever begins with `TAGWIRE_`
and is no setting is refused, with the nearest right name.

Sizes are bytes, with K, M or G behind the number for 1024, 1024^2, 1024^3. Durations have a unit:
`us`, `ms` or `s`. Switches are `on` or `off`. `tagwire info` prints what every setting is on this
machine and where its value came from.
";
