//! Drawing a plot as SVG, for the page and for files.

pub mod axis;
pub mod chart;
pub mod ink;
pub mod legend;
pub mod scale;
pub mod size;
pub mod style;

use self::chart::Chart;
use self::ink::{Ink, width_of};
use self::legend::Legend;
pub use self::size::{FILE, FONTS, LABEL, NARROW, Size, WIDE};
use self::style::{AXIS, COLOURS, Colour, GRID, MUTED, PAPER, TEXT, short};
use crate::error::Result;
use crate::model::Plot;

/// Returns a plot as an element of a page, which has the title and the legend.
///
/// # Errors
/// [`Error::Drawing`](crate::Error::Drawing) where the library cannot.
pub fn inline(plot: &Plot, size: Size) -> Result<String> {
    let chart = Chart::new(plot, size);
    let ink = Ink::default();
    open(&ink, plot, &chart, size, chart.height(), &[]);
    chart.draw(&ink)?;
    ink.close("svg");
    Ok(ink.take())
}

/// The size of a file's title, in pixels, and how much wider its heavy letters are than others at the most.
const TITLE: f64 = 16.0;
const BOLD: f64 = 1.25;

/// Returns a plot as a file of its own, with title, caption and legend.
///
/// # Errors
/// [`Error::Drawing`](crate::Error::Drawing) where the library cannot.
pub fn file(plot: &Plot) -> Result<String> {
    let size = FILE;
    let chart = Chart::new(plot, size);
    let width = size.width - 2.0 * size.inset;
    let legend = Legend::of(plot, width);
    let title = wrapped(&plot.title(), width, BOLD * TITLE);
    let caption = wrapped(&plot.caption(), width, LABEL);
    #[allow(clippy::cast_precision_loss, reason = "counts of lines")]
    let [below_title, below_caption] = {
        let below_title = 10.0 + 20.0 * title.len() as f64;
        [below_title, below_title + 16.0 * caption.len() as f64 + 6.0]
    };
    let legend_height = if plot.is_single() {
        0.0
    } else {
        legend.height()
    };
    let head = below_caption + legend_height;
    let ink = Ink::default();
    open(
        &ink,
        plot,
        &chart,
        size,
        head + chart.height(),
        &[("xmlns", "http://www.w3.org/2000/svg")],
    );
    ink.text("style", &[], &stylesheet());
    ink.element(
        "rect",
        &[
            ("class", "paper"),
            ("width", "100%"),
            ("height", "100%"),
            ("fill", PAPER.light),
        ],
    );
    let text = |class: &str, y: f64, font_size: f64, weight: &str, colour: Colour, text: &str| {
        let attributes = [
            ("class", class),
            ("x", &*short(size.inset)),
            ("y", &*short(y)),
            ("font-size", &*short(font_size)),
            ("font-weight", weight),
            ("fill", colour.light),
        ];
        ink.text("text", &attributes, text);
    };
    for (line, y) in title
        .iter()
        .zip((0..).map(|line| 24.0 + 20.0 * f64::from(line)))
    {
        text("title", y, TITLE, "600", TEXT, line);
    }
    for (line, y) in caption
        .iter()
        .zip((0..).map(|line| below_title + 13.0 + 16.0 * f64::from(line)))
    {
        text("caption", y, LABEL, "400", MUTED, line);
    }
    if !plot.is_single() {
        legend.draw(&ink, size.inset, below_caption);
    }
    ink.open(
        "g",
        &[("transform", &format!("translate(0 {})", short(head)))],
    );
    chart.draw(&ink)?;
    ink.close("g");
    ink.close("svg");
    Ok(ink.take() + "\n")
}

fn open(ink: &Ink, plot: &Plot, chart: &Chart, size: Size, height: f64, more: &[(&str, &str)]) {
    let view = format!("0 0 {} {}", short(size.width), short(height));
    let (width, height) = (short(size.width), short(height));
    let data = chart.data();
    let label = format!("{}. {}", plot.title(), plot.caption());
    let mut attributes = more.to_vec();
    attributes.extend([
        ("class", size.suffix),
        ("viewBox", &*view),
        ("width", &*width),
        ("height", &*height),
        ("role", "img"),
        ("aria-label", &*label),
        ("font-family", FONTS),
        ("font-size", "12"),
    ]);
    attributes.extend(data.iter().map(|(key, value)| (*key, value.as_str())));
    ink.open("svg", &attributes);
}

/// Lines of text that are no wider than `width`.
fn wrapped(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width_of(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The colours of a file's classes on dark paper; on light paper the attributes have them.
fn stylesheet() -> String {
    let rules = rules(|colour| colour.dark);
    format!("@media (prefers-color-scheme: dark) {{ {rules} }}")
}

/// The rules that give each class of a drawing its colour.
#[must_use]
pub fn rules(of: impl Fn(Colour) -> &'static str) -> String {
    let mut rules = vec![
        format!(".paper {{ fill: {} }}", of(PAPER)),
        format!(".title, .axis-title, .names {{ fill: {} }}", of(TEXT)),
        format!(".caption, .labels {{ fill: {} }}", of(MUTED)),
        format!(".grid {{ stroke: {} }}", of(GRID)),
        format!(".axes {{ stroke: {} }}", of(AXIS)),
        format!(".hollow {{ fill: {} }}", of(PAPER)),
        format!(".halo {{ stroke: {} }}", of(PAPER)),
        format!(".reference {{ stroke: {} }}", of(TEXT)),
    ];
    rules.push(format!(".published {{ color: {} }}", of(MUTED)));
    for (slot, colour) in COLOURS.into_iter().enumerate() {
        rules.push(format!(".c{slot} {{ color: {} }}", of(colour)));
    }
    rules.join(" ")
}
