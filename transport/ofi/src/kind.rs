//! libfabric among the transports that settings choose from.

use tagwire_base::Bootstrap;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};
use tagwire_libfabric_sys::Library;
use tagwire_transport::{
    ByteTransport, ForeignLibrary, Limits, MatchTransport, Result, TransportKind, Way,
};

use crate::config::DATAGRAM;
use crate::fabric::file_of;
use crate::open::{Use, open_info};
use crate::survey::{ProviderReport, survey};
use crate::{NAME, Ofi, OfiDatagram, OfiMatch, OfiOptions, SETTINGS};

/// Opens [`Ofi`] and [`OfiMatch`]; the detail names the provider, and its local address.
#[derive(Debug, Clone, Copy)]
pub struct OfiKind;

impl TransportKind for OfiKind {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "libfabric, with the provider behind the colon, and an interface behind an @ (ofi:tcp@eth0)"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn library_setting(&self) -> Option<&'static str> {
        Some("libfabric")
    }

    #[allow(unsafe_code, reason = "a library is loaded that a setting names")]
    fn library(&self, config: &Config) -> Option<ForeignLibrary> {
        let options = OfiOptions::from_config(None, config);
        // SAFETY: whoever names another file than the system's in the setting names a libfabric.
        let library = unsafe { Library::open(options.library_name()) }.ok()?;
        Some(file_of(&library))
    }

    fn opened(
        &self,
        detail: Option<&str>,
        matches: bool,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Option<String> {
        let options =
            OfiOptions::from_config(detail, config).reached_at(bootstrap.locality().address);
        let wanted = match (matches, options.datagrams) {
            (true, _) => Use::Matching,
            (false, false) => Use::Bytes,
            (false, true) => Use::Datagrams,
        };
        let info = open_info(&options, bootstrap.size(), wanted).ok()?;
        let kind = if wanted == Use::Datagrams {
            DATAGRAM
        } else {
            ""
        };
        Some(info.provider().name() + kind)
    }

    fn ways(&self, config: &Config) -> Vec<Way> {
        let survey = survey(&OfiOptions::from_config(None, config));
        if let Some(missing) = survey.missing {
            return vec![Way {
                why_not: Some(missing),
                ..Way::default()
            }];
        }
        // Hooks are layers that libfabric puts around a provider by itself.
        let providers = survey.providers.into_iter();
        providers
            .filter(|provider| !provider.name.starts_with("ofi_hook"))
            .map(way)
            .collect()
    }

    fn open(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>> {
        let options =
            OfiOptions::from_config(detail, config).reached_at(bootstrap.locality().address);
        if options.datagrams {
            return Ok(Box::new(OfiDatagram::open(&options, bootstrap)?));
        }
        Ok(Box::new(Ofi::open(&options, bootstrap)?))
    }

    fn open_matching(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let options =
            OfiOptions::from_config(detail, config).reached_at(bootstrap.locality().address);
        if options.datagrams {
            return Ok(None);
        }
        Ok(Some(Box::new(OfiMatch::open(&options, bootstrap)?)))
    }
}

fn way(provider: ProviderReport) -> Way {
    let mut notes = Vec::new();
    if let Some(opens) = &provider.opens {
        notes.push(format!("the library opens {opens} for it"));
    }
    if !provider.domains.is_empty() {
        notes.push(format!("on {}", provider.domains.join(", ")));
        let longest = match provider.max_message as u64 {
            Limits::ENDLESS.. => "any number of".to_owned(),
            bytes => bytes.to_string(),
        };
        notes.push(format!(
            "messages of up to {} bytes, of up to {} without a buffer; {} bytes of data with a completion",
            longest, provider.inject_size, provider.immediate_width
        ));
        notes.push(format!("offers {}", provider.capabilities.join(", ")));
        if !provider.registration.is_empty() {
            let modes = provider.registration.join(", ");
            notes.push(format!("registers memory by {modes}"));
        }
    }
    Way {
        detail: provider.name,
        notes,
        why_not: provider.why_not,
        why_not_matching: provider.why_not_matching,
    }
}
