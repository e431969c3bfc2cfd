//! `tagwire bench`: what the suite needs to know of this program.

use std::process::ExitCode;

use std::collections::BTreeMap;

use tagwire_base::{Config, Registry};
use tagwire_bench::{BenchArgs, Host, TuneArgs};
use tagwire_matching::Engines;

use crate::failure::Failure;
use crate::stamp::build;
use crate::{cli, info, output};

/// Measures, or takes part as a rank; the suite reports its own failures.
pub fn bench(
    options: &BenchArgs,
    settings: &[(String, String)],
    registry: &Registry,
    engines: &Engines,
) -> Result<ExitCode, Failure> {
    if options.list {
        output::print(&cli::tests())?;
        return Ok(ExitCode::SUCCESS);
    }
    let host = Host {
        checked: checked(options, engines)?,
        ..host(settings, registry, "tagwire bench")?
    };
    if options.wants_all_transports() {
        let mut named = options.clone();
        named.name_all(&info::usable_transports(&host.config));
        return Ok(tagwire_bench::run(&named, &host).code().into());
    }
    Ok(tagwire_bench::run(options, &host).code().into())
}

/// Measures what can be chosen, and writes the choice; the suite reports its own failures.
pub fn tune(
    options: &TuneArgs,
    settings: &[(String, String)],
    registry: &Registry,
) -> Result<ExitCode, Failure> {
    let host = host(settings, registry, "tagwire tune")?;
    Ok(tagwire_bench::run_tune(options, &host).code().into())
}

/// The seed of the operations that engines are checked by: that of `tagwire match`.
const SEED: u64 = 1;

/// Has the engines that the command names pass their grades; none where they are to be measured as they are. Ranks have none to check: they get settings.
fn checked(options: &BenchArgs, engines: &Engines) -> Result<BTreeMap<String, String>, Failure> {
    let named = options.engine.as_ref().filter(|_| !options.unchecked);
    let Some(named) = named.map(ToString::to_string) else {
        return Ok(BTreeMap::new());
    };
    // What is no engine is refused by the setting, which has more to say.
    let all = engines.list(&named).unwrap_or_default();
    let check = |engine| {
        let checked = tagwire_lab::check(engine, SEED);
        let checked = checked.map_err(Failure::run)?;
        Ok((engine.to_string(), checked.to_string()))
    };
    all.iter().map(check).collect()
}

fn host(settings: &[(String, String)], registry: &Registry, name: &str) -> Result<Host, Failure> {
    let given = settings
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let registry = registry.clone().with_reserved(&tagwire_bench::VARIABLES);
    let config = Config::from_process(&registry, given)?;
    tagwire_base::log::to_stderr(&config, name);
    let build = build();
    Ok(Host {
        version: build.version.to_owned(),
        commit: build.commit.to_owned(),
        profile: build.profile.to_owned(),
        config,
        loops: tagwire_bench_loops::loops(),
        checked: BTreeMap::new(),
    })
}
