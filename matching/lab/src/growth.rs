//! How what an operation costs grows with the queue that it searches: entries that the engine looks at, and cache lines.
//!
//! Each kind of operation is done behind 16 to 16,384 entries that it does not take. Its figures are fitted by `a + b f(n)`, for
//! f a constant, the logarithm, the root and the number itself. What hash tables and vectors have in a line is rounded, so that
//! figures that stay within [`SLACK`] and a tenth of each other are constant.

use std::fmt;

use tagwire_matching::storage::counting::take_log;
use tagwire_matching::{Capacity, EngineName};

use crate::depth::{Keys, Queue, Scenario, WildKind, distinct_lines};

/// A kind of operation, and what is in the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// What is done.
    pub(crate) operation: &'static str,
    /// What it is done behind.
    pub(crate) behind: &'static str,
    scenario: Scenario,
    /// Whether it finds something behind them.
    is_hit: bool,
}

/// How a kind of operation grows in an engine.
#[derive(Debug, Clone)]
pub(crate) struct Grown {
    pub(crate) kind: &'static Kind,
    pub(crate) points: Vec<Point>,
    pub(crate) attempts: Growth,
    /// None of an engine whose lines cannot be counted.
    pub(crate) lines: Option<Growth>,
}

/// What an operation costs behind so many entries, on the average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) entries: u32,
    pub(crate) attempts: f64,
    pub(crate) lines: Option<f64>,
}

/// The fit of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    order: Order,
    queue: Queue,
    /// The figure where it is constant, and what each entry adds where it grows with them; of other orders the factor.
    pub(crate) factor: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Constant,
    Logarithm,
    Root,
    Linear,
}

/// Returns how each kind of operation grows in an engine: no kind that its parameters leave no room for.
pub(crate) fn of(engine: &EngineName) -> Vec<Grown> {
    KINDS
        .iter()
        .filter_map(|kind| grown(engine, kind))
        .collect()
}

fn grown(engine: &EngineName, kind: &'static Kind) -> Option<Grown> {
    let points: Vec<Point> = ENTRIES
        .iter()
        .filter_map(|&entries| point(engine, kind, entries))
        .collect();
    let fit = |figure: &dyn Fn(&Point) -> Option<f64>| {
        let figures = points
            .iter()
            .map(|point| Some((point.entries, figure(point)?)));
        let figures: Option<Vec<(u32, f64)>> = figures.collect();
        Growth::fit(&figures?, kind.scenario.queue)
    };
    Some(Grown {
        attempts: fit(&|point| Some(point.attempts))?,
        lines: fit(&|point| point.lines),
        kind,
        points,
    })
}

/// None where the engine holds fewer entries.
fn point(engine: &EngineName, kind: &Kind, entries: u32) -> Option<Point> {
    let scenario = Scenario {
        ahead: entries,
        ..kind.scenario
    };
    let counting = engine.open_counting(Capacity::default());
    let is_counted = counting.is_some();
    let mut engine = counting.unwrap_or_else(|| Box::new(engine.open(Capacity::default())));
    let queued = if kind.is_hit { TIMES } else { 0 };
    scenario.prepare(&mut *engine, queued);
    let length = match scenario.queue {
        Queue::Posted => engine.posted_len(),
        Queue::Unexpected => engine.unexpected_len(),
    };
    if length != (entries + queued) as usize {
        return None;
    }
    let mut log = Vec::new();
    take_log(&mut log);
    let (before, mut lines) = (engine.stats().attempts(), 0);
    for index in 0..TIMES {
        let is_right = match kind.is_hit {
            true => scenario.operate(&mut *engine, index),
            false => scenario.miss(&mut *engine),
        };
        if !is_right {
            return None;
        }
        take_log(&mut log);
        lines += distinct_lines(&mut log);
    }
    let each = |count: u64| count as f64 / f64::from(TIMES);
    Some(Point {
        entries,
        attempts: each(engine.stats().attempts() - before),
        lines: is_counted.then(|| each(lines)),
    })
}

impl Growth {
    /// Fits figures by entries; none where there are too few.
    fn fit(figures: &[(u32, f64)], queue: Queue) -> Option<Self> {
        if figures.len() < 3 {
            return None;
        }
        let mean = figures.iter().map(|(_, figure)| figure).sum::<f64>() / figures.len() as f64;
        let is_near = |(_, figure): &(u32, f64)| (figure - mean).abs() <= SLACK + 0.1 * mean;
        if figures.iter().all(is_near) {
            return Some(Self {
                order: Order::Constant,
                queue,
                factor: mean,
            });
        }
        let fits = [Order::Logarithm, Order::Root, Order::Linear].map(|order| {
            let (factor, error) = order.fit(figures);
            (order, factor, error)
        });
        let best = fits.into_iter().min_by(|a, b| a.2.total_cmp(&b.2));
        best.map(|(order, factor, _)| Self {
            order,
            queue,
            factor,
        })
    }
}

impl Order {
    fn of(self, entries: u32) -> f64 {
        let entries = f64::from(entries);
        match self {
            Self::Constant => 1.0,
            Self::Logarithm => entries.log2(),
            Self::Root => entries.sqrt(),
            Self::Linear => entries,
        }
    }

