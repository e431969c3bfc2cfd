//! A chart: axes, grid, lines, markers, intervals.
//!
//! plotters lays out axes and grid and maps coordinates. Markers and intervals are written here: each point is a group
//! whose attributes tell the page's script what it shows.

use std::convert::Infallible;

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::PathElement;
use plotters::style::{BLACK, IntoFont, TextStyle};

use super::axis::Axis;
use super::ink::{Backend, FINE, Ink, fine, width_of};
use super::legend::{dash, group, mark, shortened};
use super::scale::{Scale, Tick};
use super::size::{FILE, LABEL, Size};
use super::style::{AXIS, GRID, MUTED, PAPER, TEXT, short};

use crate::error::{Error, Result};
use crate::model::{Plot, Point, Role, Series, Variable};
use crate::number;

/// A plot with its axes, for one size.
#[derive(Debug)]
pub struct Chart<'a> {
    plot: &'a Plot,
    size: Size,
    layout: Layout,
    x: Scale,
    y: Scale,
    x_ticks: Vec<Tick>,
    y_ticks: Vec<Tick>,
}

/// How much room axes and titles take, in pixels.
#[derive(Debug, Clone, Copy)]
struct Layout {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// With the room around.
    height: f64,
}

/// The room for the title of the axis below, and for the labels.
const BELOW: f64 = 52.0;
/// The room for the title of the axis at the left, which stands above it.
const ABOVE: f64 = 30.0;
/// A label as long as those of a part that the page's script enlarges.
const ENLARGED: &str = "0.125";
/// The height of a series where there is one value of the variable.
const ROW: f64 = 42.0;

type Context<'a> = ChartContext<'a, Backend, Cartesian2d<Axis, Axis>>;
type Failure = DrawingAreaErrorKind<Infallible>;

impl<'a> Chart<'a> {
    /// Lays out a plot.
    #[must_use]
    pub fn new(plot: &'a Plot, size: Size) -> Self {
        let ends = |point: &Point| {
            [
                point.estimate.min,
                point.estimate.median,
                point.estimate.max,
            ]
        };
        let mut values: Vec<f64> = plot
            .series
            .iter()
            .flat_map(|series| series.points.iter().flat_map(ends))
            .collect();
        values.extend(plot.reference);
        let metric = if plot.reference.is_some() {
            Scale::of_ratios(&values)
        } else if plot.metric.is_part_of_a_core() {
            Scale::of_parts()
        } else {
            Scale::of_metric(plot.metric.unit, &values)
        };
        if plot.is_single() {
            return Self::of_rows(plot, size, metric);
        }
        let height = size.height - ABOVE - BELOW;
        let y_ticks = metric.ticks(height, 34.0);
        let widest = y_ticks
            .iter()
            .map(|tick| width_of(&tick.label, LABEL))
            .fold(width_of(ENLARGED, LABEL), f64::max);
        let layout = Layout {
            left: widest + 16.0 + size.inset,
            right: 18.0,
            top: ABOVE,
            bottom: BELOW,
            height: size.height,
        };
        let x = Scale::of_variable(&plot.x, &plot.xs());
        let x_ticks = x.ticks(size.width - layout.left - layout.right, 58.0);
        Self {
            plot,
            size,
            layout,
            x,
            y: metric,
            x_ticks,
            y_ticks,
        }
    }

    /// The series below each other, their values along the axis.
    fn of_rows(plot: &'a Plot, size: Size, metric: Scale) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "a count of series")]
        let rows = plot.series.len() as f64;
        let layout = Layout {
            left: 8.0 + size.inset,
            right: 12.0 + size.inset,
            top: 8.0,
            bottom: BELOW,
            height: 8.0 + rows * ROW + BELOW,
        };
        let x_ticks = metric.ticks(size.width - layout.left - layout.right, 64.0);
        Self {
            plot,
            size,
            layout,
            x: metric,
            y: Scale::of_rows(rows),
            x_ticks,
            y_ticks: Vec::new(),
        }
    }

    /// Returns the height of the drawing, in pixels.
    #[must_use]
    pub const fn height(&self) -> f64 {
        self.layout.height
    }

    /// Returns what the page's script has to know of the axes.
    #[must_use]
    pub fn data(&self) -> Vec<(&'static str, String)> {
        let (left, top, width, height) = self.frame();
        let frame = [left, top, width, height].map(short).join(" ");
        let kind = if self.plot.is_single() {
            "rows"
        } else {
            "lines"
        };
        vec![
            ("data-kind", kind.to_owned()),
            ("data-frame", frame),
            ("data-x", self.x.data()),
            ("data-y", self.y.data()),
        ]
    }

