//! The transports of this build, and what each offers on this machine.
//!
//! Each choice of the setting `transport` is opened as a job of one rank would open it, so that
//! what is printed is what it found, not what it hopes for. A new transport needs nothing here
//! but [`notes`] where it has something to say of the machine.

use serde::Serialize;
use tagwire_base::bootstrap::{LocalBootstrap, LocalJob, SharedBootstrap};
use tagwire_base::config::Chosen;
use tagwire_base::topology::Topology;
use tagwire_base::{Config, Rank};
use tagwire_pml::channels::ChannelWay;
use tagwire_pml::settings::of_layer;
use tagwire_transport::{ByteTransport, Capabilities, ForeignLibrary, Limits, Way};

use super::choices::{Named, choices};
use super::conformance;
use super::messages::{ProtocolReport, of_cm, of_ob1, open_matching};

/// The setting that chooses the transport.
pub const TRANSPORT: &str = "transport";

/// The setting that puts faults around the transport.
const FAULT: &str = "fault";

/// Whether a transport would be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It would be used here and now.
    Used,
    /// It works here, and is used only when asked for.
    OnRequest,
    /// It cannot be used here.
    Unusable,
}

/// What there is to say of a transport.
#[derive(Debug, Clone, Serialize)]
pub struct TransportReport {
    /// The name in settings and reports.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Whether it would be used.
    pub verdict: Verdict,
    /// Why not, or how, and what would change that; one sentence each.
    pub notes: Vec<String>,
    /// The foreign library that it uses here.
    pub library: Option<LibraryReport>,
    /// What it offers here.
    pub capabilities: Vec<String>,
    /// The tiers of the conformance kit that it passes.
    pub conformance: &'static [&'static str],
    /// The same by what may stand behind the colon, as it was tested; not what is here.
    pub fabrics: Vec<FabricReport>,
    /// The sizes within which it works, in bytes unless said otherwise; `None` where it cannot
    /// be opened.
    pub limits: Option<LimitsReport>,
    /// How the partitions of a channel travel, by point-to-point layer.
    pub partitions: Option<PartitionsReport>,
    /// What may stand behind the colon, once that was [looked for](survey).
    pub ways: Vec<WayReport>,
}

/// The fields of a [`ForeignLibrary`].
#[derive(Debug, Clone, Serialize)]
pub struct LibraryReport {
    pub name: &'static str,
    pub version: String,
    pub file: String,
}

/// What was passed over one thing that a transport can be told to use.
#[derive(Debug, Clone, Serialize)]
pub struct FabricReport {
    /// The name in settings.
    pub name: String,
    pub library: &'static str,
    /// Tiers of the conformance kit.
    pub conformance: &'static [&'static str],
    /// Checks of it that are skipped.
    pub but: &'static [&'static str],
    /// Checks of the kit for matching that are skipped; `None` where it may not match.
    pub matching_but: Option<&'static [&'static str]>,
}

/// Which way partitions take, and why.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PartitionsReport {
    pub ob1: &'static str,
    pub cm: &'static str,
}

/// One thing that a transport can be told to use.
#[derive(Debug, Clone, Serialize)]
pub struct WayReport {
    /// The name in settings: `transport:detail`.
    pub name: String,
    /// What it is and has here.
    pub notes: Vec<String>,
    /// What the transport offers over it, and the sizes within which it works; nothing where it cannot
    /// be used.
    pub capabilities: Vec<String>,
    pub limits: Option<LimitsReport>,
    /// What carries messages over it, by length and layer.
    pub protocols: Option<ProtocolsReport>,
    /// Why it cannot be used here; `None` where it can.
    pub why_not: Option<String>,
    /// Why it cannot match here; `None` where it can.
    pub why_not_matching: Option<String>,
}

/// What carries messages of which length, by layer.
#[derive(Debug, Clone, Serialize)]
pub struct ProtocolsReport {
    pub ob1: Vec<ProtocolReport>,
    /// Nothing where the transport may not match.
    pub cm: Vec<ProtocolReport>,
}

/// The fields of [`Limits`], with the units in the names where they are not bytes.
#[derive(Debug, Clone, Serialize)]
pub struct LimitsReport {
    pub max_inline: usize,
    pub max_send: usize,
    pub max_zero_copy: usize,
    pub max_remote_access: u64,
    pub max_offers: usize,
    pub immediate_width: usize,
    pub lanes: usize,
    pub memory_per_peer: usize,
    pub ordering: String,
    pub registration: String,
    pub thread_mode: String,
    pub wait_object: String,
}

