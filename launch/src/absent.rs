//! Joining the jobs of other launchers, in a build without it: it is refused with the name of the feature.

use tagwire_base::Bootstrap;
use tagwire_base::error::without_feature;

use crate::environment::LAUNCHER;
use crate::error::{Error, Result};
use crate::launchers::{Join, Meeting, OfPmi, OfPmix, Place};

impl Join for OfPmi {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        refuse("PMI-1", self)
    }
}

impl Join for OfPmix {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        refuse("PMIx", self)
    }
}

impl Join for Meeting {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        refuse(self.launcher, self)
    }
}

fn refuse(launcher: &str, place: &dyn Place) -> Result<Box<dyn Bootstrap>> {
    Err(Error::Environment(format!(
        "this process is {} under {launcher}, whose jobs this build cannot join: it was {}; {LAUNCHER}=single runs it as a job of its own",
        place.describe(),
        without_feature("launchers")
    )))
}
