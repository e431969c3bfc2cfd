//! The parameters of LogGP that measurements of two ranks say, and what they predict of programs.

use tagwire_sim::{Link, Machine, PerByte, SimOptions, Span};

use crate::error::Result;
use crate::job;
use crate::programs::{Arguments, Program};

/// What two ranks have measured: bytes, and nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Half a round trip.
    pub latency: Vec<(u64, f64)>,
    /// The time between messages of a stream.
    pub message: Vec<(u64, f64)>,
}

/// A line: what nothing costs, and what each byte adds, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Line {
    start: f64,
    slope: f64,
}

impl Line {
    /// Returns the line from which points differ least, in relation to their height. Neither part of it is negative.
    fn through(points: &[(u64, f64)]) -> Option<Self> {
        let usable = points.iter().filter(|(_, y)| y.is_finite() && *y > 0.0);
        let usable: Vec<(f64, f64)> = usable.map(|(x, y)| (*x as f64, *y)).collect();
        // Each point weighs as much as its square divides.
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            usable.iter().map(|(x, y)| of(*x, *y) / (y * y)).sum()
        };
        let (weight, x, y) = (sum(&|_, _| 1.0), sum(&|x, _| x), sum(&|_, y| y));
        let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
        let spread = weight * xx - x * x;
        if usable.is_empty() {
            return None;
        }
        if spread <= f64::EPSILON * weight * xx {
            return Some(Self {
                start: y / weight,
                slope: 0.0,
            });
        }
        let slope = (weight * xy - x * y) / spread;
        let start = (y - slope * x) / weight;
        Some(match (start < 0.0, slope < 0.0) {
            (true, _) => Self {
                start: 0.0,
                slope: xy / xx,
            },
            (_, true) => Self {
                start: y / weight,
                slope: 0.0,
            },
            _ => Self { start, slope },
        })
    }
}

/// Returns the machine on which two ranks measure the same. A message of a stream takes g + kG; half a round trip, L + 2o + kG and
/// the copies of both sides. What g and the half round trip leave open, o is: g, and no more than half of it.
///
/// # Errors
/// What was not measured.
pub fn fit(measured: &Measured) -> std::result::Result<Machine, String> {
    let of = |points: &[(u64, f64)], what| {
        Line::through(points).ok_or_else(|| format!("no {what} was measured"))
    };
    let latency = of(&measured.latency, "latency")?;
    let message = of(&measured.message, "time between messages")?;
    let overhead = message.start.min(latency.start / 2.0);
    let per_byte = message.slope.min(latency.slope);
    let copy = (latency.slope - per_byte) / 2.0;
    let link = Link {
        latency: span(latency.start - 2.0 * overhead),
        send: span(overhead),
        recv: span(overhead),
        gap: span(message.start),
        per_byte: rate(per_byte),
        copy_out: rate(copy),
        copy_in: rate(copy),
        ..Link::default()
    };
    Ok(Machine {
        network: link,
        local: link,
        ranks_per_node: 1,
        slice: Span::nanos(3_000_000),
        detection: Span::nanos(1_000_000),
        ..Machine::default()
    })
}

fn span(nanos: f64) -> Span {
    Span::picos((nanos.max(0.0) * 1e3).round() as u64)
}

fn rate(nanos: f64) -> PerByte {
    PerByte::femtos((nanos.max(0.0) * 1e6).round() as u64)
}

/// Rounds of a prediction.
const ROUNDS: u32 = 20;

/// Returns how long a round of a program takes on a machine, in nanoseconds: between the end of the first and that of the last.
///
/// # Errors
/// When the program does not end well.
pub fn predict(program: &Program, ranks: u32, machine: Machine, bytes: usize) -> Result<f64> {
    let arguments = Arguments {
        rounds: ROUNDS,
        bytes,
        compute: std::time::Duration::ZERO,
    };
    let outcome = job::run(program, ranks, &SimOptions::of(machine), arguments)?;
    let ends = outcome.rounds.first().zip(outcome.rounds.last());
    let picos = ends.map_or(0, |(first, last)| {
        last.last.since_start().as_picos() - first.last.since_start().as_picos()
    });
    Ok(picos as f64 / 1e3 / f64::from(ROUNDS - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::programs::program;

    #[test]
    fn what_a_machine_measures_gives_its_parameters() {
        let sizes = [8, 1024, 65_536];
        let measured = Measured {
            latency: sizes.map(|k| (k, 1000.0 + 0.3 * k as f64)).to_vec(),
            message: sizes.map(|k| (k, 200.0 + 0.1 * k as f64)).to_vec(),
        };
        let Link {
            latency,
            send,
            gap,
            per_byte,
            copy_out,
            ..
        } = fit(&measured).unwrap().network;
        let close = |span: Span, nanos: u64| {
            let off = span.as_picos().abs_diff(nanos * 1000);
            assert!(off < 10, "{span} is not {nanos} ns");
        };
        close(latency, 600);
        close(send, 200);
        close(gap, 200);
        assert_eq!(per_byte, PerByte::femtos(100_000));
        assert_eq!(copy_out, PerByte::femtos(100_000));
        assert!(fit(&Measured::default()).is_err());
    }

    #[test]
    fn a_ping_pong_is_predicted_from_itself() {
        let measured = Measured {
            latency: vec![(8, 1002.4), (1024, 1307.2)],
            message: vec![(8, 200.8), (1024, 302.4)],
        };
        let machine = fit(&measured).unwrap();
        let round = predict(program("ping-pong").unwrap(), 2, machine, 1024).unwrap();
        assert!((round / 2.0 - 1307.2).abs() < 1.0, "{round}");
    }
}
