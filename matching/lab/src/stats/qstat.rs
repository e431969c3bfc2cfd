//! The six files that LogGOPSim writes with `--qstat PREFIX` (Levy, Ferreira and others): what searches of the queue of receives
//! (`rq`) and of that of unexpected messages (`uq`) found, and the longest each was.
//!
//! A line is of a rank. Their convention is kept: `hit` and `miss` have `DEPTH,TIME` for each search, where the depth of a hit counts from 1
//! and that of a miss is the length of the queue, 0 too; `max` has the greatest length at a search, before what was searched for is
//! queued. Times are nanoseconds of the trace.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tagwire_matching::trace::Event;

use crate::error::{Error, Result};
use crate::trace::{Call, Trace};
use crate::walk::{Search, Walk};

/// What a queue's three files have of a rank.
#[derive(Debug, Default, PartialEq, Eq)]
struct Searches {
    most: usize,
    hits: String,
    misses: String,
}

/// Writes the files of these traces, which have been counted before.
pub(super) fn write(prefix: &Path, traces: &[(PathBuf, Trace)]) -> Result<()> {
    let mut files: [String; 6] = Default::default();
    for (path, trace) in traces {
        let [receives, messages] = searches(trace).map_err(|why| Error::Trace {
            path: crate::trace::shown(path),
            why,
        })?;
        let parts = [
            receives.most.to_string(),
            messages.most.to_string(),
            receives.hits,
            messages.hits,
            receives.misses,
            messages.misses,
        ];
        for (file, part) in files.iter_mut().zip(parts) {
            file.push_str(&part);
            file.push('\n');
        }
    }
    for (name, text) in NAMES.iter().zip(files) {
        let mut path = prefix.as_os_str().to_owned();
        path.push(format!("-{name}.data"));
        let shown = path.display().to_string();
        fs::write(&path, text).map_err(|error| Error::Output(shown, error))?;
    }
    Ok(())
}

/// The searches of a rank among receives, and among messages.
fn searches(trace: &Trace) -> Result<[Searches; 2], String> {
    let mut walk = Walk::new(trace.header.capacity);
    let mut all: [Searches; 2] = Default::default();
    for (index, call) in trace.calls.iter().enumerate() {
        let search = walk.search(&call.event);
        if let Some(search) = search.filter(|search| is_of_simulator(call, *search)) {
            let (queue, length, found) = match search {
                Search::Receives(found) => (0, walk.receives.entries.len(), found),
                Search::Messages(found) => (1, walk.messages.entries.len(), found),
            };
            let Searches { most, hits, misses } = &mut all[queue];
            *most = length.max(*most);
            let _ = match found {
                Some(place) => write!(hits, "{},{} ", place + 1, call.at),
                None => write!(misses, "{length},{} ", call.at),
            };
        }
        let done = walk.apply(call, search);
        done.map_err(|why| format!("call {}: {why}", index + 1))?;
    }
    Ok(all)
}

/// Whether the simulator has such a search: it knows receives and messages, and neither probes nor messages that come again.
fn is_of_simulator(call: &Call, search: Search) -> bool {
    match call.event {
        Event::Post(_) | Event::Arrive(..) => true,
        Event::Claim(_) | Event::ArriveExpected(_) => search.is_hit(),
        _ => false,
    }
}

const NAMES: [&str; 6] = ["rq-max", "uq-max", "rq-hit", "uq-hit", "rq-miss", "uq-miss"];

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_matching::Pattern;
    use tagwire_matching::trace::Size;

    use super::*;
    use crate::trace::tests::{message, trace};

    /// Counted by hand, with calls a nanosecond apart.
    #[test]
    fn the_files_have_searches_as_the_simulator_counts_them() {
        let post = |tag| Event::Post(Pattern::exact(message(0, tag)));
        let arrive = |tag| Event::Arrive(message(0, tag), Size::of(8));
        let one = trace(&[
            (post(1), false),
            (post(2), false),
            (arrive(2), true),
            (Event::Expects(message(0, 9)), false),
            (arrive(3), false),
            (arrive(4), false),
            (Event::Probe(Pattern::exact(message(0, 4))), true),
            (post(4), true),
            (Event::Claim(Pattern::exact(message(0, 5))), false),
            (Event::Claim(Pattern::exact(message(0, 3))), true),
            (arrive(1), true),
        ]);
        let empty = trace(&[]);
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("app");
        let traces = [(PathBuf::from("a"), one), (PathBuf::from("b"), empty)];
        write(&prefix, &traces).unwrap();
        for (name, wanted) in [
            ("rq-max", "2\n0\n"),
            ("uq-max", "2\n0\n"),
            ("rq-hit", "2,2 1,10 \n\n"),
            ("uq-hit", "2,7 1,9 \n\n"),
            ("rq-miss", "1,4 1,5 \n\n"),
            ("uq-miss", "0,0 0,1 \n\n"),
        ] {
            let file = folder.path().join(format!("app-{name}.data"));
            assert_eq!(fs::read_to_string(file).unwrap(), wanted, "{name}");
        }
        let refused = write(&folder.path().join("no/such"), &traces).unwrap_err();
        assert!(
            refused.to_string().contains("no/such-rq-max.data"),
            "{refused}"
        );
    }
}
