//! What an engine is, in words, and what it promises.

use std::fmt;

use tagwire_base::named::{Named, Parameter, Spec};

/// What there is to say of an engine.
#[derive(Debug)]
pub struct Description {
    /// Its name and its parameters.
    pub named: Named,
    /// What it does, in a line.
    pub about: &'static str,
    /// Where its structure was published, or that it is ours.
    pub source: &'static str,
    /// What it cannot do, and where it is slow.
    pub limits: &'static str,
    /// What it promises of its order, by its parameters.
    pub grade: fn(&Spec) -> Grade,
}

/// What there is to say, a line for each thing.
impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.named.name, self.about)?;
        for Parameter { name, range, help } in self.named.parameters {
            writeln!(
                f,
                "  {name}={range}: {help} [default: {}]",
                range.default_text()
            )?;
        }
        writeln!(f, "  source: {}", self.source)?;
        writeln!(f, "  limits: {}", self.limits)
    }
}

/// What an engine promises of the order in which it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// A receive may take any message that it accepts, and a message any receive: what a program gets that asserts
    /// `mpi_assert_allow_overtaking` (MPI-5.0, section 7.4.4).
    Free,
    /// Messages of one source and context are taken in their order, receives in theirs (MPI-5.0, section 3.5); messages of
    /// different sources in any order.
    Mpi,
    /// As the [`Oracle`](crate::Oracle) decides: messages of all sources are taken in the order in which they arrived.
    Exact,
}

impl Grade {
    /// The grades by their names.
    pub const NAMES: &'static [&'static str] = &["exact", "mpi", "free"];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Mpi => "mpi",
            Self::Free => "free",
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
