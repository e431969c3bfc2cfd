//! The engines that a program can choose among: those of the table, and its own.

use tagwire_base::named::{Named, Parameter, Spec};

use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::error::Result;
use crate::factory::{Added, Factory};
use crate::oracle::Oracle;
use crate::registry::{self, EngineName};
use crate::storage::Capacity;

/// The engines that a program can choose among by name: those of the table, and those that it adds.
///
/// A value of a program, which it gives to what reads names: a [registry of settings](tagwire_base::Registry::with_value), from
/// which the layer of a rank takes it, and the laboratory.
///
/// ```
/// use tagwire_matching::{Capacity, Engines, Oracle};
///
/// # fn main() -> tagwire_matching::Result<()> {
/// let engines = Engines::default().with::<Oracle>("oracle");
/// let engine = engines.named("oracle")?.open(Capacity::default());
/// assert_eq!(engine.name(), "oracle");
/// assert!(engines.named("orcale").unwrap_err().to_string().contains("did you mean 'oracle'?"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Engines {
    known: Vec<&'static Named>,
    added: Vec<&'static Added>,
    loader: Option<Loader>,
}

/// Opens the library of a path: what there is to say of its engine, and what makes it; or why it cannot be.
pub type Loader = fn(&str) -> Result<(Description, Box<dyn Factory>), String>;

/// An engine that a program adds: it is made by its parameters.
pub trait FromParameters: Engine + Send + Sized + 'static {
    /// Its parameters.
    const PARAMETERS: &'static [Parameter] = &[];

    /// What it does, in a line.
    const ABOUT: &'static str = "an engine of this program";

    /// What it promises of the order in which it matches.
    const GRADE: Grade = Grade::Exact;

    /// Returns the engine, empty and with these bounds. Each of its [`PARAMETERS`](FromParameters::PARAMETERS) has a value.
    fn from_parameters(parameters: &Spec, capacity: Capacity) -> Self;

    /// Returns the same engine over words whose accesses are counted, such as those of
    /// [`Counting`](crate::storage::counting::Counting); `None` where it has no words of a kind that can be chosen.
    fn counting(parameters: &Spec, capacity: Capacity) -> Option<Box<dyn Engine + Send>> {
        let _ = (parameters, capacity);
        None
    }
}

/// The factory of a type.
struct OfType<E>(std::marker::PhantomData<fn() -> E>);

impl Engines {
    /// Adds the engines of a type under a name.
    ///
    /// # Panics
    /// As [`Engines::with_factory`].
    #[must_use]
    pub fn with<E: FromParameters>(self, name: &'static str) -> Self {
        let description = Description {
            named: Named {
                name,
                parameters: E::PARAMETERS,
            },
            about: E::ABOUT,
            source: "this program",
            limits: "those of its author",
            grade: |_| E::GRADE,
        };
        self.with_factory(description, OfType::<E>(std::marker::PhantomData))
    }

    /// Adds what a factory makes. It stays in memory as long as the process, since names are compared by where they are.
    ///
    /// # Panics
    /// When an engine has the name already, or it is none: empty, or with a colon, a comma or an equals sign.
    #[must_use]
    pub fn with_factory(
        mut self,
        description: Description,
        factory: impl Factory + 'static,
    ) -> Self {
        let name = description.named.name;
        assert!(
            !name.is_empty() && !name.contains([':', ',', '=']),
            "'{name}' is no name of an engine"
        );
        assert!(
            self.known.iter().all(|known| known.name != name),
            "an engine is called '{name}' already"
        );
        let added = Added::kept(description, Box::new(factory));
        self.known.push(&added.description.named);
        self.added.push(added);
        self
    }

    /// Has names with a slash be those of libraries.
    #[must_use]
    pub fn with_loader(mut self, loader: Loader) -> Self {
        if self.loader.replace(loader).is_none() {
            self.known.push(&registry::LIBRARY);
        }
        self
    }

    /// Returns the engine of a name with its parameters behind a colon. A library is opened, and stays open.
    ///
    /// # Errors
    /// [`Library`](crate::Error::Library) for one that has no engine or whose engine takes no such parameters;
    /// [`UnknownEngine`](crate::Error::UnknownEngine) and [`BadEngine`](crate::Error::BadEngine), with the nearest that exists.
    pub fn named(&self, text: &str) -> Result<EngineName> {
        let spec = Spec::parse(text, &self.known);
        self.of(spec.map_err(|refused| self.bad(text, refused))?)
    }

    /// Reads several names with commas between them.
    ///
    /// # Errors
    /// As [`Engines::named`], for the first that is refused.
    pub fn list(&self, text: &str) -> Result<Vec<EngineName>> {
        let specs = Spec::parse_list(text, &self.known);
        let specs = specs.map_err(|refused| self.bad(text, refused))?;
        specs.into_iter().map(|spec| self.of(spec)).collect()
    }

