//! A machine from a file: a line for each value, as `latency = 0.9us`.

use crate::machine::{Link, Machine};
use crate::time::{PerByte, Span};

/// What is wrong with a file of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A line is none that can be read.
    #[error("line {line}: '{field}': {reason}")]
    Line {
        /// Its number, from 1 on.
        line: usize,
        /// What stands before the sign of equality.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value is not there that has no default.
    #[error("'{0}' is missing")]
    Missing(&'static str),
}

/// A link's fields: name, what it is.
const LINK: &str = "latency, overhead-send, overhead-after-send, overhead-recv, gap, per-byte, copy-out, copy-in, copy-in-up-to, stream, process, process-from, \
     crowding, crowding-beside, crowding-up-to, beside, beside-put";

/// The fields that a machine cannot do without.
const NEEDED: [&str; 4] = ["latency", "overhead-send", "overhead-recv", "per-byte"];

impl Machine {
    /// Reads a machine from the text of a file. A line is empty, a comment after `#`, or `FIELD = VALUE`.
    ///
    /// | field | value |
    /// |---|---|
    /// | `latency`, `overhead-send`, `overhead-recv`, `gap` | a time: `0.9us`, `250 ns` |
    /// | `overhead-after-send` | a time; nothing |
    /// | `per-byte`, `copy-out`, `copy-in`, `stream`, `process`, `crowding`, `crowding-beside`, `beside`, `beside-put` | a time for each byte: `0.0826 ns` |
    /// | `copy-in-up-to` | bytes; 0 for all |
    /// | `process-from`, `crowding-up-to` | bytes; 0 |
    /// | `local-latency` and so on | the same between ranks of a node; nothing where none is named |
    /// | `local-link` | `own`: each rank has the link to others of its node to itself; `shared`: all have one, in both directions |
    /// | `ranks-per-node`, `cores` | a number; 1, and 0 for a core for each thread |
    /// | `slice`, `wake`, `handover`, `detection` | a time; 3 ms, nothing, nothing, 1 ms |
    /// | `matching`, `matching-gap` | a time; nothing |
    /// | `eager` | bytes; 0 for 64 KiB |
    /// | `turn` | bytes; 0 for whole messages |
    /// | `socket`, `far-handover` | cores of a socket, and the handover of ranks with more threads; 0, nothing |
    ///
    /// # Errors
    /// [`FileError`] with the line and the field.
    pub fn from_text(text: &str) -> Result<Self, FileError> {
        let mut machine = Self {
            ranks_per_node: 1,
            slice: Span::nanos(3_000_000),
            detection: Span::nanos(1_000_000),
            ..Self::default()
        };
        let mut seen: Vec<&str> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (field, value) = line.split_once('=').unwrap_or((line, ""));
            let (field, value) = (field.trim(), value.trim());
            let set = match seen.contains(&field) {
                true => Err("it is given twice".to_owned()),
                false => machine.set(field, value),
            };
            set.map_err(|reason| FileError::Line {
                line: index + 1,
                field: field.to_owned(),
                reason,
            })?;
            seen.push(field);
        }
        match NEEDED.into_iter().find(|field| !seen.contains(field)) {
            Some(missing) => Err(FileError::Missing(missing)),
            None => Ok(machine),
        }
    }

    fn set(&mut self, field: &str, value: &str) -> Result<(), String> {
        match field {
            "ranks-per-node" => self.ranks_per_node = number(value, 1)?,
            "local-link" => {
                self.shares_local = match value {
                    "shared" => true,
                    "own" => false,
                    _ => return Err(format!("'{value}' is neither 'own' nor 'shared'")),
                }
            }
            "cores" => self.cores = number(value, 0)?,
            "slice" => self.slice = Span::picos(femtos(value)? / 1000),
            "wake" => self.wake = Span::picos(femtos(value)? / 1000),
            "far-handover" => self.far_handover = Span::picos(femtos(value)? / 1000),
            "socket" => self.socket = number(value, 0)?,
            "eager" => self.eager = number(value, 0)?,
            "turn" => self.turn = number(value, 0)?,
            "handover" => self.handover = Span::picos(femtos(value)? / 1000),
            "matching" => self.matching = Span::picos(femtos(value)? / 1000),
            "matching-gap" => self.matching_gap = Span::picos(femtos(value)? / 1000),
            "detection" => self.detection = Span::picos(femtos(value)? / 1000),
            _ => match field.strip_prefix("local-") {
                Some(field) => set_link(&mut self.local, field, value)?,
                None => set_link(&mut self.network, field, value)?,
            },
        }
        Ok(())
    }
}

fn set_link(link: &mut Link, field: &str, value: &str) -> Result<(), String> {
    let span = || femtos(value).map(|femtos| Span::picos(femtos / 1000));
    let per_byte = || femtos(value).map(PerByte::femtos);
    match field {
        "latency" => link.latency = span()?,
        "overhead-send" => link.send = span()?,
        "overhead-after-send" => link.after_send = span()?,
        "overhead-recv" => link.recv = span()?,
        "gap" => link.gap = span()?,
        "per-byte" => link.per_byte = per_byte()?,
        "copy-out" => link.copy_out = per_byte()?,
        "copy-in" => link.copy_in = per_byte()?,
        "stream" => link.stream = per_byte()?,
        "process" => link.process = per_byte()?,
        "copy-in-up-to" => link.copy_in_up_to = number(value, 0)?,
        "process-from" => link.process_from = number(value, 0)?,
        "crowding" => link.crowding = per_byte()?,
        "crowding-up-to" => link.crowding_up_to = number(value, 0)?,
        "crowding-beside" => link.crowding_beside = per_byte()?,
        "beside" => link.beside = per_byte()?,
        "beside-put" => link.beside_put = per_byte()?,
        _ => return Err(format!("no such field; a link has {LINK}")),
    }
    Ok(())
}

