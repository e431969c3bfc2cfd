//! `tagwire info --why-not NAME`.

use std::path::Path;

use tagwire_base::Config;
use tagwire_base::nearest::nearest;
use tagwire_base::topology::Topology;
use tagwire_bench::MpiLibrary;
use tagwire_rails::AUTO;

use super::choices::{ENGINE, Named, PML, choices};
use super::pmls;
use super::text::{details, summary, verdict};
use super::transports::{
    TRANSPORT, TransportReport, Verdict, WayReport, behind, listed_names, names_of_all, of_name,
    only_rank, open,
};
use crate::failure::Failure;

/// Whether something can be used, and why it is not.
pub struct Explanation {
    pub text: String,
    pub usable: bool,
}

/// Why `name` would not be used, or that it would.
pub fn explain(name: &str, config: &Config, topology: &Topology) -> Result<Explanation, Failure> {
    if let Some(path) = mpi_path(name)? {
        return Ok(mpi(name, path));
    }
    if name == AUTO {
        return automatic(config);
    }
    if let Some(transport) = of_name(name, config, topology) {
        return Ok(whole(&transport));
    }
    if let Some(engine) = choices(config, ENGINE).iter().find(|one| one.name == name) {
        return Ok(choice("matching engine", ENGINE, engine, None));
    }
    if let Some(pml) = choices(config, PML)
        .into_iter()
        .find(|one| one.name == name)
    {
        let pml = pmls::describe(pml, config);
        return Ok(choice("pml", PML, &pml.named, pml.why_not));
    }
    // Only a name that nothing else has is worth a look at libraries and devices.
    if let Some(transport) = behind(name, config) {
        let listed = listed_names(transport, config);
        if listed.iter().any(|way| way == name) {
            return Ok(of_library(&WayReport::of(transport, name, config)));
        }
        if !listed.is_empty() {
            return Ok(unlisted(name, &listed, config));
        }
    }
    let transports = names_of_all(config);
    let ways = transports.iter().copied();
    let ways: Vec<String> = ways.flat_map(|one| listed_names(one, config)).collect();
    let mut known = transports;
    known.push(AUTO);
    known.extend(ways.iter().map(String::as_str));
    known.push(MPI);
    let others = [ENGINE, PML].map(|setting| choices(config, setting));
    known.extend(others.iter().flatten().map(|named| named.name));
    Err(Failure::usage(match nearest(name, known.iter().copied()) {
        Some(near) => format!("nothing here is called '{name}'; did you mean '{near}'?"),
        None => format!(
            "nothing here is called '{name}'; there are {}",
            known.join(", ")
        ),
    }))
}

/// The choice that jobs make by themselves: what they take as far as this host says, and what there is to say of each.
fn automatic(config: &Config) -> Result<Explanation, Failure> {
    let is_used = tagwire_rails::chosen_by_jobs(config).is_some();
    let (asked, _) = only_rank(config, &[(TRANSPORT, AUTO)]).map_err(Failure::run)?;
    let (near, networks) = tagwire_rails::chosen_by_jobs(&asked).unwrap_or_default();
    let matches = choices(config, PML)
        .iter()
        .any(|pml| pml.used && pml.name == CM);
    let report = |name: &'static str| {
        let transport = name.split(':').next().unwrap_or(name);
        WayReport::of(transport, name, &asked)
    };
    let is_usable =
        |way: &&WayReport| way.why_not.is_none() && !(matches && way.why_not_matching.is_some());
    let near = report(near);
    let networks: Vec<WayReport> = networks.iter().copied().map(report).collect();
    let first = networks.iter().find(is_usable).map(|way| &*way.name);

    let between = match first {
        Some(name) if matches => format!("{name}, where all of them have it"),
        Some(name) => format!("{}+{name}, where all of them have it", near.name),
        None => "is refused, as this one has no network for it".to_owned(),
    };
    let mut lines = vec![
        format!(
            "a job on one host takes {}; one on several hosts {between}",
            near.name
        ),
        summary(&near),
    ];
    lines.extend(networks.iter().map(|way| match first {
        Some(name) if is_usable(&way) && name != way.name => {
            format!("{}, and comes behind {name}", summary(way))
        }
        _ => summary(way),
    }));
    let used = match is_used {
        true => "would be used".to_owned(),
        false => format!("works; would be used with --{TRANSPORT} {AUTO}"),
    };
    Ok(Explanation {
        text: format!("transport {AUTO}: {used}\n  - {}\n", lines.join("\n  - ")),
        usable: is_usable(&&near),
    })
}

/// A transport as a whole.
fn whole(transport: &TransportReport) -> Explanation {
    let mut text = format!(
        "transport {}: {}\n",
        transport.name,
        verdict(transport.verdict)
    );
    for note in &transport.notes {
        text.push_str(&format!("  - {note}\n"));
    }
    let usable = transport.verdict != Verdict::Unusable;
    Explanation { text, usable }
}

/// What a library lists.
fn of_library(way: &WayReport) -> Explanation {
    let mut text = format!("transport {}\n", summary(way));
    for line in details(way) {
        text.push_str(&format!("  - {line}\n"));
    }
    let usable = way.why_not.is_none();
    Explanation { text, usable }
}

/// What a library does not list: it may open it all the same, and gives the reason only when it is asked to.
fn unlisted(name: &str, listed: &[String], config: &Config) -> Explanation {
    match open(name, config) {
        Ok(_) => Explanation {
            text: format!("transport {name}: works; would be used with --{TRANSPORT} '{name}'\n"),
            usable: true,
        },
        Err(why) => Explanation {
            text: format!(
                "transport {name}: cannot be used here: {why}\n  - the library lists {}\n",
                listed.join(", ")
            ),
            usable: false,
        },
    }
}

fn choice(what: &str, setting: &str, named: &Named, why_not: Option<String>) -> Explanation {
    let name = named.name;
    let usable = why_not.is_none();
    let text = match why_not {
        Some(why) => format!("{what} {name}: cannot be used here: {why}\n"),
        None if named.used => format!("{what} {name}: would be used\n"),
        None => format!("{what} {name}: works; would be used with --{setting} {name}\n"),
    };
    Explanation { text, usable }
}

/// The layer whose transport matches.
const CM: &str = "cm";

/// What `bench` calls a library of the MPI standard ABI.
const MPI: &str = "mpi";

/// The path behind `mpi:`; the outer `None` where it is no name of an MPI library.
fn mpi_path(name: &str) -> Result<Option<Option<&Path>>, Failure> {
    match name.split_once(':') {
        None if name == MPI => Ok(Some(None)),
        Some((MPI, "")) => Err(Failure::usage("'mpi:' lacks the path of a library")),
        Some((MPI, path)) => Ok(Some(Some(Path::new(path)))),
        _ => Ok(None),
    }
}

fn mpi(name: &str, path: Option<&Path>) -> Explanation {
    match MpiLibrary::find(path) {
        Ok(found) => Explanation {
            text: format!(
                "transport {name}: works with 'bench', beside the others or alone\n  - {}\n  - library: {} ({})\n  - launcher: {}\n",
                found.version,
                found.file.display(),
                found.why,
                found.launcher.display()
            ),
            usable: true,
        },
        Err(why) => Explanation {
            text: format!("transport {name}: cannot be used here: {why}\n"),
            usable: false,
        },
    }
}
