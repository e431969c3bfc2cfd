//! Orders of arrival that were seen: in a trace, or by another tool that wrote them as numbers.

use std::fs;
use std::path::Path;

use tagwire_matching::trace::Event;

use super::{Drain, LONGEST};
use crate::error::{Error, Result};
use crate::stats::{Part, part_of};
use crate::trace::{Trace, shown};
use crate::walk::{Change, Left, Walk, cannot_be, sound};

/// What a file has of orders.
#[derive(Debug)]
pub(crate) struct Seen {
    path: String,
    orders: Orders,
}

#[derive(Debug)]
enum Orders {
    /// When the message of each receive came, in the order of posting.
    Trace(Vec<u64>),
    /// The receives by the order of posting, in the order in which their messages came; and the number of the line.
    Lines(Vec<(usize, Vec<u32>)>),
}

impl Seen {
    /// Reads a trace of either form, or lines of numbers. With `partial`, what comes before something that is wrong in a trace is taken.
    ///
    /// # Errors
    /// [`Error::Read`] for a file that cannot be read, [`Error::Trace`] for what is neither.
    pub(crate) fn read(path: &Path, partial: bool) -> Result<Self> {
        let bytes = fs::read(path).map_err(|error| Error::Read(shown(path), error))?;
        let wrong = |why| Error::Trace {
            path: shown(path),
            why,
        };
        let is_trace = bytes.strip_prefix(b"# ").unwrap_or(&bytes);
        let orders = match is_trace.starts_with(b"tagwire match trace ") {
            true => {
                let trace = sound(Trace::of_bytes(&bytes, path, partial)?, path, partial)?;
                Orders::Trace(of_trace(&trace).map_err(wrong)?)
            }
            false => Orders::Lines(of_lines(&String::from_utf8_lossy(&bytes)).map_err(wrong)?),
        };
        Ok(Self {
            path: shown(path),
            orders,
        })
    }

    /// Returns how many receives its orders are of, where they are of no other number: those of lines.
    pub(crate) fn entries(&self) -> Option<u32> {
        match &self.orders {
            Orders::Trace(_) => None,
            Orders::Lines(lines) => lines.first().map(|(_, order)| order.len() as u32),
        }
    }

    /// Whether it has an order of so many receives.
    pub(crate) fn has(&self, entries: u32) -> bool {
        match &self.orders {
            Orders::Trace(came) => came.len() >= entries as usize,
            Orders::Lines(lines) => lines.iter().all(|(_, one)| one.len() == entries as usize),
        }
    }

    /// Returns so many drains of so many receives: of a trace each of as many receives as were posted in a row, of lines each of
    /// the next line, and those from the first again behind the last.
    ///
    /// # Errors
    /// [`Error::Trace`] where it has none of that many.
    pub(crate) fn drains(&self, entries: u32, rounds: u32) -> Result<Vec<Drain>> {
        let wrong = |why| Error::Trace {
            path: self.path.clone(),
            why,
        };
        let orders: Vec<Vec<u32>> = match &self.orders {
            Orders::Trace(came) => {
                let whole = came.chunks_exact(entries as usize);
                whole.map(sorted_by_arrival).collect()
            }
            Orders::Lines(lines) => {
                let of_length = |(line, order): &(usize, Vec<u32>)| match order.len() {
                    length if length == entries as usize => Ok(order.clone()),
                    length => Err(wrong(format!(
                        "line {line} has {length} numbers, and {entries} receives are posted"
                    ))),
                };
                lines.iter().map(of_length).collect::<Result<_>>()?
            }
        };
        if let (Orders::Trace(came), true) = (&self.orders, orders.is_empty()) {
            let has = came.len();
            return Err(wrong(format!(
                "it has {has} receives of the program that got a message, and {entries} receives are posted"
            )));
        }
        let taken = orders.iter().cycle().take(rounds as usize);
        Ok(taken.map(|order| Drain::of(order.clone())).collect())
    }
}

/// The places of a block in the order of their times.
fn sorted_by_arrival(came: &[u64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..came.len() as u32).collect();
    order.sort_by_key(|place| came[*place as usize]);
    order
}

/// When the message of each receive of the program came, counted by messages, in the order of posting. Receives that were taken
/// back are left out.
fn of_trace(trace: &Trace) -> Result<Vec<u64>, String> {
    let mut walk = Walk::new(trace.header.capacity);
    let mut came: Vec<Option<u64>> = Vec::new();
    // What the entries of the queues are, by their numbers: receives by the order of posting, messages by that of arrival.
    let (mut receives, mut messages) = (Vec::new(), Vec::new());
    let mut arrived = 0;
    for (index, call) in trace.calls.iter().enumerate() {
        let search = walk.search(&call.event);
        let change = walk.apply(call, search);
        let change = change.map_err(|why| cannot_be(index, &why))?;
        let is_of_program = part_of(&call.event) == Some(Part::Program);
        match change {
            Change::ReceiveQueued => {
                receives.push(is_of_program.then_some(came.len()));
                came.extend(is_of_program.then_some(None));
            }
            Change::MessageQueued => messages.push(arrived),
            Change::ReceiveLeft(entry, Left::Matched) => {
                if let Some(place) = receives[entry.number as usize] {
                    came[place] = Some(arrived);
                }
            }
            Change::MessageLeft(entry, Left::Matched) if is_of_program => {
                came.push(Some(messages[entry.number as usize]));
            }
            _ => {}
        }
        arrived += u64::from(matches!(
            call.event,
            Event::Arrive(..) | Event::ArriveExpected(_)
        ));
    }
    Ok(came.into_iter().flatten().collect())
}

