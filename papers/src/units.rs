//! Claims about units: threads against processes, or a thread that helps against none. They are judged on each transport and
//! layer, and on each MPI library by itself.

use serde::Deserialize;

use crate::compare::{
    ALL, Bound, Range, below, bound, close, crossover, equal, exactly, in_range, nears, pairs,
    peak_is, reaches, within,
};
use crate::judgement::Judgement;
use crate::known::Known;
use crate::places::{At, at_each};
use crate::reference::Number;
use crate::rows::{Place, Rows, Series};
use crate::shape::goes_with_size;
use crate::words::short;

/// When a claim about units holds. A unit is named as in the rows: `threads:4`, `blocked-thread`. A star in it stands for whatever is
/// there: each is judged by itself. Behind the name of another item and a space it is of the results of that one. `sizes` are the
/// first and the last; without them all are meant.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Comparison {
    /// One is below the other.
    Below {
        low: String,
        high: String,
        figure: String,
        #[serde(default = "all")]
        sizes: [u64; 2],
    },
    /// Both are the same.
    Equal {
        one: String,
        other: String,
        figure: String,
        #[serde(default = "all")]
        sizes: [u64; 2],
    },
    /// It is at least a value.
    Least {
        of: String,
        figure: String,
        value: Number,
        #[serde(default = "all")]
        sizes: [u64; 2],
    },
    /// It is at most a value.
    Most {
        of: String,
        figure: String,
        value: Number,
        #[serde(default = "all")]
        sizes: [u64; 2],
    },
    /// Its greatest value is a published one.
    Peak {
        of: String,
        figure: String,
        value: Number,
        #[serde(default = "all")]
        sizes: [u64; 2],
    },
    /// It is in a published range, at two thirds of the sizes: each of several by itself, and with each of the arrivals that it was
    /// simulated with. What is furthest from no effect is near the published one, but where it is a `bound`; that is open where not all
    /// sizes were measured.
    Range {
        of: Vec<String>,
        figure: String,
        low: Option<Number>,
        high: Number,
        #[serde(default = "all")]
        sizes: [u64; 2],
        #[serde(default)]
        bound: bool,
    },
    /// From about a size on one is below the other, and not before.
    Crossover {
        low: String,
        high: String,
        figure: String,
        value: Number,
    },
    /// Its ratio over another is clearly lower at the largest size than at the smallest; with `reverse`, higher.
    Nears {
        of: String,
        over: String,
        figure: String,
        #[serde(default)]
        reverse: bool,
    },
    /// It rises with size, of which there are three at least.
    Rises { of: String, figure: String },
    /// Its greatest value is at least this one.
    Reaches {
        of: String,
        figure: String,
        value: Number,
        #[serde(default = "all")]
        sizes: [u64; 2],
    },
    /// All its values are this one.
    Exactly {
        of: String,
        figure: String,
        value: Number,
    },
    /// Two differ by less than so much, at two thirds of the sizes; on a simulated machine by less than `simulated`.
    Close {
        one: String,
        other: String,
        figure: String,
        within: f64,
        simulated: f64,
    },
}

const fn all() -> [u64; 2] {
    ALL
}

impl Comparison {
    /// Whether it claims a shape, which constant figures do not have.
    #[cfg(test)]
    pub(crate) const fn is_shape(&self) -> bool {
        matches!(
            self,
            Self::Below { .. }
                | Self::Peak { .. }
                | Self::Rises { .. }
                | Self::Crossover { .. }
                | Self::Nears { .. }
        )
    }

    /// Returns the figure that it is about.
    pub(crate) fn figure(&self) -> &str {
        match self {
            Self::Below { figure, .. }
            | Self::Equal { figure, .. }
            | Self::Least { figure, .. }
            | Self::Most { figure, .. }
            | Self::Peak { figure, .. }
            | Self::Range { figure, .. }
            | Self::Crossover { figure, .. }
            | Self::Nears { figure, .. }
            | Self::Rises { figure, .. }
            | Self::Reaches { figure, .. }
            | Self::Exactly { figure, .. }
            | Self::Close { figure, .. } => figure,
        }
    }

    /// Returns the units that it is about.
    pub(crate) fn units(&self) -> Vec<&str> {
        match self {
            Self::Nears { of, over, .. } => vec![of, over],
            Self::Below { low, high, .. } | Self::Crossover { low, high, .. } => vec![low, high],
            Self::Equal { one, other, .. } | Self::Close { one, other, .. } => vec![one, other],
            Self::Least { of, .. }
            | Self::Most { of, .. }
            | Self::Peak { of, .. }
            | Self::Reaches { of, .. }
            | Self::Rises { of, .. }
            | Self::Exactly { of, .. } => vec![of],
            Self::Range { of, .. } => of.iter().map(String::as_str).collect(),
        }
    }

