//! When a claim holds.
//!
//! Figures of other machines are not compared with ours: claims are about ratios, orders, and the sizes at which curves cross. The
//! figure at a size is the median over launches, with their least and greatest as its interval.

use serde::Deserialize;
use tagwire_bench::Summary;

use crate::answer::{Band, quotient};
use crate::compare::{
    ALL, Bound, below, bound, crossover, equal, falls, pairs, ratio, smoother, within,
};
use crate::effects::Effect;
use crate::judgement::{Judgement, nothing};
use crate::known::Known;
use crate::on::On;
use crate::parts::Parts;
use crate::places::stars;
use crate::reference::Number;
use crate::rows::{Place, Rows, Series};
use crate::shape::{By, drops};
use crate::units::Comparison;
use crate::words::told;

/// Whose series: `ob1` and `cm` on a transport, or an MPI library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Who {
    Ob1,
    Cm,
    Peer,
}

impl Who {
    /// Returns the layer's name in rows; that of no layer for an MPI library.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ob1 => "ob1",
            Self::Cm => "cm",
            Self::Peer => "peer",
        }
    }
}

/// When a claim holds.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Predicate {
    /// Our ratio is the published one.
    Ratio {
        of: Who,
        over: Who,
        figure: String,
        size: u64,
        value: Number,
    },
    /// One is below the other: at two thirds of the sizes by disjoint intervals, and never the reverse.
    Below {
        low: Who,
        high: Who,
        figure: String,
        sizes: [u64; 2],
    },
    /// Both are the same, at two thirds of the sizes.
    Equal {
        one: Who,
        other: Who,
        figure: String,
        sizes: [u64; 2],
    },
    /// From about a size on one is below the other; with `above`, up to about a size.
    Crossover {
        low: Who,
        high: Who,
        figure: String,
        value: Number,
        #[serde(default)]
        above: bool,
    },
    /// It is at least a value at all sizes.
    Least {
        of: Who,
        figure: String,
        sizes: [u64; 2],
        value: Number,
    },
    /// It is lower at the large sizes than at the small ones, by more than the intervals.
    Falls {
        of: Who,
        figure: String,
        small: [u64; 2],
        large: [u64; 2],
    },
    /// Its steepest fall from a size to the next is about there.
    Drops {
        of: Who,
        figure: String,
        value: Number,
    },
    /// The steepest step up of one is less steep than that of the other.
    Smoother {
        of: Who,
        than: Who,
        figure: String,
        sizes: [u64; 2],
    },
    /// A program that spends a share of its time in the library is faster with one than with the other by a published part, if that
    /// time goes as a figure does.
    Projected {
        fast: Who,
        slow: Who,
        figure: String,
        size: u64,
        share: Number,
        value: Number,
    },
    /// It is about units, such as threads and processes.
    Units(Comparison),
    /// It is about how much one unit is more than another.
    Effects(Effect),
    /// It is about partitions.
    Parts(Parts),
}

impl Predicate {
    /// Whether it claims a shape: an order, a fall, a peak or an effect, which constant figures do not have.
    #[cfg(test)]
    pub(crate) fn is_shape(&self) -> bool {
        match self {
            Self::Equal { .. } | Self::Least { .. } => false,
            Self::Units(comparison) => comparison.is_shape(),
            Self::Effects(effect) => effect.is_shape(),
            Self::Parts(parts) => parts.is_shape(),
            _ => true,
        }
    }

