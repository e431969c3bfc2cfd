//! How the choice among transports opens this one.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};
use tagwire_transport::{
    ByteTransport, ForeignLibrary, MatchTransport, Result, TransportKind, Way,
};

use crate::config::{SETTINGS, UcxOptions};
use crate::library::Library;
use crate::survey::{Offer, survey};
use crate::worker::version;
use crate::{NAME, Ucx, UcxMatch};

/// `ucx`, or `ucx:TLS` with the words of `UCX_TLS`.
#[derive(Debug, Clone, Copy)]
pub struct UcxKind;

impl TransportKind for UcxKind {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "UCX: InfiniBand, TCP and shared memory by a library that is loaded at run time"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn library_setting(&self) -> Option<&'static str> {
        Some("ucx")
    }

    fn library(&self, config: &Config) -> Option<ForeignLibrary> {
        let options = UcxOptions::from_config(None, config);
        let name = options.library_name();
        let ucp = Library::open(name).ok()?.ucp;
        let (major, minor, release) = version(ucp);
        let version = format!("{major}.{minor}.{release}");
        let address = ucp.ucp_get_version as usize;
        Some(ForeignLibrary::new("UCX", version, name, address))
    }

    fn ways(&self, config: &Config) -> Vec<Way> {
        let survey = survey(&UcxOptions::from_config(None, config));
        let version = match survey.version {
            Ok(version) => version,
            Err(missing) => {
                return vec![Way {
                    why_not: Some(missing),
                    ..Way::default()
                }];
            }
        };
        let way = |offer: Offer| Way {
            detail: offer.name.to_owned(),
            notes: vec![format!("{}, by UCX {version}", offer.about)],
            why_not_matching: offer.why_not.clone(),
            why_not: offer.why_not,
        };
        survey.transports.into_iter().map(way).collect()
    }

    fn open(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>> {
        let options = UcxOptions::from_config(detail, config);
        Ok(Box::new(Ucx::open(options, bootstrap)?))
    }

    fn open_matching(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let options = UcxOptions::from_config(detail, config);
        Ok(Some(Box::new(UcxMatch::open(options, bootstrap)?)))
    }
}
