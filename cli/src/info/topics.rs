//! `tagwire info TOPIC`: a part of the report, and only what it takes to find that out.

use tagwire_base::Config;
use tagwire_base::nearest::nearest;
use tagwire_base::topology::Topology;

use super::choices::{ENGINE, PML, choices};
use super::page::Page;
use super::report;
use super::transports::{self, WayReport};
use super::{collectives, messages, pmls, text, why_not};
use crate::failure::Failure;
use crate::stamp::build;

/// A part of the report.
pub struct Topic {
    pub name: &'static str,
    render: fn(&mut Page, &Config),
}

const fn topic(name: &'static str, render: fn(&mut Page, &Config)) -> Topic {
    Topic { name, render }
}

/// All parts, in the order of the whole.
pub const TOPICS: &[Topic] = &[
    topic("build", |page, _| text::build(page, &build())),
    topic("launcher", |page, _| {
        text::launcher(page, &report::launcher())
    }),
    topic("machine", |page, _| {
        text::machine(page, &report::machine(Topology::of_machine()));
    }),
    topic("transports", |page, config| {
        let mut found = transports::catalogue(config, &Topology::of_machine());
        transports::survey(&mut found, config);
        text::transports(page, &found);
    }),
    topic("messages", |page, config| {
        text::all_messages(page, &messages::gather(config));
    }),
    topic("engines", |page, config| {
        text::engines(page, &choices(config, ENGINE), config);
    }),
    topic("pmls", |page, config| {
        text::pmls(page, &pmls::catalogue(config))
    }),
    topic("conformance", |page, config| {
        let transports = transports::catalogue(config, &Topology::of_machine());
        text::conformance(page, &transports, &pmls::catalogue(config));
    }),
    topic("collectives", |page, config| {
        collectives::render(page, &collectives::gather(config));
    }),
    topic("settings", |page, config| {
        text::settings(page, &report::settings(config));
    }),
];

/// What there is to say of `name`: a topic, or one transport, provider, engine, pml or setting.
pub fn explain(name: &str, config: &Config, topology: &Topology) -> Result<String, Failure> {
    let mut page = Page::default();
    if let Some(topic) = TOPICS.iter().find(|topic| topic.name == name) {
        (topic.render)(&mut page, config);
        return Ok(page.into_text());
    }
    if let Some(setting) = report::settings(config).iter().find(|one| one.name == name) {
        text::explain(&mut page, setting);
        // A setting may have the name of a transport, as 'ucx' has.
        if !transports::is_name(name, config) {
            return Ok(page.into_text());
        }
    }
    if let Some(transport) = transports::of_name(name, config, topology) {
        let mut found = [transport];
        transports::survey(&mut found, config);
        text::describe(&mut page, &found[0]);
        return Ok(page.into_text());
    }
    if let Some(transport) = transports::behind(name, config) {
        text::describe_way(&mut page, &WayReport::of(transport, name, config));
        return Ok(page.into_text());
    }
    if let Some(pml) = choices(config, PML)
        .into_iter()
        .find(|one| one.name == name)
    {
        text::layer(&mut page, &pmls::describe(pml, config));
        return Ok(page.into_text());
    }
    if choices(config, ENGINE).iter().any(|one| one.name == name) {
        page.line(why_not::explain(name, config, topology)?.text.trim_end());
        let engines = tagwire_pml::settings::engines(config);
        let mut descriptions = engines.descriptions();
        if let Some(engine) = descriptions.find(|engine| engine.named.name == name) {
            text::describe_engine(&mut page, engine);
        }
        return Ok(page.into_text());
    }
    Err(unknown(name, config))
}

fn unknown(name: &str, config: &Config) -> Failure {
    let mut known: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    known.extend(transports::names_of_all(config));
    let others = [PML, ENGINE].map(|setting| choices(config, setting));
    known.extend(others.iter().flatten().map(|one| one.name));
    let settings = report::settings(config);
    let near = known
        .iter()
        .copied()
        .chain(settings.iter().map(|one| one.name));
    Failure::usage(match nearest(name, near) {
        Some(near) => format!("no topic is called '{name}'; did you mean '{near}'?"),
        None => format!(
            "no topic is called '{name}'; there are {}, and the names of settings",
            known.join(", ")
        ),
    })
}
