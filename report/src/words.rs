//! The summary in words. Text without marks: each format escapes it.

use tagwire_bench::Sense;

use crate::judge::{Overall, Standing, overall, standings};
use crate::matching;
use crate::model::{Model, Plot, Role, Series, Variable};
use crate::number;
use crate::phrase::{between, capitalized, listed};

mod base;
mod places;

use places::{place, ranges};

/// The sentences about one test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// The test's title.
    pub title: String,
    /// A sentence or two each.
    pub sentences: Vec<String>,
}

/// Returns what the main plots say, test by test.
#[must_use]
pub fn findings(model: &Model) -> Vec<Findings> {
    // A selection of metrics may have no main one.
    let chief = |test: &&str| {
        let of_test = || model.plots.iter().filter(|plot| plot.test == **test);
        let first = of_test().next().map(|plot| &plot.metric.key);
        let panels = of_test().filter(|plot| Some(&plot.metric.key) == first);
        let findings = panels.map(|plot| Findings {
            title: plot.title(),
            sentences: sentences(plot),
        });
        findings.collect::<Vec<_>>()
    };
    model.tests().iter().flat_map(chief).collect()
}

fn sentences(plot: &Plot) -> Vec<String> {
    let mut all: Vec<String> = doubts(plot).into_iter().collect();
    let measured: Vec<&Series> = plot.measured().map(|(_, series)| series).collect();
    match measured[..] {
        [only] => all.push(span(plot, only)),
        _ if !plot.metric.is_judged => all.extend(measured.iter().map(|series| span(plot, series))),
        _ => {
            let standings = standings(plot);
            all.extend(leaders(plot, &standings, false));
            all.extend(leaders(plot, &standings, true));
            all.extend(ties(plot, &standings));
            all.extend(beside_first(plot, &measured));
        }
    }
    all.extend(base::sentences(plot));
    all.extend(caveats(plot));
    all
}

/// What the only series does.
fn span(plot: &Plot, series: &Series) -> String {
    let unit = plot.metric.unit;
    let at = |point: &crate::model::Point| {
        format!(
            "{} at {}",
            number::with_unit(point.estimate.median, unit),
            place(&plot.x, point.x)
        )
    };
    match &series.points[..] {
        [only] => {
            let (low, high) = (only.estimate.min, only.estimate.max);
            let value = number::with_unit(only.estimate.median, unit);
            format!(
                "{}: {value} ({} to {}).",
                series.name,
                number::value(low, unit),
                number::value(high, unit)
            )
        }
        [first, .., last] => format!("{}: from {} to {}.", series.name, at(first), at(last)),
        [] => format!("{}: nothing measured.", series.name),
    }
}

/// For each series that is ahead somewhere: where, and by how much. Where other load ran beside a point, it `would` be.
fn leaders(plot: &Plot, standings: &[Standing], would: bool) -> Vec<String> {
    let xs: Vec<f64> = standings.iter().map(|standing| standing.x).collect();
    let is_clear = |standing: &&Standing| standing.best.len() == 1 && standing.is_doubtful == would;
    let sentence = |(place, series): (usize, &Series)| {
        let led: Vec<&Standing> = standings
            .iter()
            .filter(is_clear)
            .filter(|standing| standing.best[0] == place)
            .collect();
        if led.is_empty() {
            return None;
        }
        let mut next: Vec<&str> = Vec::new();
        for standing in &led {
            let name = standing
                .next
                .map_or("", |next| plot.series[next].name.as_str());
            if !next.contains(&name) {
                next.push(name);
            }
        }
        let where_ = ranges(
            &plot.x,
            &xs,
            &led.iter().map(|standing| standing.x).collect::<Vec<_>>(),
        );
        let lead = extent(plot.metric.sense, led.iter().map(|standing| standing.lead));
        let next = match next[..] {
            [only] => format!("the next best, {only}"),
            _ => format!("the next best ({})", listed(&next)),
        };
        let is_ahead = match would {
            false => "is ahead, beyond the noise,",
            true => "would be ahead, had no other load run beside it,",
        };
        Some(format!(
            "{} {is_ahead} {where_}: {lead} than {next}.",
            series.name
        ))
    };
    plot.measured().filter_map(sentence).collect()
}

