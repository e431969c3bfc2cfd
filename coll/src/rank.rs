//! Opening a rank with its collectives.

use std::sync::Arc;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Bootstrap, Config};
use tagwire_pml::{Result, ThreadLevel};

use crate::selection::Selection;
use crate::team::Team;

/// Opens this process's rank as `config` says, and returns the group of all ranks.
///
/// # Errors
/// As [`tagwire_pml::open`]; when the settings of collectives are wrong, differ from those of rank 0, or name an
/// algorithm that no group of the job can take.
pub fn open(config: &Config, level: ThreadLevel, bootstrap: &SharedBootstrap) -> Result<Team> {
    let selection = Selection::of_job(config, bootstrap)?;
    selection.publish(&mut bootstrap.clone())?;
    let layer = Box::new(bootstrap.clone());
    let messenger = Arc::new(tagwire_pml::open(config, level, layer)?);
    let selection = selection.agree(&mut bootstrap.clone())?;
    selection.check_forced(config, bootstrap.size())?;
    Ok(Team::world(&messenger, Arc::new(selection)))
}
