//! What ranks say: a line for each event, in one write, that the driver reads with the time.
//!
//! ```text
//!   @ RANK WORD REST
//! ```

use std::fmt::Display;
use std::io::Write;
use std::time::Instant;

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// It runs, as this process.
    Process(i32),
    /// It has joined.
    Ready,
    /// It could not join, for this reason.
    Unopened(String),
    /// It is not stuck.
    Alive,
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
        Word::Alive => "alive".to_owned(),
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
        "alive" => Word::Alive,
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
        for other in ["", "lost 1", "@ x lost 1", "@ 1 lost", "@ 1 sings 2"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
