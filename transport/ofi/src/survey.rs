//! What is here: the library, its providers, and why one cannot be used.

use std::collections::BTreeMap;
use std::path::Path;

use tagwire_libfabric_sys::Library;

use crate::config::OfiOptions;
use crate::devices;
use crate::fabric::{Infos, Provider, Wanted, file_of, mode_names, names};
use crate::open::open_library;
use crate::plugins::Plugins;
use crate::quirks;

/// What was found of libfabric.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survey {
    /// The library's file, or the name under which it was looked for.
    pub file: String,
    /// Its version: major and minor.
    pub version: Option<(u32, u32)>,
    /// Why there is none.
    pub missing: Option<String>,
    /// Its providers, by name.
    pub providers: Vec<ProviderReport>,
    /// What to set for it to find others, whose files lie near it.
    pub advice: Option<String>,
}

/// One provider.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderReport {
    /// Its name, as `ofi:NAME` takes it.
    pub name: String,
    /// What the library opens by that name, where that is another provider: one with layers on top.
    pub opens: Option<String>,
    /// The interfaces or devices that it finds here.
    pub domains: Vec<String>,
    /// What it can do.
    pub capabilities: Vec<&'static str>,
    /// How it wants memory registered; nothing means that keys are the user's and offsets.
    pub registration: Vec<&'static str>,
    /// Longest message that is sent without a buffer, in bytes.
    pub inject_size: usize,
    /// Longest message, in bytes.
    pub max_message: usize,
    /// Bytes of data that come with a completion.
    pub immediate_width: usize,
    /// Why it cannot move bytes for Tagwire.
    pub why_not: Option<String>,
    /// Why it cannot match for Tagwire.
    pub why_not_matching: Option<String>,
}

impl Survey {
    /// Why `ofi:NAME` cannot be used, or `None` when it can.
    #[must_use]
    pub fn why_not(&self, name: &str) -> Option<String> {
        if let Some(missing) = &self.missing {
            return Some(missing.clone());
        }
        if let Some(provider) = self.providers.iter().find(|one| one.name == name) {
            return provider.why_not.clone();
        }
        let all: Vec<_> = self.providers.iter().map(|one| one.name.as_str()).collect();
        Some(devices::needed(name).unwrap_or_else(|| {
            let advice = self.advice.as_ref();
            format!(
                "{} has no provider '{name}'; it has {}{}",
                self.file,
                all.join(", "),
                advice.map_or_else(String::new, |advice| format!(", and {advice}"))
            )
        }))
    }
}

/// Looks at the library that `options` name, and at all of its providers.
#[must_use]
pub fn survey(options: &OfiOptions) -> Survey {
    let library = match open_library(options, 1) {
        Ok(library) => library,
        Err(error) => {
            return Survey {
                file: options.library.clone(),
                missing: Some(error.to_string()),
                ..Survey::default()
            };
        }
    };
    let mut reports: BTreeMap<String, ProviderReport> = BTreeMap::new();
    if let Ok(built_in) = Infos::built_in(&library) {
        for provider in built_in.iter() {
            reports.entry(provider.name()).or_default();
        }
    }
    if let Ok(offers) = Infos::everything(&library) {
        for provider in offers.iter() {
            add(reports.entry(provider.name()).or_default(), &provider);
        }
    }
    let providers = reports.iter().map(|(name, report)| {
        let report = ProviderReport {
            name: name.clone(),
            ..report.clone()
        };
        judge(report, &reports, &library, options)
    });
    Survey {
        file: library.file().to_owned(),
        version: Some(library.version()),
        missing: None,
        providers: providers.collect(),
        advice: Plugins::near(Path::new(&file_of(&library).file)).map(|found| found.advice()),
    }
}

/// Adds one of a provider's offers to the report of it.
fn add(report: &mut ProviderReport, provider: &Provider<'_>) {
    if !provider.is_reliable_datagram() {
        return;
    }
    let domain = provider.domain();
    if !report.domains.contains(&domain) {
        report.domains.push(domain);
    }
    for name in names(provider.capabilities()) {
        if !report.capabilities.contains(&name) {
            report.capabilities.push(name);
        }
    }
    report.registration = mode_names(provider.registration_mode());
    report.inject_size = provider.inject_size();
    report.max_message = provider.max_message();
    report.immediate_width = provider.immediate_width();
}

/// Asks the library for the provider as transports do: it may open what it does not list, such as a layer
/// on top of a provider without reliable datagrams of its own.
fn judge(
    mut report: ProviderReport,
    listed: &BTreeMap<String, ProviderReport>,
    library: &Library,
    options: &OfiOptions,
) -> ProviderReport {
    let options = OfiOptions {
        provider: report.name.clone(),
        ..options.clone()
    };
    match Infos::find(library, &options, Wanted::MESSAGES) {
        Ok(infos) if report.domains.is_empty() => {
            let first = infos.iter().next().map(|first| first.name());
            if let Some(found) = first.as_ref().and_then(|name| listed.get(name)) {
                report = ProviderReport {
                    name: report.name,
                    ..found.clone()
                };
            }
            report.opens = first;
        }
        Ok(_) => {}
        Err(error) => {
            let missing = devices::missing(&report.name);
            report.why_not = Some(missing.unwrap_or_else(|| error.to_string()));
        }
    }
    let matching = Infos::find(library, &options, Wanted::MATCHING)
        .and_then(|infos| quirks::check_matching(library, &infos));
    report.why_not_matching = matching.err().map(|error| error.to_string());
    report
}
