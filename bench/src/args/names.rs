//! Names of the values of options.

use clap::ValueEnum;

/// Returns the name that a value of an option has in commands, and in reports.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
