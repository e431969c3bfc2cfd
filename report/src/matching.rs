//! Results of `tagwire match -o FILE.json`: which keys of a row are variables, and which figures get a plot.

use serde_json::{Map, Value};
use tagwire_bench::Sense;

use crate::metric::{Metric, Unit};
use crate::naming::{Variables, told};
use crate::read::{Row, word};

/// The schema of these files.
pub(crate) const SCHEMA: &str = "tagwire.match/1";

/// A test of the laboratory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Test {
    name: &'static str,
    /// The keys of its independent variables.
    variables: &'static [&'static str],
    /// What it is about: the first of these figures that is there.
    main: &'static [&'static str],
}

impl Test {
    /// Returns the test with this name in a file.
    pub(crate) fn in_file(name: &str) -> Result<Self, String> {
        let found = TESTS.iter().find(|test| test.name == name);
        let names = || TESTS.map(|test| test.name).join(", ");
        let unknown = || {
            format!(
                "has results of 'match {name}', this version draws those of {}",
                names()
            )
        };
        found.copied().ok_or_else(unknown)
    }

    /// Returns the test that is called so in a report.
    fn called(title: &str) -> Option<Self> {
        let name = title.strip_prefix(CALLED)?;
        TESTS.iter().find(|test| test.name == name).copied()
    }

    /// Returns what it is called in a report: no test of `bench` has a blank in its name.
    pub(crate) fn title(self) -> String {
        format!("{CALLED}{}", self.name)
    }

    /// Returns why a row has no figures, none where it has.
    pub(crate) fn why_not(fields: &Map<String, Value>) -> Option<String> {
        let wrong = fields.get("wrong").filter(|wrong| !wrong.is_null())?;
        let engine = fields.get("engine").map(word).unwrap_or_default();
        Some(format!("{engine}: {}", word(wrong)))
    }

    /// Reads a row.
    pub(crate) fn row(self, fields: &Map<String, Value>) -> Result<Row, String> {
        let mut row = Row::default();
        collect(fields, "", &mut row);
        for key in self.variables {
            if let Some(value) = fields.get(*key).filter(|value| !value.is_null()) {
                row.variables.insert((*key).to_owned(), word(value));
            }
            row.figures.remove(*key);
        }
        let value = |key: &str| row.variables.get(key).cloned();
        match self.name {
            // As many as receives, where nothing else was asked for; by UCX's rules none.
            "offload"
                if value("headers") == value("capacity")
                    || value("refill").as_deref() == Some("ucx") =>
            {
                row.variables.remove("headers");
            }
            // Files of the ranks of a job differ in the rank.
            "replay" => {
                let rank = format!(".{}", value("rank").unwrap_or_default());
                let file = value("file").unwrap_or_default();
                let stem = file.rsplit_once('.').map_or(&*file, |(stem, _)| stem);
                let job = stem.strip_suffix(&rank).unwrap_or(stem);
                row.variables.insert("file".to_owned(), job.to_owned());
            }
            _ => {}
        }
        let has = |key: &&str| row.figures.contains_key(*key);
        match self.main.iter().any(has) {
            true => Ok(row),
            false => Err(format!("'{}' is no number", self.main[0])),
        }
    }
}

/// Returns the key of what a test of the laboratory is about; none of another test.
pub(crate) fn main_key(test: &str, has: impl Fn(&str) -> bool) -> Option<&'static str> {
    let main = Test::called(test)?.main;
    main.iter().copied().find(|key| has(key))
}

/// Returns the ways in which a plot of a test with too many series is split, one after the other: what a series is put beside.
pub(crate) fn panels(test: &str) -> impl Iterator<Item = Panel> {
    let of_test = PANELS.iter().find(|(name, _)| {
        let own = Test::called(test);
        own.is_some_and(|own| own.name == *name)
    });
    of_test
        .map_or(&[][..], |(_, panels)| panels)
        .iter()
        .copied()
}

/// What series are put beside each other by, in a plot of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Panel {
    /// The queue that is searched.
    Queue,
    /// The value of a variable.
    By(&'static str),
}

impl Panel {
    /// Returns the panel of a series, in words; none where its variables do not say.
    pub(crate) fn of(self, variables: &Variables) -> Option<String> {
        match self {
            Self::By(key) => variables.get(key).map(|value| told(key, value)),
            Self::Queue => {
                let behind = variables.get("behind")?;
                let (entries, _) = behind.split_once(' ')?;
                Some(format!("behind {entries}"))
            }
        }
    }
}

