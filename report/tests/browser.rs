//! The page in a browser: nothing on the console, readable on a desktop and on a telephone, and the script works.
//!
//! Skipped, and said so, where there is no Chromium. `REPORT_SHOTS=FOLDER` keeps pictures of what was seen.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod devtools;
mod sample;

use std::fs;
use std::path::{Path, PathBuf};

use devtools::{Browser, installed};
use sample::{Latency, written};
use serde_json::{Value, json};
use tagwire_report::{Format, Report, Selection};

const DESKTOP: (u32, u32) = (1280, 900);
const TELEPHONE: (u32, u32) = (390, 844);

/// A browser and a folder with a page, or nothing where there is no browser.
fn browser(test: &str, report: &Report) -> Option<(Browser, tempfile::TempDir, PathBuf)> {
    let Some(program) = installed() else {
        eprintln!("SKIPPED: {test} needs chromium");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    fs::write(&file, written(report, Format::Html)).unwrap();
    Some((Browser::start(&program), folder, file))
}

/// A page with much on it: three tests' worth of series, a base, two files.
fn large() -> Report {
    let latency = |factor: f64, words: &'static str| Latency {
        transports: &[
            "shm",
            "ofi:tcp",
            "ofi:tcp;ofi_rxm",
            "ucx:tcp",
            "ucx:sysv",
            "a transport with a name that is much longer than all others",
        ],
        sizes: 23,
        launches: 5,
        factor,
        words,
    };
    let files = vec![
        latency(1.0, "one").results("one.json"),
        latency(1.3, "two").results("two.json"),
    ];
    let base = latency(
        0.9,
        "the machine before, whose name is so long that it has to be broken: abcdefghijklmnopqrstuvwxyz0123456789",
    );
    Report::of(
        files,
        Some(base.results("base.json")),
        &Selection::default(),
    )
    .unwrap()
}

/// Texts that can be seen in drawings, and that leave their drawing or lie over each other.
const CLASHES: &str = "(() => {
    const clashes = [];
    for (const svg of document.querySelectorAll('.drawing > svg')) {
        const frame = svg.getBoundingClientRect();
        if (!frame.width) continue;
        const boxes = [...svg.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
        boxes.forEach(([name, a], place) => {
            if (a.left < frame.left - 2 || a.right > frame.right + 2) clashes.push(`${name} leaves the drawing`);
            for (const [other, b] of boxes.slice(place + 1)) {
                const apart = a.right <= b.left || b.right <= a.left || a.bottom - 2 <= b.top || b.bottom - 2 <= a.top;
                if (!apart) clashes.push(`${name} over ${other}`);
            }
        });
    }
    return clashes;
})()";

fn keep_picture(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("REPORT_SHOTS") else {
        return;
    };
    let shot = browser.call(
        "Page.captureScreenshot",
        &json!({"captureBeyondViewport": true}),
    );
    let file = Path::new(&folder).join(format!("{name}.base64"));
    fs::write(file, shot["data"].as_str().unwrap()).unwrap();
}

#[test]
fn readable_wide_and_narrow_in_light_and_dark() {
    let Some((mut browser, _folder, file)) =
        browser("readable_wide_and_narrow_in_light_and_dark", &large())
    else {
        return;
    };
    for (name, size) in [("desktop", DESKTOP), ("telephone", TELEPHONE)] {
        for scheme in ["light", "dark"] {
            browser.open(&file, size, scheme);
            keep_picture(&mut browser, &format!("{name}-{scheme}"));
            browser.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })");
            let width = browser.evaluate("document.documentElement.scrollWidth");
            assert_eq!(
                width, size.0,
                "no part of the page is wider than the window"
            );
            let shown = browser.evaluate("[...document.querySelectorAll('.drawing > svg')].filter((svg) => svg.getBoundingClientRect().width).length");
            assert_eq!(
                shown,
                browser.evaluate("document.querySelectorAll('.drawing').length")
            );
            assert_eq!(browser.evaluate(CLASHES), json!([]));
            let smallest = browser.evaluate(
                "Math.min(...[...document.querySelectorAll('.drawing > svg')].filter((svg) => svg.getBoundingClientRect().width)
                    .map((svg) => 12 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width))",
            );
            assert!(
                smallest.as_f64().unwrap() >= 9.0,
                "labels have {smallest} pixels"
            );
            let paper =
                browser.evaluate("getComputedStyle(document.documentElement).backgroundColor");
            assert_eq!(
                paper,
                if scheme == "dark" {
                    "rgb(15, 19, 24)"
                } else {
                    "rgb(255, 255, 255)"
                }
            );
            let line =
                browser.evaluate("getComputedStyle(document.querySelector('.data .c0')).color");
            assert_eq!(
                line,
                if scheme == "dark" {
                    "rgb(88, 180, 240)"
                } else {
                    "rgb(0, 114, 178)"
                }
            );
        }
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Between the two drawings neither is too small: the window is made wider step by step.
#[test]
fn every_width_has_a_drawing_that_is_readable() {
    let report = Latency::default().report();
    let Some((mut browser, _folder, file)) =
        browser("every_width_has_a_drawing_that_is_readable", &report)
    else {
        return;
    };
    for width in [320, 390, 600, 759, 760, 1024, 1920] {
        browser.open(&file, (width, 900), "light");
        assert_eq!(
            browser.evaluate("document.documentElement.scrollWidth"),
            width
        );
        assert_eq!(browser.evaluate(CLASHES), json!([]), "{width}");
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// Where a point of a series is in the window.
fn point(browser: &mut Browser, series: usize, place: usize) -> (f64, f64) {
    let found = browser.evaluate(&format!(
        "(() => {{
            const drawings = [...document.querySelectorAll('.drawing > svg')].filter((svg) => svg.getBoundingClientRect().width);
            drawings[0].scrollIntoView({{block: 'center'}});
            const mark = drawings[0].querySelectorAll('.data > .series')[{series}].querySelectorAll('.mark')[{place}];
            const box = mark.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()"
    ));
    (found[0].as_f64().unwrap(), found[1].as_f64().unwrap())
}

const TIP: &str = "(() => {
    const tip = document.querySelector('.tip');
    return tip.hidden ? null : [...tip.querySelectorAll('b, span, small')].map((part) => part.textContent);
})()";

