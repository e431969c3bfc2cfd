//! Which build made a record, and where.

use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use tagwire_base::topology::Topology;

/// Where a record comes from. Records of another origin say nothing about this one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// The commit of the build, with `-dirty` behind it where it had changes.
    pub revision: String,
    /// The profile of the build.
    pub profile: String,
    /// The processor's name, and how many of its threads there are.
    pub machine: String,
}

impl Origin {
    /// Returns that of this program, here.
    pub fn here() -> Self {
        static HERE: OnceLock<Origin> = OnceLock::new();
        let look = || {
            let topology = Topology::of_machine();
            let name = topology.cpu_model.unwrap_or_else(|| "unknown".to_owned());
            let threads = std::thread::available_parallelism().map_or(0, usize::from);
            Self {
                revision: env!("BUILD_STAMP_REVISION").to_owned(),
                profile: env!("BUILD_STAMP_PROFILE").to_owned(),
                machine: format!("{name}, {threads} threads"),
            }
        };
        HERE.get_or_init(look).clone()
    }
}

impl fmt::Display for Origin {
    /// As the first columns of a table.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            revision,
            profile,
            machine,
        } = self;
        write!(f, "{revision} | {profile} | {machine}")
    }
}
