//! `tagwire info --why-not NAME`.

use tagwire_base::Config;
use tagwire_base::nearest::nearest;
use tagwire_base::topology::Topology;

use super::report::{ENGINE, Named, PML, choices};
use super::text::{details, summary, verdict};
use super::transports::{TRANSPORT, TransportReport, catalogue, open, survey};
use crate::failure::Failure;

/// Why `name` would not be used, or that it would.
pub fn explain(name: &str, config: &Config, topology: &Topology) -> Result<String, Failure> {
    let mut transports = catalogue(config, topology);
    if let Some(transport) = transports.iter().find(|transport| transport.name == name) {
        let mut text = format!("transport {name}: {}\n", verdict(transport.verdict));
        for note in &transport.notes {
            text.push_str(&format!("  - {note}\n"));
        }
        return Ok(text);
    }
    let choices = |(what, setting)| {
        choices(config, setting)
            .into_iter()
            .map(move |one| (what, setting, one))
    };
    let others = [("matching engine", ENGINE), ("pml", PML)];
    let others: Vec<_> = others.into_iter().flat_map(choices).collect();
    if let Some((what, setting, named)) = others.iter().find(|(.., named)| named.name == name) {
        return Ok(choice(what, setting, named));
    }
    // Only a name that nothing else has is worth a look at libraries and devices.
    survey(&mut transports, config);
    let ways = || transports.iter().flat_map(|transport| &transport.ways);
    if let Some(way) = ways().find(|way| way.name == name) {
        let mut text = format!("transport {}\n", summary(way));
        for line in details(way) {
            text.push_str(&format!("  - {line}\n"));
        }
        return Ok(text);
    }
    let of = |transport: &&TransportReport| {
        let rest = name.strip_prefix(transport.name);
        !transport.ways.is_empty() && rest.is_some_and(|rest| rest.starts_with([':', '@']))
    };
    if let Some(transport) = transports.iter().find(of) {
        // Libraries open more than they list, and give the reason only when they are asked to.
        let Err(why) = open(name, config) else {
            return Ok(format!(
                "transport {name}: works; would be used with --{TRANSPORT} '{name}'\n"
            ));
        };
        let ways = transport.ways.iter().map(|way| way.name.as_str());
        let ways: Vec<_> = ways.collect();
        return Ok(format!(
            "transport {name}: cannot be used here: {why}\n  - the library lists {}\n",
            ways.join(", ")
        ));
    }
    let mut known: Vec<&str> = transports.iter().map(|t| t.name).collect();
    known.extend(ways().map(|way| way.name.as_str()));
    known.extend(others.iter().map(|(.., named)| named.name));
    Err(Failure::usage(match nearest(name, known.iter().copied()) {
        Some(near) => format!("nothing here is called '{name}'; did you mean '{near}'?"),
        None => format!(
            "nothing here is called '{name}'; there are {}",
            known.join(", ")
        ),
    }))
}

fn choice(what: &str, setting: &str, named: &Named) -> String {
    let name = named.name;
    if named.used {
        format!("{what} {name}: would be used\n")
    } else {
        format!("{what} {name}: works; would be used with --{setting} {name}\n")
    }
}
