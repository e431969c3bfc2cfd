//! The transport of a job whose user names none: shared memory where all ranks share a host, else shared memory between
//! ranks of a host and one network between hosts.
//!
//! The network is the first of [`NETWORKS`] that every rank can open. Each says which it can; rank 0 decides, and reports.

use std::borrow::Cow;
use std::time::Duration;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Chosen, Config};
use tagwire_base::{Bootstrap, Rank};
use tagwire_transport::{Error, Result};

/// The value of the setting `transport` that asks for a choice.
pub const AUTO: &str = "auto";

/// What is chosen where all ranks share a host.
pub const ON_ONE_HOST: &str = "shm";

/// The networks that may be chosen, in order: the fastest that a cluster may have first.
const NETWORKS: [&str; 4] = ["ofi:verbs;ofi_rxm", "ofi:tcp;ofi_rxm", "ofi:tcp", "ucx"];

/// The keys under which ranks say which networks they can open, one digit for each, and rank 0 which is taken.
const USABLE: &str = "rails/usable";
const CHOICE: &str = "rails/choice";

/// How long ranks wait for each other's word.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the setting asks for a choice.
pub(crate) fn is_asked_for(config: &Config) -> bool {
    matches!(config.stack("transport"), [part] if part.name == AUTO)
}

/// Returns the configuration with the transport that the job takes. Every rank calls it, in the same order with its
/// other fences. A job that `matches` in the transport takes one network for all, as one who matches sees all messages.
///
/// # Errors
/// When ranks are on several hosts and no network can be opened on all of them; when a rank does not come.
pub(crate) fn resolve<'a>(
    config: &'a Config,
    matches: bool,
    bootstrap: &SharedBootstrap,
) -> Result<Cow<'a, Config>> {
    if !is_asked_for(config) {
        if config
            .stack("transport")
            .iter()
            .any(|part| part.name == AUTO)
        {
            return Err(Error::Base(tagwire_base::Error::BadSetting {
                name: "transport".to_owned(),
                value: super::named(config),
                expected: format!(
                    "'{AUTO}' alone: it chooses shared memory and a network by itself"
                ),
            }));
        }
        return Ok(Cow::Borrowed(config));
    }
    if is_on_one_host(bootstrap) {
        return with(config, ON_ONE_HOST);
    }
    let network = agree(config, matches, &mut bootstrap.clone())?;
    across_hosts(config, matches, network)
}

/// Returns the configuration with the transport that an open job has taken, where `config` leaves the choice to it; without
/// a word to other ranks where all share a host.
#[must_use]
pub fn taken<'a>(
    config: &'a Config,
    matches: bool,
    bootstrap: &SharedBootstrap,
) -> Cow<'a, Config> {
    if !is_asked_for(config) {
        return Cow::Borrowed(config);
    }
    if is_on_one_host(bootstrap) {
        return on_one_host(config);
    }
    let network = decision(&mut bootstrap.clone());
    let taken = network.and_then(|network| across_hosts(config, matches, network));
    taken.unwrap_or(Cow::Borrowed(config))
}

/// Returns the configuration with the transport that a job on one host takes, where `config` leaves the choice to it.
#[must_use]
pub fn on_one_host(config: &Config) -> Cow<'_, Config> {
    let chosen = is_asked_for(config).then(|| with(config, ON_ONE_HOST).ok());
    chosen.flatten().unwrap_or(Cow::Borrowed(config))
}

/// Returns what jobs choose from, where `config` leaves the choice to them: the transport between ranks of a host, and the
/// networks in order.
#[must_use]
pub fn chosen_by_jobs(config: &Config) -> Option<(&'static str, &'static [&'static str])> {
    is_asked_for(config).then_some((ON_ONE_HOST, &NETWORKS))
}

/// Returns why a job takes its transport; `None` where `config` names it.
#[must_use]
pub fn why_taken(config: &Config, bootstrap: &SharedBootstrap) -> Option<&'static str> {
    is_asked_for(config).then(|| match is_on_one_host(bootstrap) {
        true => "the default; all ranks share a host",
        false => "the default; the first network that every host has, beside shared memory",
    })
}

fn is_on_one_host(bootstrap: &SharedBootstrap) -> bool {
    bootstrap.locality().local_size == bootstrap.size()
}

/// Returns the configuration of a job on several hosts with `network` between them.
fn across_hosts<'a>(config: &Config, matches: bool, network: &str) -> Result<Cow<'a, Config>> {
    match matches {
        true => with(config, network),
        false => with(config, &format!("{ON_ONE_HOST}+{network}")),
    }
}

fn with<'a>(config: &Config, transport: &str) -> Result<Cow<'a, Config>> {
    let mut config = config.clone();
    config.set("transport", transport)?;
    Ok(Cow::Owned(config))
}

/// Finds out, with all other ranks, which network the job takes.
fn agree(config: &Config, matches: bool, bootstrap: &mut SharedBootstrap) -> Result<&'static str> {
    let usable = NETWORKS.map(|network| can_open(config, network, matches, bootstrap));
    let word = usable.map(|usable| u8::from(usable) + b'0');
    bootstrap.put(USABLE, &word)?;
    bootstrap.fence(PATIENCE)?;
    if bootstrap.rank() == Rank::new(0) {
        let choice = decide(bootstrap)?;
        bootstrap.put(CHOICE, choice.to_string().as_bytes())?;
    }
    bootstrap.fence(PATIENCE)?;
    decision(bootstrap)
}

/// What rank 0 has decided: the number of a network, or of the rank that has none in common with those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Network(usize),
    None { last: Rank },
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network(number) => write!(f, "{number}"),
            Self::None { last } => write!(f, "none {last}"),
        }
    }
}