    /// Returns the layer whose series comes first, or `peer`.
    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<&'static str> {
        Some(self.about().0.layer().unwrap_or("peer"))
    }

    /// Returns the figure that it is about, where it is about units.
    pub(crate) fn figure_of_units(&self) -> Option<&str> {
        match self {
            Self::Units(comparison) => Some(comparison.figure()),
            Self::Effects(effect) => Some(effect.figure()),
            _ => None,
        }
    }

    /// Returns the numbers that it has.
    pub(crate) fn numbers(&self) -> Vec<Number> {
        match self {
            Self::Ratio { value, .. }
            | Self::Crossover { value, .. }
            | Self::Least { value, .. }
            | Self::Drops { value, .. } => vec![*value],
            Self::Projected { share, value, .. } => vec![*share, *value],
            Self::Units(comparison) => comparison.numbers(),
            Self::Effects(effect) => effect.numbers(),
            Self::Parts(parts) => parts.numbers(),
            _ => Vec::new(),
        }
    }

    /// Returns the sizes that it is about, each range with its first and last.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> Vec<[u64; 2]> {
        match self {
            Self::Ratio { size, .. } | Self::Projected { size, .. } => vec![[*size, *size]],
            Self::Below { sizes, .. }
            | Self::Equal { sizes, .. }
            | Self::Smoother { sizes, .. }
            | Self::Least { sizes, .. } => vec![*sizes],
            Self::Falls { small, large, .. } => vec![*small, *large],
            Self::Crossover { value, .. } | Self::Drops { value, .. } => {
                vec![[value.size(), value.size()]]
            }
            Self::Units(comparison) => vec![comparison.sizes()],
            Self::Effects(effect) => vec![effect.size().map_or(ALL, |size| [size, size])],
            Self::Parts(parts) => vec![parts.sizes()],
        }
    }

    /// Whether it compares figures of one place alone, each place by itself.
    pub(crate) const fn is_of_one_place(&self) -> bool {
        match self {
            Self::Units(_) | Self::Parts(_) => true,
            Self::Effects(effect) => effect.is_of_one_place(),
            _ => false,
        }
    }

    /// Returns the figure that it is about.
    pub(crate) fn figure(&self) -> &str {
        match self {
            Self::Units(comparison) => comparison.figure(),
            Self::Effects(effect) => effect.figure(),
            Self::Parts(parts) => parts.figure(),
            _ => self.about().2,
        }
    }

    /// Returns the series that it is about at a place, with their names.
    pub(crate) fn series(&self, rows: &Rows, place: &Place) -> Vec<(String, Series)> {
        let figure = self.figure();
        let units = match self {
            Self::Units(comparison) => comparison.units(),
            Self::Effects(effect) => effect.units(),
            Self::Parts(parts) => return parts.series(rows, place),
            _ => return vec![(String::new(), rows.of_place(place, figure))],
        };
        let all = stars(rows, place, &units).into_iter().flat_map(|star| {
            let named = units.iter().map(move |unit| unit.replace('*', star));
            named.map(|unit| (unit.clone(), rows.of_unit(place, &unit, figure)))
        });
        all.collect()
    }

    /// Returns whose series it is about, and of which figure.
    fn about(&self) -> (Who, Option<Who>, &str) {
        match self {
            Self::Ratio {
                of, over, figure, ..
            } => (*of, Some(*over), figure),
            Self::Below {
                low, high, figure, ..
            }
            | Self::Crossover {
                low, high, figure, ..
            } => (*low, Some(*high), figure),
            Self::Equal {
                one, other, figure, ..
            } => (*one, Some(*other), figure),
            Self::Smoother {
                of, than, figure, ..
            } => (*of, Some(*than), figure),
            Self::Projected {
                fast, slow, figure, ..
            } => (*slow, Some(*fast), figure),
            Self::Least { of, figure, .. }
            | Self::Falls { of, figure, .. }
            | Self::Drops { of, figure, .. } => (*of, None, figure),
            // It is judged by itself.
            Self::Units(_) | Self::Effects(_) | Self::Parts(_) => (Who::Peer, None, ""),
        }
    }

    /// Judges it on each place, beside each MPI library where it is about one.
    pub(crate) fn judge(&self, rows: &Rows, on: Option<On>) -> Vec<Judgement> {
        let is_meant = |place: &Place| match on {
            None => true,
            Some(On::Shared) => !place.is_network(),
            Some(On::Network) => place.is_network(),
        };
        let mut places = rows.places();
        places.retain(is_meant);
        match self {
            Self::Units(comparison) => return comparison.judge(rows, &places),
            Self::Effects(effect) => return effect.judge(rows, &places),
            Self::Parts(parts) => return parts.judge(rows, &places),
            _ => {}
        }
        self.beside(rows, &places)
    }

    /// Judges it on each transport of ours, beside each MPI library over the same kind of way where it is about one.
    fn beside(&self, rows: &Rows, places: &[Place]) -> Vec<Judgement> {
        let compared = self.compared(rows, places).into_iter();
        let all: Vec<Judgement> = compared
            .map(|of| {
                let judged = self.decide(&of.one, &of.other, &of.ratios, of.own.known());
                judged.on(of.on())
            })
            .collect();
        if all.is_empty() {
            vec![Judgement::not_testable(self.why_none(places))]
        } else {
            all
        }
    }

    /// Returns why there is nothing that it could be judged by.
    fn why_none(&self, places: &[Place]) -> &'static str {
        let has = |is_foreign: bool| places.iter().any(|place| place.is_foreign() == is_foreign);
        let needs_peer = self.needs_peer();
        match needs_peer && !has(true) {
            true => "no MPI library was measured: -t mpi:PREFIX",
            false if !has(false) => "nothing was measured on a transport of Tagwire",
            false if needs_peer => {
                "no MPI library was measured over what a transport of Tagwire was measured over"
            }
            false => "no size of it was measured",
        }
    }

    /// Whether it is about an MPI library.
    fn needs_peer(&self) -> bool {
        let (first, second, _) = self.about();
        first == Who::Peer || second == Some(Who::Peer)
    }

    /// Returns what it compares: on each transport of ours, beside each MPI library over the same kind of way where it is about one.
    fn compared<'p>(&self, rows: &Rows, places: &'p [Place]) -> Vec<Compared<'p>> {
        let (first, second, figure) = self.about();
        let (peers, own): (Vec<&Place>, Vec<&Place>) =
            places.iter().partition(|place| place.is_foreign());
        let mut transports: Vec<&Place> = Vec::new();
        for place in own {
            if !transports
                .iter()
                .any(|one| one.transport == place.transport)
            {
                transports.push(place);
            }
        }
        let mut all = Vec::new();
        for own in transports {
            let alike = peers
                .iter()
                .filter(|peer| peer.is_network() == own.is_network());
            let beside: Vec<Option<&Place>> = match self.needs_peer() {
                true => alike.map(|peer| Some(*peer)).collect(),
                false => vec![None],
            };
            for peer in beside {
                let series = |who: Who| match (who.layer(), peer) {
                    (Some(layer), _) => rows.series(&own.transport, Some(layer), figure),
                    (None, Some(peer)) => rows.of_place(peer, figure),
                    (None, None) => Series::new(),
                };
                let (one, other) = (series(first), second.map(series).unwrap_or_default());
                if one.is_empty() && other.is_empty() {
                    continue;
                }
                // Layers of one transport may share launches.
                let layers = first.layer().zip(second.and_then(Who::layer));
                let ratios = match layers {
                    Some((of, over)) => rows.ratio_of_layers(&own.transport, [of, over], figure),
                    None => quotients(&one, &other),
                };
                all.push(Compared {
                    own,
                    peer,
                    one,
                    other,
                    ratios,
                });
            }
        }
        all
    }

    /// Returns what it projects of a program: of which libraries, in which share of the time, in percent, and by how many percent of the
    /// time of one the other is faster, as published and as here. Nothing where it is no projection.
    pub(crate) fn projections(&self, rows: &Rows) -> Option<Projections> {
        let Self::Projected {
            fast,
            slow,
            size,
            share,
            value,
            ..
        } = self
        else {
            return None;
        };
        let places = rows.places();
        let ours = self.compared(rows, &places).into_iter().filter_map(|of| {
            let gain = faster(of.ratios.get(size)?, *share);
            let [fast, slow] = [fast, slow].map(|who| who.named(of.peer));
            Some((format!("{fast} than {slow}, {}", of.own.transport), gain))
        });
        Some(Projections {
            share: share.value(),
            ours: ours.collect(),
            published: [fast, slow].map(|who| who.named(None)).join(" than "),
            value: value.value(),
        })
    }

    fn decide(&self, one: &Series, other: &Series, ratios: &Series, known: Known) -> Judgement {
        match self {
            Self::Ratio { size, value, .. } => match (one.get(size), other.get(size)) {
                (Some(_), Some(_)) => match ratios.get(size) {
                    Some(ours) => ratio(ours, value.band(known), &value.told(None)),
                    None => Judgement::not_testable("one of the figures is 0"),
                },
                _ => nothing(),
            },
            Self::Below { sizes, .. } => below(&pairs(one, other, *sizes)),
            Self::Equal { sizes, .. } => equal(&pairs(one, other, *sizes), ratios),
            Self::Crossover { value, above, .. } => {
                crossover(&pairs(one, other, ALL), value.size(), *above)
            }
            Self::Least { sizes, value, .. } => {
                bound(&within(one, *sizes), Bound::Least, value.value())
            }
            Self::Falls { small, large, .. } => falls(&within(one, *small), &within(one, *large)),
            Self::Drops { value, .. } => drops(&within(one, ALL), value.size(), By::Ratio),
            Self::Smoother { sizes, .. } => smoother(&within(one, *sizes), &within(other, *sizes)),
            Self::Projected {
                size, share, value, ..
            } => match (one.get(size), other.get(size)) {
                // Of the slow one over the fast one.
                (Some(_), Some(_)) => match ratios.get(size) {
                    Some(ratio) => by_share(ratio, *share, *value),
                    None => Judgement::not_testable("one of the figures is 0"),
                },
                _ => nothing(),
            },
            Self::Units(_) | Self::Effects(_) | Self::Parts(_) => nothing(),
        }
    }
}

