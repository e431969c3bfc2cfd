//! The page and the other formats: whole, without links, and with nothing of a file taken for markup.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod sample;

use std::collections::BTreeSet;
use std::path::Path;

use roxmltree::{Document, Node, ParsingOptions};
use sample::{Latency, written};
use tagwire_report::read::Results;
use tagwire_report::{Error, Format, Published, Report, Selection, Written};

fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(page, options).unwrap()
}

fn texts<'a>(document: &'a Document, name: &str) -> Vec<&'a str> {
    document
        .descendants()
        .filter(|node| node.has_tag_name(name))
        .filter_map(|node| node.text())
        .collect()
}

/// What the issue bounds: 6 series, 23 sizes, 5 launches.
#[test]
fn a_large_page_is_below_two_megabytes_and_links_nowhere() {
    let latency = Latency {
        transports: &[
            "shm",
            "ofi:tcp",
            "ofi:tcp;ofi_rxm",
            "ucx:tcp",
            "ucx:sysv",
            "shm+ofi:tcp",
        ],
        sizes: 23,
        launches: 5,
        ..Latency::default()
    };
    let page = written(&latency.report(), Format::Html);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    assert!(
        !page.contains("://"),
        "a page names no address of the network"
    );
    assert!(!page.contains("@import") && !page.contains("url(/"));
    let document = parsed(&page);
    for node in document.descendants() {
        for attribute in node.attributes() {
            let is_link = ["href", "src", "srcset", "action", "data"].contains(&attribute.name());
            assert!(!is_link || attribute.value() == "data:,", "{attribute:?}");
        }
    }
}

#[test]
fn a_page_has_its_parts() {
    let page = written(&Latency::default().report(), Format::Html);
    let document = parsed(&page);
    assert_eq!(
        texts(&document, "h2"),
        ["Summary", "Latency", "Warnings", "Commands", "Environment"]
    );
    assert_eq!(texts(&document, "pre"), ["a machine"]);
    let summaries = texts(&document, "li");
    assert!(
        summaries.contains(&"shm is ahead, beyond the noise, from 1 B to 2 KiB: 2.00x better than the next best, ofi:tcp."),
        "{summaries:?}"
    );
    // The test's own figure and the percentile, each for wide and for narrow windows.
    let figures = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("plot"));
    assert_eq!(figures.count(), 2);
    for class in ["wide", "narrow"] {
        assert_eq!(
            document
                .descendants()
                .filter(|node| node.attribute("class") == Some(class))
                .count(),
            2
        );
    }
    let ids: Vec<&str> = document
        .descendants()
        .filter_map(|node| node.attribute("id"))
        .collect();
    assert_eq!(
        ids.iter().collect::<BTreeSet<_>>().len(),
        ids.len(),
        "{ids:?}"
    );
    // A button for each series of each figure, and a series for each button.
    let buttons = document
        .descendants()
        .filter(|node| node.attribute("aria-pressed") == Some("true"));
    assert_eq!(buttons.count(), 6);
    let rows = document
        .descendants()
        .filter(|node| node.has_tag_name("tr"))
        .count();
    assert!(rows >= 2 * 13, "{rows}");
}

#[test]
fn names_of_a_file_are_no_markup() {
    let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>]]>--><!-- \u{202e}\u{0} |`x`|\n=1+1";
    let latency = Latency {
        transports: &[hostile, "</text></svg><svg onload=alert(3)>", "&lt;b&gt;"],
        words: hostile,
        ..Latency::default()
    };
    let report = latency.report();
    let page = written(&report, Format::Html);
    let document = parsed(&page);
    assert_eq!(
        document
            .descendants()
            .filter(|node| node.has_tag_name("script"))
            .count(),
        1
    );
    assert_eq!(
        document
            .descendants()
            .filter(|node| node.has_tag_name("img"))
            .count(),
        0
    );
    for node in document.descendants().filter(Node::is_element) {
        assert!(
            node.attributes()
                .all(|attribute| !attribute.name().starts_with("on")),
            "{node:?}"
        );
    }
    assert!(!page.contains("<script>alert") && !page.contains('\u{202e}') && !page.contains('\0'));
    assert!(
        document
            .descendants()
            .any(|node| node.text() == Some("&lt;b&gt;")),
        "what was escaped is shown as it was"
    );
    let Written::Each(plots) = report.write(Format::Svg).unwrap() else {
        panic!()
    };
    for (id, plot) in plots {
        assert!(
            id.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            "{id}"
        );
        let document = Document::parse(&plot).unwrap();
        assert_eq!(
            document
                .descendants()
                .filter(|node| node.has_tag_name("svg"))
                .count(),
            1
        );
    }
    let markdown = written(&report, Format::Markdown);
    // What is between fences is no markup.
    let (markdown, _) = markdown.split_once("## Commands").unwrap();
    assert!(
        !markdown.contains("<script") && !markdown.contains("<img"),
        "{markdown}"
    );
    let widths: BTreeSet<usize> = markdown
        .split("\n\n")
        .filter(|block| block.starts_with("| Message size"))
        .flat_map(|table| {
            table
                .lines()
                .map(|line| line.replace("\\|", "").matches('|').count())
        })
        .collect();
    assert_eq!(
        widths.len(),
        1,
        "each line of a table has as many cells: {widths:?}"
    );
}

