//! `tagwire info`: what is here, what would be used, and why not the rest.

use std::process::ExitCode;

use clap::Args;
use tagwire_base::topology::Topology;
use tagwire_base::{Config, Registry};

use crate::failure::{Failure, status};
use crate::output;

mod choices;
mod collectives;
mod conformance;
mod messages;
mod page;
mod pmls;
mod report;
mod shm;
mod summary;
mod text;
mod topics;
mod transports;
mod ways;
mod why_not;

/// The options of `tagwire info`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct InfoOptions {
    /// Print all of one topic (build, launcher, machine, transports, messages, engines, pmls, conformance, collectives, settings), or
    /// of one transport, provider (ofi:tcp), engine, pml or setting
    #[arg(value_name = "TOPIC", conflicts_with_all = ["why_not", "all", "json", "settings_markdown"])]
    topic: Option<String>,

    /// Tell why this transport, matching engine, pml or MPI library (mpi, mpi:PATH) would not be used, and what would
    /// change that; the exit status is 0 where it can be used, and 5 where it cannot
    #[arg(long, value_name = "NAME", conflicts_with_all = ["all", "json", "settings_markdown"])]
    why_not: Option<String>,

    /// Print all topics, not only what fits on a screen
    #[arg(long, conflicts_with_all = ["json", "settings_markdown"])]
    all: bool,

    /// Print one JSON document (schema tagwire.info/1)
    #[arg(long)]
    json: bool,

    /// Print the documentation of all settings, which is docs/settings.md
    #[arg(long, conflicts_with = "json")]
    settings_markdown: bool,
}

const AFTER_HELP: &str = "\
Prints a screen: the machine, a line for each transport and for each provider of a library (whether
it works here with ob1 and with cm, and why not), what would carry messages of which size to which
ranks, and which settings were changed. A topic, or --all, prints the rest: capabilities and limits
of transports, passed tiers of the conformance kits, and every setting with its value, where the
value came from, its default, its range and who reads it. Sizes are bytes; K is 1024. Options of the
other commands, such as --transport and --pml, show what they would change.

Exit status: 0 good, 1 usage (an unknown name or a bad setting), 2 the output could not be written,
5 what --why-not was asked for cannot be used here.

Examples:
  tagwire info
  tagwire info ofi:tcp
  tagwire info settings
  tagwire info --why-not ofi:verbs && tagwire bench latency -t ofi:verbs
  tagwire info --json | jq .transports";

/// Returns the names of the transports that work here, those of libraries by what stands behind the colon.
pub fn usable_transports(config: &Config) -> Vec<String> {
    transports::usable(config, &Topology::of_machine())
}

/// Prints what was asked for.
pub fn info(
    options: &InfoOptions,
    settings: &[(String, String)],
    registry: &Registry,
) -> Result<ExitCode, Failure> {
    let text = if options.settings_markdown {
        tagwire::settings::page()
    } else {
        let given = settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let config = Config::from_process(registry, given)?;
        let topology = Topology::of_machine();
        if let Some(name) = &options.why_not {
            let explanation = why_not::explain(name, &config, &topology)?;
            output::print(&explanation.text)?;
            return Ok(ExitCode::from(match explanation.usable {
                true => status::GOOD,
                false => status::UNUSABLE,
            }));
        } else if let Some(name) = &options.topic {
            topics::explain(name, &config, &topology)?
        } else {
            let report = report::gather(&config, topology);
            if options.json {
                report.to_json()?
            } else if options.all {
                text::render(&report, &config)
            } else {
                summary::render(&report, &config)
            }
        }
    };
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