    /// Left, top, width and height of the area between the axes.
    fn frame(&self) -> (f64, f64, f64, f64) {
        let Layout {
            left,
            right,
            top,
            bottom,
            height,
        } = self.layout;
        (
            left,
            top,
            self.size.width - left - right,
            height - top - bottom,
        )
    }

    /// Draws the chart.
    ///
    /// # Errors
    /// [`Error::Drawing`] where the library cannot.
    pub fn draw(&self, ink: &Ink) -> Result<()> {
        let area =
            Backend::new(ink.clone(), self.size.width, self.layout.height).into_drawing_area();
        self.draw_on(ink, &area).map_err(|reason| Error::Drawing {
            plot: self.plot.id.clone(),
            reason,
        })
    }

    fn draw_on(&self, ink: &Ink, area: &DrawingArea<Backend, Shift>) -> Result<(), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut context = self.context(area).map_err(|error| text(&error))?;
        self.mesh(ink, &mut context).map_err(|error| text(&error))?;
        self.titles(ink);
        self.reference(ink, &context);
        self.open_data(ink);
        for (place, series) in self.plot.series.iter().enumerate() {
            group(ink, series, &[("data-series", &place.to_string())]);
            if self.plot.is_single() {
                self.row(ink, &context, place, series);
            } else {
                self.line(ink, &context, series)
                    .map_err(|error| text(&error))?;
            }
            ink.close("g");
        }
        ink.close("g");
        Ok(())
    }

    /// The line at a value that means something.
    fn reference(&self, ink: &Ink, context: &Context) {
        let Some(value) = self.plot.reference else {
            return;
        };
        let (left, top, width, height) = self.frame();
        let (along, across) = (self.x.place(value), self.y.place(value));
        let line = if self.plot.is_single() {
            format!(
                "M{} {}v{}",
                short(pixels(context, (along, 0.0)).0),
                short(top),
                short(height)
            )
        } else {
            format!(
                "M{} {}h{}",
                short(left),
                short(pixels(context, (0.0, across)).1),
                short(width)
            )
        };
        let at = pixels(context, (along, across)).1;
        let attributes = [
            ("class", "reference"),
            ("d", &*line),
            ("data-at", &*short(at)),
            ("stroke", TEXT.light),
            ("stroke-dasharray", "6 4"),
        ];
        ink.element("path", &attributes);
    }

    /// Opens the group of the series. Lines end at the frame, where the page's script enlarges a part.
    fn open_data(&self, ink: &Ink) {
        if self.plot.is_single() {
            return ink.open("g", &[("class", "data")]);
        }
        let clip = format!("{}-{}-clip", self.plot.id, self.size.suffix);
        let (left, top, width, height) = self.frame();
        let [x, y, width, height] = [left - 6.0, top - 6.0, width + 12.0, height + 12.0].map(short);
        ink.open("clipPath", &[("id", &clip)]);
        ink.element(
            "rect",
            &[("x", &x), ("y", &y), ("width", &width), ("height", &height)],
        );
        ink.close("clipPath");
        ink.open(
            "g",
            &[("class", "data"), ("clip-path", &format!("url(#{clip})"))],
        );
    }

    fn context<'c>(&self, area: &'c DrawingArea<Backend, Shift>) -> Result<Context<'c>, Failure> {
        let Layout {
            left,
            right,
            top,
            bottom,
            ..
        } = self.layout;
        ChartBuilder::on(area)
            .margin_top(fine(top))
            .margin_right(fine(right))
            .set_label_area_size(LabelAreaPosition::Left, fine(left))
            .set_label_area_size(LabelAreaPosition::Bottom, fine(bottom))
            .build_cartesian_2d(
                Axis::new(&self.x, &self.x_ticks),
                Axis::new(&self.y, &self.y_ticks),
            )
    }

    /// The grid, then axes with their labels: in groups that have the colours.
    fn mesh(&self, ink: &Ink, context: &mut Context) -> Result<(), Failure> {
        let style = || TextStyle::from(("sans-serif", LABEL * FINE).into_font());
        ink.open(
            "g",
            &[("class", "grid"), ("stroke", GRID.light), ("fill", "none")],
        );
        context
            .configure_mesh()
            .disable_axes()
            .x_labels(self.x_ticks.len())
            .y_labels(self.y_ticks.len())
            .max_light_lines(0)
            .bold_line_style(BLACK)
            .set_all_tick_mark_size(0)
            .x_label_formatter(&|_| String::new())
            .y_label_formatter(&|_| String::new())
            .draw()?;
        ink.close("g");
        // Texts inherit from the group: they have no line around them.
        ink.open("g", &[("class", "axes"), ("stroke", AXIS.light)]);
        ink.open("g", &[("class", "labels"), ("fill", MUTED.light)]);
        let mut mesh = context.configure_mesh();
        mesh.disable_mesh()
            .axis_style(BLACK)
            .x_labels(self.x_ticks.len())
            .y_labels(self.y_ticks.len())
            .set_all_tick_mark_size(40)
            .label_style(style())
            .axis_desc_style(style());
        if self.plot.is_single() {
            mesh.disable_y_axis();
        }
        mesh.draw()?;
        ink.close("g");
        ink.close("g");
        Ok(())
    }

    fn titles(&self, ink: &Ink) {
        let (left, top, width, height) = self.frame();
        let text = |x: f64, y: f64, anchor: &str, text: &str| {
            let attributes = [
                ("class", "axis-title"),
                ("x", &*short(x)),
                ("y", &*short(y)),
                ("text-anchor", anchor),
                ("fill", TEXT.light),
            ];
            ink.text("text", &attributes, text);
        };
        let metric = match self.plot.metric.is_judged {
            true => format!(
                "{}, {}",
                self.plot.metric.title(),
                self.plot.metric.direction()
            ),
            // No way is good.
            false => self.plot.metric.title(),
        };
        let below = top + height + BELOW - 10.0;
        if self.plot.is_single() {
            text(left + width / 2.0, below, "middle", &metric);
        } else {
            text(self.size.inset, top - 14.0, "start", &metric);
            text(left + width / 2.0, below, "middle", &self.plot.x.title());
        }
    }

    fn line(&self, ink: &Ink, context: &Context, series: &Series) -> Result<(), Failure> {
        let places = series
            .points
            .iter()
            .map(|point| (self.x.place(point.x), self.y.place(point.estimate.median)));
        let places: Vec<(f64, f64)> = places.collect();
        if places.len() > 1 && series.role != Role::Published {
            ink.open(
                "g",
                &[
                    ("class", "line"),
                    ("fill", "none"),
                    ("stroke-width", "1.8"),
                    ("stroke-linejoin", "round"),
                    ("stroke-dasharray", dash(series)),
                ],
            );
            context
                .plotting_area()
                .draw(&PathElement::new(places.clone(), BLACK))?;
            ink.close("g");
        }
        for (point, (x, y)) in series.points.iter().zip(places) {
            let end = |value: f64| pixels(context, (x, self.y.place(value))).1;
            let (x, y) = pixels(context, (x, y));
            let (low, high) = (end(point.estimate.min), end(point.estimate.max));
            self.open_point(ink, series, point, (x, y), (low, high));
            let (cap, low, high) = (short(x - 3.5), short(low), short(high));
            let path = format!("M{cap} {low}h7M{} {low}V{high}M{cap} {high}h7", short(x));
            bar(ink, series, &path);
            match is_range(series, point) {
                true => range(ink, series, x, pixels_of_ends(point, &end)),
                false => mark(ink, series, x, y),
            }
            ink.close("g");
        }
        Ok(())
    }

    /// A series where there is one value of the variable: its name and its figure above its point.
    fn row(&self, ink: &Ink, context: &Context, place: usize, series: &Series) {
        let Some(point) = series.points.first() else {
            return;
        };
        #[allow(clippy::cast_precision_loss, reason = "a count of series")]
        let row = (self.plot.series.len() - 1 - place) as f64;
        let at = |value: f64, up: f64| pixels(context, (self.x.place(value), row + up));
        let estimate = point.estimate;
        let (x, y) = at(estimate.median, 0.3);
        let ((low, _), (high, _)) = (at(estimate.min, 0.3), at(estimate.max, 0.3));
        let unit = self.plot.metric.unit;
        let (left, _, width, _) = self.frame();
        let left = left - 8.0;
        let median = number::with_unit(estimate.median, unit);
        let whole = format!(
            "{median} ({} to {})",
            number::value(estimate.min, unit),
            number::value(estimate.max, unit)
        );
        let room = |figure: &str| width - width_of(figure, LABEL) - 16.0;
        // The name tells more than the ends of the interval, which is drawn.
        let has_room = width_of(&series.name, LABEL) <= room(&whole);
        let figure = match series.role {
            Role::Measured | Role::Base if has_room => whole,
            _ => median,
        };
        let name = shortened(&series.name, room(&figure));
        let above = short(at(estimate.median, 0.72).1);
        let (start, end) = (short(left), short(left + 8.0 + width));
        ink.text(
            "text",
            &[
                ("class", "names halo"),
                ("x", &start),
                ("y", &above),
                ("fill", TEXT.light),
                ("stroke", PAPER.light),
                ("stroke-width", "4"),
                ("paint-order", "stroke"),
            ],
            &name,
        );
        ink.text(
            "text",
            &[
                ("class", "labels halo"),
                ("x", &end),
                ("y", &above),
                ("text-anchor", "end"),
                ("fill", MUTED.light),
                ("stroke", PAPER.light),
                ("stroke-width", "4"),
                ("paint-order", "stroke"),
            ],
            &figure,
        );
        self.open_point(ink, series, point, (x, y), (low, high));
        let (low, high, cap) = (short(low), short(high), short(y - 3.5));
        let path = format!("M{low} {cap}v7M{low} {}H{high}M{high} {cap}v7", short(y));
        bar(ink, series, &path);
        mark(ink, series, x, y);
        ink.close("g");
    }

    /// Opens a point's group, which tells the page's script where it is and what it says.
    fn open_point(
        &self,
        ink: &Ink,
        series: &Series,
        point: &Point,
        (x, y): (f64, f64),
        (low, high): (f64, f64),
    ) {
        let unit = self.plot.metric.unit;
        let estimate = point.estimate;
        let at = [x, y, low, high].map(short).join(" ");
        let value = number::with_unit(estimate.median, unit);
        let range = format!(
            "{} to {}",
            number::value(estimate.min, unit),
            number::value(estimate.max, unit)
        );
        let disturbed = if point.is_disturbed {
            ", beside other load"
        } else {
            ""
        };
        let told = match (series.role, point.launches) {
            (Role::Published, _) if is_range(series, point) => {
                format!("{range}, on another machine")
            }
            (Role::Published, _) => "on another machine".to_owned(),
            // Of how many is not told.
            (_, 0) => format!("{range}{disturbed}"),
            (_, 1) => format!("{range}, 1 launch{disturbed}"),
            (_, count) => format!("{range}, {count} launches{disturbed}"),
        };
        let attributes = [
            ("class", "point"),
            ("opacity", if point.is_disturbed { "0.45" } else { "1" }),
            ("data-at", &at),
            ("data-x", &variable(&self.plot.x, point.x)),
            ("data-value", &value),
            ("data-of", &told),
        ];
        ink.open("g", &attributes);
        if self.size.suffix == FILE.suffix {
            let title = format!("{}: {value} ({told})", variable(&self.plot.x, point.x));
            ink.text("title", &[], &title);
        }
    }
}