#[test]
fn a_base_shows_what_changed() {
    let new = Latency {
        factor: 1.5,
        sizes: 4,
        ..Latency::default()
    };
    let base = Latency {
        transports: &["shm", "ofi:tcp", "gone"],
        sizes: 5,
        words: "another machine",
        ..Latency::default()
    };
    let files = vec![new.results("new.json")];
    let report = Report::of(
        files,
        Some(base.results("base.json")),
        &Selection::default(),
    )
    .unwrap();
    let sentences: Vec<String> = report
        .summary()
        .into_iter()
        .flat_map(|findings| findings.sentences)
        .collect();
    let has = |text: &str| {
        assert!(
            sentences.iter().any(|sentence| sentence == text),
            "{text} in {sentences:#?}"
        )
    };
    has(
        "shm and ofi:tcp against the base: worse by 50 % from 1 B to 8 B; new over base 1.50x in the geometric mean.",
    );
    has("Not in the base: ucx:tcp.");
    has(
        "Missing from the new results: shm (base) at 16 B, ofi:tcp (base) at 16 B, gone (base) at 1 B, gone (base) at 2 B and 3 more.",
    );
    has(
        "The files were measured under different circumstances: host (a machine against another machine).",
    );
    let page = written(&report, Format::Html);
    let document = parsed(&page);
    assert!(texts(&document, "h2").contains(&"Latency"));
    assert_eq!(
        document
            .descendants()
            .filter(|node| node.attribute("class") == Some("reference"))
            .count(),
        4
    );
    let Written::Each(plots) = report.write(Format::Svg).unwrap() else {
        panic!()
    };
    let ids: Vec<_> = plots.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "latency-latency-us",
            "latency-latency-us-ratio",
            "latency-p99-us",
            "latency-p99-us-ratio"
        ]
    );
    let markdown = written(&report, Format::Markdown);
    assert!(markdown.contains("| shm | 1 B | "), "{markdown}");
    assert!(markdown.contains("**worse**"), "{markdown}");
}

#[test]
fn csv_has_every_point_with_its_environment() {
    let text = written(&Latency::default().report(), Format::Csv);
    let lines: Vec<&str> = text.lines().collect();
    let heads: Vec<&str> = lines[0].split(',').collect();
    // Two metrics, three series, twelve sizes.
    assert_eq!(lines.len(), 1 + 2 * 3 * 12);
    for line in &lines {
        assert_eq!(line.split(',').count(), heads.len(), "{line}");
    }
    let field = |line: &str, head: &str| {
        let place = heads.iter().position(|known| *known == head).unwrap();
        line.split(',').nth(place).unwrap().to_owned()
    };
    let row = lines[2];
    for (head, value) in [
        ("test", "latency"),
        ("metric", "latency_us"),
        ("unit", "µs"),
        ("series", "shm"),
        ("transport", "shm"),
        ("size", "2"),
        ("ranks", "2"),
        ("points_launches", "3"),
        ("host", "a machine"),
        ("measured", "2026-11-23 23:59 UTC"),
        ("command", "a machine"),
    ] {
        assert_eq!(field(row, head), value, "{head}");
    }
    let median: f64 = field(row, "median").parse().unwrap();
    assert!((median - 0.1001 * 1.01).abs() < 1e-9);
}

#[test]
fn several_files_are_series_by_their_names() {
    let files = vec![
        Latency::default().results("a/one.json"),
        Latency::default().results("b/two.json"),
    ];
    let report = Report::of(files, None, &Selection::default()).unwrap();
    let names: Vec<_> = report.model.plots[0]
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(names[..2], ["shm · one", "ofi:tcp · one"]);
    // The base is one file, and has no need of its name.
    let base = Latency::default().results("c/base.json");
    let files = vec![
        Latency::default().results("a/one.json"),
        Latency::default().results("b/two.json"),
    ];
    let report = Report::of(files, Some(base), &Selection::default()).unwrap();
    let names: Vec<_> = report.model.plots[0]
        .series
        .iter()
        .map(|series| series.name.as_str())
        .collect();
    assert_eq!(
        names[5..8],
        ["ucx:tcp · two", "shm (base)", "ofi:tcp (base)"]
    );
    // The same stem: the whole path tells.
    let files = vec![
        Latency::default().results("a/one.json"),
        Latency::default().results("b/one.json"),
    ];
    let report = Report::of(files, None, &Selection::default()).unwrap();
    assert_eq!(report.model.plots[0].series[3].name, "shm · b/one.json");
}