/// Two series that a claim compares, or one: of a transport of ours, and perhaps of an MPI library.
struct Compared<'p> {
    own: &'p Place,
    peer: Option<&'p Place>,
    one: Series,
    other: Series,
    /// Of the one over the other.
    ratios: Series,
}

impl Compared<'_> {
    /// Returns what it was measured on.
    fn on(&self) -> String {
        let own = self.own.transport.clone();
        match self.peer {
            Some(peer) => format!("{own} beside {}", peer.name()),
            None => own,
        }
    }
}

/// What is projected of a program.
pub(crate) struct Projections {
    /// The share of its time in the library, in percent.
    pub(crate) share: f64,
    /// By how many percent it is faster with one library than with another, and with which.
    pub(crate) ours: Vec<(String, Summary)>,
    /// With which libraries of the paper.
    pub(crate) published: String,
    /// By how many percent it is faster there.
    pub(crate) value: f64,
}

impl Who {
    /// Returns the name of our layer, or of an MPI library: of the vendor's, where none is given.
    fn named(self, peer: Option<&Place>) -> String {
        match (self.layer(), peer) {
            (Some(layer), _) => layer.to_owned(),
            (None, Some(peer)) => peer.name(),
            (None, None) => "the vendor's library".to_owned(),
        }
    }