/// Reads lines of different whole numbers; only which of them is less counts. Empty lines and those that begin with # are none.
fn of_lines(text: &str) -> Result<Vec<(usize, Vec<u32>)>, String> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let words = line.split([',', ' ', '\t', '\r']);
        let words = words.filter(|word| !word.is_empty());
        if line.starts_with('#') || words.clone().next().is_none() {
            continue;
        }
        let read = |word: &str| {
            let read = word.parse::<u64>();
            read.map_err(|_| format!("line {number}: '{}' is no number", shortened(word)))
        };
        let numbers = words.map(read).collect::<Result<Vec<u64>, String>>()?;
        if numbers.len() > LONGEST as usize {
            return Err(format!("line {number} has more than {LONGEST} numbers"));
        }
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("line {number} has {} twice", twice[0]));
        }
        let place = |number| sorted.partition_point(|one| one < number) as u32;
        lines.push((number, numbers.iter().map(place).collect()));
    }
    match lines.is_empty() {
        true => Err("it is no trace and has no line of numbers".to_owned()),
        false => Ok(lines),
    }
}

/// A word of a file, or its beginning where it is long.
fn shortened(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_matching::Pattern;
    use tagwire_matching::trace::Size;

    use super::*;
    use crate::trace::tests::{message, trace};

    fn read(name: &str, write: impl FnOnce(&Path)) -> Result<Seen> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        write(&path);
        Seen::read(&path, false)
    }

    fn come(drains: &[Drain]) -> Vec<&[u32]> {
        drains.iter().map(|drain| &drain.come[..]).collect()
    }

    /// Receives of two drains of three: one takes an unexpected message, one is taken back, and one is the library's.
    #[test]
    fn a_trace_has_the_order_of_the_messages_of_receives_posted_in_a_row() {
        let post = |tag| Event::Post(Pattern::exact(message(0, tag)));
        let arrive = |tag| Event::Arrive(message(0, tag), Size::of(8));
        let one = trace(&[
            (arrive(2), false),
            (post(-5), false),
            (post(1), false),
            (post(9), false),
            (post(2), true),
            (post(3), false),
            (Event::Cancel(2), true),
            (arrive(3), true),
            (arrive(-5), true),
            (arrive(1), true),
            (post(4), false),
            (post(5), false),
            (post(6), false),
            (arrive(6), true),
            (arrive(5), true),
            (arrive(4), true),
            (post(7), false),
            (arrive(7), true),
        ]);
        for name in ["a.twm", "a.csv"] {
            let seen = read(name, |path| one.write(path).unwrap()).unwrap();
            // The receives of tags 1, 2 and 3, then those of 4, 5 and 6; the last is one alone.
            let drains = seen.drains(3, 3).unwrap();
            assert_eq!(come(&drains), [[1, 2, 0], [2, 1, 0], [1, 2, 0]]);
            assert_eq!(drains[0].posted, [0, 1, 2]);
            assert_eq!(
                (seen.entries(), seen.has(7), seen.has(8)),
                (None, true, false)
            );
            let told = seen.drains(8, 1).unwrap_err().to_string();
            assert!(
                told.contains("it has 7 receives of the program that got a message, and 8"),
                "{told}"
            );
        }
    }

    #[test]
    fn lines_of_numbers_are_orders_by_which_number_is_less() {
        let text = "# seen by a tool\n30 10, 20\n\n7,8,1000000000000\n";
        let seen = read("a.txt", |path| fs::write(path, text).unwrap()).unwrap();
        assert_eq!(seen.entries(), Some(3));
        assert_eq!(come(&seen.drains(3, 2).unwrap()), [[2, 0, 1], [0, 1, 2]]);
        let told = seen.drains(4, 2).unwrap_err().to_string();
        assert!(
            told.ends_with("line 2 has 3 numbers, and 4 receives are posted"),
            "{told}"
        );
        for (text, told) in [
            ("", "it is no trace and has no line of numbers"),
            ("1 2\n3 x\n", "line 2: 'x' is no number"),
            ("1 2\n3 -1\n", "line 2: '-1' is no number"),
            ("4 5 4\n", "line 1 has 4 twice"),
        ] {
            let refused = read("a.txt", |path| fs::write(path, text).unwrap()).unwrap_err();
            assert_eq!(refused.exit_status(), 2);
            assert!(refused.to_string().contains(told), "{refused}");
        }
    }
}
