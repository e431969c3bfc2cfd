//! Tables and the summary in GitHub's Markdown.

use std::fmt::Write;

use crate::circumstances;
use crate::escape::{code_block, markdown};
use crate::report::Report;
use crate::table::{Cell, Mark, Table, comparison, figures};

/// Returns the text.
pub(super) fn write(report: &Report) -> String {
    let mut text = format!("# {}\n\n## Summary\n", markdown(&report.title()));
    for findings in report.summary() {
        let _ = writeln!(text, "\n**{}**\n", markdown(&findings.title));
        for sentence in findings.sentences {
            let _ = writeln!(text, "- {}", markdown(&sentence));
        }
    }
    for plot in &report.model.plots {
        let caption = markdown(&plot.caption());
        let direction = plot.metric.direction();
        let _ = writeln!(
            text,
            "\n## {}\n\n{caption}. Medians, in brackets their intervals; {direction}.\n",
            markdown(&plot.title())
        );
        text += &table(&figures(plot));
        if let Some(compared) = comparison(plot) {
            let _ = writeln!(text, "\n### Against the base\n");
            text += &table(&compared);
        }
    }
    let warnings = report.warnings();
    if !warnings.is_empty() {
        text += "\n## Warnings\n\n";
        for (name, warning) in warnings {
            let _ = writeln!(text, "- {}: {}", markdown(&name), markdown(&warning));
        }
    }
    let (sources, names) = report.sources();
    text += "\n## Environment\n\n";
    text += &table(&circumstances::table(&sources, &names));
    text += "\n## Commands\n\n";
    let commands: Vec<&str> = sources
        .iter()
        .map(|results| results.command.as_str())
        .collect();
    text + &code_block(&commands.join("\n"))
}

fn table(table: &Table) -> String {
    let line = |cells: &mut dyn Iterator<Item = String>| {
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut text = line(&mut table.heads.iter().map(|head| markdown(head)));
    text += &line(
        &mut table
            .heads
            .iter()
            .enumerate()
            .map(|(place, _)| if place == 0 { "---" } else { "---:" }.to_owned()),
    );
    for row in &table.rows {
        text += &line(&mut row.iter().map(cell));
    }
    text
}

fn cell(cell: &Cell) -> String {
    let text = markdown(&cell.text);
    let text = match cell.mark {
        Mark::Worse | Mark::Better | Mark::Differs if !text.is_empty() => format!("**{text}**"),
        Mark::Doubtful => format!("{text} (?)"),
        _ => text,
    };
    if cell.note.is_empty() {
        text
    } else {
        format!("{text} ({})", markdown(&cell.note))
    }
}
