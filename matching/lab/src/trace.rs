//! Traces in files: binary ones, and their twins of text.
//!
//! The binary format is [`tagwire_matching::trace`]. The twin is CSV behind a `#` line for each line of the header; it is what
//! `tagwire match cat` prints, and is read wherever a trace is.

mod parts;
mod text;

use std::fs;
use std::path::{Path, PathBuf};

use tagwire_base::Rank;
use tagwire_matching::trace::{Event, HEADER, Header, Packed, RECORD, Record};

use crate::error::{Error, Result};

/// A call of an engine with its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Nanoseconds since the trace begins.
    pub at: u64,
    /// The call.
    pub event: Event,
    /// Whether it matched, found or withdrew something at once.
    pub matched: bool,
}

/// What one engine was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Whose it is.
    pub header: Header,
    /// The calls in their order.
    pub calls: Vec<Call>,
    /// How many calls are missing behind the last one.
    pub lost: u64,
}

impl Trace {
    /// Reads a trace, binary or of text. With `partial`, what comes before something that is wrong is taken.
    ///
    /// # Errors
    /// [`Error::Read`] for a file that cannot be read, [`Error::Trace`] for one that is no trace.
    pub fn read(path: &Path, partial: bool) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| Error::Read(shown(path), error))?;
        Self::of_bytes(&bytes, path, partial)
    }

    /// The same of the bytes of a file that was read.
    pub(crate) fn of_bytes(bytes: &[u8], path: &Path, partial: bool) -> Result<Self> {
        let is_text = bytes.starts_with(b"#") || path.extension().is_some_and(|end| end == "csv");
        let read = match is_text {
            true => text::parse(&String::from_utf8_lossy(bytes)),
            false => parse(bytes),
        };
        match read.map(within_job) {
            Ok((trace, None)) => Ok(trace),
            Ok((trace, Some(_))) if partial => Ok(trace),
            Ok((_, Some(why))) => Err(Error::Trace {
                path: shown(path),
                why: format!("{why} (--partial takes what comes before)"),
            }),
            Err(why) => Err(Error::Trace {
                path: shown(path),
                why,
            }),
        }
    }

    /// Reads several, and for a folder those in it, by rank.
    ///
    /// # Errors
    /// As [`Trace::read`]; [`Error::Trace`] for a folder without traces.
    pub fn read_all(paths: &[PathBuf], partial: bool) -> Result<Vec<(PathBuf, Self)>> {
        let mut all = Vec::new();
        for path in paths {
            if !path.is_dir() {
                all.push((path.clone(), Self::read(path, partial)?));
                continue;
            }
            let entries = fs::read_dir(path).map_err(|error| Error::Read(shown(path), error))?;
            let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
            let files = files.filter(|file| file.extension().is_some_and(|end| end == "twm"));
            let before = all.len();
            for file in files {
                all.push((file.clone(), Self::read(&file, partial)?));
            }
            if all.len() == before {
                return Err(Error::Trace {
                    path: shown(path),
                    why: "the folder has no traces, files that end with .twm".to_owned(),
                });
            }
            all[before..].sort_by(|a, b| (a.1.header.rank, &a.0).cmp(&(b.1.header.rank, &b.0)));
        }
        Ok(all)
    }

    /// Writes the trace, as text where the name ends with `.csv`.
    ///
    /// # Errors
    /// [`Error::Output`] when it cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let bytes = match path.extension().is_some_and(|end| end == "csv") {
            true => self.to_text().into_bytes(),
            false => self.to_bytes(),
        };
        fs::write(path, bytes).map_err(|error| Error::Output(shown(path), error))
    }

    /// Returns the twin of text.
    #[must_use]
    pub fn to_text(&self) -> String {
        text::write(self)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + RECORD * (self.calls.len() + 1));
        bytes.extend_from_slice(&self.header.to_page());
        let mut before = 0;
        for call in &self.calls {
            let nanos = call.at.saturating_sub(before);
            before = call.at;
            let after = match u32::try_from(nanos) {
                Ok(after) => after,
                Err(_) => {
                    bytes.extend_from_slice(&Packed::time(nanos).after(0));
                    0
                }
            };
            let record = Record {
                event: call.event,
                matched: call.matched,
                after,
            };
            bytes.extend_from_slice(&record.to_bytes());
        }
        match self.lost {
            0 => bytes.extend_from_slice(&[0; RECORD]),
            lost => bytes.extend_from_slice(&Packed::lost(lost).after(0)),
        }
        bytes
    }
}

/// A trace, and what is wrong behind its last call.
type Parsed = (Trace, Option<String>);

