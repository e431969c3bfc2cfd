//! Results as `tagwire bench` writes them, made up.

#![allow(dead_code, reason = "shared by several test programs")]

use std::fmt::Write;
use std::path::Path;

use tagwire_report::read::Results;
use tagwire_report::{Format, Report, Selection, Written};

/// Series, sizes and launches of a latency test. Figures depend on all three, and on nothing else.
pub struct Latency<'a> {
    pub transports: &'a [&'a str],
    pub sizes: u32,
    pub launches: u32,
    /// All figures times this.
    pub factor: f64,
    /// The machine's name, the command and a warning.
    pub words: &'a str,
}

impl Default for Latency<'_> {
    fn default() -> Self {
        Self {
            transports: &["shm", "ofi:tcp", "ucx:tcp"],
            sizes: 12,
            launches: 3,
            factor: 1.0,
            words: "a machine",
        }
    }
}

impl Latency<'_> {
    /// The file's text.
    pub fn text(&self) -> String {
        let mut rows = Vec::new();
        for launch in 0..self.launches {
            for (series, transport) in self.transports.iter().enumerate() {
                for exponent in 0..self.sizes {
                    rows.push(self.row(launch, series, transport, exponent));
                }
            }
        }
        let words = json(self.words);
        format!(
            "{{\"schema\":\"tagwire.bench/1\",\"test\":\"latency\",\"command\":{words},\
             \"environment\":{{\"host\":{words},\"kernel\":\"6.1\",\"started_unix_s\":1795478399}},\
             \"rows\":[{}],\"warnings\":[{{\"kind\":\"spread\",\"message\":{words},\"advice\":\"more\"}}]}}",
            rows.join(",")
        )
    }

    fn row(&self, launch: u32, series: usize, transport: &str, exponent: u32) -> String {
        let size = 1_u64 << exponent;
        #[allow(clippy::cast_precision_loss, reason = "sizes of messages")]
        let latency = self.factor
            * (0.1 + size as f64 / 20_000.0)
            * (1.0 + series as f64)
            * (1.0 + 0.01 * f64::from(launch));
        let mut row = String::new();
        let _ = write!(
            row,
            "{{\"size\":{size},\"transport\":{},\"ranks\":2,\"launch\":{launch},\"iterations\":1000,\
             \"repetitions\":5,\"latency_us\":{latency},\"latency_min_us\":{},\"latency_max_us\":{},\"p99_us\":{}}}",
            json(transport),
            latency * 0.98,
            latency * 1.03,
            latency * 2.0
        );
        row
    }

    /// The file, read.
    pub fn results(&self, name: &str) -> Results {
        Results::parse(Path::new(name), self.text().as_bytes()).unwrap()
    }

    /// A report of it alone.
    pub fn report(&self) -> Report {
        Report::of(
            vec![self.results("sample.json")],
            None,
            &Selection::default(),
        )
        .unwrap()
    }
}

/// The report in a format that has one text.
pub fn written(report: &Report, format: Format) -> String {
    match report.write(format).unwrap() {
        Written::One(text) => text,
        Written::Each(_) => panic!("{format:?} has several texts"),
    }
}

fn json(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}
