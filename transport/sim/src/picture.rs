//! What has travelled, as a picture: a line for each rank, an arrow for each packet, time from the top down.
//!
//! ```text
//!     rank 0       rank 1
//!       |            |
//!       |\           :        rank 1 waits, and for whom: the arrow that ends it
//!       | \--------->|
//!       |            |
//!       :   x----    |        a packet that has not come
//! ```
//!
//! A rank waits from the last thing that it has sent or that has come until the next thing comes; at the end, where others go on without it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_base::Rank;

use crate::flight::Cargo;
use crate::time::{Moment, Span};

/// Most packets that are kept: the last ones.
const MOST: usize = 400;

/// Takes note of what travels in the network that was made last with it. A clone takes the same notes.
#[derive(Debug, Clone, Default)]
pub struct Trace(Arc<Mutex<Notes>>);

impl PartialEq for Trace {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Trace {}

#[derive(Debug, Default)]
struct Notes {
    packets: Vec<Packet>,
    /// The number of the first one that is kept.
    first: u64,
    deaths: Vec<(Rank, Moment)>,
}

/// A packet.
#[derive(Debug, Clone)]
struct Packet {
    from: Rank,
    to: Rank,
    what: &'static str,
    bytes: usize,
    sent: Moment,
    landed: Option<Moment>,
}

/// A packet that is noted.
#[derive(Debug)]
pub(crate) struct Noted {
    trace: Trace,
    number: u64,
}

impl Noted {
    /// It is there, where it is noted.
    pub(crate) fn land(noted: Option<Self>, at: Moment) {
        if let Some(Self { trace, number }) = noted {
            trace.landed(number, at);
        }
    }
}

impl Trace {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another network begins.
    pub(crate) fn begin(&self) {
        *self.notes() = Notes::default();
    }

    pub(crate) fn sent(
        &self,
        (from, to): (Rank, Rank),
        (what, bytes): (&'static str, usize),
        sent: Moment,
    ) -> Noted {
        let mut notes = self.notes();
        if notes.packets.len() >= 2 * MOST {
            notes.packets.drain(..MOST);
            notes.first += MOST as u64;
        }
        notes.packets.push(Packet {
            from,
            to,
            what,
            bytes,
            sent,
            landed: None,
        });
        let number = notes.first + notes.packets.len() as u64 - 1;
        let trace = self.clone();
        Noted { trace, number }
    }

    fn landed(&self, number: u64, at: Moment) {
        let mut notes = self.notes();
        let place = number.checked_sub(notes.first);
        let place = place.and_then(|place| usize::try_from(place).ok());
        if let Some(packet) = place.and_then(|place| notes.packets.get_mut(place)) {
            packet.landed = Some(at);
        }
    }

    pub(crate) fn died(&self, rank: Rank, at: Moment) {
        self.notes().deaths.push((rank, at));
    }

    /// Returns the picture as SVG; `None` where nothing has travelled. Of many packets it has the last ones.
    #[must_use]
    pub fn svg(&self) -> Option<String> {
        let notes = self.notes();
        let skipped = notes.packets.len().saturating_sub(MOST);
        let packets = &notes.packets[skipped..];
        (!packets.is_empty()).then(|| Drawing::of(packets, &notes.deaths).svg())
    }
}

/// Returns what a packet is called, and how many bytes it has.
pub(crate) fn told(cargo: &Cargo) -> (&'static str, usize) {
    let what = match cargo {
        Cargo::Message(_) => "message",
        Cargo::Goodbye => "goodbye",
        Cargo::Put { .. } => "put",
        Cargo::Get { .. } => "get",
        Cargo::Flush(_) => "flush",
        Cargo::Data { .. } => "data",
        Cargo::Done { .. } => "done",
        Cargo::Load(load) => load.name,
    };
    (what, cargo.len())
}

/// A time in which a rank waits, and for whom, where that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    column: usize,
    from: usize,
    /// The moment's row; `None` where nothing came any more.
    until: Option<usize>,
}

/// The packets over moments in their order, each as far from the next.
struct Drawing<'a> {
    packets: &'a [Packet],
    deaths: &'a [(Rank, Moment)],
    ranks: Vec<Rank>,
    moments: Vec<Moment>,
}