/// Whether a test is one of the laboratory, whose rows are no launches of jobs.
pub(crate) fn is_called(test: &str) -> bool {
    Test::called(test).is_some()
}

/// Returns the figures that get a plot.
pub(crate) fn metrics() -> impl Iterator<Item = Metric> {
    METRICS.iter().map(|&(key, name, kind)| Metric {
        key: key.to_owned(),
        name: name.to_owned(),
        unit: match kind {
            Kind::Time => Unit::Nanoseconds,
            _ => Unit::None,
        },
        sense: match kind {
            Kind::InHardware => Sense::MoreIsBetter,
            _ => Sense::LessIsBetter,
        },
        is_judged: kind != Kind::Traffic,
        bounds: (format!("{key}_min"), format!("{key}_max")),
    })
}

/// Leaves sums over a variable out where rows of its values stand beside them.
pub(crate) fn leave_sums_out(rows: &mut Vec<Row>) {
    for key in ["rank", "context"] {
        if rows.iter().any(|row| row.variables.contains_key(key)) {
            rows.retain(|row| row.variables.contains_key(key));
        }
    }
}

/// The numbers of a row; those of a group have its name before theirs.
fn collect(fields: &Map<String, Value>, before: &str, row: &mut Row) {
    for (key, value) in fields {
        let key = format!("{before}{key}");
        match value {
            Value::Object(group) => collect(group, &format!("{key}_"), row),
            Value::Number(number) => {
                row.figures
                    .extend(number.as_f64().map(|number| (key, number)));
            }
            _ => {}
        }
    }
}

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Time,
    Cost,
    InHardware,
    /// A property of the calls: no engine is better for it.
    Traffic,
}

const CALLED: &str = "match ";

const TESTS: [Test; 9] = [
    Test {
        name: "depth",
        variables: &[
            "engine",
            "queue",
            "layout",
            "age",
            "keys",
            "cache",
            "wild",
            "wild_kind",
            "wild_at",
            "ahead",
            "behind",
        ],
        main: &["ns"],
    },
    Test {
        name: "check",
        variables: &["engine", "operation", "behind", "ahead"],
        main: &["attempts"],
    },
    Test {
        name: "order",
        variables: &["engine", "order", "entries"],
        main: &["ns", "depth"],
    },
    // The entries follow from grid and stencil.
    Test {
        name: "threads",
        variables: &["engine", "order", "stencil", "entries"],
        main: &["ns", "depth"],
    },
    Test {
        name: "replay",
        variables: &["engine", "file", "rank", "transport"],
        main: &["ns"],
    },
    Test {
        name: "offload",
        variables: &[
            "origin",
            "arrivals",
            "engine",
            "capacity",
            "headers",
            "refill",
            "threshold",
            "force",
            "ratio",
        ],
        main: &["ns"],
    },
    Test {
        name: "app",
        variables: &["origin", "arrivals"],
        main: &["depth_mean"],
    },
    Test {
        name: "import",
        variables: &["origin", "arrivals"],
        main: &["depth_mean"],
    },
    Test {
        name: "stats",
        variables: &["rank", "context", "part"],
        main: &["receives_hit_depth_mean"],
    },
];

const PANELS: &[(&str, &[Panel])] = &[
    (
        "check",
        &[Panel::Queue, Panel::By("operation"), Panel::By("behind")],
    ),
    (
        "depth",
        &[
            Panel::By("queue"),
            Panel::By("cache"),
            Panel::By("layout"),
            Panel::By("keys"),
        ],
    ),
];