fn number(value: &str, least: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| format!("'{value}' is no number of {least} or more"))
}

/// Returns a time in femtoseconds.
fn femtos(value: &str) -> Result<u64, String> {
    let units = [("ps", 3), ("ns", 6), ("us", 9), ("ms", 12), ("s", 15)];
    let unit = units.iter().find(|(unit, _)| value.ends_with(unit));
    let time = unit.and_then(|(unit, zeros)| decimal(value.strip_suffix(unit)?.trim_end(), *zeros));
    time.ok_or_else(|| format!("'{value}' is no time of up to an hour, as in '0.9us'"))
}

/// Returns `text` times 10 to the power of `zeros`; `None` where that is no whole number, or more than an hour.
fn decimal(text: &str, zeros: usize) -> Option<u64> {
    const MOST: u64 = 3_600_000_000_000_000_000;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction:0<zeros$}");
    let is_plain = !whole.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|number| *number <= MOST);
    number.filter(|_| is_plain && fraction.len() <= zeros)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# of a paper\nlatency = 0.9us\noverhead-send=250 ns\noverhead-recv = 250ns # both\n\n\
                        per-byte = 0.0826 ns\nlocal-latency = 0.4us\nranks-per-node = 40\n";

    #[test]
    fn a_file_is_a_machine() {
        let machine = Machine::from_text(TEXT).unwrap();
        assert_eq!(machine.network.latency, Span::nanos(900));
        assert_eq!(machine.network.recv, Span::nanos(250));
        assert_eq!(machine.network.per_byte, PerByte::femtos(82_600));
        assert_eq!(machine.local.latency, Span::nanos(400));
        assert_eq!((machine.ranks_per_node, machine.cores), (40, 0));
        assert!(!machine.shares_local);
        let lines = "overhead-after-send = 20ns\ncopy-in-up-to = 2000\nprocess = 0.4ns\nprocess-from = 1000\ncrowding = 0.1ns\ncrowding-up-to = 16000\ncrowding-beside = 0.05ns\nbeside = 0.2ns\nbeside-put = 0.1ns";
        let of_messages = Machine::from_text(&format!("{TEXT}{lines}")).unwrap();
        let network = of_messages.network;
        assert_eq!(network.after_send, Span::nanos(20));
        assert_eq!(network.process, PerByte::femtos(400_000));
        let crowding = [network.crowding, network.crowding_beside];
        assert_eq!(crowding, [100_000, 50_000].map(PerByte::femtos));
        assert_eq!(
            [
                network.crowding_up_to,
                network.process_from,
                network.copy_in_up_to
            ],
            [16_000, 1000, 2000]
        );
        assert_eq!(network.beside, PerByte::femtos(200_000));
        assert_eq!(network.beside_put, PerByte::femtos(100_000));
        let known = "eager = 8192\nturn = 4096\nwake = 2us";
        let known = Machine::from_text(&format!("{TEXT}{known}")).unwrap();
        assert_eq!((machine.eager, known.eager), (0, 8192));
        assert_eq!((machine.turn, known.turn), (0, 4096));
        assert_eq!((machine.wake, known.wake), (Span::ZERO, Span::nanos(2000)));
        let shared = Machine::from_text(&format!("{TEXT}local-link = shared")).unwrap();
        assert!(shared.shares_local);
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_field() {
        for (line, words) in [
            ("latency = 1us", "line 9: 'latency': it is given twice"),
            ("gap = -1us", "line 9: 'gap': '-1us' is no time"),
            ("gap = 1", "line 9: 'gap': '1' is no time"),
            ("gap", "line 9: 'gap': '' is no time"),
            (
                "gap = 1.0000001ns",
                "line 9: 'gap': '1.0000001ns' is no time",
            ),
            ("gap = 99999999999999999999s", "line 9: 'gap'"),
            ("slice = 2 hours", "line 9: 'slice'"),
            (
                "cores = many",
                "line 9: 'cores': 'many' is no number of 0 or more",
            ),
            ("ranks-per-node = 0", "line 9: 'ranks-per-node'"),
            (
                "local-link = half",
                "line 9: 'local-link': 'half' is neither 'own' nor 'shared'",
            ),
            ("local-color = 1us", "line 9: 'local-color': no such field"),
        ] {
            let before = TEXT.replace("ranks-per-node = 40", "");
            let error = Machine::from_text(&format!("{before}{line}")).unwrap_err();
            assert!(error.to_string().starts_with(words), "{error}");
        }
        let missing = TEXT.replace("per-byte", "copy-in");
        let error = Machine::from_text(&missing).unwrap_err();
        assert_eq!(error.to_string(), "'per-byte' is missing");
    }
}
