//! Matching engines in shared libraries, by the C interface of `include/tagwire_engine.h`.
//!
//! ```text
//!   load(path) -> Library: dlopen, its table of functions
//!     -> Instance: one engine, calls of C (unsafe)
//!          -> Plain: an Engine, whatever is answered
//!               -> Guarded: ends the program at an answer that cannot be
//! ```
//!
//! The library's code is part of the process and trusted; what it answers is not. [`load`] is a
//! [`Loader`](tagwire_matching::Loader): `Engines::default().with_loader(tagwire_foreign::load)`.

mod guard;
mod library;
mod plain;

use std::ffi::CString;

use tagwire_base::named::{Named, Spec};
use tagwire_matching::judged::{Judged, refuse};
use tagwire_matching::kit::Factory;
use tagwire_matching::registry::Description;
use tagwire_matching::{Capacity, Engine, Grade};

use crate::guard::Guarded;
use crate::library::Library;
use crate::plain::Plain;

/// Opens the library at a path, and returns what there is to say of its engine and what makes it. It stays open.
///
/// # Errors
/// What the system says of a file that it cannot open, or what the library lacks.
pub fn load(path: &str) -> Result<(Description, Box<dyn Factory>), String> {
    let library = Library::open(path)?;
    let description = Description {
        named: Named {
            // As long as the library, which is for ever.
            name: String::leak(path.to_owned()),
            parameters: &[],
        },
        about: String::leak(format!("{}, an engine of this library", library.name())),
        source: "its author's",
        limits: "its author's; one call by a pointer for each call, and two look-ups to check its answer",
        grade: match library.grade() {
            Grade::Exact => |_| Grade::Exact,
            Grade::Mpi => |_| Grade::Mpi,
            Grade::Free => |_| Grade::Free,
        },
    };
    Ok((description, Box::new(library)))
}

impl Factory for Library {
    /// # Panics
    /// When the library makes no engine of this capacity, with its reason. One that goes by its parameters alone was found by
    /// [`check`](Factory::check) before.
    fn open(&self, parameters: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
        let (is_guarded, text) = read(parameters);
        let plain = self.plain(capacity, &text, " (setting 'match-capacity')");
        let plain = plain.unwrap_or_else(|why| refuse(parameters, &why));
        match is_guarded {
            true => Box::new(Guarded::new(plain, parameters.to_string())),
            false => Box::new(plain),
        }
    }

    /// Makes an engine and throws it away: only its `create` knows its parameters.
    fn check(&self, parameters: &Spec) -> Result<(), String> {
        self.create(Capacity::new(1, 1), &read(parameters).1)
            .map(drop)
    }

    fn counts_entries(&self, parameters: &Spec) -> bool {
        read(parameters).0
    }

    /// Without the guard: what cannot be is told, and ends nothing.
    fn open_judged(&self, parameters: &Spec, capacity: Capacity) -> Result<Judged, String> {
        let plain = self.plain(capacity, &read(parameters).1, "")?;
        let impossible = plain.impossible().clone();
        Ok(Judged {
            engine: Box::new(plain),
            impossible,
        })
    }
}

impl Library {
    /// Returns an engine that believes the library; or why there is none, with what bounds it.
    fn plain(
        &self,
        capacity: Capacity,
        parameters: &CString,
        bounded: &str,
    ) -> Result<Plain, String> {
        let Capacity { posted, unexpected } = capacity;
        let made = self.create(capacity, parameters);
        made.map(Plain::new).map_err(|why| {
            format!(
                "cannot be made for {posted} receives and {unexpected} messages{bounded}: {why}"
            )
        })
    }
}

/// Whether answers are watched, and the parameters of the library.
fn read(parameters: &Spec) -> (bool, CString) {
    let (_, text) = parameters.file().unwrap_or_default();
    let (mut is_guarded, mut own) = (true, Vec::new());
    for part in text.split(',') {
        match part {
            OFF => is_guarded = false,
            ON => {}
            other => own.push(other),
        }
    }
    // A command line and a variable have no zeros.
    let text = CString::new(own.join(",")).unwrap_or_default();
    (is_guarded, text)
}

const OFF: &str = "guard=off";
const ON: &str = "guard=on";
