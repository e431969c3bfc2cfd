//! The drawings: what is in them, and that nothing lies over something else.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod sample;

use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use sample::Latency;
use tagwire_report::draw::ink::width_of;
use tagwire_report::draw::{self, NARROW, WIDE};
use tagwire_report::model::Plot;
use tagwire_report::{Published, Report, Selection};

fn plot(latency: &Latency) -> Plot {
    latency.report().model.plots.remove(0)
}

fn with_class<'a>(node: Node<'a, 'a>, class: &str) -> Vec<Node<'a, 'a>> {
    let has = |node: &Node| {
        let classes = node.attribute("class").unwrap_or("");
        classes.split(' ').any(|one| one == class)
    };
    node.descendants().filter(has).collect()
}

fn number(node: Node, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

#[test]
fn every_point_is_there_with_what_it_says() {
    let plot = plot(&Latency::default());
    for text in [
        draw::inline(&plot, WIDE).unwrap(),
        draw::inline(&plot, NARROW).unwrap(),
        draw::file(&plot).unwrap(),
    ] {
        let document = Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "svg");
        let data = with_class(root, "data")[0];
        let series = with_class(data, "series");
        assert_eq!(series.len(), 3);
        let colours: BTreeSet<_> = series
            .iter()
            .map(|series| series.attribute("color"))
            .collect();
        assert_eq!(colours.len(), 3);
        for series in series {
            assert_eq!(with_class(series, "line").len(), 1);
            let points = with_class(series, "point");
            assert_eq!(points.len(), 12);
            for point in points {
                assert_eq!(with_class(point, "mark").len(), 1);
                assert_eq!(with_class(point, "bar").len(), 1);
            }
        }
        let first = with_class(data, "point")[10];
        assert_eq!(first.attribute("data-x"), Some("1 KiB"));
        // 0.1 us and 1024 B at 20 GB/s, in three launches 1 % apart.
        assert_eq!(first.attribute("data-value"), Some("0.153 µs"));
        let told = first.attribute("data-of");
        assert_eq!(told, Some("0.151 to 0.154, 3 launches"));
    }
}

#[test]
fn points_lie_within_the_frame_and_rise_with_their_values() {
    let plot = plot(&Latency::default());
    let text = draw::inline(&plot, WIDE).unwrap();
    let document = Document::parse(&text).unwrap();
    let root = document.root_element();
    let frame: Vec<f64> = root
        .attribute("data-frame")
        .unwrap()
        .split(' ')
        .map(|part| part.parse().unwrap())
        .collect();
    for series in with_class(root, "series") {
        let places: Vec<Vec<f64>> = with_class(series, "point")
            .iter()
            .map(|point| {
                point
                    .attribute("data-at")
                    .unwrap()
                    .split(' ')
                    .map(|part| part.parse().unwrap())
                    .collect()
            })
            .collect();
        for place in &places {
            let [x, y, low, high] = place[..] else {
                panic!("{place:?}")
            };
            assert!(
                x >= frame[0] && x <= frame[0] + frame[2],
                "{place:?} {frame:?}"
            );
            assert!(
                high >= frame[1] && low <= frame[1] + frame[3],
                "{place:?} {frame:?}"
            );
            assert!(high <= y && y <= low, "{place:?}");
        }
        // Sizes are doubled from point to point: along a logarithmic axis the distance is the same.
        let steps: Vec<f64> = places
            .windows(2)
            .map(|pair| pair[1][0] - pair[0][0])
            .collect();
        assert!(
            steps.iter().all(|step| (step - steps[0]).abs() < 0.5),
            "{steps:?}"
        );
        assert!(
            places.windows(2).all(|pair| pair[1][1] <= pair[0][1]),
            "values rise, so pixels fall"
        );
    }
}

