//! Opening a rank with its collectives.

use std::sync::Arc;

use tagwire_base::Config;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_pml::{Result, ThreadLevel};

use crate::selection::Selection;
use crate::team::Team;

/// Opens this process's rank as `config` says, and returns the group of all ranks.
///
/// # Errors
/// As [`tagwire_pml::open`]; when the settings of collectives are wrong, or differ from those of rank 0.
pub fn open(config: &Config, level: ThreadLevel, bootstrap: &SharedBootstrap) -> Result<Team> {
    let selection = Selection::of_job(config, bootstrap)?;
    selection.publish(&mut bootstrap.clone())?;
    let layer = Box::new(bootstrap.clone());
    let messenger = Arc::new(tagwire_pml::open(config, level, layer)?);
    let selection = selection.agree(&mut bootstrap.clone())?;
    Ok(Team::world(&messenger, Arc::new(selection)))
}