    /// Returns the factor of the fit, and the sum of its squared errors, each by how much it may be off.
    fn fit(self, figures: &[(u32, f64)]) -> (f64, f64) {
        let weighted = figures.iter().map(|&(entries, figure)| {
            let tolerance: f64 = SLACK + 0.1 * figure;
            (self.of(entries), figure, tolerance.powi(-2))
        });
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            weighted
                .clone()
                .map(|(x, y, weight)| weight * of(x, y))
                .sum()
        };
        let all = sum(&|_, _| 1.0);
        let (mean_x, mean_y) = (sum(&|x, _| x) / all, sum(&|_, y| y) / all);
        let spread = sum(&|x, _| (x - mean_x).powi(2));
        let factor = sum(&|x, y| (x - mean_x) * (y - mean_y)) / spread;
        let error = sum(&|x, y| (y - mean_y - factor * (x - mean_x)).powi(2));
        (factor, error)
    }
}

/// `O(posted)`, `O(1)`.
impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = match self.queue {
            Queue::Posted => "posted",
            Queue::Unexpected => "unexpected",
        };
        match self.order {
            Order::Constant => f.pad("O(1)"),
            Order::Logarithm => f.pad(&format!("O(log {queue})")),
            Order::Root => f.pad(&format!("O(sqrt {queue})")),
            Order::Linear => f.pad(&format!("O({queue})")),
        }
    }
}

const POSTED: Scenario = Scenario::behind(Queue::Posted, 0);
const UNEXPECTED: Scenario = Scenario::behind(Queue::Unexpected, 0);

const KINDS: &[Kind] = &[
    Kind {
        operation: "arrive",
        behind: "receives of other tags",
        scenario: POSTED,
        is_hit: true,
    },
    Kind {
        operation: "arrive",
        behind: "receives of other sources",
        scenario: Scenario {
            keys: Keys::Sources,
            ..POSTED
        },
        is_hit: true,
    },
    Kind {
        operation: "arrive",
        behind: "receives of any source",
        scenario: Scenario {
            wild: 100,
            kind: WildKind::Source,
            ..POSTED
        },
        is_hit: true,
    },
    Kind {
        operation: "arrive",
        behind: "receives of any tag",
        scenario: Scenario {
            wild: 100,
            kind: WildKind::Tag,
            ..POSTED
        },
        is_hit: true,
    },
    Kind {
        operation: "arrive, none fits",
        behind: "receives of other sources and tags",
        scenario: Scenario {
            keys: Keys::Random,
            ..POSTED
        },
        is_hit: false,
    },
    Kind {
        operation: "post",
        behind: "messages of other tags",
        scenario: UNEXPECTED,
        is_hit: true,
    },
    Kind {
        operation: "post",
        behind: "messages of other sources",
        scenario: Scenario {
            keys: Keys::Sources,
            ..UNEXPECTED
        },
        is_hit: true,
    },
    Kind {
        operation: "post any-source",
        behind: "messages of other sources and tags",
        scenario: Scenario {
            keys: Keys::Random,
            wild: 100,
            kind: WildKind::Source,
            ..UNEXPECTED
        },
        is_hit: true,
    },
    Kind {
        operation: "post any-tag",
        behind: "messages of other sources and tags",
        scenario: Scenario {
            keys: Keys::Random,
            wild: 100,
            kind: WildKind::Tag,
            ..UNEXPECTED
        },
        is_hit: true,
    },
    Kind {
        operation: "probe, none fits",
        behind: "messages of other sources and tags",
        scenario: Scenario {
            keys: Keys::Random,
            ..UNEXPECTED
        },
        is_hit: false,
    },
    Kind {
        operation: "probe any-source, none fits",
        behind: "messages of other sources and tags",
        scenario: Scenario {
            keys: Keys::Random,
            wild: 100,
            kind: WildKind::Source,
            ..UNEXPECTED
        },
        is_hit: false,
    },
];

/// Lengths of the queue.
const ENTRIES: [u32; 6] = [16, 64, 256, 1024, 4096, 16_384];
/// Operations of a figure.
const TIMES: u32 = 8;
/// What a figure may be off its fit, beside a tenth of it.
const SLACK: f64 = 2.0;

#[cfg(test)]
mod tests {
    use std::ops::RangeInclusive;

    use super::*;

    fn growth(engine: &str, operation: &str, behind: &str) -> Grown {
        let engine: EngineName = engine.parse().unwrap();
        let kind = |kind: &&Kind| (kind.operation, kind.behind) == (operation, behind);
        let kind = KINDS.iter().find(kind);
        grown(&engine, kind.expect("there is such a kind")).unwrap()
    }

    fn near(growth: &Growth, expected: &str, factors: RangeInclusive<f64>) {
        assert_eq!(growth.to_string(), expected, "{growth:?}");
        assert!(factors.contains(&growth.factor), "{growth:?}");
    }

