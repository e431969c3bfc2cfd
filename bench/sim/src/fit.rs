//! The parameters of LogGP that measurements of two ranks say, and what they predict of programs.

use tagwire_sim::{Link, Machine, PerByte, SimOptions, Span};

use crate::error::Result;
use crate::job;
use crate::programs::{Arguments, Program, program};

/// What two ranks have measured: bytes, and nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Half a round trip.
    pub latency: Vec<(u64, f64)>,
    /// The time between messages of a stream of blocking calls.
    pub message: Vec<(u64, f64)>,
}

/// Returns what is measured at a size: between two sizes on the line between them, beyond all what the nearest has.
fn at(points: &[(u64, f64)], bytes: u64) -> Option<f64> {
    let usable = points.iter().filter(|(_, y)| y.is_finite() && *y > 0.0);
    let mut usable: Vec<(u64, f64)> = usable.copied().collect();
    usable.sort_by_key(|(size, _)| *size);
    let place = usable.partition_point(|(size, _)| *size < bytes);
    let above = usable.get(place).or_else(|| usable.last())?;
    let below = usable.get(place.saturating_sub(1)).unwrap_or(above);
    if above.0 <= below.0 || bytes >= above.0 {
        return Some(above.1);
    }
    let part = bytes.saturating_sub(below.0) as f64 / (above.0 - below.0) as f64;
    Some(below.1 + part * (above.1 - below.1))
}

/// Returns the machine on which two ranks of a node measure the same with messages of so many bytes, as in PLogP, whose parameters are of a
/// size (Kielmann, Bal, Verstoep, *Fast measurement of LogP parameters for message passing platforms*, IPDPS workshops 2000). o is what a
/// short message of a stream takes, and no more than half of its latency; L is what is left of that. G is what a round trip of the
/// simulation lacks. Both directions share it: cores of one host copy the bytes.
///
/// # Errors
/// What was not measured, and how a simulation failed.
pub fn fit(measured: &Measured, bytes: usize) -> std::result::Result<Machine, String> {
    let of = |points: &[(u64, f64)], bytes, what| {
        at(points, bytes).ok_or_else(|| format!("no {what} was measured"))
    };
    let (latency, message) = ("latency", "time between messages");
    let start = of(&measured.latency, 0, latency)?;
    let gap = of(&measured.message, 0, message)?;
    let whole = of(&measured.latency, bytes as u64, latency)?;
    let overhead = gap.min(start / 2.0);
    let of_bytes = |per_byte| {
        let link = Link {
            latency: span(start - 2.0 * overhead),
            send: span(overhead),
            recv: span(overhead),
            gap: span(gap),
            per_byte,
            ..Link::default()
        };
        Machine {
            network: link,
            local: link,
            ranks_per_node: 2,
            shares_local: true,
            slice: Span::nanos(3_000_000),
            detection: Span::nanos(1_000_000),
            ..Machine::default()
        }
    };
    let machine = of_bytes(PerByte::ZERO);
    let ping_pong = program("ping-pong").ok_or("no program 'ping-pong'")?;
    let round = predict(ping_pong, 2, machine, bytes).map_err(|error| error.to_string())?;
    let rest = (whole - round / 2.0).max(0.0);
    Ok(of_bytes(rate(rest / bytes.max(1) as f64)))
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

    #[test]
    fn sizes_between_lie_on_a_line() {
        let points = [(8, 2.0), (100, 0.0), (1008, 12.0), (2008, 12.5)];
        let found = [0, 8, 508, 1008, 9999].map(|bytes| at(&points, bytes).unwrap());
        assert_eq!(found, [2.0, 2.0, 7.0, 12.0, 12.5]);
        assert_eq!(at(&[], 8), None);
    }

    fn measured() -> Measured {
        Measured {
            latency: vec![(8, 1000.0), (1008, 1400.0), (65_536, 30_000.0)],
            message: vec![(8, 200.0), (1008, 500.0)],
        }
    }

    #[test]
    fn what_a_machine_measures_gives_its_parameters() {
        let Link {
            latency,
            send,
            gap,
            per_byte,
            ..
        } = fit(&measured(), 1008).unwrap().network;
        assert_eq!(latency, Span::nanos(600));
        assert_eq!((send, gap), (Span::nanos(200), Span::nanos(200)));
        let off = per_byte.as_femtos().abs_diff(400_000_000 / 1008);
        assert!(off < 2, "{per_byte:?}");
        assert!(fit(&Measured::default(), 8).is_err());
    }

    #[test]
    fn a_ping_pong_is_predicted_from_itself() {
        // The longest is asked for before it is sent.
        for (bytes, nanos) in [(8, 1000.0), (1008, 1400.0), (65_536, 30_000.0)] {
            let machine = fit(&measured(), bytes).unwrap();
            let round = predict(program("ping-pong").unwrap(), 2, machine, bytes).unwrap();
            assert!((round / 2.0 - nanos).abs() < 1.0, "{bytes}: {round}");
        }
    }

    #[test]
    fn both_directions_share_the_bytes() {
        let machine = fit(&measured(), 65_536).unwrap();
        let faces = program("faces").unwrap();
        let both = predict(faces, 2, machine, 65_536).unwrap();
        let own = Machine {
            shares_local: false,
            ..machine
        };
        let one = predict(faces, 2, own, 65_536).unwrap();
        assert!(both > 1.7 * one, "{both} {one}");
    }
}
