//! The parameters of LogGP that measurements of two ranks say, and what they predict of programs.

use std::time::Duration;

use tagwire_sim::{Link, Machine, PerByte, SimOptions, Span};

use crate::error::Result;
use crate::job;
use crate::programs::{Arguments, Program, ping_pong, stream};

/// What two ranks have measured: bytes, and nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Half a round trip, or what a message takes that nothing but an empty one answers.
    pub latency: Vec<(u64, f64)>,
    /// The time between messages of a stream of blocking calls, of which each 64th is answered.
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
/// size (Kielmann, Bal, Verstoep, *Fast measurement of LogP parameters for message passing platforms*, IPDPS workshops 2000).
///
/// g is the time between the shortest messages of a stream, without the answers. o is that too, and no more than half of the latency of the shortest message; L is
/// what is left of that. Bytes take what a round trip of the simulation lacks:
///
/// ```text
///   lacks       o_s [ copy out ]                               [ copy in ] o_r      each side's core: half of the rest
///                               [ G: both directions share it ]                     as much as the time between messages of the size
///   stream      o_s [ copy out ][ after ] o_s [ copy out ][ after ] ...             what is left of the time between messages
/// ```
///
/// # Errors
/// What was not measured, and how a simulation failed.
pub fn fit(measured: &Measured, bytes: usize) -> std::result::Result<Machine, String> {
    let of = |points: &[(u64, f64)], bytes, what| {
        at(points, bytes).ok_or_else(|| format!("no {what} was measured"))
    };
    let (latency, message) = ("latency", "time between messages");
    let start = of(&measured.latency, 0, latency)?;
    let shortest = of(&measured.message, 0, message)?;
    let whole = of(&measured.latency, bytes as u64, latency)?;
    let every = of(&measured.message, bytes as u64, message)?;
    // A round trip is in each window of the stream, of which a sender is busy for g.
    let window = f64::from(stream::WINDOW);
    let gap = ((window * shortest - 2.0 * start) / (window - 1.0)).max(0.0);
    let overhead = gap.min(start / 2.0);
    let parameters = Parameters {
        latency: start - 2.0 * overhead,
        overhead,
        gap,
        ..Parameters::default()
    };
    parameters
        .with_bytes(bytes, whole, every)
        .and_then(|with| with.with_stream(bytes, whole, every))
        .map(|with| with.machine(bytes))
        .map_err(|error| error.to_string())
}

/// The parameters of a size, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Parameters {
    latency: f64,
    overhead: f64,
    gap: f64,
    /// What a message's bytes take the link that both directions share.
    shared: f64,
    /// What they take the core of each side.
    copied: f64,
    /// How long the sender is busy with a message that has left.
    after: f64,
}

impl Parameters {
    /// Returns the same with what the bytes of a message take, so that it is there after `whole`.
    ///
    /// Cores of one host copy both directions' bytes through one memory, so that the link has them which both share. It has no more of a
    /// message than the time between messages: the rest is copied before or after.
    fn with_bytes(self, bytes: usize, whole: f64, every: f64) -> Result<Self> {
        let lacking = whole - self.one_way(bytes)?;
        let shared = lacking.clamp(0.0, every);
        let copied = (lacking - shared).max(0.0) / 2.0;
        let with = Self {
            shared,
            copied,
            ..self
        };
        // The simulation copies nothing of what is not sent before it is matched.
        let shared = shared + whole - with.one_way(bytes)?;
        let shared = shared.max(0.0);
        Ok(Self { shared, ..with })
    }

    /// Returns the same with a sender that is busy as long as a stream says in which a message comes after `every`, and no longer than a
    /// message may take that goes back and forth.
    fn with_stream(self, bytes: usize, whole: f64, every: f64) -> Result<Self> {
        let (mut least, mut most) = (0.0, every);
        for _ in 0..HALVINGS {
            let after = f64::midpoint(least, most);
            let with = Self { after, ..self };
            let is_less = with.in_stream(bytes)? < every && with.one_way(bytes)? < whole * SLACK;
            (least, most) = match is_less {
                true => (after, most),
                false => (least, after),
            };
        }
        Ok(Self {
            after: least,
            ..self
        })
    }

    /// Returns half of what a round trip takes.
    fn one_way(self, bytes: usize) -> Result<f64> {
        Ok(self.round(&ping_pong::PROGRAM, bytes)? / 2.0)
    }

    /// Returns the time between messages of a stream.
    fn in_stream(self, bytes: usize) -> Result<f64> {
        Ok(self.round(&stream::PROGRAM, bytes)? / f64::from(stream::WINDOW))
    }

