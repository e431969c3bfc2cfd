//! The engines by their names: what each is, which parameters it takes, and how it is opened.
//!
//! An engine is a file with a [`Description`] and a function that opens it, and a line of `engines!` below. The setting
//! `engine`, `tagwire info` and `tagwire match` all go by this table.

use std::fmt;
use std::str::FromStr;

use tagwire_base::named::{Named, Refused, Spec};
use tagwire_base::nearest::distance;

use crate::any::{AnyEngine, OfTable, Other};
pub use crate::description::{Description, Grade};
use crate::engine::Engine;
#[cfg(feature = "engines")]
use crate::engines::{
    self, adaptive, chunks, flajslik, fuzzy, lanes, offload, partner, portals, ucx,
};
use crate::error::{Error, Result};
use crate::factory::Added;
#[cfg(feature = "engines")]
use crate::judged::Judged;
#[cfg(feature = "engines")]
use crate::storage::counting::Counting;
use crate::storage::{Apart, Capacity, Cells};
#[cfg(feature = "engines")]
use crate::trace::{Recorded, Sink};
use crate::{bins, list, sources};

/// An engine's name with its parameters, such as `ucx:bins=64`.
#[derive(Debug, Clone)]
pub struct EngineName {
    spec: Spec,
    description: &'static Description,
    /// Who makes it, where it is none of the table.
    added: Option<&'static Added>,
}

impl EngineName {
    /// Returns the name with the parameters of `spec`.
    ///
    /// # Errors
    /// [`Error::UnknownEngine`] where no engine has the name, [`Error::BadEngine`] where this machine cannot run it.
    pub fn new(spec: Spec) -> Result<Self> {
        #[cfg(feature = "engines")]
        engines::usable(&spec).map_err(|refused| bad(&spec.to_string(), refused, KNOWN))?;
        let mut known = DESCRIPTIONS.iter();
        let description = known.find(|description| description.named.name == spec.name());
        match description {
            Some(description) => Ok(Self {
                spec,
                description,
                added: None,
            }),
            None => Err(unknown(spec.name(), KNOWN)),
        }
    }

    pub(crate) const fn added(spec: Spec, added: &'static Added) -> Self {
        Self {
            spec,
            description: &added.description,
            added: Some(added),
        }
    }

    /// Returns what there is to say of the engine.
    #[must_use]
    pub const fn description(&self) -> &'static Description {
        self.description
    }

    /// Returns the name without parameters.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.description.named.name
    }

    /// Whether the generations of its handles count the entries of each queue, as a trace numbers them.
    #[must_use]
    pub fn counts_entries(&self) -> bool {
        let added = self.added.as_ref();
        added.is_none_or(|added| added.factory.counts_entries(&self.spec))
    }

    /// Returns what the engine promises with these parameters.
    #[must_use]
    pub fn grade(&self) -> Grade {
        (self.description.grade)(&self.spec)
    }

    /// Returns how many entries the engine holds when it is opened with these bounds: fewer where its parameters say so.
    #[must_use]
    pub fn bounded(&self, capacity: Capacity) -> Capacity {
        #[cfg(feature = "engines")]
        let capacity = engines::bounded(&self.spec, capacity);
        capacity
    }

    /// Returns what a user sets to have an engine that is opened with these bounds hold more receives.
    #[must_use]
    pub fn bound_of_receives(&self, capacity: Capacity) -> &'static str {
        match self.bounded(capacity).posted < capacity.posted {
            true => "parameter 'entries' of the setting 'engine'",
            false => "setting 'match-capacity'",
        }
    }

    /// Returns whether the engine may refuse a message for its bytes, while it has others: the blocks are used up that its parameters
    /// give it for them.
    #[must_use]
    pub fn is_bounded_by_bytes(&self) -> bool {
        #[cfg(feature = "engines")]
        let is_bounded = engines::is_bounded_by_bytes(&self.spec);
        #[cfg(not(feature = "engines"))]
        let is_bounded = false;
        is_bounded
    }

    /// Returns the engine, empty, in private memory and with these bounds.
    #[must_use]
    pub fn open(&self, capacity: Capacity) -> AnyEngine {
        let of_table = |engine| AnyEngine::Other(Other::Table(engine));
        match (self.name(), self.spec.is_plain()) {
            ("list", true) => of_table(OfTable::List(list::PlainList::with_capacity(capacity))),
            ("source", true) => {
                of_table(OfTable::Source(sources::PerSource::with_capacity(capacity)))
            }
            ("bins", true) => AnyEngine::Bins(bins::HashBins::with_capacity(capacity)),
            (name, _) => AnyEngine::boxed(name, self.open_over::<Apart>(capacity)),
        }
    }
}

