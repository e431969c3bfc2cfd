//! Which transport and which protocol would carry messages, by peer and length.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::Value;
use tagwire_pml::Protocol;
use tagwire_transport::shm::probe;
use tagwire_transport::{ByteTransport, Capabilities, EndpointId, MatchTransport};

use super::choices::PML;
use super::transports::{TRANSPORT, only_rank, open};
use super::ways::WaysReport;

/// What carries messages to some of the other ranks.
#[derive(Debug, Serialize)]
pub struct MessagesReport {
    /// Which ranks.
    pub to: &'static str,
    /// The transport, as the setting names it; `None` where none of those that are used reaches them.
    pub transport: Option<String>,
    /// The layer.
    pub pml: String,
    /// By length, ascending and without gaps.
    pub protocols: Vec<ProtocolReport>,
    /// How long ones are copied, where that is over shared memory.
    pub long: Option<WaysReport>,
    /// Why there are none.
    pub why_not: Option<String>,
}

/// How standard sends of some lengths travel.
#[derive(Debug, Clone, Serialize)]
pub struct ProtocolReport {
    /// The shortest such message, in bytes.
    pub from: u64,
    /// The longest; `None` where all longer ones travel so.
    pub to: Option<u64>,
    /// What happens to it.
    pub how: String,
    /// All of it in a line.
    #[serde(skip)]
    pub line: String,
}

impl From<Protocol> for ProtocolReport {
    fn from(protocol: Protocol) -> Self {
        Self {
            line: protocol.to_string(),
            from: protocol.from,
            to: protocol.to,
            how: protocol.how,
        }
    }
}

/// The protocols of ob1 over an open transport.
pub fn of_ob1(config: &Config, transport: &dyn ByteTransport) -> Vec<ProtocolReport> {
    // One transport by itself prefers the same for all peers: no endpoint is needed to ask.
    let preference = transport.preference(EndpointId(0));
    let (capabilities, limits) = (transport.capabilities(), transport.limits());
    let all = Protocol::of_ob1(config, capabilities, &limits, preference);
    all.into_iter().map(ProtocolReport::from).collect()
}

/// Those of cm over the transport called `name`.
pub fn of_cm(name: &str, config: &Config) -> Result<Vec<ProtocolReport>, String> {
    let all = Protocol::of_cm(&open_matching(name, config)?.match_limits());
    Ok(all.into_iter().map(ProtocolReport::from).collect())
}

/// Opens the transport called `name` as one that matches, alone in its job.
///
/// # Errors
/// Why it cannot be opened so.
pub fn open_matching(name: &str, config: &Config) -> Result<Box<dyn MatchTransport>, String> {
    let (config, member) = only_rank(config, &[(TRANSPORT, name)])?;
    let opened = tagwire_rails::open_matching(&config, &SharedBootstrap::new(member));
    let transport = opened.map_err(|error| error.to_string())?;
    transport.ok_or_else(|| format!("{name} does not match messages"))
}

/// What would be used, as the settings are.
pub fn gather(config: &Config) -> Vec<MessagesReport> {
    let names: Vec<String> = match config.entry(TRANSPORT).map(|entry| entry.value()) {
        Ok(Value::Stack(parts)) => match tagwire_rails::chosen_by_jobs(config) {
            Some((near, networks)) => {
                // As far as this host says: a job takes the first that all of its hosts have.
                let mut networks = networks.iter().filter(|name| open(name, config).is_ok());
                let names = [near].into_iter().chain(networks.next().copied());
                names.map(str::to_owned).collect()
            }
            None => parts.iter().map(ToString::to_string).collect(),
        },
        _ => return Vec::new(),
    };
    let parts: Vec<Part> = names.iter().map(|name| Part::new(name, config)).collect();
    let goes_out = |part: &&Part| part.reaches(Capabilities::REMOTE);
    let networks: Vec<&Part> = parts.iter().filter(goes_out).collect();
    // The first that reaches a rank takes all that is for it; networks go together.
    let here = match parts.iter().find(|part| part.reaches(Capabilities::LOCAL)) {
        Some(first) if first.reaches(Capabilities::REMOTE) => networks.clone(),
        Some(first) => vec![first],
        None => Vec::new(),
    };
    let broken = parts.iter().find_map(|part| part.why_not.clone());
    let report = |to, carriers: Vec<&Part>| MessagesReport::new(to, &carriers, &broken, config);
    vec![
        report("ranks of this host", here),
        report("ranks of other hosts", networks),
    ]
}

/// One of the transports of the setting.
struct Part<'a> {
    name: &'a str,
    opened: Option<Box<dyn ByteTransport>>,
    why_not: Option<String>,
}

impl<'a> Part<'a> {
    fn new(name: &'a str, config: &Config) -> Self {
        match open(name, config) {
            Ok(transport) => Self {
                name,
                opened: Some(transport),
                why_not: None,
            },
            Err(error) => Self {
                name,
                opened: None,
                why_not: Some(error),
            },
        }
    }

    fn reaches(&self, where_to: Capabilities) -> bool {
        let opened = self.opened.as_ref();
        opened.is_some_and(|transport| transport.capabilities().contains(where_to))
    }
}

impl MessagesReport {
    /// `broken` reports why one of the transports cannot be opened, without which nothing is sent.
    fn new(
        to: &'static str,
        carriers: &[&Part<'_>],
        broken: &Option<String>,
        config: &Config,
    ) -> Self {
        let pml = config.choice(PML).to_owned();
        let names: Vec<&str> = carriers.iter().map(|part| part.name).collect();
        let first = carriers.first().and_then(|part| part.opened.as_deref());
        let stacked = config.stack(TRANSPORT).len() > 1;
        let protocols = match (broken, first) {
            (Some(why_not), _) => Err(why_not.clone()),
            (None, None) => Err(format!("{TRANSPORT} reaches none of them")),
            (None, Some(_)) if pml == "cm" && stacked => {
                Err("cm needs one transport that sees all messages".to_owned())
            }
            (None, Some(_)) if pml == "cm" => of_cm(names[0], config),
            (None, Some(transport)) => Ok(of_ob1(config, transport)),
        };
        // Data reliability takes long messages apart.
        let is_copied = names == ["shm"] && pml != "dr";
        Self {
            to,
            transport: (!names.is_empty()).then(|| names.join("+")),
            pml,
            why_not: protocols.as_ref().err().cloned(),
            long: (is_copied && protocols.is_ok())
                .then(|| super::ways::gather(config, &probe().cross_attach)),
            protocols: protocols.unwrap_or_default(),
        }
    }
}