const METRICS: &[(&str, &str, Kind)] = &[
    ("ns", "Time", Kind::Time),
    ("drain_ns", "Time of a drain", Kind::Time),
    ("instructions", "Instructions", Kind::Cost),
    (
        "hw_instructions",
        "Instructions by the processor",
        Kind::Cost,
    ),
    (
        "hw_l1_misses",
        "Reads that missed the first level, by the processor",
        Kind::Cost,
    ),
    (
        "hw_misses",
        "Misses of the caches, by the processor",
        Kind::Cost,
    ),
    ("attempts", "Entries looked at", Kind::Cost),
    ("false_hits", "False hits", Kind::Cost),
    ("lines", "Cache lines", Kind::Cost),
    ("l1_misses", "Misses of the first level", Kind::Cost),
    ("l2_misses", "Misses of the second level", Kind::Cost),
    (
        "in_hardware_share",
        "Share of searches that end in hardware",
        Kind::InHardware,
    ),
    (
        "hardware_looked",
        "Entries looked at in hardware",
        Kind::Traffic,
    ),
    (
        "software_looked",
        "Entries looked at in software",
        Kind::Cost,
    ),
    ("receives_spilled", "Receives left to software", Kind::Cost),
    ("messages_spilled", "Messages left to software", Kind::Cost),
    ("depth", "Depth of searches", Kind::Traffic),
    ("depth_mean", "Depth of searches", Kind::Traffic),
    (
        "receives_hit_depth_mean",
        "Depth of searches",
        Kind::Traffic,
    ),
    ("length_mean", "Receives in the queue", Kind::Traffic),
    (
        "receives_length_mean",
        "Receives in the queue",
        Kind::Traffic,
    ),
    (
        "message_depth_mean",
        "Depth among unexpected messages",
        Kind::Traffic,
    ),
    (
        "messages_depth_mean",
        "Depth among unexpected messages",
        Kind::Traffic,
    ),
    (
        "unexpected_share",
        "Share of unexpected messages",
        Kind::Traffic,
    ),
    ("wildcard_share", "Share of wildcards", Kind::Traffic),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::build::Selection;
    use crate::model::Model;
    use crate::read::Results;

    fn results(test: &str, rows: &str) -> Result<Results, String> {
        let text = format!(
            "{{\"schema\":\"{SCHEMA}\",\"test\":\"{test}\",\"command\":\"tagwire match {test}\",\"rows\":[{rows}]}}"
        );
        let results = Results::parse(Path::new("a.json"), text.as_bytes());
        results.map_err(|error| error.to_string().replace("a.json: ", ""))
    }

    fn plots(results: Results) -> Vec<(String, String, Vec<String>)> {
        let model = Model::of(&[results], None, &Selection::default()).unwrap();
        let plots = model.plots.iter().map(|plot| {
            let series = plot.series.iter().map(|series| {
                let xs: Vec<String> = series
                    .points
                    .iter()
                    .map(|point| point.x.to_string())
                    .collect();
                format!("{}: {}", series.name, xs.join(" "))
            });
            (plot.id.clone(), plot.x.key().to_owned(), series.collect())
        });
        plots.collect()
    }

    #[test]
    fn depth_is_drawn_over_the_entries_ahead() {
        let row = |engine: &str, ahead: u32, ns: f64| {
            format!(
                "{{\"engine\":\"{engine}\",\"queue\":\"posted\",\"layout\":\"fresh\",\"cache\":\"hot\",\"wild\":0,\
                 \"wild_kind\":\"source\",\"ahead\":{ahead},\"behind\":0,\"ns\":{ns},\"ns_min\":1,\"ns_max\":{ns},\
                 \"attempts\":{ahead},\"lines\":null,\"checked\":{{\"grade\":\"exact\",\"operations\":9}}}}"
            )
        };
        let rows = [
            row("list", 0, 2.0),
            row("list", 16, 9.0),
            row("bins", 0, 3.0),
        ]
        .join(",");
        let read = results("depth", &rows).unwrap();
        assert_eq!(read.rows[1].figures["ns"], 9.0);
        let plots = plots(read);
        assert_eq!(
            plots[0],
            (
                "match-depth-ns".to_owned(),
                "ahead".to_owned(),
                vec!["list: 0 16".to_owned(), "bins: 0".to_owned()]
            )
        );
        assert_eq!(plots[1].0, "match-depth-attempts");
        assert_eq!(plots.len(), 2);
    }

    #[test]
    fn the_axes_of_depth_are_series_of_their_own() {
        let row = |keys: &str, at: &str, ahead: u32| {
            format!(
                "{{\"engine\":\"ucx\",\"queue\":\"posted\",\"layout\":\"fresh\",\"keys\":\"{keys}\",\"cache\":\"hot\",\"wild\":10,\
                 \"wild_kind\":\"source\",\"wild_at\":\"{at}\",\"ahead\":{ahead},\"behind\":0,\"ns\":2}}"
            )
        };
        let line = |keys, at| format!("{},{}", row(keys, at, 0), row(keys, at, 8));
        let drawn = |lines: [String; 2]| plots(results("depth", &lines.join(",")).unwrap());
        let keys = drawn([line("tags", "spread"), line("collide-ucx", "spread")]);
        assert_eq!(keys[0].2, ["keys tags: 0 8", "keys collide-ucx: 0 8"]);
        let places = drawn([line("tags", "front"), line("tags", "spread")]);
        let told = ["wild at front: 0 8", "wild at spread: 0 8"];
        assert_eq!(places[0].2, told);
    }

    #[test]
    fn ages_tell_layouts_apart() {
        let row = |layout: &str, ahead: u32| {
            format!("{{\"engine\":\"list\",\"layout\":{layout},\"ahead\":{ahead},\"ns\":2}}")
        };
        let layouts = [
            "\"fresh\",\"age\":null",
            "\"aged\",\"age\":25",
            "\"aged\",\"age\":100",
            "\"shuffled\",\"age\":null",
        ];
        let rows = layouts.map(|layout| format!("{},{}", row(layout, 0), row(layout, 8)));
        let drawn = plots(results("depth", &rows.join(",")).unwrap());
        let series = &drawn[0].2;
        let words = ["fresh", "age 25", "age 100", "shuffled"];
        assert_eq!(series.len(), words.len(), "{drawn:?}");
        for (series, word) in series.iter().zip(words) {
            assert!(
                series.contains(word) && series.ends_with(": 0 8"),
                "{series}"
            );
        }
        // Over the age, where the lengths are the same.
        let rows = [layouts[1], layouts[2]].map(|layout| row(layout, 8));
        let drawn = plots(results("depth", &rows.join(",")).unwrap());
        assert_eq!((&*drawn[0].1, &*drawn[0].2[0]), ("age", "list: 25 100"));
    }

    #[test]
    fn thresholds_of_ucx_tell_series_apart() {
        let row = |refill: &str, threshold: &str, capacity: u32| {
            format!(
                "{{\"origin\":\"fds\",\"arrivals\":\"posted\",\"engine\":\"ucx\",\"capacity\":{capacity},\"headers\":{},\
                 \"refill\":\"{refill}\",\"threshold\":{threshold},\"ratio\":2.0,\"ns\":5}}",
                if refill == "ucx" { 0 } else { capacity }
            )
        };
        let line = |refill, threshold| {
            [1, 16, 64]
                .map(|entries| row(refill, threshold, entries))
                .join(",")
        };
        let rows = [line("each", "null"), line("ucx", "0"), line("ucx", "1024")].join(",");
        let drawn = plots(results("offload", &rows).unwrap());
        let told = [
            "refill each: 1 16 64",
            "refill ucx · threshold 0: 1 16 64",
            "refill ucx · threshold 1024: 1 16 64",
        ];
        assert_eq!(drawn[0].2, told, "{drawn:?}");
    }

    #[test]
    fn what_follows_from_other_variables_tells_no_series_apart() {
        let offload = |capacity: u32, headers: u32| {
            format!(
                "{{\"origin\":\"fds\",\"arrivals\":\"posted\",\"engine\":\"list\",\"capacity\":{capacity},\
                 \"headers\":{headers},\"refill\":\"each\",\"ratio\":2.0,\"ns\":5,\"in_hardware_share\":0.5}}"
            )
        };
        let rows = [offload(0, 0), offload(16, 16)].join(",");
        let drawn = plots(results("offload", &rows).unwrap());
        assert_eq!(drawn[0].2, ["list: 0 16"]);
        let replay = |rank: u32| {
            format!(
                "{{\"file\":\"t/halo.{rank}.twm\",\"rank\":{rank},\"engine\":\"ucx\",\"ns\":7,\"wrong\":null}}"
            )
        };
        let drawn = plots(results("replay", &[replay(0), replay(1)].join(",")).unwrap());
        assert_eq!(
            (&*drawn[0].1, &*drawn[0].2),
            ("rank", &["ucx: 0 1".to_owned()][..])
        );
        let stats = "{\"rank\":0,\"part\":\"all\",\"receives\":{\"hit_depth\":{\"mean\":2.5}}},\
                     {\"rank\":1,\"part\":\"all\",\"receives\":{\"hit_depth\":{\"mean\":3.5}}},\
                     {\"rank\":null,\"part\":\"all\",\"receives\":{\"hit_depth\":{\"mean\":3}}}";
        let drawn = plots(results("stats", stats).unwrap());
        assert_eq!(drawn[0].2, ["all: 0 1"]);
    }

    /// What `match check` tells of an engine: five kinds of operations behind receives, six behind messages.
    fn checked(engine: &str) -> String {
        let kinds = [
            ("arrive", "receives of other tags"),
            ("arrive", "receives of other sources"),
            ("arrive", "receives of any source"),
            ("arrive", "receives of any tag"),
            ("arrive, none fits", "receives of other sources and tags"),
            ("post", "messages of other tags"),
            ("post", "messages of other sources"),
            ("post any-source", "messages of other sources and tags"),
            ("post any-tag", "messages of other sources and tags"),
            ("probe, none fits", "messages of other sources and tags"),
            (
                "probe any-source, none fits",
                "messages of other sources and tags",
            ),
        ];
        let row = |(operation, behind): (&str, &str), ahead: u32| {
            format!(
                "{{\"engine\":\"{engine}\",\"operation\":\"{operation}\",\"behind\":\"{behind}\",\"ahead\":{ahead},\
                 \"attempts\":{ahead},\"lines\":{ahead},\"wrong\":null}}"
            )
        };
        let rows = kinds.map(|kind| format!("{},{}", row(kind, 16), row(kind, 64)));
        rows.join(",")
    }

    /// No plot has more series than there are colours, and no series is in none or in two.
    #[test]
    fn many_series_are_split_into_panels() {
        let one = plots(results("check", &checked("ucx")).unwrap());
        let told: Vec<(&str, usize)> = one
            .iter()
            .map(|(id, _, series)| (&**id, series.len()))
            .collect();
        let wanted = [
            ("match-check-attempts-behind-receives", 5),
            ("match-check-lines-behind-receives", 5),
            ("match-check-attempts-behind-messages", 6),
            ("match-check-lines-behind-messages", 6),
        ];
        assert_eq!(told, wanted);
        assert_eq!(
            one[0].2[0],
            "behind receives of other tags · operation arrive: 16 64"
        );
        // Several engines stand beside each other.
        for engines in [&["ucx", "list"][..], &["ucx", "list", "bins", "lanes"]] {
            let rows: Vec<String> = engines.iter().map(|engine| checked(engine)).collect();
            let drawn = plots(results("check", &rows.join(",")).unwrap());
            let attempts: Vec<_> = drawn
                .iter()
                .filter(|(id, ..)| id.starts_with("match-check-attempts"))
                .collect();
            for (id, _, series) in &attempts {
                assert!(series.len() <= 8, "{id}: {series:?}");
                for engine in engines {
                    let of = series.iter().filter(|name| name.contains(engine));
                    assert_eq!(of.count(), series.len() / engines.len(), "{id}: {series:?}");
                }
            }
            let all: usize = attempts.iter().map(|(_, _, series)| series.len()).sum();
            assert_eq!(all, 11 * engines.len());
        }
        // Titles say which panel a plot is.
        let results = results("check", &checked("ucx")).unwrap();
        let model = Model::of(&[results], None, &Selection::default()).unwrap();
        let titles: Vec<String> = model.plots.iter().map(crate::model::Plot::title).collect();
        assert_eq!(titles[0], "Match check: entries looked at, behind receives");
        assert_eq!(titles[3], "Match check: cache lines, behind messages");
        let findings = crate::words::findings(&model);
        let told: Vec<&str> = findings.iter().map(|one| &*one.title).collect();
        assert_eq!(told, [&*titles[0], &*titles[2]]);
    }

    #[test]
    fn what_cannot_be_drawn_is_told() {
        assert_eq!(
            results("depth", "{\"engine\":\"list\"}").unwrap_err(),
            "row 0: 'ns' is no number"
        );
        assert!(
            results("cat", "{}")
                .unwrap_err()
                .starts_with("has results of 'match cat', this version draws those of depth, ")
        );
        let row = |entries: u32| {
            format!(
                "{{\"engine\":\"ucx\",\"operation\":\"post\",\"behind\":\"messages\",\"ahead\":{entries},\"attempts\":{entries},\
                 \"growth\":\"O(unexpected)\",\"growth_factor\":1.0,\"programs\":9,\"wrong\":null}}"
            )
        };
        let checked = format!(
            "{},{},{{\"engine\":\"bad\",\"attempts\":null,\"wrong\":\"call 3\"}}",
            row(16),
            row(64)
        );
        let read = results("check", &checked).unwrap();
        assert_eq!(read.failed, ["bad: call 3"]);
        let drawn = plots(read);
        assert_eq!(
            (&*drawn[0].0, &*drawn[0].1),
            ("match-check-attempts", "ahead")
        );
        let failed = "{\"engine\":\"list\",\"wrong\":\"call 3\"},{\"engine\":\"bins\",\"ns\":1}";
        assert_eq!(results("replay", failed).unwrap().failed, ["list: call 3"]);
    }
}
