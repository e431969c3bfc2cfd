//! Which options a command line names.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The options that the command line names, by their long names.
///
/// It takes no option itself: what has it among its fields has it first, before other fields take their values.
#[derive(Debug, Clone, Default)]
pub struct Given(Vec<String>);

impl Given {
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the first one among these.
    pub(crate) fn first_of(&self, names: &[&str]) -> Option<&str> {
        self.iter().find(|name| names.contains(name))
    }

    /// Returns the first one that is an option of `T`, and not this one.
    pub(crate) fn first_but<T: Args>(&self, but: &str) -> Option<&str> {
        let options = T::augment_args(Command::new(""));
        let options: Vec<_> = options
            .get_arguments()
            .filter_map(|it| it.get_long())
            .collect();
        self.iter()
            .find(|name| *name != but && options.contains(name))
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let ids = matches.ids().map(|id| id.as_str());
        let named = ids.filter(|id| matches.value_source(id) == Some(ValueSource::CommandLine));
        Ok(Self(named.map(|id| id.replace('_', "-")).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}