    fn machine(self, bytes: usize) -> Machine {
        let per_byte = |nanos: f64| rate(nanos / bytes.max(1) as f64);
        let link = Link {
            latency: span(self.latency),
            send: span(self.overhead),
            after_send: span(self.after),
            recv: span(self.overhead),
            gap: span(self.gap),
            per_byte: per_byte(self.shared),
            copy_out: per_byte(self.copied),
            copy_in: per_byte(self.copied),
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
    }

    fn round(self, program: &Program, bytes: usize) -> Result<f64> {
        predict(program, 2, self.machine(bytes), bytes, Duration::ZERO)
    }
}

fn span(nanos: f64) -> Span {
    Span::picos((nanos.max(0.0) * 1e3).round() as u64)
}

fn rate(nanos: f64) -> PerByte {
    PerByte::femtos((nanos.max(0.0) * 1e6).round() as u64)
}

/// Rounds of a prediction.
const ROUNDS: u32 = 20;

/// How often the range is halved in which a parameter lies: to less than a thousandth.
const HALVINGS: u32 = 12;

/// By how much a simulated round trip may be longer than the measured one: grants of credit come now and then.
const SLACK: f64 = 1.01;

/// Returns how long a round of a program takes on a machine, in nanoseconds: between the end of the first and that of the last. A rank
/// computes for `compute` where the program has it do so.
///
/// # Errors
/// When the program does not end well.
pub fn predict(
    program: &Program,
    ranks: u32,
    machine: Machine,
    bytes: usize,
    compute: Duration,
) -> Result<f64> {
    let arguments = Arguments {
        rounds: ROUNDS,
        bytes,
        compute,
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
    fn sizes_between_lie_on_a_line() {
        let points = [(8, 2.0), (100, 0.0), (1008, 12.0), (2008, 12.5)];
        let found = [0, 8, 508, 1008, 9999].map(|bytes| at(&points, bytes).unwrap());
        assert_eq!(found, [2.0, 2.0, 7.0, 12.0, 12.5]);
        assert_eq!(at(&[], 8), None);
    }

    fn measured() -> Measured {
        Measured {
            latency: vec![
                (8, 1000.0),
                (1008, 1400.0),
                (4096, 3000.0),
                (65_536, 30_000.0),
            ],
            message: vec![
                (8, 200.0),
                (1008, 500.0),
                (4096, 1400.0),
                (65_536, 32_000.0),
            ],
        }
    }

    #[test]
    fn what_a_machine_measures_gives_its_parameters() {
        let link = fit(&measured(), 1008).unwrap().network;
        let gap = span((64.0 * 200.0 - 2.0 * 1000.0) / 63.0);
        assert_eq!((link.send, link.gap), (gap, gap));
        let off = link.per_byte.as_femtos().abs_diff(400_000_000 / 1008);
        assert!(off < 2, "{link:?}");
        assert_eq!(link.copy_in, PerByte::ZERO);
        assert!(fit(&Measured::default(), 8).is_err());
    }

    #[test]
    fn what_both_directions_do_not_share_is_copied_on_each_side() {
        let link = fit(&measured(), 4096).unwrap().network;
        let nanos = |of: PerByte| (of.as_femtos() as f64 * 4096.0 / 1e6).round();
        assert!((nanos(link.per_byte) - 1400.0).abs() < 10.0, "{link:?}");
        assert!((nanos(link.copy_out) - 300.0).abs() < 10.0, "{link:?}");
        assert_eq!(link.copy_out, link.copy_in);
    }

    #[test]
    fn a_ping_pong_is_predicted_from_itself() {
        // The longest is asked for before it is sent.
        for (bytes, nanos) in measured().latency {
            let machine = fit(&measured(), bytes as usize).unwrap();
            let round = predicted(&ping_pong::PROGRAM, machine, bytes as usize);
            let off = (round / 2.0 / nanos - 1.0).abs();
            assert!(off < 1.1 * (SLACK - 1.0), "{bytes}: {round}");
        }
    }

    #[test]
    fn a_stream_is_predicted_from_itself() {
        // The link is busy with the longest: no sender's time would make that shorter.
        for (bytes, nanos) in measured().message.into_iter().take(3) {
            let machine = fit(&measured(), bytes as usize).unwrap();
            let round = predicted(&stream::PROGRAM, machine, bytes as usize);
            let each = round / f64::from(stream::WINDOW);
            assert!((each / nanos - 1.0).abs() < 0.05, "{bytes}: {each}");
        }
    }

    #[test]
    fn both_directions_share_the_bytes() {
        let machine = fit(&measured(), 65_536).unwrap();
        let faces = program("faces").unwrap();
        let both = predicted(faces, machine, 65_536);
        let own = Machine {
            shares_local: false,
            ..machine
        };
        let one = predicted(faces, own, 65_536);
        assert!(both > 1.7 * one, "{both} {one}");
    }

    #[test]
    fn a_sweep_computes_in_each_slice() {
        let machine = fit(&measured(), 256).unwrap();
        let sweep = program("sweep3d").unwrap();
        let [without, with] = [0, 100]
            .map(|nanos| predict(sweep, 2, machine, 4096, Duration::from_nanos(nanos)).unwrap());
        assert!(with > without + 100.0 * 64.0, "{with} {without}");
    }

    fn predicted(program: &Program, machine: Machine, bytes: usize) -> f64 {
        predict(program, 2, machine, bytes, Duration::ZERO).unwrap()
    }
}