    /// Holds the attempts of kinds of operations to an order, with factors from one to another.
    fn hold(engine: &str, kinds: &[(&str, &str, &str, RangeInclusive<f64>)]) {
        for (operation, behind, expected, factors) in kinds {
            let attempts = growth(engine, operation, behind).attempts;
            near(&attempts, expected, factors.clone());
        }
    }

    #[test]
    fn figures_of_each_order_are_told_apart() {
        let of = |f: &dyn Fn(f64) -> f64| {
            let figures = ENTRIES.map(|entries| (entries, f(f64::from(entries))));
            Growth::fit(&figures, Queue::Unexpected).unwrap()
        };
        near(&of(&|_| 3.0), "O(1)", 3.0..=3.0);
        near(&of(&|n| 1.0 + n), "O(unexpected)", 0.999..=1.001);
        let of_bins = of(&|n| 1.0 + (n / 1021.0).floor());
        near(&of_bins, "O(unexpected)", 0.0009..=0.0011);
        let root = of(&|n| 2.0 * n.sqrt());
        near(&root, "O(sqrt unexpected)", 1.999..=2.001);
        let logarithm = of(&|n| 5.0 * n.log2());
        near(&logarithm, "O(log unexpected)", 4.999..=5.001);
        // Two lengths are no growth.
        assert_eq!(Growth::fit(&[(16, 1.0), (64, 9.0)], Queue::Posted), None);
    }

    #[test]
    fn a_list_grows_with_all_that_is_ahead_whatever_is_done() {
        let list: EngineName = "list".parse().unwrap();
        let all = of(&list);
        assert_eq!(all.len(), KINDS.len());
        for grown in all {
            let queue = match grown.kind.scenario.queue {
                Queue::Posted => "O(posted)",
                Queue::Unexpected => "O(unexpected)",
            };
            let name = (grown.kind.operation, grown.kind.behind);
            assert_eq!(grown.attempts.to_string(), queue, "{name:?}");
            assert!((0.99..1.01).contains(&grown.attempts.factor), "{name:?}");
            // Two nodes share a line; those of messages are larger.
            let lines = grown.lines.unwrap();
            assert_eq!(lines.to_string(), queue, "{name:?}");
            assert!((0.45..=1.6).contains(&lines.factor), "{name:?}: {lines:?}");
        }
    }

    const MESSAGES: &str = "messages of other sources and tags";

    #[test]
    fn lists_of_sources_grow_with_a_source_and_with_any() {
        hold(
            "source",
            &[
                ("arrive", "receives of other tags", "O(posted)", 0.99..=1.01),
                ("arrive", "receives of other sources", "O(1)", 1.0..=1.0),
                ("arrive", "receives of any source", "O(posted)", 0.99..=1.01),
                ("post", "messages of other sources", "O(1)", 1.0..=1.0),
                ("post any-source", MESSAGES, "O(unexpected)", 0.99..=1.01),
                ("post any-tag", MESSAGES, "O(1)", 1.0..=1.0),
                ("probe, none fits", MESSAGES, "O(1)", 0.0..=1.0),
            ],
        );
    }

    #[test]
    fn bins_of_ucx_grow_by_the_share_of_a_bin_and_by_all_wildcards() {
        let any = "probe any-source, none fits";
        hold(
            "ucx",
            &[
                (
                    "arrive",
                    "receives of other tags",
                    "O(posted)",
                    0.0008..=0.0012,
                ),
                ("arrive", "receives of any source", "O(posted)", 0.99..=1.01),
                ("post any-source", MESSAGES, "O(unexpected)", 0.99..=1.01),
                (any, MESSAGES, "O(unexpected)", 0.99..=1.01),
            ],
        );
    }

    /// Attempts are candidates: the vectors themselves are seen in their lines.
    #[test]
    fn vectors_grow_by_their_lines() {
        let grown = growth("lanes", "arrive", "receives of other tags");
        assert_eq!(grown.attempts.to_string(), "O(1)");
        let lines = grown.lines.unwrap();
        assert_eq!(lines.to_string(), "O(posted)");
        // Four lines of keys and a head for 16 entries.
        assert!((0.25..0.32).contains(&lines.factor), "{lines:?}");
    }

    /// What the default engine is for: nothing that a program does takes longer with longer queues.
    #[test]
    fn nothing_grows_in_bins() {
        let bins: EngineName = "bins".parse().unwrap();
        let all = of(&bins);
        assert_eq!(all.len(), KINDS.len());
        for grown in all {
            let told = format!("{grown:?}");
            assert_eq!(grown.attempts.to_string(), "O(1)", "{told}");
            assert!(grown.attempts.factor <= 4.0, "{told}");
        }
    }

    #[test]
    fn an_engine_of_bounded_length_is_measured_as_far_as_it_goes() {
        let portals: EngineName = "portals:entries=300,headers=8".parse().unwrap();
        let all = of(&portals);
        assert!(
            all.iter()
                .all(|grown| grown.kind.scenario.queue == Queue::Posted)
        );
        let entries: Vec<u32> = all[0].points.iter().map(|point| point.entries).collect();
        assert_eq!(entries, [16, 64, 256]);
        assert_eq!(all[0].attempts.to_string(), "O(posted)");
    }
}