/// Pixels between ranks, between moments, and around.
const ACROSS: usize = 120;
const DOWN: usize = 18;
const EDGE: usize = 60;

impl<'a> Drawing<'a> {
    fn of(packets: &'a [Packet], deaths: &'a [(Rank, Moment)]) -> Self {
        let mut ranks: Vec<Rank> = packets.iter().flat_map(|it| [it.from, it.to]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        let mut moments: Vec<Moment> = packets
            .iter()
            .flat_map(|it| [Some(it.sent), it.landed])
            .flatten()
            .collect();
        moments.sort_unstable();
        moments.dedup();
        Self {
            packets,
            deaths,
            ranks,
            moments,
        }
    }

    fn column(&self, rank: Rank) -> usize {
        self.ranks.binary_search(&rank).unwrap_or(0)
    }

    /// The row of a moment; between those of others that of the next.
    fn row(&self, moment: Moment) -> usize {
        self.moments
            .binary_search(&moment)
            .unwrap_or_else(|row| row)
    }

    /// When each rank waits.
    fn waits(&self) -> Vec<Wait> {
        let mut all = Vec::new();
        for (column, rank) in self.ranks.iter().enumerate() {
            // What it does, and what comes: whether it comes, by row.
            let sent = self.packets.iter().filter(|it| it.from == *rank);
            let come = self.packets.iter().filter(|it| it.to == *rank);
            let mut acts: Vec<(usize, bool)> = sent
                .map(|it| (self.row(it.sent), false))
                .chain(come.filter_map(|it| Some((self.row(it.landed?), true))))
                .collect();
            acts.sort_unstable();
            for two in acts.windows(2) {
                if two[1].1 && two[0].0 < two[1].0 {
                    all.push(Wait {
                        column,
                        from: two[0].0,
                        until: Some(two[1].0),
                    });
                }
            }
            let is_dead = self.deaths.iter().any(|(dead, _)| dead == rank);
            if let (Some((last, _)), false) = (acts.last(), is_dead) {
                all.push(Wait {
                    column,
                    from: *last,
                    until: None,
                });
            }
        }
        all
    }

    fn svg(&self) -> String {
        let (x, y) = (
            |column: usize| EDGE + ACROSS * column,
            |row: usize| EDGE + DOWN * row,
        );
        let bottom = y(self.moments.len());
        let (width, height) = (x(self.ranks.len()), bottom + EDGE);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
             <defs><marker id=\"tip\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">\
             <path d=\"M0,1 L8,4 L0,7 z\"/></marker></defs>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        );
        for (column, rank) in self.ranks.iter().enumerate() {
            let at = x(column);
            let _ = writeln!(
                out,
                "<text x=\"{at}\" y=\"{}\" text-anchor=\"middle\">{rank:?}</text>\n\
                 <line x1=\"{at}\" y1=\"{EDGE}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"#888\"/>",
                EDGE - 20
            );
        }
        for wait in self.waits() {
            let (at, from) = (x(wait.column), y(wait.from));
            let (to, color) = match wait.until {
                Some(row) => (y(row), "#f0c060"),
                None => (bottom, "#d04040"),
            };
            let _ = writeln!(
                out,
                "<line x1=\"{at}\" y1=\"{from}\" x2=\"{at}\" y2=\"{to}\" stroke=\"{color}\" stroke-width=\"6\" stroke-opacity=\"0.6\"/>"
            );
        }
        for (row, moment) in self.moments.iter().enumerate() {
            let time: Span = moment.since_start();
            let _ = writeln!(
                out,
                "<text x=\"2\" y=\"{}\" fill=\"#888\">{time}</text>",
                y(row) + 4
            );
        }
        for packet in self.packets {
            let (from, to) = (x(self.column(packet.from)), x(self.column(packet.to)));
            let start = y(self.row(packet.sent));
            let about = format!(
                "{} of {} bytes, {:?} to {:?}, {}",
                packet.what,
                packet.bytes,
                packet.from,
                packet.to,
                packet.sent.since_start()
            );
            let (end, to, style) = match packet.landed {
                Some(at) => (
                    y(self.row(at)),
                    to,
                    "stroke=\"black\" marker-end=\"url(#tip)\"",
                ),
                // Half of the way.
                None => (
                    start + DOWN,
                    usize::midpoint(from, to),
                    "stroke=\"#d04040\" stroke-dasharray=\"4 3\"",
                ),
            };
            let _ = writeln!(
                out,
                "<line x1=\"{from}\" y1=\"{start}\" x2=\"{to}\" y2=\"{end}\" {style}><title>{about}</title></line>\n\
                 <text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#444\" font-size=\"8\">{}</text>",
                usize::midpoint(from, to),
                usize::midpoint(start, end) - 2,
                packet.what
            );
        }
        for (rank, at) in self.deaths {
            let (at, from) = (y(self.row(*at)), x(self.column(*rank)));
            let _ = writeln!(
                out,
                "<text x=\"{from}\" y=\"{at}\" text-anchor=\"middle\" fill=\"#d04040\" font-size=\"16\">&#215;<title>{rank:?} dies</title></text>"
            );
        }
        out + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(from: u32, to: u32, sent: u64, landed: Option<u64>) -> Packet {
        let at = |nanos| Moment::default() + Span::nanos(nanos);
        Packet {
            from: Rank::new(from),
            to: Rank::new(to),
            what: "message",
            bytes: 8,
            sent: at(sent),
            landed: landed.map(at),
        }
    }

    #[test]
    fn a_rank_waits_until_something_comes() {
        let packets = [
            packet(0, 1, 0, Some(100)),
            packet(1, 0, 150, Some(250)),
            packet(0, 1, 300, None),
        ];
        let drawing = Drawing::of(&packets, &[]);
        // Rows: 0, 100, 150, 250, 300.
        let wait = |column, from, until| Wait {
            column,
            from,
            until,
        };
        let waits = [
            // Rank 0 for the answer, and at the end; rank 1 for what does not come.
            wait(0, 0, Some(3)),
            wait(0, 4, None),
            wait(1, 2, None),
        ];
        assert_eq!(drawing.waits(), waits);
        let svg = drawing.svg();
        assert_eq!(svg.matches("marker-end").count(), 2);
        assert_eq!(svg.matches("stroke-dasharray").count(), 1);
        assert!(
            svg.contains("message of 8 bytes, rank 0 to rank 1, "),
            "{svg}"
        );
    }

    #[test]
    fn the_dead_wait_for_nobody() {
        let packets = [packet(0, 1, 0, Some(100)), packet(1, 0, 150, None)];
        let deaths = [(Rank::new(1), Moment::default() + Span::nanos(160))];
        let drawing = Drawing::of(&packets, &deaths);
        assert!(drawing.waits().iter().all(|wait| wait.column == 0));
        assert!(drawing.svg().contains("rank 1 dies"));
    }

    #[test]
    fn the_last_packets_are_kept() {
        let trace = Trace::default();
        assert_eq!(trace.svg(), None);
        let at = |nanos| Moment::default() + Span::nanos(nanos);
        let pair = (Rank::new(0), Rank::new(1));
        let goodbye = told(&Cargo::Goodbye);
        let first = trace.sent(pair, goodbye, at(0));
        for number in 1..=2 * MOST as u64 {
            let noted = trace.sent(pair, goodbye, at(number));
            Noted::land(Some(noted), at(number + 1));
        }
        // It is not kept any more.
        Noted::land(Some(first), at(1));
        let svg = trace.svg().unwrap_or_default();
        assert_eq!(svg.matches("<title>goodbye").count(), MOST);
        trace.begin();
        assert_eq!(trace.svg(), None);
    }
}
