//! Everything that `tagwire info` has found out, for people: a section for each part of the report.

use super::collectives;
use super::page::Page;

use super::choices::Named;
use super::messages::MessagesReport;
use super::pmls::PmlReport;
use super::report::{LauncherReport, Machine, Report, SettingReport};
use super::transports::{LibraryReport, LimitsReport, TransportReport, Verdict, WayReport};
use crate::stamp::Build;
use tagwire_base::Config;
use tagwire_base::config::parse::format_bytes;
use tagwire_matching::registry;
use tagwire_transport::Limits;

/// The report as text.
pub fn render(report: &Report, config: &Config) -> String {
    let mut page = Page::default();
    build(&mut page, &report.build);
    launcher(&mut page, &report.launcher);
    machine(&mut page, &report.machine);
    transports(&mut page, &report.transports);
    all_messages(&mut page, &report.messages);
    engines(&mut page, &report.engines, config);
    pmls(&mut page, &report.pmls);
    collectives::render(&mut page, &report.collectives);
    settings(&mut page, &report.settings);
    page.into_text()
}

/// This build.
pub fn build(page: &mut Page, build: &Build) {
    page.line(&format!("tagwire {} ({})", build.version, build.commit));
    page.field(
        "target",
        &format!("{}, {} build", build.target, build.profile),
    );
    page.field("compiler", build.compiler);
    page.field("features", &or(&build.features.join(", "), "none"));
}

/// Who started this process.
pub fn launcher(page: &mut Page, launcher: &LauncherReport) {
    page.section("Launcher");
    page.field("detected", &known(launcher.detected.as_ref()));
    for finding in &launcher.findings {
        page.line(&format!("  - {finding}"));
    }
}

/// Every transport, with what its library offers.
pub fn transports(page: &mut Page, transports: &[TransportReport]) {
    page.section("Transports");
    for transport in transports {
        describe(page, transport);
    }
}

/// What would carry messages to whom.
pub fn all_messages(page: &mut Page, all: &[MessagesReport]) {
    page.section("Messages");
    for one in all {
        messages(page, one);
    }
}

/// The matching engines.
pub fn engines(page: &mut Page, engines: &[Named], config: &Config) {
    page.section("Matching engines");
    page.line(&format!("  {}", choices(engines)));
    for engine in tagwire_pml::settings::engines(config).descriptions() {
        describe_engine(page, engine);
    }
}

/// One matching engine.
pub fn describe_engine(page: &mut Page, engine: &registry::Description) {
    for line in engine.to_string().lines() {
        page.line(&format!("  {line}"));
    }
}

/// The point-to-point layers.
pub fn pmls(page: &mut Page, pmls: &[PmlReport]) {
    page.section("Pmls");
    for pml in pmls {
        layer(page, pml);
    }
}

/// Every setting.
pub fn settings(page: &mut Page, settings: &[SettingReport]) {
    page.section("Settings");
    for setting in settings {
        explain(page, setting);
    }
}

/// What the kits of tests have found, by transport and by layer.
pub fn conformance(page: &mut Page, transports: &[TransportReport], pmls: &[PmlReport]) {
    page.section("Conformance of transports");
    for transport in transports {
        page.line(&format!("  {}", transport.name));
        tiers_of_transport(page, transport);
    }
    page.section("Conformance of pmls");
    for pml in pmls {
        page.line(&format!("  {}", pml.named.name));
        tiers_of_layer(page, pml);
    }
}

/// One point-to-point layer.
pub fn layer(page: &mut Page, pml: &PmlReport) {
    page.line(&format!("  {}", choices(std::slice::from_ref(&pml.named))));
    if let (Some(tag), Some(contexts)) = (pml.largest_tag, pml.contexts) {
        let receives = pml.receives.map_or_else(String::new, |receives| {
            format!(", {receives} posted receives")
        });
        page.line(&format!(
            "    tags up to {tag}, {contexts} contexts{receives}"
        ));
    }
    if let Some(checksums) = pml.checksums {
        page.line(&format!("    checksums: CRC-32C by {checksums}"));
    }
    if let Some(why_not) = &pml.why_not {
        page.line(&format!("    - {why_not}"));
    }
    tiers_of_layer(page, pml);
}

