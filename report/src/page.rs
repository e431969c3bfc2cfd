//! The page: one file without any link to the network. It is well-formed XML as well, so that tests can read it.

use std::fmt::Write;

use crate::circumstances;
use crate::draw::legend::swatch;
use crate::draw::style::{COLOURS, Colour, PAPER};
use crate::draw::{self, NARROW, WIDE};
use crate::error::Result;
use crate::escape::xml;
use crate::judge::ratios;
use crate::model::Plot;
use crate::phrase::capitalized;
use crate::report::Report;
use crate::table::{Cell, Mark, Table, comparison, figures};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Nothing is loaded and nothing is sent, whatever a name in a file would like.
const POLICY: &str =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// Returns the page.
pub(crate) fn write(report: &Report) -> Result<String> {
    let title = xml(&report.title());
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\"/>\n\
         <link rel=\"icon\" href=\"data:,\"/>\n<title>{title} - Tagwire report</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n<main>\n",
        palette()
    );
    page += &head(report);
    page += &summary(report);
    for test in report.model.tests() {
        page += &section(report, test)?;
    }
    page += &warnings(report);
    page += &environment(report);
    let _ = write!(
        page,
        "</main>\n<script>\n//<![CDATA[\n{SCRIPT}//]]>\n</script>\n</body>\n</html>\n"
    );
    Ok(page)
}

/// The colours of drawings, for both kinds of paper.
fn palette() -> String {
    let light = draw::rules(|colour| colour.light);
    let dark = draw::rules(|colour| colour.dark);
    let slots = |of: fn(Colour) -> &'static str| {
        let slots = COLOURS
            .into_iter()
            .enumerate()
            .map(|(slot, colour)| format!("--c{slot}: {};", of(colour)));
        slots.collect::<String>()
    };
    format!(
        ":root {{ --paper: {}; {} }}\n{light}\n@media screen and (prefers-color-scheme: dark) {{\n\
         :root {{ --paper: {}; {} }}\n{dark}\n}}\n",
        PAPER.light,
        slots(|colour| colour.light),
        PAPER.dark,
        slots(|colour| colour.dark)
    )
}

fn head(report: &Report) -> String {
    let first = &report.files[0];
    let told = [
        first.circumstance("host"),
        first.circumstance("cpu_model"),
        circumstances::measured(first),
    ];
    let told: Vec<String> = told.into_iter().filter(|text| !text.is_empty()).collect();
    format!(
        "<header>\n<h1>{}</h1>\n<p class=\"told\">Tagwire report: {}</p>\n</header>\n",
        xml(&report.title()),
        xml(&told.join(" · "))
    )
}

fn summary(report: &Report) -> String {
    let mut text = "<section class=\"summary\">\n<h2>Summary</h2>\n".to_owned();
    for findings in report.summary() {
        let _ = write!(text, "<h3>{}</h3>\n<ul>\n", xml(&findings.title));
        for sentence in &findings.sentences {
            let _ = writeln!(text, "<li>{}</li>", xml(sentence));
        }
        text += "</ul>\n";
    }
    text + "</section>\n"
}