#[test]
fn what_does_not_go_together_is_said() {
    let sample = || Latency::default().results("a.json");
    let error =
        |files, selection: &Selection| Report::of(files, None, selection).unwrap_err().to_string();
    let with_x = Selection {
        x: Some("partitions".to_owned()),
        ..Selection::default()
    };
    assert_eq!(
        error(vec![sample()], &with_x),
        "no row of latency has a number 'partitions' (--x): there are ranks, size"
    );
    let with_metric = Selection {
        metrics: vec!["speed".to_owned()],
        ..Selection::default()
    };
    assert_eq!(
        error(vec![sample()], &with_metric),
        "no row has 'speed' (--metric): there are latency_us, p99_us"
    );
    let other = Latency::default()
        .text()
        .replace("\"test\":\"latency\"", "\"test\":\"ring\"");
    let base = tagwire_report::read::Results::parse("b.json".as_ref(), other.as_bytes()).unwrap();
    let refused = Report::of(vec![sample()], Some(base), &Selection::default()).unwrap_err();
    assert!(matches!(refused, Error::Input { .. }), "{refused}");
}

/// They are in tables and files, and decide nothing: no summary ranks them, and they have neither launches nor environment.
#[test]
fn published_values_are_listed_and_not_judged() {
    let mut report = Latency::default().report();
    let before = report.summary();
    report.add_published(&[Published {
        of: "Cray MPI".to_owned(),
        metric: "latency_us".to_owned(),
        size: 8.0,
        value: 0.001,
    }]);
    let after = report.summary();
    let (told, rest) = after[0]
        .sentences
        .iter()
        .partition::<Vec<_>, _>(|sentence| sentence.contains("other machines"));
    assert_eq!(told.len(), 1);
    assert_eq!(rest, before[0].sentences.iter().collect::<Vec<_>>());
    let csv = written(&report, Format::Csv);
    let heads: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let line = csv.lines().find(|line| line.contains("Cray")).unwrap();
    let fields: Vec<&str> = line.split(',').collect();
    assert_eq!(fields.len(), heads.len());
    for (head, value) in [
        ("series", "published: Cray MPI"),
        ("role", "published"),
        ("median", "0.001"),
        ("file", ""),
        ("host", ""),
        ("command", ""),
    ] {
        let place = heads.iter().position(|known| *known == head).unwrap();
        assert_eq!(fields[place], value, "{head}");
    }
    let markdown = written(&report, Format::Markdown);
    let table = markdown.lines().find(|line| line.contains("Cray")).unwrap();
    assert_eq!(table.matches("to first").count(), 2, "{table}");
    assert!(markdown.contains("(other machine)"), "{markdown}");
}

/// Tests that compare processes with threads: ranks and threads follow from the unit, so that neither is an axis nor in a name.
#[test]
fn units_are_series_and_no_axis() {
    let text = Latency {
        transports: &["shm"],
        sizes: 1,
        ..Latency::default()
    }
    .text();
    let of_unit = |unit: &str, ranks: u32, threads: u32| {
        let unit = format!(
            "\"transport\":\"shm\",\"unit\":\"{unit}\",\"threads\":{threads},\"ranks\":{ranks}"
        );
        text.replace("\"transport\":\"shm\",\"ranks\":2", &unit)
    };
    let (processes, threads) = (of_unit("processes:4", 8, 1), of_unit("threads:4", 2, 4));
    let rows = |text: &str| {
        let (_, rest) = text.split_once("\"rows\":[").unwrap();
        rest.split_once("],\"warnings\"").unwrap().0.to_owned()
    };
    let both = format!("{},{}", rows(&processes), rows(&threads));
    let text = processes.replace(&rows(&processes), &both);
    let results = tagwire_report::read::Results::parse("a.json".as_ref(), text.as_bytes()).unwrap();
    let report = Report::of(vec![results], None, &Selection::default()).unwrap();
    let plot = &report.model.plots[0];
    assert_eq!((plot.x.key(), plot.is_single()), ("size", true));
    let names: Vec<_> = plot.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["processes:4", "threads:4"]);
}

/// A file of `test` with these rows.
fn file(name: &str, test: &str, rows: &[String]) -> Results {
    let text = format!(
        "{{\"schema\":\"tagwire.bench/2\",\"test\":\"{test}\",\"rows\":[{}]}}",
        rows.join(",")
    );
    Results::parse(Path::new(name), text.as_bytes()).unwrap()
}

