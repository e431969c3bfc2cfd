//! What two machines say to each other: lines of JSON over TCP.
//!
//! ```text
//! the side that connects           the side that listens
//!   Hello (secret, version)   -->
//!                             <--    Wait, while it is busy with another one
//!                             <--    Refused, or Welcome (who decides)
//!   Ready                     -->
//!   then, from the side that decides, each job:
//!     Job  -->  Starting (port, where it listens)
//!     Meet (port, where the side that decides listens), Report ..., Ended
//!   and at last Bye
//! ```

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::args::TestName;
use crate::environment::Other;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::plan::Plan;

/// The name of this language and its version.
pub(super) const LANGUAGE: &str = "tagwire.machines/1";

/// The longest first line: nobody has shown a secret yet.
const FIRST_LINE: u64 = 4096;
/// The longest line: a row with all samples of a partitioned test.
const LONGEST_LINE: u64 = 64 << 20;

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Word {
    /// The side that connects is this.
    Hello(Hello),
    /// Another one is served first.
    Wait {
        /// Its address.
        busy_with: String,
    },
    /// The side that listens has nothing to do with the other.
    Refused {
        /// Why not.
        why: String,
    },
    /// The side that listens takes part.
    Welcome(Welcome),
    /// The side that connects takes part.
    Ready(Ready),
    /// The other side is to run its part of this.
    Job(Box<Job>),
    /// The other side starts its part.
    Starting(Starting),
    /// The side that decides listens for its job at this port.
    Meet {
        /// The port.
        port: u16,
    },
    /// The job is given up.
    GiveUp,
    /// The side that decides is done.
    Bye,
    /// Somebody of the other side's ranks says this.
    Report(Message),
    /// The other side's part is over.
    Ended {
        /// What went wrong there.
        failure: Option<Failure>,
    },
}

/// The side that connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    /// [`LANGUAGE`].
    pub language: String,
    /// What both know.
    pub secret: String,
    /// Tagwire's version: plans of others may mean something else.
    pub version: String,
}

/// The side that listens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Welcome {
    /// The test that it runs; `None` where the side that connects decides on everything.
    pub decides_on: Option<TestName>,
    /// The machine.
    pub machine: Box<Other>,
    /// What distinguishes it from other machines.
    pub identity: Option<String>,
}

/// The side that connects, when it takes part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Ready {
    /// The machine.
    pub machine: Box<Other>,
    /// What distinguishes it from other machines.
    pub identity: Option<String>,
}

/// A job of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub plan: Plan,
    /// How many of its ranks are there.
    pub ranks: u32,
    /// Settings that both sides have to agree in.
    pub settings: Vec<(String, String)>,
    pub timeout: Option<Duration>,
}

/// How the other side starts its part of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Starting {
    /// Where it listens, where that is its part.
    pub port: Option<u16>,
    /// How its ranks are bound.
    pub binding: String,
}

/// What went wrong on the other side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    /// In words.
    pub text: String,
    /// Whether a signal ended the other side.
    pub interrupted: bool,
    /// Its exit status.
    pub status: i32,
}

impl Failure {
    pub(super) fn of(error: &Error) -> Self {
        Self {
            text: error.to_string(),
            interrupted: matches!(error, Error::Interrupted { .. }),
            status: i32::from(error.exit_status().code()),
        }
    }
}

/// The end that says words; several threads may.
#[derive(Debug)]
pub(super) struct Speaker(Mutex<TcpStream>);

impl Speaker {
    pub(super) const fn new(stream: TcpStream) -> Self {
        Self(Mutex::new(stream))
    }

    /// Says a word. A side that is gone is no error here: who listens to it hears so.
    pub(super) fn say(&self, word: &Word) -> std::io::Result<()> {
        let mut line = serde_json::to_string(word)?;
        line.push('\n');
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(line.as_bytes())
    }
}

/// The end that hears words.
#[derive(Debug)]
pub(super) struct Hearer {
    reader: BufReader<TcpStream>,
    longest: u64,
}

/// Why no word was heard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Silence {
    /// The other side closed, or is lost.
    Gone,
    /// It did not say anything in time.
    Late,
    /// It said something else.
    Foreign,
}

impl Hearer {
    /// Returns an end for a stranger.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            reader: BufReader::new(stream),
            longest: FIRST_LINE,
        }
    }

    /// The other side has shown the secret.
    pub(super) const fn trust(&mut self) {
        self.longest = LONGEST_LINE;
    }

    /// How long a word may take; `None`: for ever.
    pub(super) fn set_patience(&self, patience: Option<Duration>) {
        // Of a socket that is closed already the next read says so.
        let _ = self.reader.get_ref().set_read_timeout(patience);
    }

    /// Returns the next word.
    pub(super) fn hear(&mut self) -> Result<Word, Silence> {
        let mut line = Vec::new();
        let read = (&mut self.reader)
            .take(self.longest)
            .read_until(b'\n', &mut line);
        match read {
            Ok(0) => Err(Silence::Gone),
            Ok(_) if line.ends_with(b"\n") => {
                serde_json::from_slice(&line).map_err(|_| Silence::Foreign)
            }
            Ok(length) if length as u64 == self.longest => Err(Silence::Foreign),
            Ok(_) => Err(Silence::Gone),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut if line.is_empty() => {
                    Err(Silence::Late)
                }
                _ => Err(Silence::Gone),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (one, listener.accept().unwrap().0)
    }

    #[test]
    fn words_arrive_as_they_were_said() {
        let (one, other) = pair();
        let speaker = Speaker::new(one);
        let words = [
            Word::Meet { port: 7 },
            Word::GiveUp,
            Word::Report(Message::Done),
            Word::Ended { failure: None },
        ];
        for word in &words {
            speaker.say(word).unwrap();
        }
        drop(speaker);
        let mut hearer = Hearer::new(other);
        for word in words {
            assert_eq!(hearer.hear(), Ok(word));
        }
        assert_eq!(hearer.hear(), Err(Silence::Gone));
    }

    #[test]
    fn what_is_no_word_is_told_from_silence() {
        for (said, silence) in [
            (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], Silence::Foreign),
            (b"{\"give-up\":1}\n", Silence::Foreign),
            (b"\"give-up\"", Silence::Gone),
            (b"", Silence::Gone),
            (&[b'x'; FIRST_LINE as usize], Silence::Foreign),
        ] {
            let (mut one, other) = pair();
            one.write_all(said).unwrap();
            drop(one);
            assert_eq!(Hearer::new(other).hear(), Err(silence), "{said:?}");
        }
        let (_one, other) = pair();
        let mut hearer = Hearer::new(other);
        hearer.set_patience(Some(Duration::from_millis(20)));
        assert_eq!(hearer.hear(), Err(Silence::Late));
    }
}