fn section(report: &Report, test: &str) -> Result<String> {
    let plots: Vec<&Plot> = report
        .model
        .plots
        .iter()
        .filter(|plot| plot.test == test)
        .collect();
    // What the test is about, or else the first of what was asked for.
    let Some(first) = plots.first() else {
        return Ok(String::new());
    };
    let mut text = format!(
        "<section class=\"test\">\n<h2>{}</h2>\n",
        xml(&first.subject())
    );
    let is_first = |plot: &&&Plot| plot.metric.key == first.metric.key;
    for plot in plots.iter().filter(is_first) {
        let title = plot.panel.as_deref().map(capitalized);
        text += &figures_of(plot, &title.unwrap_or_default())?;
    }
    let rest: Vec<&&Plot> = plots.iter().filter(|plot| !is_first(plot)).collect();
    if !rest.is_empty() {
        let mut names: Vec<String> = Vec::new();
        for plot in &rest {
            let name = plot.metric.name.to_lowercase();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let _ = write!(
            text,
            "<details class=\"more\">\n<summary>More figures: {}</summary>\n",
            xml(&names.join(", "))
        );
        for plot in rest {
            text += &figures_of(plot, &plot.title())?;
        }
        text += "</details>\n";
    }
    Ok(text + "</section>\n")
}

/// A plot, and how it compares with its base.
fn figures_of(plot: &Plot, title: &str) -> Result<String> {
    let mut text = figure(plot, title)?;
    if let Some(ratios) = ratios(plot) {
        text += &figure(&ratios, &ratios.title())?;
    }
    Ok(text)
}

fn figure(plot: &Plot, title: &str) -> Result<String> {
    let mut text = format!(
        "<figure class=\"plot\" id=\"{}\">\n<figcaption>",
        xml(&plot.id)
    );
    for (element, words) in [("b", title), ("span", &plot.caption())] {
        if !words.is_empty() {
            let _ = write!(text, "<{element}>{}</{element}>", xml(words));
        }
    }
    text += "</figcaption>\n";
    if !plot.is_single() {
        text += &legend(plot);
    }
    let _ = write!(
        text,
        "<div class=\"drawing\">\n{}\n{}\n<button type=\"button\" class=\"reset\" hidden=\"hidden\">Whole plot</button>\n\
         <div class=\"tip\" hidden=\"hidden\"></div>\n</div>\n",
        draw::inline(plot, WIDE)?,
        draw::inline(plot, NARROW)?
    );
    let _ = write!(
        text,
        "<details class=\"data\">\n<summary>Table</summary>\n{}</details>\n",
        table(&figures(plot))
    );
    if let Some(compared) = comparison(plot) {
        let _ = write!(
            text,
            "<details class=\"data\">\n<summary>Table of changes</summary>\n{}</details>\n",
            table(&compared)
        );
    }
    Ok(text + "</figure>\n")
}

/// The series' names, each a button that takes it off.
fn legend(plot: &Plot) -> String {
    let mut text = "<ul class=\"key\">\n".to_owned();
    for (place, series) in plot.series.iter().enumerate() {
        let _ = writeln!(
            text,
            "<li><button type=\"button\" data-series=\"{place}\" aria-pressed=\"true\">{}<span>{}</span></button></li>",
            swatch(series),
            xml(&series.name)
        );
    }
    text + "</ul>\n"
}

fn warnings(report: &Report) -> String {
    let warnings = report.warnings();
    if warnings.is_empty() {
        return String::new();
    }
    let mut text = "<section>\n<h2>Warnings</h2>\n<ul>\n".to_owned();
    for (name, warning) in warnings {
        let _ = writeln!(text, "<li><b>{}</b>: {}</li>", xml(&name), xml(&warning));
    }
    text + "</ul>\n</section>\n"
}

fn environment(report: &Report) -> String {
    let (sources, names) = report.sources();
    let mut text = "<section>\n<h2>Commands</h2>\n".to_owned();
    for (results, name) in sources.iter().zip(&names) {
        let _ = writeln!(
            text,
            "<p class=\"told\">{}</p>\n<pre>{}</pre>",
            xml(name),
            xml(&results.command)
        );
    }
    let table = table(&circumstances::table(&sources, &names));
    let _ = write!(
        text,
        "</section>\n<section class=\"environment\">\n<h2>Environment</h2>\n{table}</section>\n"
    );
    text
}

fn table(table: &Table) -> String {
    let mut text = "<div class=\"scroll\" tabindex=\"0\"><table>\n<thead><tr>".to_owned();
    for head in &table.heads {
        let _ = write!(text, "<th scope=\"col\">{}</th>", xml(head));
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        text += "<tr>";
        for (place, cell) in row.iter().enumerate() {
            text += &self::cell(cell, place == 0);
        }
        text += "</tr>\n";
    }
    text + "</tbody>\n</table></div>\n"
}

fn cell(cell: &Cell, is_head: bool) -> String {
    let class = match cell.mark {
        Mark::None => "",
        Mark::Worse => " class=\"worse\"",
        Mark::Better => " class=\"better\"",
        Mark::Doubtful => " class=\"doubtful\" title=\"measured beside other load\"",
        Mark::Differs => " class=\"differs\"",
    };
    let note = match cell.note.as_str() {
        "" => String::new(),
        note => format!("<small>{}</small>", xml(note)),
    };
    if is_head {
        return format!("<th scope=\"row\"{class}>{}{note}</th>", xml(&cell.text));
    }
    format!("<td{class}>{}{note}</td>", xml(&cell.text))
}