#[test]
fn a_series_has_one_name_and_colour_on_a_page() {
    const SHM: &str = "\"transport\":\"shm\"";
    const UCX: &str = "\"transport\":\"ucx:tcp\",\"library\":\"UCX 1.13.1\"";
    const MPICH: &str = "\"transport\":\"mpi\",\"library\":\"MPICH Version: 5.0.2\"";
    const OPEN: &str = "\"transport\":\"mpi\",\"library\":\"Open MPI v5.0.11, x\"";
    let of = |test: &str, figure: &str, carriers: &[&str]| {
        let rows = carriers
            .iter()
            .enumerate()
            .map(|(place, carrier)| format!("{{\"size\":8,{carrier},\"{figure}\":{}}}", 1 + place));
        file(&format!("{test}.json"), test, &rows.collect::<Vec<_>>())
    };
    let files = vec![
        of("latency", "latency_us", &[SHM, UCX, MPICH, OPEN]),
        of("bandwidth", "bandwidth_mb_s", &[OPEN, UCX]),
        of("message-rate", "rate_msg_s", &[UCX]),
    ];
    let report = Report::of(files, None, &Selection::default()).unwrap();
    let series = |plot: usize| {
        let series = report.model.plots[plot].series.iter();
        series.map(|one| (&*one.name, one.slot)).collect::<Vec<_>>()
    };
    assert_eq!(
        series(0),
        [
            ("shm", 0),
            ("ucx:tcp", 1),
            ("MPICH 5.0.2", 2),
            ("Open MPI 5.0.11", 3)
        ]
    );
    assert_eq!(series(1), [("Open MPI 5.0.11", 3), ("ucx:tcp", 1)]);
    assert_eq!(series(2), [("ucx:tcp", 1)]);
}

/// What is called not to be trusted is neither ahead nor worse, and in no mean.
#[test]
fn there_is_one_judgement_of_what_is_not_to_be_trusted() {
    let results = |name: &str, factor: f64, busy: bool| {
        let row = |(transport, latency): (&str, f64)| {
            let load = if busy { 50.0 } else { 0.0 };
            format!(
                "{{\"size\":8,\"transport\":\"{transport}\",\"latency_us\":{},\"other_load_pct\":{load}}}",
                factor * latency
            )
        };
        let rows: Vec<String> = [("shm", 1.0), ("ucx", 10.0)].map(row).to_vec();
        file(name, "latency", &rows)
    };
    let sentences = |file: Results, base: Option<Results>| {
        let report = Report::of(vec![file], base, &Selection::default()).unwrap();
        report.summary().remove(0).sentences
    };
    let quiet = sentences(results("new.json", 1.0, false), None);
    assert!(
        quiet[0].starts_with("shm is ahead, beyond the noise, at 8 B"),
        "{quiet:?}"
    );
    let busy = sentences(results("new.json", 1.0, true), None);
    assert!(
        busy[0].starts_with("2 of 2 points were measured beside other load"),
        "{busy:?}"
    );
    assert!(
        busy[1].starts_with("shm would be ahead, had no other load"),
        "{busy:?}"
    );
    let base = Some(results("base.json", 0.5, false));
    let compared = sentences(results("new.json", 1.0, true), base);
    let all = [busy, compared.clone()].concat().concat();
    assert!(
        !all.contains("is ahead") && !all.contains("geometric mean"),
        "{all}"
    );
    let change = "shm and ucx against the base: nothing that is to be trusted; would be worse by 100 % at 8 B.";
    assert!(
        compared.iter().any(|sentence| sentence == change),
        "{compared:?}"
    );
}

#[test]
fn less_than_nothing_of_a_core_is_in_no_plot() {
    let row = |(size, median, greatest): (u32, f64, f64)| {
        format!(
            "{{\"size\":{size},\"transport\":\"shm\",\"availability_pct\":{median},\"availability_max_pct\":{greatest}}}"
        )
    };
    let rows = [
        (65536, 80.0, 90.0),
        (262_144, -1.0, 2.0),
        (1_048_576, -11_442.0, -90.0),
    ];
    let rows: Vec<String> = rows.map(row).to_vec();
    let of = vec![file("a.json", "availability", &rows)];
    let report = Report::of(of, None, &Selection::default()).unwrap();
    assert_eq!(report.model.plots[0].series[0].points.len(), 2);
    let page = written(&report, Format::Html);
    assert!(
        !page.contains("11,442") && page.contains("availability was not measured"),
        "{page}"
    );
}

#[test]
fn no_cell_of_csv_is_a_formula_or_a_control_character() {
    let row = "{\"size\":8,\"transport\":\"=1+1\\u001b[31m\",\"latency_us\":1}".to_owned();
    let of = vec![file("a.json", "latency", &[row])];
    let report = Report::of(of, None, &Selection::default()).unwrap();
    let csv = written(&report, Format::Csv);
    assert!(
        csv.contains(",'=1+1\u{fffd}[31m,") && !csv.contains('\u{1b}'),
        "{csv}"
    );
}
