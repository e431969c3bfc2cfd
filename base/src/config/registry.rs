//! All settings that there are.

use std::any::Any;
use std::sync::Arc;

use super::setting::{Kind, Setting};
use crate::error::{Error, Result};
use crate::named::{Named, Spec};
use crate::nearest::nearest;

/// Every setting of a program, gathered from the crates that read them.
///
/// ```
/// use tagwire_base::config::Registry;
///
/// let registry = Registry::new(&[tagwire_base::SETTINGS]);
/// assert_eq!(registry.find("log")?.variable(), "TAGWIRE_LOG");
/// assert!(registry.find("logg").unwrap_err().to_string().contains("did you mean 'log'?"));
/// # Ok::<(), tagwire_base::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Registry {
    settings: Vec<Setting>,
    reserved: Vec<&'static str>,
    values: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Registry {
    /// The registry of these lists of settings, in their order.
    ///
    /// # Panics
    /// When a declaration is wrong: two settings of one name, a name or a reader that is empty
    /// or not written in lower case with dashes, or a choice whose default is none of its names.
    /// A test that builds the registry finds all of these.
    #[must_use]
    pub fn new(lists: &[&'static [Setting]]) -> Self {
        let mut settings: Vec<Setting> = Vec::new();
        for setting in lists.iter().copied().flatten() {
            check(setting);
            let twice = settings.iter().find(|other| other.name() == setting.name());
            if let Some(other) = twice {
                panic!(
                    "setting '{}' is declared by {} and by {}",
                    setting.name(),
                    other.reader(),
                    setting.reader()
                );
            }
            settings.push(*setting);
        }
        Self {
            settings,
            reserved: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Gives the setting called `name`, one of several names with parameters, these names in place of those of its declaration.
    ///
    /// # Panics
    /// When there is no such setting, or its default is none of the names.
    #[must_use]
    pub fn with_names(mut self, name: &str, known: &'static [&'static Named]) -> Self {
        let of_name = |setting: &&mut Setting| setting.name() == name;
        let setting = self.settings.iter_mut().find(of_name);
        let setting = setting.unwrap_or_else(|| panic!("no setting is called '{name}'"));
        let Kind::Named { default, .. } = setting.kind() else {
            panic!("the setting '{name}' has no names with parameters");
        };
        *setting = Setting::named(
            setting.reader(),
            setting.name(),
            default,
            known,
            setting.help(),
        );
        check(setting);
        self
    }

    /// Keeps a value for whoever is given the configuration, such as what stands behind names that a program has added.
    #[must_use]
    pub fn with_value<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.values.push(Arc::new(value));
        self
    }

    /// Returns the value of this type that was kept first.
    #[must_use]
    pub fn value<T: Any>(&self) -> Option<&T> {
        self.values.iter().find_map(|value| value.downcast_ref())
    }

    /// Names environment variables that begin with `TAGWIRE_` and are no settings, such as those
    /// that a launcher sets for its ranks.
    #[must_use]
    pub fn with_reserved(mut self, variables: &[&'static str]) -> Self {
        self.reserved.extend_from_slice(variables);
        self
    }

    /// The settings, in the order of their declaration.
    pub fn settings(&self) -> impl ExactSizeIterator<Item = &Setting> {
        self.settings.iter()
    }

    /// The setting called `name`.
    ///
    /// # Errors
    /// [`Error::UnknownSetting`] with the nearest name that exists.
    pub fn find(&self, name: &str) -> Result<&Setting> {
        self.index(name).map(|index| &self.settings[index])
    }

    /// The settings as a page of documentation: what `docs/settings.md` holds.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut page = String::from(
            "| setting | environment | kind | default | range | read by | what it does |\n\
             |---|---|---|---|---|---|---|\n",
        );
        for setting in &self.settings {
            let default = match setting.default_value().to_string() {
                text if text.is_empty() => "(empty)".to_owned(),
                text => format!("`{text}`"),
            };
            page.push_str(&format!(
                "| `{}` | `{}` | {} | {default} | {} | `{}` | {} |\n",
                setting.name(),
                setting.variable(),
                setting.kind().name(),
                escape(&setting.kind().range()),
                setting.reader(),
                escape(setting.help()),
            ));
        }
        page
    }

    pub(super) fn index(&self, name: &str) -> Result<usize> {
        self.settings
            .iter()
            .position(|setting| setting.name() == name)
            .ok_or_else(|| Error::UnknownSetting {
                name: name.to_owned(),
                nearest: nearest(name, self.settings.iter().map(Setting::name)).map(Into::into),
            })
    }

    /// The setting that the environment variable sets; `None` for a reserved variable.
    pub(super) fn index_of_variable(&self, variable: &str) -> Result<Option<usize>> {
        if self.reserved.contains(&variable) {
            return Ok(None);
        }
        let names: Vec<String> = self.settings.iter().map(Setting::variable).collect();
        if let Some(index) = names.iter().position(|name| name == variable) {
            return Ok(Some(index));
        }
        // What all names have in common says nothing about which one was meant.
        let given = strip(variable);
        let found = nearest(given, names.iter().map(|name| strip(name)));
        Err(Error::UnknownSetting {
            name: variable.to_owned(),
            nearest: found.map(|rest| format!("{}{rest}", super::PREFIX)),
        })
    }
}

fn strip(variable: &str) -> &str {
    variable.strip_prefix(super::PREFIX).unwrap_or(variable)
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn check(setting: &Setting) {
    let name = setting.name();
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    assert!(
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && !name.ends_with('-')
            && name.chars().all(plain),
        "'{name}' is no name for a setting: lower case, digits and dashes"
    );
    assert!(!setting.reader().is_empty(), "who reads '{name}'?");
    assert!(!setting.help().is_empty(), "what does '{name}' do?");
    if let Kind::Choice { default, names } | Kind::Stack { default, names, .. } = setting.kind() {
        assert!(
            names.contains(&default),
            "the default '{default}' of '{name}' is none of its choices"
        );
    }
    if let Kind::Named { default, known } = setting.kind() {
        let read = Spec::parse(default, known).map(|spec| spec.to_string());
        assert!(
            read.as_deref() == Ok(default),
            "the default '{default}' of '{name}' is none of its choices"
        );
    }
}
