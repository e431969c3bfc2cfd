//! What ranks say: a line for each event, in one write, that the driver reads with the time.
//!
//! ```text
//!   @ RANK WORD REST
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display};
use std::io::Write;
use std::time::{Duration, Instant};

/// How far a rank is, and what it waits for. Its text is `ENDED SLEPT` with a word for each thing behind it: `PEER`, `<PEER=COUNT`,
/// `>PEER=COUNT`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many of its operations have ended, or begun without a wait.
    pub ended: u64,
    /// How long it has slept since it was told to be slow.
    pub slept: Duration,
    /// The ranks without which it does not go on.
    pub waits_for: BTreeSet<u32>,
    /// What it has under way with ranks that look after it all the time: how many operations of each have ended.
    pub streams: BTreeMap<Stream, u64>,
}

/// Messages between a rank and a peer, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Those from a peer.
    From(u32),
    /// Those to a peer.
    To(u32),
}

impl Stream {
    /// Returns what it is on the peer's side, where this side is of a rank.
    pub const fn seen_by_peer(self, rank: u32) -> Self {
        match self {
            Self::From(_) => Self::To(rank),
            Self::To(_) => Self::From(rank),
        }
    }

    /// Returns the peer.
    pub const fn peer(self) -> u32 {
        match self {
            Self::From(peer) | Self::To(peer) => peer,
        }
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::From(peer) => write!(f, "from rank {peer}"),
            Self::To(peer) => write!(f, "to rank {peer}"),
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.ended, self.slept.as_millis())?;
        for peer in &self.waits_for {
            write!(f, " {peer}")?;
        }
        for (stream, ended) in &self.streams {
            match stream {
                Stream::From(peer) => write!(f, " <{peer}={ended}")?,
                Stream::To(peer) => write!(f, " >{peer}={ended}")?,
            }
        }
        Ok(())
    }
}

impl Progress {
    /// Reads its text.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let mut progress = Self {
            ended: words.next()?.parse().ok()?,
            slept: Duration::from_millis(words.next()?.parse().ok()?),
            ..Self::default()
        };
        for word in words {
            let from = word.strip_prefix('<');
            let Some(rest) = from.or_else(|| word.strip_prefix('>')) else {
                progress.waits_for.insert(word.parse().ok()?);
                continue;
            };
            let (peer, ended) = rest.split_once('=')?;
            let peer = peer.parse().ok()?;
            let stream = match from {
                Some(_) => Stream::From(peer),
                None => Stream::To(peer),
            };
            progress.streams.insert(stream, ended.parse().ok()?);
        }
        Some(progress)
    }
}

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It runs, as this process.
    Process(i32),
    /// It has joined.
    Ready,
    /// It could not join, for this reason.
    Unopened(String),
    /// It runs, and is that far.
    Alive(Progress),
    /// All its operations with this rank have failed.
    Lost(u32),
    /// A call has ended for a shortage, and is made again.
    Short(String),
    /// What all members have to do with, as a window, has ended with one of them.
    Broken,
    /// Something arrived that must not have, or did not.
    Wrong(String),
    /// It begins to close, after so many messages or operations that were checked.
    Closing(u64),
    /// Its launcher says how it ended: with this status, or 128 and the signal.
    Ended(i32),
    /// It has left the job, and this many descriptors are more than before.
    Done(i64),
}

/// A line of a rank, and when it was read.
#[derive(Debug, Clone)]
pub struct Event {
    /// Whose.
    pub rank: u32,
    /// What it says.
    pub word: Word,
    /// When the driver read it.
    pub at: Instant,
}

/// Says a word in a rank's process. What cannot be written is lost: who reads it has gone.
pub fn say(rank: u32, word: &Word) {
    let text = match word {
        Word::Process(id) => format!("process {id}"),
        Word::Ready => "ready".to_owned(),
        Word::Unopened(why) => format!("unopened {}", line(why)),
        Word::Alive(progress) => format!("alive {progress}"),
        Word::Lost(peer) => format!("lost {peer}"),
        Word::Short(why) => format!("short {}", line(why)),
        Word::Broken => "broken".to_owned(),
        Word::Wrong(why) => format!("wrong {}", line(why)),
        Word::Closing(count) => format!("closing {count}"),
        Word::Ended(status) => format!("ended {status}"),
        Word::Done(more) => format!("done {more}"),
    };
    let text = format!("@ {rank} {text}\n");
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

fn line(text: impl Display) -> String {
    text.to_string().replace('\n', " / ")
}

/// Reads a line; `None` where it is another one.
pub fn read(text: &str) -> Option<(u32, Word)> {
    let mut parts = text.strip_prefix("@ ")?.splitn(3, ' ');
    let rank = parts.next()?.parse().ok()?;
    let word = parts.next()?;
    let rest = parts.next().unwrap_or_default();
    let word = match word {
        "process" => Word::Process(rest.parse().ok()?),
        "ready" => Word::Ready,
        "unopened" => Word::Unopened(rest.to_owned()),
        "alive" => Word::Alive(Progress::read(rest)?),
        "lost" => Word::Lost(rest.parse().ok()?),
        "short" => Word::Short(rest.to_owned()),
        "broken" => Word::Broken,
        "wrong" => Word::Wrong(rest.to_owned()),
        "closing" => Word::Closing(rest.parse().ok()?),
        "ended" => Word::Ended(rest.parse().ok()?),
        "done" => Word::Done(rest.parse().ok()?),
        _ => return None,
    };
    Some((rank, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words_or_none() {
        assert_eq!(read("@ 2 lost 1"), Some((2, Word::Lost(1))));
        assert_eq!(
            read("@ 0 wrong two words"),
            Some((0, Word::Wrong("two words".to_owned())))
        );
        let progress = Progress {
            ended: 12,
            slept: Duration::from_millis(40),
            waits_for: BTreeSet::from([0, 2]),
            streams: BTreeMap::from([(Stream::From(3), 7), (Stream::To(3), 5)]),
        };
        let text = format!("@ 1 alive {progress}");
        assert_eq!(text, "@ 1 alive 12 40 0 2 <3=7 >3=5");
        assert_eq!(read(&text), Some((1, Word::Alive(progress))));
        for other in [
            "",
            "lost 1",
            "@ x lost 1",
            "@ 1 lost",
            "@ 1 sings 2",
            "@ 1 alive",
            "@ 1 alive 3",
            "@ 1 alive 3 0 <2",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