/// Every transport of this build.
pub fn catalogue(config: &Config, topology: &Topology) -> Vec<TransportReport> {
    chosen_from(config, topology, |_| true)
}

/// The transport that has this name; the others are not opened.
pub fn of_name(name: &str, config: &Config, topology: &Topology) -> Option<TransportReport> {
    chosen_from(config, topology, |transport| transport == name).pop()
}

/// The name of the transport that is asked for by `name`, which may say what it is to use; nothing is opened.
pub fn behind(name: &str, config: &Config) -> Option<&'static str> {
    let mut all = names_of_all(config).into_iter();
    all.find(|transport| is_of(transport, name))
}

/// The names of all transports, of which none is opened.
pub fn names_of_all(config: &Config) -> Vec<&'static str> {
    let all = transports(config);
    all.iter().map(|named| named.name).collect()
}

fn chosen_from(
    config: &Config,
    topology: &Topology,
    is_wanted: impl Fn(&str) -> bool,
) -> Vec<TransportReport> {
    let config = &*tagwire_rails::on_one_host(config);
    let mut wanted = transports(config);
    wanted.retain(|named| is_wanted(named.name));
    wanted
        .iter()
        .map(|named| describe(named, config, topology))
        .collect()
}

/// What the setting chooses from, but for the choice that the job makes itself: on one host the first, which is the default
/// then.
fn transports(config: &Config) -> Vec<Named> {
    let mut names = choices(config, TRANSPORT);
    names.retain(|named| tagwire_rails::kind(named.name).is_some());
    if let Some(first) = names.first_mut() {
        first.default = true;
    }
    names
}

/// Whether a transport has this name.
pub fn is_name(name: &str, config: &Config) -> bool {
    transports(config).iter().any(|one| one.name == name)
}

/// Whether `name` is that of `transport`, alone or with what it is to use.
fn is_of(transport: &str, name: &str) -> bool {
    let rest = name.strip_prefix(transport);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '@']))
}

/// Looks for what may stand behind the colon of each: opens libraries and devices.
pub fn survey(transports: &mut [TransportReport], config: &Config) {
    for transport in transports {
        transport.ways = ways(transport.name, config);
    }
}

/// Returns the names of those that work here and reach somebody: a transport, or each of its ways. Of names that open the
/// same, one.
pub fn usable(config: &Config, topology: &Topology) -> Vec<String> {
    let mut all = catalogue(config, topology);
    all.retain(|transport| transport.verdict != Verdict::Unusable && transport.name != "null");
    survey(&mut all, config);
    let names = all.into_iter().flat_map(|transport| {
        if transport.ways.is_empty() {
            return vec![transport.name.to_owned()];
        }
        let usable = transport
            .ways
            .into_iter()
            .filter(|way| way.why_not.is_none());
        let opened = usable.map(|way| {
            let opened = opened_by(&way.name, config).unwrap_or_else(|| way.name.clone());
            (way.name, opened)
        });
        one_of_each(&opened.collect::<Vec<_>>())
    });
    names.collect()
}

/// Returns what the library opens for a name.
fn opened_by(name: &str, config: &Config) -> Option<String> {
    let (config, member) = only_rank(config, &[(TRANSPORT, name), (FAULT, "")]).ok()?;
    tagwire_rails::opened(&config, false, &SharedBootstrap::new(member))
}

/// Returns one name for each thing that is opened: the one that says it all, or the first.
fn one_of_each(opened: &[(String, String)]) -> Vec<String> {
    let is_whole = |(name, what): &(String, String)| {
        name.split_once(':').is_some_and(|(_, part)| part == what)
    };
    let is_kept = |place: usize| {
        let mut same = (0..opened.len()).filter(|other| opened[*other].1 == opened[place].1);
        let first = same.clone().next();
        same.find(|other| is_whole(&opened[*other])).or(first) == Some(place)
    };
    let kept = (0..opened.len()).filter(|place| is_kept(*place));
    kept.map(|place| opened[place].0.clone()).collect()
}