#[cfg(feature = "engines")]
impl EngineName {
    /// Returns the engine, empty and with these bounds, over words whose accesses are counted; `None` for one that a program has added
    /// and that has no such words.
    #[must_use]
    pub fn open_counting(&self, capacity: Capacity) -> Option<Box<dyn Engine + Send>> {
        match self.added {
            None => Some(self.open_over::<Counting>(capacity)),
            Some(added) => added.factory.open_counting(&self.spec, capacity),
        }
    }

    /// Returns the engine, empty and with these bounds, for somebody who judges its answers.
    ///
    /// # Errors
    /// [`Error::Library`] for one of a library that makes none with these bounds.
    pub fn open_judged<C: Cells>(&self, capacity: Capacity) -> Result<Judged> {
        let Some(added) = self.added else {
            return Ok(Judged::of(self.open_over::<C>(capacity)));
        };
        let opened = added.factory.open_judged(&self.spec, capacity);
        opened.map_err(|why| Error::Library {
            engine: self.to_string(),
            why,
        })
    }

    /// Returns the engine, empty, in private memory and with these bounds; `sink` is given each call with its answer.
    #[must_use]
    pub fn open_recorded<S: Sink + 'static>(
        &self,
        capacity: Capacity,
        sink: S,
    ) -> AnyEngine<Recorded<S>> {
        let name = self.name();
        if name == AnyEngine::DEFAULT && self.spec.is_plain() {
            // The default is called directly, which is a third of what a record costs.
            let engine = Recorded::of_default(capacity, sink);
            return AnyEngine::direct(name, engine);
        }
        let recorded = Recorded::new(self.open_over::<Apart>(capacity), sink);
        AnyEngine::boxed(name, Box::new(recorded)).beside()
    }
}

impl FromStr for EngineName {
    type Err = Error;

    /// Reads `NAME` or `NAME:KEY=VALUE,...`.
    ///
    /// # Errors
    /// [`Error::UnknownEngine`] and [`Error::BadEngine`], with the nearest right name.
    fn from_str(text: &str) -> Result<Self> {
        Self::new(Spec::parse(text, KNOWN).map_err(|refused| bad(text, refused, KNOWN))?)
    }
}

/// As it is read; parameters that have their default are left out.
impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.spec.to_string())
    }
}

/// Stands for engines in libraries: `./libmine.so:bins=64`.
pub static LIBRARY: Named = Named {
    name: "./LIBRARY.so",
    parameters: &[],
};

