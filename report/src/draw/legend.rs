//! Which line is whose.

use super::ink::{Ink, width_of};
use super::size::LABEL;
use super::style::{MUTED, PAPER, colour_of, dashes, marker, short};
use crate::model::{Plot, Role, Series};

/// The series of a plot in lines below each other, for a file.
#[derive(Debug)]
pub struct Legend<'a> {
    /// Each with its place, from the left and from above.
    entries: Vec<(&'a Series, String, f64, f64)>,
    height: f64,
}

const LINE: f64 = 20.0;
const SWATCH: f64 = 30.0;

impl<'a> Legend<'a> {
    /// Lays the series out in `width` pixels.
    #[must_use]
    pub fn of(plot: &'a Plot, width: f64) -> Self {
        let (mut x, mut y) = (0.0, 0.0);
        let mut entries = Vec::new();
        for series in &plot.series {
            let name = shortened(&series.name, width - SWATCH - 8.0);
            let own = SWATCH + 6.0 + width_of(&name, LABEL) + 18.0;
            if x > 0.0 && x + own > width {
                (x, y) = (0.0, y + LINE);
            }
            entries.push((series, name, x, y));
            x += own;
        }
        Self {
            entries,
            height: y + LINE,
        }
    }

    /// Returns its height, in pixels.
    #[must_use]
    pub const fn height(&self) -> f64 {
        self.height
    }

    /// Draws it.
    pub fn draw(&self, ink: &Ink, left: f64, top: f64) {
        ink.open("g", &[("class", "legend")]);
        for (series, name, x, y) in &self.entries {
            let (x, y) = (left + x, top + y + LINE / 2.0);
            swatch_at(ink, series, x, y);
            let attributes = [
                ("class", "labels"),
                ("x", &*short(x + SWATCH + 6.0)),
                ("y", &*short(y + 4.2)),
                ("fill", MUTED.light),
            ];
            ink.text("text", &attributes, name);
        }
        ink.close("g");
    }
}

/// Returns a piece of a series' line with its marker, as an element of a page.
#[must_use]
pub fn swatch(series: &Series) -> String {
    let ink = Ink::default();
    ink.open(
        "svg",
        &[
            ("class", "swatch"),
            ("viewBox", "0 0 30 14"),
            ("width", "30"),
            ("height", "14"),
            ("aria-hidden", "true"),
        ],
    );
    swatch_at(&ink, series, 0.0, 7.0);
    ink.close("svg");
    ink.take()
}

fn swatch_at(ink: &Ink, series: &Series, x: f64, y: f64) {
    group(ink, series, &[]);
    if series.role != Role::Published {
        let line = format!("M{} {}H{}", short(x), short(y), short(x + SWATCH));
        ink.element(
            "path",
            &[
                ("class", "line"),
                ("d", &line),
                ("fill", "none"),
                ("stroke-width", "1.8"),
                ("stroke-dasharray", dash(series)),
            ],
        );
    }
    mark(ink, series, x + SWATCH / 2.0, y);
    ink.close("g");
}

/// Opens the group of a series: its shapes have the group's colour.
pub fn group(ink: &Ink, series: &Series, more: &[(&str, &str)]) {
    let (colour, class) = colour_of(series);
    let class = format!("series {class}");
    let mut attributes = vec![
        ("class", &*class),
        ("color", colour.light),
        ("stroke", "currentColor"),
        ("fill", "currentColor"),
    ];
    attributes.extend_from_slice(more);
    ink.open("g", &attributes);
}

/// Draws the marker of a series; those of a base and of published values are hollow.
pub fn mark(ink: &Ink, series: &Series, x: f64, y: f64) {
    let path = marker(series.slot, x, y);
    match series.role {
        Role::Measured => ink.element(
            "path",
            &[("class", "mark"), ("d", &path), ("stroke", "none")],
        ),
        Role::Base | Role::Published => ink.element(
            "path",
            &[
                ("class", "mark hollow"),
                ("d", &path),
                ("fill", PAPER.light),
            ],
        ),
    }
}

/// The dashes of a series, as an attribute.
#[must_use]
pub fn dash(series: &Series) -> &'static str {
    match dashes(series) {
        "" => "none",
        dashes => dashes,
    }
}

/// A text that is no wider than `width` pixels.
#[must_use]
pub fn shortened(text: &str, width: f64) -> String {
    if width_of(text, LABEL) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if width_of(&short, LABEL) + LABEL > width {
            break;
        }
    }
    short + "…"
}