/// Where several lie within the noise of each other.
fn ties(plot: &Plot, standings: &[Standing]) -> Vec<String> {
    let xs: Vec<f64> = standings.iter().map(|standing| standing.x).collect();
    let mut sets: Vec<(Vec<usize>, Vec<f64>)> = Vec::new();
    let is_tie = |standing: &&Standing| standing.best.len() > 1 && !standing.is_doubtful;
    for standing in standings.iter().filter(is_tie) {
        let mut set = standing.best.clone();
        set.sort_unstable();
        match sets.iter_mut().find(|(known, _)| *known == set) {
            Some((_, at)) => at.push(standing.x),
            None => sets.push((set, vec![standing.x])),
        }
    }
    let all = plot.measured().count();
    let sentence = |(set, at): &(Vec<usize>, Vec<f64>)| {
        let names: Vec<&str> = set
            .iter()
            .map(|place| plot.series[*place].name.as_str())
            .collect();
        let where_ = capitalized(&ranges(&plot.x, &xs, at));
        if set.len() == all && all > 3 {
            return format!(
                "{where_} the series cannot be told apart: within 5 % or within the noise."
            );
        }
        let rest = if set.len() == all {
            ""
        } else {
            " lead together and"
        };
        format!(
            "{where_} {}{rest} cannot be told apart: within 5 % or within the noise.",
            listed(&names)
        )
    };
    // Many small groups are in the table; the largest ones say enough.
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(sets[*place].1.len()));
    let (told, rest) =
        order.split_at(
            order
                .len()
                .min(if sets.len() > TIES { TIES - 1 } else { TIES }),
        );
    let mut told = told.to_vec();
    told.sort_unstable();
    let mut sentences: Vec<String> = told.iter().map(|place| sentence(&sets[*place])).collect();
    if !rest.is_empty() {
        let at = rest.iter().flat_map(|place| sets[*place].1.iter().copied());
        let at: Vec<f64> = at.collect();
        sentences.push(format!(
            "{} other groups of series lead together within 5 % or within the noise.",
            capitalized(&ranges(&plot.x, &xs, &at))
        ));
    }
    sentences
}

/// How many sentences there are about series that cannot be told apart.
const TIES: usize = 4;

/// From how many series on their ratios are told without extremes.
const MANY: usize = 4;

/// All others beside the first series.
fn beside_first(plot: &Plot, measured: &[&Series]) -> Option<String> {
    let sense = plot.metric.sense;
    let (first, others) = measured.split_first()?;
    if sense == Sense::Share || plot.is_single() {
        return None;
    }
    let told = |other: &&Series| {
        let overall = overall(sense, first, other)?;
        let ratio = if others.len() > MANY {
            number::ratio(overall.mean)
        } else {
            extremes(&plot.x, &overall)
        };
        Some(format!("{} {ratio}", other.name))
    };
    let told: Vec<String> = others.iter().filter_map(told).collect();
    if told.is_empty() {
        return None;
    }
    let metric = plot.metric.name.to_lowercase();
    Some(format!(
        "{metric} over that of {}, in the geometric mean: {}.",
        first.name,
        told.join("; ")
    ))
    .map(|text| capitalized(&text))
}

fn extremes(x: &Variable, overall: &Overall) -> String {
    let at = |(ratio, at): (f64, f64)| format!("{} at {}", number::ratio(ratio), place(x, at));
    let is_even = number::ratio(overall.least.0) == number::ratio(overall.greatest.0);
    match overall.count {
        1 => at(overall.least),
        _ if is_even => number::ratio(overall.mean),
        _ => format!(
            "{} ({} to {})",
            number::ratio(overall.mean),
            at(overall.least),
            at(overall.greatest)
        ),
    }
}

/// What makes the plot doubtful as a whole.
fn caveats(plot: &Plot) -> Vec<String> {
    let of_paper = |series: &&Series| series.role == Role::Published;
    let own = || plot.series.iter().filter(|series| !of_paper(series));
    let points = || own().flat_map(|series| &series.points);
    let mut all = Vec::new();
    if plot.series.iter().any(|series| of_paper(&series)) {
        let text = "Published values are of other machines, hollow in the plots: compare orders and ratios, not absolute figures.";
        all.push(text.to_owned());
    }
    let fewest = points().map(|point| point.launches).min().unwrap_or(0);
    if fewest < 3 && !matching::is_called(&plot.test) {
        let count = if fewest == 1 {
            "one launch".to_owned()
        } else {
            format!("{fewest} launches")
        };
        all.push(format!(
            "Some points are of {count}: their noise is that of the blocks inside, which is less than that between \
             launches. Measure with --launches 5 before you conclude."
        ));
    }
    all
}

/// How much of the plot is not to be trusted.
fn doubts(plot: &Plot) -> Option<String> {
    let own = plot
        .series
        .iter()
        .filter(|series| series.role != Role::Published);
    let points: Vec<_> = own.flat_map(|series| &series.points).collect();
    let disturbed = points.iter().filter(|point| point.is_disturbed).count();
    (disturbed > 0).then(|| {
        format!(
            "{disturbed} of {} points were measured beside other load, pale in the plots: they are not to be trusted, nor is \
             what is said of them. No mean is over them.",
            points.len()
        )
    })
}

/// How many times better, or by how many points.
fn extent(sense: Sense, leads: impl Iterator<Item = f64>) -> String {
    let (mut least, mut greatest) = (f64::MAX, 0.0_f64);
    for lead in leads {
        (least, greatest) = (least.min(lead), greatest.max(lead));
    }
    match sense {
        Sense::Share => format!(
            "{} more",
            between(&number::plain(least), &number::plain(greatest), " points")
        ),
        _ => format!(
            "{} better",
            between(&number::ratio(least), &number::ratio(greatest), "")
        ),
    }
}
