//! The model: plots of series of points with intervals. Everything that is written comes from it.

use tagwire_bench::Summary;

use crate::metric::Metric;
use crate::naming::Variables;
use crate::phrase::capitalized;
use crate::read::SIZE;

/// All plots of some files.
#[derive(Debug, Clone)]
pub struct Model {
    /// By test, each with its main metric first.
    pub plots: Vec<Plot>,
}

/// One metric of one test.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its name among the plots: lower-case letters, digits and dashes.
    pub id: String,
    /// The benchmark.
    pub test: String,
    /// Which of the series it has, where one plot would have too many.
    pub panel: Option<String>,
    /// What was measured.
    pub metric: Metric,
    /// Whether it is what the test is about.
    pub is_main: bool,
    /// What varies along the axis.
    pub x: Variable,
    /// The variables that are the same in all series.
    pub shared: Vec<(String, String)>,
    /// A value that a line is drawn at.
    pub reference: Option<f64>,
    /// What is drawn: the new results' series before those of the base, and published ones last.
    pub series: Vec<Series>,
}

/// What varies along the axis of a plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable(String);

/// Where a series comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The results that are reported.
    Measured,
    /// What they are compared with.
    Base,
    /// What a paper publishes, of another machine.
    Published,
}

/// Points that belong together.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name, which no other series of the plot has.
    pub name: String,
    /// Where it comes from.
    pub role: Role,
    /// The file that it comes from, by its place; of the base's and of published ones 0.
    pub file: usize,
    /// Its variables, without that of the axis.
    pub variables: Variables,
    /// Which colour and marker it has: a series and its base have the same. Published ones have one colour.
    pub slot: usize,
    /// Of a series of the base: the series, by place, that it is compared with. Of others: the same, the other way.
    pub counterpart: Option<usize>,
    /// By `x`, which rises.
    pub points: Vec<Point>,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The value of the variable.
    pub x: f64,
    /// The median, and where the figure lies if it is measured again.
    pub estimate: Summary,
    /// How many launches there were.
    pub launches: usize,
    /// Other processes ran beside half of them or more.
    pub is_disturbed: bool,
}

impl Model {
    /// Returns the tests, in the order of the files.
    #[must_use]
    pub fn tests(&self) -> Vec<&str> {
        let mut tests: Vec<&str> = self.plots.iter().map(|plot| plot.test.as_str()).collect();
        tests.dedup();
        tests
    }
}

impl Plot {
    /// Returns the title: the test, the metric where it is not the test's own, and the panel.
    #[must_use]
    pub fn title(&self) -> String {
        match &self.panel {
            Some(panel) => format!("{}, {panel}", self.subject()),
            None => self.subject(),
        }
    }

    /// Returns the title that all panels have in common.
    #[must_use]
    pub fn subject(&self) -> String {
        let test = self.test.replace('-', " ");
        let name = &self.metric.name;
        if name.to_lowercase().starts_with(&test.to_lowercase()) {
            return capitalized(name);
        }
        format!("{}: {}", capitalized(&test), name.to_lowercase())
    }

    /// Returns what all series have in common, in words.
    #[must_use]
    pub fn caption(&self) -> String {
        let told = self
            .shared
            .iter()
            .map(|(key, value)| crate::naming::told(key, value));
        told.collect::<Vec<_>>().join(", ")
    }

    /// Returns every value of the variable, rising.
    #[must_use]
    pub fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Whether there is one value of the variable: series stand side by side, without lines.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.xs().len() == 1
    }

    /// Returns the series of the new results, each with its place.
    pub fn measured(&self) -> impl Iterator<Item = (usize, &Series)> {
        self.series
            .iter()
            .enumerate()
            .filter(|(_, series)| series.role == Role::Measured)
    }
}

impl Variable {
    /// Returns the variable with this key.
    #[must_use]
    pub fn named(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// Returns its key in the rows.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0
    }

    /// Whether its values are bytes.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        self.0 == SIZE
    }

    /// Returns its name, as an axis has it.
    #[must_use]
    pub fn title(&self) -> String {
        match self.0.as_str() {
            SIZE => "Message size".to_owned(),
            "posted" => "Posted receives ahead".to_owned(),
            "unexpected" => "Unexpected messages ahead".to_owned(),
            "wild" => "Receives of any source, percent".to_owned(),
            "ahead" => "Entries ahead".to_owned(),
            "behind" => "Entries behind".to_owned(),
            "age" => "Entries that left before, percent".to_owned(),
            "entries" => "Receives of a drain".to_owned(),
            "capacity" => "Receives that hardware holds".to_owned(),
            "threshold" => "Bytes from which on receives go to hardware".to_owned(),
            "ratio" => "Time of software over that of hardware".to_owned(),
            "threads" => "Threads of a rank".to_owned(),
            "library_pct" => "Time of the program in the library, percent".to_owned(),
            other => capitalized(&other.replace('_', " ")),
        }
    }

    /// Returns one of its values, as a table has it.
    #[must_use]
    pub fn value(&self, value: f64) -> String {
        if self.is_bytes() {
            crate::number::bytes(value)
        } else {
            crate::number::plain(value)
        }
    }
}

impl Series {
    /// Returns its point at `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.x == x)
    }
}
