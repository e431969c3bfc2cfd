//! The first page of `tagwire info`: a line for each thing that there is.

use tagwire_base::Config;

use super::messages::{MessagesReport, of_cm};
use super::page::{Page, WIDTH, clip};
use super::report::{Machine, Report, SettingReport};
use super::text::{choices, gibibytes, known, on_off, or};
use super::topics::TOPICS;
use super::transports::{TransportReport, Verdict, WayReport};

/// Columns of the names of transports.
const NAMES: usize = 21;

/// The report on one screen.
pub fn render(report: &Report, config: &Config) -> String {
    let mut page = Page::default();
    let build = &report.build;
    page.clipped(&format!(
        "tagwire {} ({}), {}, {} build",
        build.version, build.commit, build.target, build.profile
    ));
    page.section("Machine");
    machine(&mut page, &report.machine);
    let launcher = &report.launcher;
    page.clipped(&match (&launcher.detected, launcher.findings.first()) {
        (Some(detected), _) => format!("  started as: {detected}"),
        (None, finding) => format!("  started as: unclear: {}", known(finding)),
    });

    page.section(&format!(
        "{:<NAMES$} {:<4} {:<4}",
        "Transports", "ob1", "cm"
    ));
    for transport in &report.transports {
        one_transport(&mut page, transport, config);
    }
    page.section("Messages, with these settings");
    for one in &report.messages {
        messages(&mut page, one);
    }
    page.section("Choices");
    let pmls: Vec<String> = report
        .pmls
        .iter()
        .map(|pml| choices(std::slice::from_ref(&pml.named)))
        .collect();
    page.clipped(&format!("  pml: {}", pmls.join(", ")));
    page.clipped(&format!("  matching engine: {}", choices(&report.engines)));
    page.clipped(&format!("  settings: {}", changed(&report.settings)));
    let topics: Vec<&str> = TOPICS.iter().map(|topic| topic.name).collect();
    page.section(&format!(
        "More: 'tagwire info TOPIC', where a topic is one of {}, or the name of a transport, engine, pml or setting; \
         --all; --why-not NAME; --json",
        topics.join(", ")
    ));
    page.into_text()
}

fn machine(page: &mut Page, machine: &Machine) {
    let kind = match machine.virtual_machine {
        Some(true) => " (virtual machine)",
        _ => "",
    };
    page.clipped(&format!(
        "  {}: Linux {}, {}{kind}",
        known(machine.host.as_ref()),
        known(machine.kernel.as_ref()),
        known(machine.cpu_model.as_ref())
    ));
    page.clipped(&format!(
        "  {} cores, SMT {}, CPUs {} allowed, NUMA nodes {}, {}, clock {} at {:.1} ns",
        known(machine.cores),
        on_off(machine.smt),
        known(machine.cpus_allowed.as_ref()),
        or(&machine.numa_nodes.join("; "), "unknown"),
        known(machine.memory_bytes.map(gibibytes)),
        known(machine.clock_source.as_ref()),
        machine.clock_cost_ns
    ));
}

/// A transport, and a line for each thing that it can be told to use.
fn one_transport(page: &mut Page, transport: &TransportReport, config: &Config) {
    let name = transport.name;
    if transport.ways.is_empty() {
        let usable = transport.verdict != Verdict::Unusable;
        let matches = usable && of_cm(name, config).is_ok();
        // The first note is the reason, or what matters most about it here.
        let first = transport.notes.first().map_or(transport.about, |note| note);
        let note = match transport.verdict {
            Verdict::Unusable => gist(first).to_owned(),
            Verdict::Used => format!("used; {first}"),
            Verdict::OnRequest => first.to_owned(),
        };
        return row(page, name, usable, matches, &note);
    }
    let library = transport.library.as_ref();
    let library = library.map_or_else(String::new, |library| {
        format!("{} {}, {}", library.name, library.version, library.file)
    });
    let used = match transport.verdict {
        Verdict::Used => "used; ",
        _ => "",
    };
    row_of(page, name, ["", ""], &format!("{used}{library}"));
    for way in &transport.ways {
        one_way(page, way);
    }
}

fn one_way(page: &mut Page, way: &WayReport) {
    let usable = way.why_not.is_none();
    let matches = usable && way.why_not_matching.is_none();
    let note = match (&way.why_not, &way.why_not_matching) {
        (Some(why), _) => gist(why).to_owned(),
        (None, Some(why)) => format!("no cm: {}", gist(why)),
        (None, None) => String::new(),
    };
    row(page, &way.name, usable, matches, &note);
}

fn row(page: &mut Page, name: &str, ob1: bool, cm: bool, note: &str) {
    let word = |works: bool| if works { "yes" } else { "no" };
    row_of(page, name, [word(ob1), word(cm)], note);
}

fn row_of(page: &mut Page, name: &str, [ob1, cm]: [&str; 2], note: &str) {
    // What stands behind a colon belongs to the line above.
    let indent = if name.contains(':') { "    " } else { "  " };
    let name = format!("{indent}{name}");
    page.clipped(&format!("{name:<NAMES$} {ob1:<4} {cm:<4} {note}"));
}

/// The cause at the end of a reason, which is a chain of clauses with colons between them, without what is in
/// parentheses, and without the second half of its sentence.
fn gist(reason: &str) -> &str {
    let mut depth = 0_u32;
    let mut start = 0;
    for (place, letter) in reason.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && reason[place..].starts_with(": ") => start = place + 2,
            _ => {}
        }
    }
    &reason[start..]
}

fn messages(page: &mut Page, messages: &MessagesReport) {
    let (to, pml) = (messages.to, &messages.pml);
    let by = messages.transport.as_deref();
    page.clipped(&match (by, &messages.why_not) {
        (_, Some(why)) => format!("  to {to}: nothing: {}", gist(why)),
        (by, None) => format!("  to {to}: {pml} over {}", by.unwrap_or_default()),
    });
    for protocol in &messages.protocols {
        page.clipped(&format!("    {}", protocol.line));
    }
}

/// The settings that are not as they are by default, as far as a line has room for them.
fn changed(settings: &[SettingReport]) -> String {
    let changed: Vec<String> = settings
        .iter()
        .filter(|setting| setting.value != setting.default)
        .map(|setting| format!("{}={} ({})", setting.name, setting.value, setting.origin))
        .collect();
    match changed.len() {
        0 => format!("all {} at their defaults", settings.len()),
        count => clip(
            &format!(
                "{count} of {} changed: {}",
                settings.len(),
                changed.join(", ")
            ),
            WIDTH - "  settings: ".len(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gist_of_a_reason_is_its_cause() {
        assert_eq!(gist("no such device"), "no such device");
        assert_eq!(
            gist("setting 'transport' cannot be 'ofi:net': expected pml=ob1: it forgets wildcards"),
            "it forgets wildcards"
        );
        assert_eq!(
            gist("UCX with 'x' (here: there): No such device (needs: a card), or 1:2"),
            "No such device (needs: a card), or 1:2"
        );
    }
}