    /// Returns the name of our layer; `None` of a library.
    const fn layer(self) -> Option<&'static str> {
        match self {
            Self::Ob1 => Some("ob1"),
            Self::Cm => Some("cm"),
            Self::Peer => None,
        }
    }
}

/// The ratios of two series that share no launches.
fn quotients(of: &Series, over: &Series) -> Series {
    let all = pairs(of, over, ALL).into_iter();
    let positive = all.filter(|(_, of, over)| of.min > 0.0 && over.min > 0.0);
    positive
        .map(|(size, of, over)| (size, quotient(&of, &over)))
        .collect()
}

/// Returns by how many percent of the slower one's time a program is faster that spends a share of its time in the faster library, if that
/// time goes by a ratio.
fn faster(ratio: &Summary, share: Number) -> Summary {
    let part = share.value() / 100.0;
    // The time with the slower one, where that with the faster is 1.
    let gain = |ratio: f64| {
        let time = 1.0 + part * (ratio - 1.0);
        100.0 * (time - 1.0) / time
    };
    Summary {
        min: gain(ratio.min),
        median: gain(ratio.median),
        max: gain(ratio.max),
    }
}

/// Judges by how much a program is faster whose time in the library goes by a ratio.
fn by_share(ratio: &Summary, share: Number, value: Number) -> Judgement {
    let ours = faster(ratio, share);
    let evidence = format!(
        "{} % faster, by a ratio of {} in {} % of the time; published {}",
        told(&ours),
        told(ratio),
        share.value(),
        value.value()
    );
    let band = Band::of_differences(value.value(), value.value(), KNOWN_GAIN_PCT);
    Judgement::new(band.has(&ours).verdict(), evidence)
}

/// A gain of an application is known to this part of the time, in percent.
pub(crate) const KNOWN_GAIN_PCT: f64 = 0.25;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
