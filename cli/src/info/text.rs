//! `tagwire info` for people.

use std::fmt::Write;

use super::messages::MessagesReport;
use super::pmls::PmlReport;
use super::report::{Machine, Named, Report, SettingReport};
use super::transports::{LibraryReport, LimitsReport, TransportReport, Verdict, WayReport};
use tagwire_base::config::parse::format_bytes;
use tagwire_transport::Limits;

/// The report as text.
pub fn render(report: &Report) -> String {
    let mut page = Page(String::new());
    let build = &report.build;
    page.line(&format!("tagwire {} ({})", build.version, build.commit));
    page.field(
        "target",
        &format!("{}, {} build", build.target, build.profile),
    );
    page.field("compiler", build.compiler);
    page.field("features", &or(&build.features.join(", "), "none"));

    page.section("Launcher");
    page.field("detected", &known(report.launcher.detected.as_ref()));
    for finding in &report.launcher.findings {
        page.line(&format!("  - {finding}"));
    }
    machine(&mut page, &report.machine);

    page.section("Transports");
    for transport in &report.transports {
        describe(&mut page, transport);
    }
    page.section("Messages");
    for one in &report.messages {
        messages(&mut page, one);
    }
    page.section("Matching engines");
    page.line(&format!("  {}", choices(&report.engines)));
    page.section("Pmls");
    for pml in &report.pmls {
        layer(&mut page, pml);
    }
    page.section("Settings");
    for setting in &report.settings {
        explain(&mut page, setting);
    }
    page.0
}

/// One point-to-point layer.
fn layer(page: &mut Page, pml: &PmlReport) {
    page.line(&format!("  {}", choices(std::slice::from_ref(&pml.named))));
    if let (Some(tag), Some(contexts)) = (pml.largest_tag, pml.contexts) {
        let receives = pml.receives.map_or_else(String::new, |receives| {
            format!(", {receives} posted receives")
        });
        page.line(&format!(
            "    tags up to {tag}, {contexts} contexts{receives}"
        ));
    }
    if let Some(why_not) = &pml.why_not {
        page.line(&format!("    - {why_not}"));
    }
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
fn describe(page: &mut Page, transport: &TransportReport) {
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
        page.line(&format!("    {}", summary(way)));
        for line in details(way) {
            page.line(&format!("      - {line}"));
        }
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

struct Page(String);

impl Page {
    fn line(&mut self, text: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "{text}");
    }

    fn field(&mut self, name: &str, value: &str) {
        self.line(&format!("  {name:<14} {value}"));
    }

    fn section(&mut self, name: &str) {
        self.line(&format!("\n{name}"));
    }
}

fn machine(page: &mut Page, machine: &Machine) {
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
fn gibibytes(bytes: u64) -> String {
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

fn choices(names: &[Named]) -> String {
    let name = |named: &Named| match (named.used, named.default) {
        (true, true) => format!("{} (used, the default)", named.name),
        (true, false) => format!("{} (used)", named.name),
        (false, true) => format!("{} (default)", named.name),
        (false, false) => named.name.to_owned(),
    };
    names.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn explain(page: &mut Page, setting: &SettingReport) {
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

fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

fn or(text: &str, instead: &str) -> String {
    if text.is_empty() { instead } else { text }.to_owned()
}

const fn on_off(state: Option<bool>) -> &'static str {
    match state {
        Some(true) => "on",
        Some(false) => "off",
        None => "unknown",
    }
}