fn parse(bytes: &[u8]) -> Result<Parsed, String> {
    let header = Header::from_page(bytes).map_err(|error| error.to_string())?;
    let mut trace = Trace {
        header,
        calls: Vec::new(),
        lost: 0,
    };
    let (records, rest) = bytes[HEADER..].as_chunks::<RECORD>();
    let parts = parts::found(records);
    let within = || {
        let (number, bytes) = (records.len() + 1, rest.len());
        let told = || format!("record {number} has {bytes} bytes of {RECORD}: the file was cut");
        rest.iter().any(|byte| *byte != 0).then(told)
    };
    let (mut trace, wrong) = match parts.is_empty() {
        true => {
            let wrong = parse_records(&mut trace, records, 0, &mut 0);
            let cut = || cut(records, 0);
            (trace, wrong.or_else(within).or_else(cut))
        }
        false => {
            let (trace, wrong) = parts::join(trace, &parts);
            (trace, wrong.or_else(within))
        }
    };
    trace.header.ring = 0;
    Ok((trace, wrong))
}

/// What is wrong with records, before which are others, where neither an end nor what is lost comes last.
fn cut(records: &[[u8; RECORD]], before: usize) -> Option<String> {
    let has_end = records.last().is_some_and(|bytes| {
        let last = Record::from_bytes(*bytes);
        matches!(
            last.map(|record| record.map(|record| record.event)),
            Ok(None | Some(Event::Lost(_)))
        )
    });
    let missing = before + records.len() + 1;
    (!has_end).then(|| format!("record {missing} is missing: the file was cut"))
}

/// Adds the calls of records, before which are others, from a time on. Returns what is wrong behind the last one.
fn parse_records(
    trace: &mut Trace,
    records: &[[u8; RECORD]],
    before: usize,
    at: &mut u64,
) -> Option<String> {
    for (index, bytes) in records.iter().enumerate() {
        let number = before + index + 1;
        let record = match Record::from_bytes(*bytes) {
            Ok(Some(record)) => record,
            // Room that was reserved and is not written: the rank died, or still runs.
            Ok(None) => {
                let ends = records[index..].iter().all(|bytes| *bytes == [0; RECORD]);
                return (!ends).then(|| format!("record {number} is empty, and others follow"));
            }
            Err(why) => return Some(format!("record {number}: {why}")),
        };
        *at = at.saturating_add(u64::from(record.after));
        match record.event {
            Event::Time(nanos) => *at = at.saturating_add(nanos),
            Event::Lost(calls) => {
                trace.lost = calls;
                let is_last = index + 1 == records.len();
                return (!is_last)
                    .then(|| format!("record {number} ends the trace, and others follow"));
            }
            Event::Begin(_) | Event::Lengths(_) | Event::Queued(_) => {
                return Some(format!("record {number} begins a part where none begins"));
            }
            event => trace.calls.push(Call {
                at: *at,
                event,
                matched: record.matched,
            }),
        }
    }
    None
}

/// Cuts a trace before the first call that is of no rank of the job: engines may have a word for each rank up to the highest.
fn within_job((mut trace, wrong): Parsed) -> Parsed {
    let ranks = trace.header.ranks;
    let source = |call: &Call| match call.event {
        Event::Post(pattern) | Event::Probe(pattern) | Event::Claim(pattern) => {
            pattern.source.rank()
        }
        Event::Arrive(message, _) | Event::ArriveExpected(message) | Event::Expects(message) => {
            Some(message.source)
        }
        _ => None,
    };
    let mut sources = trace.calls.iter().map(source);
    let is_far = |source: Option<Rank>| source.filter(|source| source.as_u32() >= ranks);
    let Some((place, far)) = sources
        .by_ref()
        .enumerate()
        .find_map(|(place, source)| Some((place, is_far(source)?)))
    else {
        return (trace, wrong);
    };
    trace.calls.truncate(place);
    let call = place + 1;
    (
        trace,
        Some(format!(
            "call {call} is of rank {far}, and the job has {ranks}"
        )),
    )
}

/// Makes a folder for traces, where it is not there.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| Error::Output(shown(path), error))
}

pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
pub(crate) mod tests {
    use tagwire_base::{ContextId, Rank, Tag};
    use tagwire_matching::trace::Size;
    use tagwire_matching::{Capacity, ContextAssertions, Envelope, Pattern};

    use super::*;

    pub(crate) fn header() -> Header {
        Header {
            rank: 1,
            ranks: 10,
            engine: "bins".to_owned(),
            capacity: Capacity::default(),
            clock: "each".to_owned(),
            arrivals: "recorded".to_owned(),
            ring: 0,
            before: 0,
            host: "here".to_owned(),
            command: "program --with words".to_owned(),
        }
    }

    pub(crate) fn message(source: u32, tag: i32) -> Envelope {
        Envelope {
            source: Rank::new(source),
            tag: Tag::from_wire(tag).unwrap(),
            context: ContextId::WORLD,
        }
    }

    /// A trace of these events, a nanosecond apart.
    pub(crate) fn trace(events: &[(Event, bool)]) -> Trace {
        let calls = events
            .iter()
            .enumerate()
            .map(|(index, (event, matched))| Call {
                at: index as u64,
                event: *event,
                matched: *matched,
            });
        Trace {
            header: header(),
            calls: calls.collect(),
            lost: 0,
        }
    }