/// Enters the engine of each module into the table.
macro_rules! engines {
    ($($(#[$attribute:meta])* $module:ident,)*) => {
        /// The names of the engines with their parameters.
        pub static KNOWN: &[&Named] = &[$($(#[$attribute])* &$module::DESCRIPTION.named,)*];

        /// The same, and what stands for libraries that programs load.
        pub static NAMES: &[&Named] = &[$($(#[$attribute])* &$module::DESCRIPTION.named,)* #[cfg(feature = "engines")] &LIBRARY];

        /// All engines that can be chosen by name.
        pub static DESCRIPTIONS: &[&Description] = &[$($(#[$attribute])* &$module::DESCRIPTION,)*];

        impl EngineName {
            /// Returns the engine, empty, in private memory made of words of the kind `C`, and with these bounds. One that a program
            /// has added has words of its own.
            #[must_use]
            pub fn open_over<C: Cells>(&self, capacity: Capacity) -> Box<dyn Engine + Send> {
                if let Some(added) = self.added {
                    return added.factory.open(&self.spec, capacity);
                }
                $($(#[$attribute])*
                if std::ptr::eq(self.description, &$module::DESCRIPTION) {
                    return $module::open::<C>(&self.spec, capacity);
                })*
                unreachable!("a description is one of the table")
            }
        }
    };
}

engines! {
    list,
    sources,
    bins,
    #[cfg(feature = "engines")]
    ucx,
    #[cfg(feature = "engines")]
    flajslik,
    #[cfg(feature = "engines")]
    chunks,
    #[cfg(feature = "engines")]
    lanes,
    #[cfg(feature = "engines")]
    fuzzy,
    #[cfg(feature = "engines")]
    portals,
    #[cfg(feature = "engines")]
    offload,
    #[cfg(feature = "engines")]
    adaptive,
    #[cfg(feature = "engines")]
    partner,
}

pub(crate) fn bad(text: &str, refused: Refused, known: &[&'static Named]) -> Error {
    match refused {
        Refused::Name { name, .. } => unknown(&name, known),
        why => Error::BadEngine {
            engine: text.to_owned(),
            why: Box::new(why),
        },
    }
}

/// Names the engine that is the fewest edits away, however many they are.
fn unknown(name: &str, known: &[&'static Named]) -> Error {
    let by_distance = |known: &&str| distance(known, name);
    let nearest = known.iter().map(|known| known.name).min_by_key(by_distance);
    Error::UnknownEngine {
        name: name.to_owned(),
        nearest: nearest.unwrap_or(AnyEngine::DEFAULT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_the_engine_of_that_name() {
        for description in DESCRIPTIONS {
            let name: EngineName = description.named.name.parse().unwrap();
            assert_eq!(name.to_string(), description.named.name);
            assert_eq!(
                name.open(Capacity::default()).name(),
                description.named.name
            );
            for text in [description.about, description.source, description.limits] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
            }
        }
    }

    #[test]
    fn a_mistyped_name_is_refused_with_the_nearest() {
        for (typed, meant) in [
            ("lsit", "list"),
            ("sources", "source"),
            ("hashbins", "bins"),
        ] {
            let error = typed.parse::<EngineName>().unwrap_err();
            assert_eq!(error.code(), 200);
            let text = format!("unknown matching engine '{typed}'; did you mean '{meant}'?");
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    #[cfg(feature = "engines")]
    fn a_mistyped_parameter_is_refused_with_the_nearest() {
        let error = "ucx:bin=64".parse::<EngineName>().unwrap_err();
        assert_eq!(error.code(), 201);
        let text =
            "matching engine 'ucx:bin=64': 'ucx' has no parameter 'bin'; did you mean 'bins'?";
        assert_eq!(error.to_string(), text);
    }

    /// No processor has both AVX-512 and NEON.
    #[test]
    #[cfg(feature = "engines")]
    fn kernels_that_the_processor_lacks_are_refused_by_name() {
        let names = ["avx512", "neon"].map(|isa| format!("fuzzy:bits=16,isa={isa}"));
        let errors = names
            .iter()
            .filter_map(|name| name.parse::<EngineName>().err());
        let told: Vec<String> = errors.map(|error| error.to_string()).collect();
        assert!(!told.is_empty());
        for told in told {
            assert!(told.contains("'isa' of 'fuzzy' is auto, "), "{told}");
            assert!(told.contains(" on this processor, not '"), "{told}");
        }
        for name in ["lanes:isa=scalar", "fuzzy:isa=scalar"] {
            assert!(name.parse::<EngineName>().is_ok());
        }
    }
}