/// No label of an axis reaches into the next one, and none out of the drawing, whatever is plotted.
#[test]
fn labels_do_not_overlap() {
    for (sizes, factor) in [
        (23, 1.0),
        (23, 1e4),
        (3, 1e-3),
        (1, 1.0),
        (2, 1e9),
        (16, 123.0),
    ] {
        for transports in [
            &["shm"][..],
            &[
                "shm",
                "ofi:tcp;ofi_rxm on a very long name of a transport indeed",
                "ucx:tcp",
            ],
        ] {
            let plot = plot(&Latency {
                transports,
                sizes,
                factor,
                ..Latency::default()
            });
            for size in [WIDE, NARROW] {
                let text = draw::inline(&plot, size).unwrap();
                let document = Document::parse(&text).unwrap();
                let boxes: Vec<_> = document
                    .descendants()
                    .filter(|node| node.has_tag_name("text"))
                    .map(|node| {
                        let text = node.text().unwrap();
                        let (x, width) = (number(node, "x"), width_of(text, 12.0));
                        let left = match node.attribute("text-anchor") {
                            Some("middle") => x - width / 2.0,
                            Some("end") => x - width,
                            _ => x,
                        };
                        (left, left + width, number(node, "y"), text)
                    })
                    .collect();
                for (place, a) in boxes.iter().enumerate() {
                    assert!(
                        a.0 > -2.0 && a.1 < size.width + 2.0,
                        "{a:?} leaves {}",
                        size.width
                    );
                    for b in &boxes[place + 1..] {
                        let overlap = a.0 < b.1 && b.0 < a.1 && (a.2 - b.2).abs() < 12.0;
                        assert!(
                            !overlap,
                            "{a:?} and {b:?} overlap at {} of {sizes} sizes",
                            size.width
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_base_has_the_colour_of_its_counterpart_and_dashes() {
    let base = Latency {
        factor: 0.5,
        ..Latency::default()
    };
    let files = vec![Latency::default().results("new.json")];
    let report = Report::of(
        files,
        Some(base.results("base.json")),
        &Selection::default(),
    )
    .unwrap();
    let text = draw::file(&report.model.plots[0]).unwrap();
    let document = Document::parse(&text).unwrap();
    let series = with_class(with_class(document.root_element(), "data")[0], "series");
    assert_eq!(series.len(), 6);
    for place in 0..3 {
        assert_eq!(
            series[place].attribute("color"),
            series[place + 3].attribute("color")
        );
        let dash = |node: Node| {
            with_class(node, "line")[0]
                .attribute("stroke-dasharray")
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            (
                dash(series[place]).as_str(),
                dash(series[place + 3]).as_str()
            ),
            ("none", "5 4")
        );
        assert_eq!(with_class(series[place + 3], "hollow").len(), 12);
    }
}

/// Where there is no room for both, a name goes before the ends of an interval.
#[test]
fn names_of_rows_are_whole_in_narrow_windows() {
    let name = "Intel MPI Library 2021.18 threads:4";
    let plot = plot(&Latency {
        transports: &[name, "shm"],
        sizes: 1,
        ..Latency::default()
    });
    for (size, intervals) in [(WIDE, 2), (NARROW, 1)] {
        let text = draw::inline(&plot, size).unwrap();
        let document = Document::parse(&text).unwrap();
        let texts = document
            .descendants()
            .filter(|node| node.has_tag_name("text"));
        let texts: Vec<&str> = texts.filter_map(|node| node.text()).collect();
        assert!(texts.contains(&name), "{texts:?}");
        let told = texts.iter().filter(|text| text.contains(" to ")).count();
        assert_eq!(told, intervals, "{texts:?}");
    }
}

/// They have no line, no interval, and a colour that no measured series has; two of the same name are one series.
#[test]
fn published_values_are_hollow_points_of_their_own() {
    let published = |of: &str, metric: &str, size: f64, value: f64| Published {
        of: of.to_owned(),
        metric: metric.to_owned(),
        size,
        value,
    };
    let mut report = Latency::default().report();
    report.add_published(&[
        published("Cray MPI", "latency_us", 8.0, 4.78),
        published("OB1", "latency_us", 8.0, 6.16),
        published("OB1", "latency_us", 0.0, 6.0),
        published("OB1", "rate_msg_s", 8.0, 1e5),
    ]);
    let plots = &report.model.plots;
    assert_eq!(plots[0].series.len(), 5);
    assert_eq!(plots[1].series.len(), 3, "no percentile is published");
    for text in [
        draw::inline(&plots[0], WIDE).unwrap(),
        draw::file(&plots[0]).unwrap(),
    ] {
        let document = Document::parse(&text).unwrap();
        let series = with_class(with_class(document.root_element(), "data")[0], "series");
        for (one, count) in [(series[3], 1), (series[4], 2)] {
            assert!(with_class(one, "line").is_empty() && with_class(one, "bar").is_empty());
            assert_eq!(with_class(one, "hollow").len(), count);
            let of = |node: Node| node.attribute("color").map(str::to_owned);
            assert!(series[..3].iter().all(|other| of(*other) != of(one)));
            for point in with_class(one, "point") {
                assert_eq!(point.attribute("data-of"), Some("on another machine"));
            }
        }
        let first = with_class(series[4], "point")[0];
        assert_eq!(first.attribute("data-x"), Some("0 B"));
        assert_eq!(first.attribute("data-value"), Some("6 µs"));
    }
}

/// A title that is longer than a file is wide has lines, and what is below makes room for them.
#[test]
fn a_long_title_is_whole() {
    let short = plot(&Latency::default());
    let mut long = plot(&Latency::default());
    long.test = "Latency of several threads and of several processes at once, and of one alone, on shared memory".to_owned();
    let of = |plot: &Plot| {
        let text = draw::file(plot).unwrap();
        let document = Document::parse(&text).unwrap();
        let titles = with_class(document.root_element(), "title");
        let lines: Vec<_> = titles
            .iter()
            .filter_map(Node::text)
            .map(str::to_owned)
            .collect();
        let places: Vec<_> = titles.iter().map(|title| number(*title, "y")).collect();
        (lines, places, number(document.root_element(), "height"))
    };
    let (lines, places, height) = of(&long);
    assert_eq!(lines.join(" "), long.title());
    assert_eq!(places, [24.0, 44.0]);
    assert!((height - of(&short).2 - 20.0).abs() < 0.1, "{height}");
}

/// A file is whole without a stylesheet, and has the colours of dark paper for browsers.
#[test]
fn a_file_stands_alone() {
    let text = draw::file(&plot(&Latency::default())).unwrap();
    assert!(text.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    assert!(text.contains("prefers-color-scheme: dark"));
    assert!(!text.contains("var("));
    let document = Document::parse(&text).unwrap();
    let titles: Vec<_> = with_class(document.root_element(), "title")
        .iter()
        .filter_map(Node::text)
        .collect();
    assert_eq!(titles, ["Latency"]);
    for name in ["shm", "ofi:tcp", "ucx:tcp"] {
        assert!(
            with_class(document.root_element(), "legend")[0]
                .descendants()
                .any(|node| node.text() == Some(name))
        );
    }
    // Each text has a fill: black on dark paper is none.
    for node in document
        .descendants()
        .filter(|node| node.has_tag_name("text"))
    {
        assert!(
            node.ancestors().any(|node| node
                .attribute("fill")
                .is_some_and(|fill| fill.starts_with('#'))),
            "{node:?}"
        );
    }
}