/// Whether a point is a published range, which has no value between its ends.
fn is_range(series: &Series, point: &Point) -> bool {
    series.role == Role::Published && point.estimate.min < point.estimate.max
}

fn pixels_of_ends(point: &Point, end: &dyn Fn(f64) -> f64) -> [f64; 2] {
    [point.estimate.min, point.estimate.max].map(end)
}

/// Draws a published range: its ends, and a line between them.
fn range(ink: &Ink, series: &Series, x: f64, [low, high]: [f64; 2]) {
    let path = format!("M{} {}V{}", short(x), short(low), short(high));
    let attributes = [
        ("class", "bar"),
        ("d", &*path),
        ("fill", "none"),
        ("stroke-width", "1.2"),
        ("stroke-dasharray", "2 3"),
    ];
    ink.element("path", &attributes);
    mark(ink, series, x, low);
    mark(ink, series, x, high);
}

/// Draws the interval of a point; of a published value there is none.
fn bar(ink: &Ink, series: &Series, path: &str) {
    if series.role == Role::Published {
        return;
    }
    let attributes = [
        ("class", "bar"),
        ("d", path),
        ("fill", "none"),
        ("stroke-width", "1.2"),
    ];
    ink.element("path", &attributes);
}

/// A value of the variable as the page shows it.
fn variable(x: &Variable, value: f64) -> String {
    if x.is_bytes() {
        x.value(value)
    } else {
        format!("{} {}", x.title(), x.value(value))
    }
}

/// Where a place is, in our pixels.
fn pixels(context: &Context, place: (f64, f64)) -> (f64, f64) {
    let (x, y) = context.backend_coord(&place);
    (f64::from(x) / FINE, f64::from(y) / FINE)
}