    /// Returns what there is to say of each.
    pub fn descriptions(&self) -> impl Iterator<Item = &'static Description> {
        let added = self.added.iter().map(|added| &added.description);
        registry::DESCRIPTIONS.iter().copied().chain(added)
    }

    /// Returns all names with their parameters, for the setting `engine`. They stay as long as the process, as settings do.
    #[must_use]
    pub fn names(&self) -> &'static [&'static Named] {
        match self.added[..] {
            [] => registry::NAMES,
            _ => {
                let added = self.added.iter().map(|added| &added.description.named);
                let all = registry::NAMES.iter().copied().chain(added);
                all.collect::<Vec<_>>().leak()
            }
        }
    }

    fn of(&self, spec: Spec) -> Result<EngineName> {
        if let (Some((path, _)), Some(loader)) = (spec.file(), self.loader) {
            let library = |why| crate::Error::Library {
                engine: spec.to_string(),
                why,
            };
            let (description, factory) = loader(path).map_err(library)?;
            factory.check(&spec).map_err(library)?;
            return Ok(EngineName::added(spec, Added::kept(description, factory)));
        }
        let of_name = |added: &&&Added| added.description.named.name == spec.name();
        match self.added.iter().find(of_name) {
            Some(added) => Ok(EngineName::added(spec, added)),
            None => EngineName::new(spec),
        }
    }

    fn bad(&self, text: &str, refused: tagwire_base::named::Refused) -> crate::Error {
        registry::bad(text, refused, &self.known)
    }
}

/// Those of the table.
impl Default for Engines {
    fn default() -> Self {
        Self {
            known: registry::KNOWN.to_vec(),
            added: Vec::new(),
            loader: None,
        }
    }
}

impl FromParameters for Oracle {
    const ABOUT: &'static str = "the rules in their plainest form";

    fn from_parameters(_: &Spec, capacity: Capacity) -> Self {
        Self::with_capacity(capacity)
    }
}

impl<E: FromParameters> Factory for OfType<E> {
    fn open(&self, parameters: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
        Box::new(E::from_parameters(parameters, capacity))
    }

    fn open_counting(
        &self,
        parameters: &Spec,
        capacity: Capacity,
    ) -> Option<Box<dyn Engine + Send>> {
        E::counting(parameters, capacity)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn an_added_engine_is_found_with_its_parameters_and_those_of_the_table_too() {
        let engines = Engines::default().with::<Oracle>("oracle");
        let all: Vec<&str> = engines.descriptions().map(|one| one.named.name).collect();
        assert_eq!(all.first(), Some(&"list"));
        assert_eq!(all.last(), Some(&"oracle"));
        let names = engines.names().iter().map(|one| one.name);
        let names = names.filter(|name| !name.starts_with('.'));
        assert!(names.eq(all.iter().copied()));
        let list = engines.list("oracle,list,oracle").unwrap();
        let names: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(names, ["oracle", "list", "oracle"]);
        assert_eq!(list[0].open(Capacity::default()).name(), "oracle");
        assert_eq!(list[0].grade(), Grade::Exact);
        let told = |text: &str| engines.named(text).unwrap_err().to_string();
        assert_eq!(
            told("oracel"),
            "unknown matching engine 'oracel'; did you mean 'oracle'?"
        );
        assert_eq!(
            told("oracle:bins=3"),
            "matching engine 'oracle:bins=3': 'oracle' takes no parameters"
        );
        // Another program does not know it.
        assert!(Engines::default().named("oracle").is_err());
    }

    /// What a factory is given is what was written.
    #[test]
    fn a_factory_gets_parameters_and_bounds() {
        struct Checks;
        impl Factory for Checks {
            fn open(&self, parameters: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
                let bound = parameters.number("bound");
                Box::new(Oracle::with_capacity(Capacity::new(
                    bound,
                    capacity.unexpected,
                )))
            }
        }
        let description = Description {
            named: Named {
                name: "bounded",
                parameters: const { &[Parameter::number("bound", 1, 0..=9, "most receives")] },
            },
            about: "a",
            source: "b",
            limits: "c",
            grade: |_| Grade::Exact,
        };
        let engines = Engines::default().with_factory(description, Checks);
        let engine = engines.named("bounded:bound=0").unwrap();
        let mut opened = engine.open(Capacity::default());
        let any = crate::Pattern {
            source: tagwire_base::SourceSelector::ANY,
            tag: tagwire_base::TagSelector::ANY,
            context: tagwire_base::ContextId::WORLD,
        };
        assert_eq!(opened.post(any, crate::Cookie(0)), crate::PostOutcome::Full);
    }

    #[test]
    #[should_panic(expected = "an engine is called 'list' already")]
    fn a_name_of_the_table_is_not_given_away() {
        let _ = Engines::default().with::<Oracle>("list");
    }
}