fn describe(named: &Named, config: &Config, topology: &Topology) -> TransportReport {
    let mut report = TransportReport {
        name: named.name,
        about: tagwire_rails::kind(named.name).map_or("", |kind| kind.about()),
        verdict: Verdict::Unusable,
        notes: Vec::new(),
        library: library(named.name, config),
        capabilities: Vec::new(),
        conformance: published(named.name),
        fabrics: fabrics(named.name),
        limits: None,
        partitions: None,
        ways: Vec::new(),
    };
    match open(&asked_for(named.name, config).to_string(), config) {
        Ok(transport) => {
            report.verdict = if named.used {
                Verdict::Used
            } else {
                Verdict::OnRequest
            };
            report.capabilities = names(transport.capabilities());
            let (capabilities, limits) = (transport.capabilities(), transport.limits());
            let asked = asked_for(named.name, config).to_string();
            let cm = open_matching(&asked, config).map(|mut open| ChannelWay::of_cm(&mut *open));
            report.partitions = Some(PartitionsReport {
                ob1: ChannelWay::of_ob1(capabilities, &limits).about(),
                cm: cm.unwrap_or(ChannelWay::Messages).about(),
            });
            report.limits = Some(limits.into());
            report.notes = notes(named.name, config, topology);
            report.notes.push(chosen(named, config));
        }
        Err(error) => {
            report.notes.push(error);
            report.notes.extend(notes(named.name, config, topology));
        }
    }
    report
}

/// The part of the setting that names the transport; by its name alone where it does not.
fn asked_for(name: &'static str, config: &Config) -> Chosen {
    let stack = config.stack(TRANSPORT);
    let part = stack.iter().find(|part| part.name == name).cloned();
    part.unwrap_or(Chosen {
        name,
        file: None,
        detail: None,
    })
}

/// The library that a transport uses as the settings are.
fn library(name: &'static str, config: &Config) -> Option<LibraryReport> {
    let part = asked_for(name, config);
    let config = tagwire_rails::config_of(config, &part);
    let ForeignLibrary {
        name,
        version,
        file,
    } = tagwire_rails::kind(name)?.library(&config)?;
    Some(LibraryReport {
        name,
        version,
        file,
    })
}

fn ways(transport: &'static str, config: &Config) -> Vec<WayReport> {
    let config = &tagwire_rails::config_of(config, &asked_for(transport, config));
    let report = |way: Way| WayReport::new(transport, way).opened(config);
    listed(transport, config).into_iter().map(report).collect()
}

/// The names of what the library of a transport lists, as settings have them; nothing of it is opened.
pub fn listed_names(transport: &'static str, config: &Config) -> Vec<String> {
    let config = &tagwire_rails::config_of(config, &asked_for(transport, config));
    let listed = listed(transport, config).into_iter();
    listed
        .map(|way| WayReport::new(transport, way).name)
        .collect()
}

/// What the library of a transport lists.
fn listed(transport: &str, config: &Config) -> Vec<Way> {
    let found = tagwire_rails::kind(transport).map(|kind| kind.ways(config));
    found.unwrap_or_default()
}

impl WayReport {
    fn new(transport: &str, way: Way) -> Self {
        Self {
            name: match way.detail.as_str() {
                "" => transport.to_owned(),
                detail => format!("{transport}:{detail}"),
            },
            notes: way.notes,
            capabilities: Vec::new(),
            limits: None,
            protocols: None,
            why_not: way.why_not,
            why_not_matching: way.why_not_matching,
        }
    }

    /// What opening `name` comes to, a way of `transport`; with what its library lists of it, if it does.
    pub fn of(transport: &'static str, name: &str, config: &Config) -> Self {
        let config = &tagwire_rails::config_of(config, &asked_for(transport, config));
        let listed = listed(transport, config).into_iter();
        let found = listed
            .map(|way| Self::new(transport, way))
            .find(|way| way.name == name);
        let unlisted = || Self {
            name: name.to_owned(),
            notes: Vec::new(),
            capabilities: Vec::new(),
            limits: None,
            protocols: None,
            why_not: None,
            why_not_matching: None,
        };
        found.unwrap_or_else(unlisted).opened(config)
    }

    /// The same with what is known once it is open, where it should open.
    fn opened(mut self, config: &Config) -> Self {
        if self.why_not.is_some() {
            return self;
        }
        let opened = match open(&self.name, config) {
            Ok(opened) => opened,
            Err(why_not) => {
                self.why_not = Some(why_not);
                return self;
            }
        };
        self.capabilities = names(opened.capabilities());
        self.limits = Some(opened.limits().into());
        let ob1 = of_ob1(config, &*opened);
        drop(opened);
        let cm = match self.why_not_matching {
            None => of_cm(&self.name, config),
            Some(_) => Ok(Vec::new()),
        };
        self.why_not_matching = self.why_not_matching.or_else(|| cm.as_ref().err().cloned());
        let cm = cm.unwrap_or_default();
        self.protocols = Some(ProtocolsReport { ob1, cm });
        self
    }
}

