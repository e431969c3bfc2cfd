//! Where in a queue the entry lies that matches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tagwire_base::config::parse;

use crate::stats::Seeded;

/// Where in a queue the entry lies that matches, among others that do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Position {
    /// Before all others.
    Head,
    /// Behind one half of the others.
    Middle,
    /// Behind all others.
    Tail,
    /// At a place that is drawn anew for each match.
    Shuffled,
    /// At this place, counted from 1.
    At(u32),
}

impl Position {
    const NAMED: [(&'static str, Self); 4] = [
        ("head", Self::Head),
        ("middle", Self::Middle),
        ("tail", Self::Tail),
        ("shuffled", Self::Shuffled),
    ];
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::NAMED.iter().find(|(name, _)| *name == text);
        if let Some((_, position)) = named {
            return Ok(*position);
        }
        let place = parse::bytes(text).ok();
        let place = place.and_then(|place| u32::try_from(place).ok());
        let place = place.filter(|place| *place > 0);
        place.map(Self::At).ok_or_else(|| {
            let names = Self::NAMED.map(|(name, _)| name).join(", ");
            format!("'{text}' is none of {names}, and no place, counted from 1")
        })
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(place) => place.fmt(f),
            _ => {
                let named = Self::NAMED.iter().find(|(_, one)| one == self);
                f.pad(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl TryFrom<String> for Position {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.to_string()
    }
}

/// Which entry of a queue matches next.
///
/// An entry that has matched comes back at the end of the queue. Some entries lie ahead of all others and never match; the others
/// take turns, so that the one that matches lies at its [`Position`] without anything being moved:
///
/// ```text
///   head       | r0 r1 r2 r3 |            r0 matches and comes back behind r3; then r1 does
///   middle     f0 f1 | r0 r1 |            f0, f1 never match
///   tail       f0 f1 f2 | r0 |
///   2          f0 | r0 r1 r2 |
///   shuffled   | r0 r1 r2 r3 |            any of them
/// ```
///
/// Ranks that make the same turns agree on the entry without telling each other.
#[derive(Debug, Clone)]
pub(crate) struct Turns {
    /// Entries that never match; their numbers come first.
    fixed: u32,
    /// Entries that take turns.
    ring: u32,
    next: u32,
    lots: Option<Seeded>,
    /// Those that match together, while they are not back.
    taken: Vec<u32>,
    together: usize,
}

impl Turns {
    /// Returns the turns of a queue with `others` entries beside the `together` that match before any of them comes back.
    pub(crate) fn new(position: Position, others: u32, together: u32) -> Self {
        let fixed = match position {
            Position::Head | Position::Shuffled => 0,
            Position::Middle => others / 2,
            Position::Tail => others,
            Position::At(place) => others.min(place.saturating_sub(1)),
        };
        Self {
            fixed,
            ring: others - fixed + together,
            next: 0,
            lots: (position == Position::Shuffled).then(|| Seeded::new(1)),
            taken: Vec::new(),
            together: together as usize,
        }
    }

    /// Returns how many entries the queue has.
    pub(crate) const fn entries(&self) -> u32 {
        self.fixed + self.ring
    }

    /// Returns the number of the entry that matches next.
    #[inline]
    pub(crate) fn take(&mut self) -> u32 {
        let Some(lots) = &mut self.lots else {
            let turn = self.next;
            self.next = (turn + 1) % self.ring;
            return self.fixed + turn;
        };
        let mut turn = (lots.next() % u64::from(self.ring)) as u32;
        if self.taken.len() == self.together {
            self.taken.clear();
        }
        while self.taken.contains(&turn) {
            turn = (turn + 1) % self.ring;
        }
        self.taken.push(turn);
        turn
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    /// Where the entries that match lie, in a queue that they leave in groups and to whose end they come back.
    fn places(position: Position, others: u32, together: u32) -> Vec<usize> {
        let mut turns = Turns::new(position, others, together);
        let mut queue: Vec<u32> = (0..turns.entries()).collect();
        assert_eq!(queue.len() as u32, others + together);
        let mut places = Vec::new();
        for _ in 0..2000 {
            let taken: Vec<u32> = (0..together).map(|_| turns.take()).collect();
            for number in &taken {
                let place = queue.iter().position(|one| one == number).unwrap();
                queue.remove(place);
                places.push(place);
            }
            queue.extend(taken);
        }
        places
    }

    #[test]
    fn what_matches_lies_where_it_is_wanted() {
        for together in [1, 16] {
            for (position, place) in [
                (Position::Head, 0),
                (Position::Middle, 20),
                (Position::Tail, 40),
                (Position::At(1), 0),
                (Position::At(17), 16),
                (Position::At(41), 40),
            ] {
                let places = places(position, 40, together);
                assert!(places.iter().all(|one| *one == place), "{position}");
            }
        }
        let places = places(Position::Shuffled, 40, 1);
        let mean = places.iter().sum::<usize>() as f64 / places.len() as f64;
        assert!((mean - 20.0).abs() < 1.0, "{mean}");
        assert!(places.contains(&0) && places.contains(&40));
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let named = Position::NAMED.map(|(_, position)| position);
        for position in named.into_iter().chain([Position::At(17)]) {
            assert_eq!(position.to_string().parse(), Ok(position));
            let json = serde_json::to_string(&position).unwrap();
            assert_eq!(json, format!("\"{position}\""));
            let read: Position = serde_json::from_str(&json).unwrap();
            assert_eq!(read, position);
        }
        assert_eq!("1K".parse(), Ok(Position::At(1024)));
        for text in ["front", "0", "-1", "5G"] {
            let refused = text.parse::<Position>().unwrap_err();
            let told = "is none of head, middle, tail, shuffled, and no place, counted from 1";
            assert_eq!(refused, format!("'{text}' {told}"));
        }
    }
}