    /// Returns the numbers that it has.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        match self {
            Self::Range { low, high, .. } => (*low).into_iter().chain([*high]).collect(),
            Self::Least { value, .. }
            | Self::Most { value, .. }
            | Self::Peak { value, .. }
            | Self::Reaches { value, .. }
            | Self::Exactly { value, .. }
            | Self::Crossover { value, .. } => vec![*value],
            _ => Vec::new(),
        }
    }

    /// Returns the sizes that it is about: the first and the last.
    pub(crate) fn sizes(&self) -> [u64; 2] {
        match self {
            Self::Below { sizes, .. }
            | Self::Equal { sizes, .. }
            | Self::Least { sizes, .. }
            | Self::Most { sizes, .. }
            | Self::Peak { sizes, .. }
            | Self::Reaches { sizes, .. }
            | Self::Range { sizes, .. } => *sizes,
            Self::Crossover { value, .. } => [value.size(), value.size()],
            Self::Nears { .. } | Self::Rises { .. } | Self::Exactly { .. } | Self::Close { .. } => {
                ALL
            }
        }
    }

    /// Returns the published range of a figure that it is about, with the units: `None` of another claim.
    pub(crate) fn range(&self) -> Option<([f64; 2], &[String])> {
        match self {
            Self::Range { of, low, high, .. } => Some((ends(*low, *high), of)),
            _ => None,
        }
    }

    /// Judges it on each of some places.
    pub(crate) fn judge(&self, rows: &Rows, places: &[Place]) -> Vec<Judgement> {
        at_each(rows, places, &self.units(), self.figure(), &|at| {
            self.decide(at)
        })
    }

    fn decide(&self, at: &At<'_>) -> Judgement {
        let series = |unit: &str, figure: &str| -> Series { at.series(unit, figure) };
        match self {
            Self::Range {
                of,
                figure,
                low,
                high,
                sizes,
                bound,
            } => {
                let all = of.iter().flat_map(|unit| at.with_others(unit, figure));
                let points = all.flat_map(|series| within(&series, *sizes));
                let of_both = ends(*low, *high);
                // Of all sizes there is none beyond.
                let last = if *sizes == ALL { 0 } else { sizes[1] };
                let is_bound = *bound || low.is_none();
                let range = Range {
                    band: high.between(of_both, at.known()),
                    extreme: (!is_bound).then(|| (high.extreme(of_both, at.known()), last)),
                };
                let text = of_both.map(short).join(" to ");
                in_range(&points.collect::<Vec<_>>(), range, &text)
            }
            Self::Below {
                low,
                high,
                figure,
                sizes,
            } => below(&pairs(&series(low, figure), &series(high, figure), *sizes)),
            Self::Equal {
                one,
                other,
                figure,
                sizes,
            } => equal(
                &pairs(&series(one, figure), &series(other, figure), *sizes),
                &at.ratio(one, other, figure),
            ),
            Self::Least {
                of,
                figure,
                value,
                sizes,
            } => bound(
                &within(&series(of, figure), *sizes),
                Bound::Least,
                value.value(),
            ),
            Self::Most {
                of,
                figure,
                value,
                sizes,
            } => bound(
                &within(&series(of, figure), *sizes),
                Bound::Most,
                value.value(),
            ),
            Self::Peak {
                of,
                figure,
                value,
                sizes,
            } => peak_is(
                &within(&series(of, figure), *sizes),
                value.band(at.known()),
                &value.told(None),
            ),
            Self::Reaches {
                of,
                figure,
                value,
                sizes,
            } => reaches(&within(&series(of, figure), *sizes), value.value()),
            Self::Rises { of, figure } => goes_with_size(&series(of, figure), true),
            Self::Exactly { of, figure, value } => {
                exactly(&within(&series(of, figure), ALL), value.value())
            }
            Self::Close {
                one,
                other,
                figure,
                within,
                simulated,
            } => {
                let pairs = pairs(&series(one, figure), &series(other, figure), ALL);
                let within = match at.known() {
                    Known::Measured => within,
                    Known::Simulated => simulated,
                };
                close(&pairs, *within)
            }
            Self::Crossover {
                low,
                high,
                figure,
                value,
            } => {
                let pairs = pairs(&series(low, figure), &series(high, figure), ALL);
                crossover(&pairs, value.size(), false)
            }
            Self::Nears {
                of,
                over,
                figure,
                reverse,
            } => {
                let (of, over) = match reverse {
                    false => (of, over),
                    // The inverse ratio falls.
                    true => (over, of),
                };
                nears(&at.ratio(of, over, figure))
            }
        }
    }
}

/// The ends of a range; a bound on both sides of 0 has one number.
fn ends(low: Option<Number>, high: Number) -> [f64; 2] {
    let most = high.value();
    match low {
        Some(low) => [low.value(), most],
        None => [-most.abs(), most.abs()],
    }
}