fn tiers_of_layer(page: &mut Page, pml: &PmlReport) {
    for passed in &pml.conformance {
        let tiers = passed.tiers.join(", ");
        let library = passed
            .library
            .map_or_else(String::new, |it| format!(" of {it}"));
        page.line(&format!(
            "    conformance over {}{library}: {tiers}{}{}",
            passed.transport,
            selected(passed.only),
            skipped(passed.but)
        ));
    }
}

/// One transport.
pub fn describe(page: &mut Page, transport: &TransportReport) {
    page.line(&format!(
        "  {}: {}; {}",
        transport.name,
        transport.about,
        verdict(transport.verdict)
    ));
    for note in &transport.notes {
        page.line(&format!("    - {note}"));
    }
    if let Some(library) = &transport.library {
        let LibraryReport {
            name,
            version,
            file,
        } = library;
        page.line(&format!("    library: {name} {version} ({file})"));
    }
    let capabilities = or(&transport.capabilities.join(", "), "none");
    page.line(&format!("    capabilities: {capabilities}"));
    tiers_of_transport(page, transport);
    if let Some(known) = &transport.limits {
        page.line(&format!("    limits: {}", limits(known)));
    }
    if let Some(partitions) = &transport.partitions {
        page.line(&match partitions.ob1 == partitions.cm {
            true => format!("    partitions: {}", partitions.ob1),
            false => format!(
                "    partitions: ob1: {}; cm: {}",
                partitions.ob1, partitions.cm
            ),
        });
    }
    for way in &transport.ways {
        describe_way(page, way);
    }
}

/// One thing that a transport can be told to use.
pub fn describe_way(page: &mut Page, way: &WayReport) {
    page.line(&format!("    {}", summary(way)));
    for line in details(way) {
        page.line(&format!("      - {line}"));
    }
}

fn tiers_of_transport(page: &mut Page, transport: &TransportReport) {
    if !transport.conformance.is_empty() {
        let tiers = transport.conformance.join(", ");
        page.line(&format!("    conformance: {tiers}"));
    }
    for fabric in &transport.fabrics {
        let tiers = fabric.conformance.join(", ");
        let matching = match fabric.matching_but {
            Some(but) => format!("and matching{}", skipped(but)),
            None => "matching is refused".to_owned(),
        };
        page.line(&format!(
            "    conformance over {} of {}: {tiers}{}; {matching}",
            fabric.name,
            fabric.library,
            skipped(fabric.but)
        ));
    }
}

/// What there is to say of a way beside its name, a line each.
pub fn details(way: &WayReport) -> Vec<String> {
    let mut lines = way.notes.clone();
    if let Some(known) = &way.limits {
        lines.push(format!("capabilities: {}", way.capabilities.join(", ")));
        lines.push(format!("limits: {}", limits(known)));
    }
    if let Some(protocols) = &way.protocols {
        for (layer, all) in [("ob1", &protocols.ob1), ("cm", &protocols.cm)] {
            lines.extend(all.iter().map(|one| format!("{layer}, {}", one.line)));
        }
    }
    lines
}

/// What would carry messages.
fn messages(page: &mut Page, messages: &MessagesReport) {
    let (to, pml) = (messages.to, &messages.pml);
    match (&messages.transport, &messages.why_not) {
        (None, Some(why)) => page.line(&format!("  to {to}: nothing: {why}")),
        (Some(by), Some(why)) => page.line(&format!("  to {to}: not by {pml} over {by}: {why}")),
        (by, None) => {
            let by = by.as_deref().unwrap_or_default();
            page.line(&format!("  to {to}: {pml} over {by}"));
        }
    }
    for protocol in &messages.protocols {
        page.line(&format!("    {}", protocol.line));
    }
    for line in messages.long.iter().flat_map(|long| long.lines()) {
        page.line(&format!("    {line}"));
    }
}

/// How many checks were run, where those were not all.
fn selected(only: Option<&[&str]>) -> String {
    only.map_or_else(String::new, |only| {
        format!(" (a selection of {} checks)", only.len())
    })
}

/// The checks without which a kit was run.
fn skipped(but: &[&str]) -> String {
    if but.is_empty() {
        return String::new();
    }
    format!(" (but for {})", but.join(", "))
}

/// A way in one line.
pub fn summary(way: &WayReport) -> String {
    match (&way.why_not, &way.why_not_matching) {
        (Some(why), _) => format!("{}: cannot be used here: {why}", way.name),
        (None, Some(why)) => format!("{}: works with ob1; cannot match: {why}", way.name),
        (None, None) => format!("{}: works", way.name),
    }
}