/// How the transport comes to be chosen, and what is put around it.
fn chosen(named: &Named, config: &Config) -> String {
    let faults = config.entry(FAULT).map(|entry| entry.value().to_string());
    match faults {
        _ if !named.used => format!("--{TRANSPORT} {} would choose it", named.name),
        Ok(faults) if !faults.is_empty() => format!("with faults around it: {faults}"),
        _ if named.default => "it is the default where all ranks share a host".to_owned(),
        _ => format!("the setting '{TRANSPORT}' chooses it"),
    }
}

/// Opens a transport as the only rank of a job would, without the faults that may be asked for.
pub fn open(name: &str, config: &Config) -> Result<Box<dyn ByteTransport>, String> {
    let (config, member) = only_rank(config, &[(TRANSPORT, name), (FAULT, "")])?;
    let (config, bootstrap) = (of_layer(&config), SharedBootstrap::new(member));
    tagwire_rails::open(&config, &bootstrap).map_err(|error| error.to_string())
}

/// What the only rank of a job has with these settings changed.
pub fn only_rank(
    config: &Config,
    settings: &[(&str, &str)],
) -> Result<(Config, Box<LocalBootstrap>), String> {
    let mut config = config.clone();
    for (setting, value) in settings {
        config
            .set(setting, value)
            .map_err(|error| error.to_string())?;
    }
    let job = LocalJob::new(1).map_err(|error| error.to_string())?;
    Ok((config, Box::new(job.member(Rank::new(0)))))
}

fn published(name: &str) -> &'static [&'static str] {
    let found = conformance::BYTES.iter().find(|(known, _)| *known == name);
    found.map_or(&[], |(_, tiers)| tiers)
}

fn fabrics(name: &str) -> Vec<FabricReport> {
    let published = match name {
        "ofi" => conformance::OFI,
        "ucx" => conformance::UCX,
        _ => &[],
    };
    let report = |fabric: &conformance::Fabric| FabricReport {
        name: format!("{name}:{}", fabric.detail),
        library: fabric.library,
        conformance: fabric.tiers,
        but: fabric.but,
        matching_but: fabric.matching_but,
    };
    published.iter().map(report).collect()
}

/// What there is to say of a transport on this machine, and what would change it.
fn notes(name: &str, config: &Config, topology: &Topology) -> Vec<String> {
    match name {
        "shm" => super::shm::notes(config, topology),
        "null" => vec!["what is sent to another rank vanishes".to_owned()],
        _ => Vec::new(),
    }
}

/// Names as users write them: `ZERO_COPY` is `zero-copy`.
fn names(capabilities: Capabilities) -> Vec<String> {
    capabilities
        .iter_names()
        .map(|(name, _)| name.to_ascii_lowercase().replace('_', "-"))
        .collect()
}

impl From<Limits> for LimitsReport {
    fn from(limits: Limits) -> Self {
        Self {
            max_inline: limits.max_inline,
            max_send: limits.max_send,
            max_zero_copy: limits.max_zero_copy,
            max_remote_access: limits.max_remote_access,
            max_offers: limits.max_offers,
            immediate_width: limits.immediate_width,
            lanes: limits.lanes,
            memory_per_peer: limits.memory_per_peer,
            ordering: kebab(&limits.ordering),
            registration: kebab(&limits.registration),
            thread_mode: kebab(&limits.thread_mode),
            wait_object: kebab(&limits.wait_object),
        }
    }
}

/// A variant's name as users write it: `WriteAfterWrite` is `write-after-write`.
fn kebab(variant: &impl std::fmt::Debug) -> String {
    let mut text = String::new();
    for letter in format!("{variant:?}").chars() {
        if letter.is_ascii_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use tagwire_transport::{Ordering, ThreadMode};

    use super::*;

    #[test]
    fn names_are_written_as_users_write_them() {
        assert_eq!(kebab(&Ordering::WriteAfterWrite), "write-after-write");
        assert_eq!(kebab(&ThreadMode::Lane), "lane");
        let two = Capabilities::ZERO_COPY | Capabilities::GET;
        assert_eq!(names(two), ["zero-copy", "get"]);
    }

    #[test]
    fn names_of_the_same_are_one() {
        let opened = [
            ("ofi:ofi_rxm", "tcp;ofi_rxm"),
            ("ofi:tcp", "tcp"),
            ("ofi:tcp;ofi_rxm", "tcp;ofi_rxm"),
            ("ucx:tcp", "ucx:tcp"),
            ("ofi:a", "b"),
            ("ofi:c", "b"),
        ];
        let opened = opened.map(|(name, what)| (name.to_owned(), what.to_owned()));
        let kept = ["ofi:tcp", "ofi:tcp;ofi_rxm", "ucx:tcp", "ofi:a"];
        assert_eq!(one_of_each(&opened), kept);
    }
}
