//! What two machines say to each other: lines of JSON over TCP.
//!
//! ```text
//! the side that connects           the side that listens
//!   Hello (version, nonce)     -->
//!                             <--    Challenge (nonce)
//!   Proof                     -->
//!                             <--    Proof
//!                             <--    Wait, while it is busy with another one
//!                             <--    Refused, or Welcome (who decides)
//!   Ready                     -->
//!   then, from the side that decides, each job:
//!     Job  -->  Starting (port, where it listens)
//!     Meet (port, where the side that decides listens), Report ..., Ended
//!   and at last Bye
//! ```
//!
//! Both prove that they know the secret, as `launch/src/proof.rs` says: over the protocol, a zero byte, the version, a zero byte,
//! the hello's nonce and the challenge's.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_launch::Deadline;
use tagwire_launch::proof::{Nonce, Proof};

use super::greeting::Hello;
use crate::environment::Other;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::plan::Plan;
use crate::suite::TestName;

/// The name of this protocol and its version.
pub(super) const PROTOCOL: &str = "tagwire.machines/2";

/// The longest line of somebody who has not proved to know the secret yet.
pub(super) const FIRST_LINE: u64 = 4096;
/// The longest line: a row with all samples of a partitioned test.
const LONGEST_LINE: u64 = 64 << 20;

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum PeerMessage {
    /// The side that connects is this.
    Hello(Hello),
    /// The side that listens asks for a proof.
    Challenge {
        /// What it is to be made of.
        nonce: [u8; Nonce::LEN],
    },
    /// The side that says this knows the secret.
    Proof {
        /// What shows it.
        proof: [u8; Proof::LEN],
    },
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

impl PeerMessage {
    /// Returns the line that it is.
    pub(super) fn line(&self) -> std::io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self)?;
        line.push(b'\n');
        Ok(line)
    }
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
    pub(super) fn say(&self, word: &PeerMessage) -> std::io::Result<()> {
        let line = word.line()?;
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.write_all(&line)
    }
}

/// The end that hears words.
#[derive(Debug)]
pub(super) struct Hearer {
    reader: BufReader<TcpStream>,
    longest: u64,
    /// How long a whole word may take.
    patience: Option<Duration>,
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
    /// Returns an end for a pending peer.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            reader: BufReader::new(stream),
            longest: FIRST_LINE,
            patience: None,
        }
    }

    /// The other side has proved that it knows the secret.
    pub(super) const fn trust(&mut self) {
        self.longest = LONGEST_LINE;
    }

    /// How long a whole word may take; `None`: for ever.
    pub(super) const fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience;
    }

    /// Returns the next word.
    pub(super) fn hear(&mut self) -> Result<PeerMessage, Silence> {
        let until = Deadline::within(self.patience);
        let mut line = Vec::new();
        loop {
            self.limit(until)?;
            let room = self.longest - line.len() as u64;
            let mut reader = (&mut self.reader).take(room);
            let bytes = match reader.fill_buf() {
                Ok([]) if room == 0 => return Err(Silence::Foreign),
                Ok([]) => return Err(Silence::Gone),
                Ok(bytes) => bytes,
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Err(Silence::Late),
                    ErrorKind::Interrupted => continue,
                    _ => return Err(Silence::Gone),
                },
            };
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(bytes.len(), |end| end + 1);
            line.extend_from_slice(&bytes[..count]);
            reader.consume(count);
            if end.is_some() {
                return serde_json::from_slice(&line).map_err(|_| Silence::Foreign);
            }
        }
    }

    /// Lets the next read end by then.
    fn limit(&self, until: Deadline) -> Result<(), Silence> {
        let left = until.left();
        if left.is_some_and(|left| left.is_zero()) {
            return Err(Silence::Late);
        }
        // Of a socket that is closed already the read says so.
        let _ = self.reader.get_ref().set_read_timeout(left);
        Ok(())
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
            PeerMessage::Meet { port: 7 },
            PeerMessage::GiveUp,
            PeerMessage::Report(Message::Done),
            PeerMessage::Ended { failure: None },
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
        for begun in [&b""[..], b"{"] {
            let (mut one, other) = pair();
            one.write_all(begun).unwrap();
            let mut hearer = Hearer::new(other);
            hearer.set_patience(Some(Duration::from_millis(20)));
            assert_eq!(hearer.hear(), Err(Silence::Late), "half a word is late too");
        }
    }
}