    fn every_kind() -> Trace {
        let any = Pattern {
            source: tagwire_base::SourceSelector::ANY,
            tag: tagwire_base::TagSelector::ANY,
            context: ContextId::new(3),
        };
        let promise = ContextAssertions {
            no_any_source: true,
            no_any_tag: true,
            overtaking: false,
        };
        let mut trace = trace(&[
            (Event::Post(any), false),
            (Event::Post(Pattern::exact(message(0, 5))), false),
            (Event::Arrive(message(0, 5), Size::of(4096)), true),
            (Event::ArriveExpected(message(9, -7)), false),
            (Event::Expects(message(0, 1)), true),
            (Event::Probe(any), false),
            (Event::Claim(any), false),
            (Event::Cancel(1), false),
            (Event::Discard(0), false),
            (Event::Promise(ContextId::new(3), promise), false),
        ]);
        trace.calls[6].at = 1 << 40;
        for call in &mut trace.calls[7..] {
            call.at += 1 << 40;
        }
        trace.lost = 17;
        trace
    }

    #[test]
    fn both_forms_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let one = every_kind();
        for name in ["a.twm", "a.csv"] {
            let path = folder.path().join(name);
            one.write(&path).unwrap();
            assert_eq!(Trace::read(&path, false).unwrap(), one, "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_record_and_the_rest_can_be_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.twm");
        let whole = trace(&[(Event::Arrive(message(0, 1), Size::of(1)), false); 3]);
        let good = whole.to_bytes();
        let mut cut = good.clone();
        cut.truncate(HEADER + 40);
        let mut between = good.clone();
        between.truncate(HEADER + 32);
        let mut empty = good.clone();
        empty.truncate(HEADER);
        let mut call = good.clone();
        call[HEADER + 16] = 15;
        let mut hole = good.clone();
        hole[HEADER + 16..HEADER + 32].fill(0);
        for (bytes, calls, told) in [
            (cut, 2, "record 3 has 8 bytes of 16: the file was cut"),
            (between, 2, "record 3 is missing: the file was cut"),
            (empty, 0, "record 1 is missing: the file was cut"),
            (call, 1, "record 2: no call has the number 15"),
            (hole, 1, "record 2 is empty, and others follow"),
        ] {
            fs::write(&path, bytes).unwrap();
            let refused = Trace::read(&path, false).unwrap_err().to_string();
            assert!(
                refused.contains(told) && refused.contains("a.twm"),
                "{refused}"
            );
            assert_eq!(
                Trace::read(&path, true).unwrap().calls,
                whole.calls[..calls]
            );
        }
        let mut far = whole.clone();
        far.calls[1].event = Event::Expects(message(10, 1));
        far.write(&path).unwrap();
        let refused = Trace::read(&path, false).unwrap_err().to_string();
        assert!(
            refused.contains("call 2 is of rank 10, and the job has 10"),
            "{refused}"
        );
        assert_eq!(Trace::read(&path, true).unwrap().calls, whole.calls[..1]);
        // Room behind the last record is what a rank leaves that died.
        let mut room = good;
        room.resize(HEADER + (1 << 12), 0);
        fs::write(&path, room).unwrap();
        assert_eq!(Trace::read(&path, false).unwrap(), whole);
        // What another program wrote is told by its version, of either form.
        let (binary, text) = (whole.to_bytes(), whole.to_text());
        let first = String::from_utf8_lossy(&binary[..HEADER]).into_owned();
        let version = first.lines().next().unwrap().to_owned();
        let other = version.replace('2', "1");
        for (bytes, name) in [
            ([other.as_bytes(), &binary[other.len()..]].concat(), "a.twm"),
            (text.replacen(&version, &other, 1).into_bytes(), "b.csv"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            for partial in [false, true] {
                let refused = Trace::read(&path, partial).unwrap_err().to_string();
                let told =
                    format!("{name}: it is a trace of version 1, and this program reads version 2");
                assert!(refused.contains(&told), "{refused}");
            }
        }
        fs::write(&path, "no trace at all").unwrap();
        let refused = Trace::read(&path, true).unwrap_err().to_string();
        assert!(refused.contains("it is no trace"), "{refused}");
    }

    #[test]
    fn a_line_of_text_that_is_none_is_told_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let text = every_kind().to_text();
        for (from, to, told) in [
            ("arrive,", "arive,", "line 14: no call is called 'arive'"),
            (
                "post,0,any,any,3",
                "post,0,any,any",
                "line 12: it has 7 fields, and 8 are needed",
            ),
            (
                "post,0,any,any,3",
                "post,0,any,x,3",
                "line 12: 'x' is no tag",
            ),
            (
                "arrive,1,0,5",
                "arrive,1,any,5",
                "line 14: 'any' is no source",
            ),
        ] {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text, "{from}");
            fs::write(&path, other).unwrap();
            let refused = Trace::read(&path, false).unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