/// In words.
pub const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Used => "would be used",
        Verdict::OnRequest => "works, and is used when asked for",
        Verdict::Unusable => "cannot be used here",
    }
}

/// The machine.
pub fn machine(page: &mut Page, machine: &Machine) {
    page.section("Machine");
    page.field("host", &known(machine.host.as_ref()));
    page.field("kernel", &known(machine.kernel.as_ref()));
    let kind = match machine.virtual_machine {
        Some(true) => " (virtual machine)",
        _ => "",
    };
    page.field("processor", &(known(machine.cpu_model.as_ref()) + kind));
    page.field("cores", &known(machine.cores));
    page.field("CPUs online", &known(machine.cpus_online.as_ref()));
    page.field("CPUs allowed", &known(machine.cpus_allowed.as_ref()));
    if let Some(isolated) = &machine.cpus_isolated {
        page.field("CPUs isolated", isolated);
    }
    page.field("SMT", on_off(machine.smt));
    page.field("NUMA nodes", &or(&machine.numa_nodes.join("; "), "unknown"));
    page.field(
        "governor",
        &or(&machine.governors.join(", "), "none to be seen"),
    );
    page.field("boost", on_off(machine.boost));
    page.field("memory", &known(machine.memory_bytes.map(gibibytes)));
    page.field(
        "clock",
        &format!(
            "{}, {:.1} ns a look",
            known(machine.clock_source.as_ref()),
            machine.clock_cost_ns
        ),
    );
    page.field(
        "ptrace scope",
        &machine.ptrace_scope.map_or_else(
            || "not restricted by this kernel".to_owned(),
            |scope| scope.to_string(),
        ),
    );
    page.field(
        "seccomp",
        match machine.seccomp {
            Some(0) => "off",
            Some(1) => "strict",
            Some(_) => "filter",
            None => "unknown",
        },
    );
}

#[expect(clippy::cast_precision_loss, reason = "one digit is printed")]
pub fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

/// The limits that are there; what a transport lacks is known from its capabilities.
fn limits(limits: &LimitsReport) -> String {
    let sizes = [
        ("inline", limits.max_inline as u64),
        ("send", limits.max_send as u64),
        ("zero-copy", limits.max_zero_copy as u64),
        ("remote access", limits.max_remote_access),
        ("immediate data", limits.immediate_width as u64),
        ("per active peer", limits.memory_per_peer as u64),
    ];
    let mut parts: Vec<String> = sizes
        .into_iter()
        .filter(|(_, bytes)| *bytes != 0)
        .map(|(name, bytes)| match bytes {
            Limits::ENDLESS.. => format!("{name} of any size"),
            _ => format!("{name} {}", format_bytes(bytes)),
        })
        .collect();
    if limits.max_offers != 0 {
        parts.push(format!("{} open offers a peer", limits.max_offers));
    }
    parts.push(format!(
        "{} lane{}",
        limits.lanes,
        if limits.lanes == 1 { "" } else { "s" }
    ));
    parts.push(format!("order of remote writes: {}", limits.ordering));
    parts.push(format!("registration: {}", limits.registration));
    parts.push(format!("one thread per {}", limits.thread_mode));
    parts.push(format!("sleeps on: {}", limits.wait_object));
    parts.join(", ")
}

pub fn choices(names: &[Named]) -> String {
    let name = |named: &Named| match (named.used, named.default) {
        (true, true) => format!("{} (used, the default)", named.name),
        (true, false) => format!("{} (used)", named.name),
        (false, true) => format!("{} (default)", named.name),
        (false, false) => named.name.to_owned(),
    };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// One setting.
pub fn explain(page: &mut Page, setting: &SettingReport) {
    page.line(&format!(
        "  {} = {} ({}{})",
        setting.name,
        or(&setting.value, "(empty)"),
        setting.origin,
        if setting.value == setting.default {
            String::new()
        } else {
            format!("; default {}", or(&setting.default, "(empty)"))
        },
    ));
    page.line(&format!("      {}", setting.help));
    page.line(&format!(
        "      {}: {}; {}; read by {}",
        setting.kind, setting.range, setting.variable, setting.read_by
    ));
}

pub fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

pub fn or(text: &str, instead: &str) -> String {
    if text.is_empty() { instead } else { text }.to_owned()
}

pub const fn on_off(state: Option<bool>) -> &'static str {
    match state {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}
