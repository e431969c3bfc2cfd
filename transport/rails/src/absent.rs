//! A transport that this build was made without: its name is known, and opening it is an error that names the feature.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Chosen, Config, Setting};
use tagwire_base::error::without_feature;
use tagwire_transport::{ByteTransport, Error, MatchTransport, Result, TransportKind};

/// The kind of a transport that is not in this build. Its feature has its name.
#[derive(Debug)]
pub(crate) struct Absent(pub &'static str);

impl Absent {
    fn error(&self, detail: Option<&str>) -> Error {
        let name = self.0;
        let asked = Chosen {
            name,
            file: None,
            detail: detail.map(str::to_owned),
        };
        Error::Base(tagwire_base::Error::BadSetting {
            name: "transport".to_owned(),
            value: asked.to_string(),
            expected: format!(
                "a transport of this build, which was {}",
                without_feature(name)
            ),
        })
    }
}

impl TransportKind for Absent {
    fn name(&self) -> &'static str {
        self.0
    }

    fn about(&self) -> &'static str {
        "not in this build"
    }

    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    fn open(
        &self,
        detail: Option<&str>,
        _: &Config,
        _: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>> {
        Err(self.error(detail))
    }

    fn open_matching(
        &self,
        detail: Option<&str>,
        _: &Config,
        _: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        Err(self.error(detail))
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::Rank;
    use tagwire_base::bootstrap::LocalJob;
    use tagwire_base::config::Registry;

    use super::*;

    #[test]
    fn the_error_names_the_setting_the_feature_and_the_line() {
        let job = LocalJob::new(1).expect("one rank");
        let bootstrap = SharedBootstrap::new(Box::new(job.member(Rank::new(0))));
        let config = Config::defaults(&Registry::new(&[]));
        let kind = Absent("ofi");
        let bytes = kind.open(Some("tcp"), &config, &bootstrap).map(|_| ());
        let matching = kind.open_matching(Some("tcp"), &config, &bootstrap);
        for error in [bytes.unwrap_err(), matching.map(|_| ()).unwrap_err()] {
            let text = error.to_string();
            let line = "tagwire = { version = \"0.1.0\", features = [\"ofi\"] }";
            for part in ["transport", "'ofi:tcp'", "the feature 'ofi'", line] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }
}