fn decide(bootstrap: &mut SharedBootstrap) -> Result<Choice> {
    let ranks = (0..bootstrap.size()).map(Rank::new);
    let words = ranks.map(|rank| Ok((rank, bootstrap.get(rank, USABLE, PATIENCE)?)));
    let words: Vec<(Rank, Vec<u8>)> = words.collect::<Result<_>>()?;
    Ok(common(words))
}

/// Returns the first network that all have.
fn common(words: impl IntoIterator<Item = (Rank, Vec<u8>)>) -> Choice {
    let mut left = [true; NETWORKS.len()];
    let mut last = Rank::new(0);
    for (rank, word) in words {
        if !left.contains(&true) {
            break;
        }
        last = rank;
        for (number, left) in left.iter_mut().enumerate() {
            *left &= word.get(number) == Some(&b'1');
        }
    }
    let first = left.iter().position(|left| *left);
    first.map_or(Choice::None { last }, Choice::Network)
}

fn decision(bootstrap: &mut SharedBootstrap) -> Result<&'static str> {
    let word = bootstrap.get(Rank::new(0), CHOICE, PATIENCE)?;
    let word = String::from_utf8_lossy(&word);
    let network = word
        .parse()
        .ok()
        .and_then(|number: usize| NETWORKS.get(number));
    network.copied().ok_or_else(|| {
        let rank = word.strip_prefix("none ").unwrap_or("0");
        Error::Base(tagwire_base::Error::BadSetting {
            name: "transport".to_owned(),
            value: AUTO.to_owned(),
            expected: format!(
                "a network that can be opened on every host, as the ranks are on several: rank {rank} has none of {} in common with the ranks before it; 'tagwire info' on its host says why",
                NETWORKS.join(", ")
            ),
        })
    })
}

fn can_open(config: &Config, network: &str, matches: bool, bootstrap: &SharedBootstrap) -> bool {
    let Ok(config) = with(config, network) else {
        return false;
    };
    let [part] = config.stack("transport") else {
        return false;
    };
    let part: &Chosen = part;
    let Some(kind) = super::kind(part.name) else {
        return false;
    };
    let detail = part.detail.as_deref();
    let opened = match matches {
        true => kind
            .open_matching(detail, &config, bootstrap)
            .map(|rail| rail.is_some()),
        false => kind.open(detail, &config, bootstrap).map(|_| true),
    };
    match opened {
        Ok(opened) => opened,
        Err(error) => {
            tracing::debug!(network, %error, "not for this job");
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::bootstrap::{LocalJob, Locality};
    use tagwire_base::config::Registry;

    use super::*;

    fn words(words: &[&str]) -> Vec<(Rank, Vec<u8>)> {
        let numbered = (0..).map(Rank::new).zip(words);
        numbered
            .map(|(rank, word)| (rank, word.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn the_first_that_all_have_is_taken() {
        for (said, choice) in [
            (&["1111", "0111", "0011"][..], Choice::Network(2)),
            (&["0100", "0100"], Choice::Network(1)),
            (
                &["1000", "0100", "0000"],
                Choice::None { last: Rank::new(1) },
            ),
            // Another version knows fewer.
            (&["0111", "01"], Choice::Network(1)),
            (&["0001", ""], Choice::None { last: Rank::new(1) }),
        ] {
            assert_eq!(common(words(said)), choice, "{said:?}");
        }
    }

    fn config(transport: &str) -> Config {
        let registry = Registry::new(&super::super::settings().collect::<Vec<_>>());
        let mut config = Config::defaults(&registry);
        config.set("transport", transport).unwrap();
        config
    }

    #[test]
    fn ranks_of_one_host_take_shared_memory_without_a_word() {
        let job = LocalJob::new(2).unwrap();
        let own = SharedBootstrap::new(Box::new(job.member(Rank::new(0))));
        for matches in [false, true] {
            let asked = config(AUTO);
            let chosen = resolve(&asked, matches, &own).unwrap();
            assert_eq!(super::super::named(&chosen), "shm");
            assert_eq!(super::super::named(&taken(&asked, matches, &own)), "shm");
        }
        let named = config("null");
        assert!(matches!(resolve(&named, false, &own), Ok(Cow::Borrowed(_))));
        let error = resolve(&config("auto+null"), false, &own)
            .map(|_| ())
            .unwrap_err();
        assert!(error.to_string().contains("'auto' alone"), "{error}");
    }

    #[test]
    fn ranks_of_several_hosts_agree() {
        let job = LocalJob::new(2).unwrap();
        let alone = Locality {
            local_rank: 0,
            local_size: 1,
            first_local: Rank::new(0),
            address: None,
        };
        let ranks: Vec<_> = (0..2)
            .map(|rank| {
                let member = job.member(Rank::new(rank)).with_locality(alone);
                std::thread::spawn(move || {
                    let own = SharedBootstrap::new(Box::new(member));
                    let asked = config(AUTO);
                    let chosen = resolve(&asked, false, &own)
                        .map(|config| super::super::named(&config))
                        .map_err(|error| error.to_string());
                    let later = super::super::named(&taken(&asked, false, &own));
                    assert_eq!(chosen.clone().unwrap_or_else(|_| AUTO.to_owned()), later);
                    chosen
                })
            })
            .collect();
        let taken: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
        assert_eq!(taken[0], taken[1]);
        match &taken[0] {
            Ok(name) => assert!(name.starts_with("shm+"), "{name}"),
            // A machine without any network library.
            Err(error) => assert!(
                error.contains("rank") && error.contains("ofi:tcp"),
                "{error}"
            ),
        }
    }
}