#[test]
fn values_show_on_hover_series_go_on_and_off_and_a_part_can_be_enlarged() {
    let report = Latency::default().report();
    let test = "values_show_on_hover_series_go_on_and_off_and_a_part_can_be_enlarged";
    let Some((mut browser, _folder, file)) = browser(test, &report) else {
        return;
    };
    for size in [DESKTOP, TELEPHONE] {
        browser.open(&file, size, "light");
        assert_eq!(browser.evaluate(TIP), Value::Null);
        let (x, y) = point(&mut browser, 0, 10);
        browser.mouse("mouseMoved", x, y);
        let tip = browser.evaluate(TIP);
        let parts: Vec<&str> = tip
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        // The slowest is above, as in the plot.
        assert_eq!(
            parts[..4],
            ["1 KiB", "ucx:tcp", "0.458 µs", "0.454 to 0.463, 3 launches"],
            "{parts:?}"
        );
        assert_eq!(parts.len(), 1 + 3 * 3);
        keep_picture(&mut browser, &format!("hover-{}", size.0));
        let inside = browser.evaluate("(() => { const box = document.querySelector('.tip').getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; })()");
        assert_eq!(inside, true);

        // A click takes a series off, in the drawing and on hover; another brings it back.
        let press = "document.querySelectorAll('.key button')[2].click()";
        let shown = "[...document.querySelectorAll('.drawing > svg')].map((svg) => [...svg.querySelectorAll('.data > .series')].filter((group) => group.getAttribute('display') !== 'none').length).slice(0, 2)";
        browser.evaluate(press);
        assert_eq!(browser.evaluate(shown), json!([2, 2]));
        assert_eq!(
            browser.evaluate(
                "document.querySelectorAll('.key button')[2].getAttribute('aria-pressed')"
            ),
            "false"
        );
        browser.mouse("mouseMoved", x, y + 1.0);
        assert_eq!(browser.evaluate(TIP).as_array().unwrap().len(), 1 + 2 * 3);
        browser.evaluate(press);
        assert_eq!(browser.evaluate(shown), json!([3, 3]));
        // A double click shows one alone, another all.
        let alone =
            "document.querySelectorAll('.key button')[1].dispatchEvent(new MouseEvent('dblclick'))";
        browser.evaluate(alone);
        assert_eq!(browser.evaluate(shown), json!([1, 1]));
        browser.evaluate(alone);
        assert_eq!(browser.evaluate(shown), json!([3, 3]));

        zooms(&mut browser);
    }
    assert_eq!(browser.complaints, Vec::<String>::new());
}

/// What is dragged over fills the frame, with labels of its own.
fn zooms(browser: &mut Browser) {
    let labels = "[...[...document.querySelectorAll('.drawing > svg')].find((svg) => svg.getBoundingClientRect().width).querySelectorAll('.axes text')].map((text) => text.textContent)";
    let before = browser.evaluate(labels);
    let (from, to) = (point(browser, 0, 8), point(browser, 0, 10));
    let distance = to.0 - from.0;
    browser.mouse("mousePressed", from.0 - 4.0, from.1);
    browser.mouse("mouseMoved", to.0, to.1);
    browser.mouse("mouseMoved", to.0 + 4.0, to.1);
    browser.mouse("mouseReleased", to.0 + 4.0, to.1);
    assert_eq!(
        browser.evaluate("document.querySelector('.reset').hidden"),
        false
    );
    keep_picture(browser, "zoomed");
    let (from, to) = (point(browser, 0, 8), point(browser, 0, 10));
    assert!(
        to.0 - from.0 > 3.0 * distance,
        "{from:?} to {to:?}, before {distance}"
    );
    let after = browser.evaluate(labels);
    assert_ne!(after, before);
    let sizes = after
        .as_array()
        .unwrap()
        .iter()
        .filter(|label| label.as_str().unwrap().ends_with('B'));
    assert!(sizes.count() >= 2, "{after}");
    assert_eq!(browser.evaluate(CLASHES), json!([]), "{after}");
    browser.evaluate("document.querySelector('.reset').click()");
    assert_eq!(browser.evaluate(labels), before);
    assert!((point(browser, 0, 10).0 - point(browser, 0, 8).0 - distance).abs() < 0.5);
}

/// A name that wants to be a script is a name, in the page and in what the script makes of it.
#[test]
fn names_of_a_file_run_nothing() {
    let hostile = "<img src=x onerror=\"window.ran = 1\"><script>window.ran = 2</script>";
    let report = Latency {
        transports: &[hostile, "shm"],
        words: hostile,
        ..Latency::default()
    }
    .report();
    let Some((mut browser, _folder, file)) = browser("names_of_a_file_run_nothing", &report) else {
        return;
    };
    browser.open(&file, DESKTOP, "light");
    let (x, y) = point(&mut browser, 0, 5);
    browser.mouse("mouseMoved", x, y);
    let tip = browser.evaluate(TIP);
    assert!(
        tip.as_array().unwrap().iter().any(|part| part == hostile),
        "{tip}"
    );
    assert_eq!(browser.evaluate("typeof window.ran"), "undefined");
    assert_eq!(browser.evaluate("document.images.length"), 0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}
