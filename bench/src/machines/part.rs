//! The connection between two machines, and the part that this side has in a job of both.

use std::cell::Cell;
use std::net::{IpAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

use tagwire_base::JobSecret;
use tagwire_launch::{Hosts, Job, JobReport, JobSpec};

use super::messages::{Hearer, PeerMessage, Speaker};
use crate::error::{Error, Result};

/// What comes while a connection is there.
#[derive(Debug)]
pub(super) enum Event {
    /// The other side said something.
    PeerMessage(Box<PeerMessage>),
    /// It says nothing any more.
    Gone,
    /// The part of this side is over.
    Over(tagwire_launch::Result<JobReport>),
}

/// A connection to the other side, both of which know the secret.
#[derive(Debug)]
pub(super) struct Link {
    /// Where the other side is.
    pub other: String,
    /// Whether this side listens; its ranks are the first ones.
    pub listens: bool,
    /// What both know.
    pub secret: JobSecret,
    /// Where the side that listens is reached.
    address: IpAddr,
    stream: TcpStream,
    pub speaker: Speaker,
    sender: Sender<Event>,
    events: Receiver<Event>,
    /// Nothing comes from the other side any more.
    is_gone: Cell<bool>,
}

impl Link {
    /// Goes on with a connection whose first words have been said.
    pub(super) fn new(
        stream: TcpStream,
        mut hearer: Hearer,
        listens: bool,
        secret: JobSecret,
    ) -> std::io::Result<Self> {
        let other = stream.peer_addr()?;
        let address = match listens {
            true => stream.local_addr()?.ip(),
            false => other.ip(),
        };
        let speaker = Speaker::new(stream.try_clone()?);
        let (sender, events) = channel();
        let words = sender.clone();
        hearer.trust();
        hearer.set_patience(None);
        std::thread::spawn(move || {
            loop {
                let event = match hearer.hear() {
                    Ok(word) => Event::PeerMessage(Box::new(word)),
                    Err(_) => Event::Gone,
                };
                let is_last = matches!(event, Event::Gone);
                if words.send(event).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Self {
            other: other.to_string(),
            listens,
            secret,
            address,
            stream,
            speaker,
            sender,
            events,
            is_gone: Cell::new(false),
        })
    }

    /// Says a word; who is gone is noticed by what is heard.
    pub(super) fn say(&self, word: &PeerMessage) {
        let _ = self.speaker.say(word);
    }

    /// Returns the next word between jobs; `None` when the other side is gone.
    pub(super) fn hear(&self) -> Option<PeerMessage> {
        if self.is_gone.get() {
            return None;
        }
        match self.events.recv() {
            Ok(Event::PeerMessage(word)) => Some(*word),
            _ => None,
        }
    }

    /// Returns the error of a side that is gone.
    pub(super) fn lost(&self) -> Error {
        Error::Job(format!(
            "the other side at {} is gone: the connection to it failed",
            self.other
        ))
    }

    /// Returns this side's part in a job of `total` ranks; the other listens at `port`, where it does.
    pub(super) fn hosts(&self, total: u32, port: Option<u16>) -> Hosts {
        let at = |port: u16| std::net::SocketAddr::new(self.address, port).to_string();
        match port.filter(|_| !self.listens) {
            Some(port) => Hosts::Connect {
                address: at(port),
                secret: self.secret.clone(),
            },
            None => Hosts::Listen {
                address: at(0),
                total,
                secret: Some(self.secret.clone()),
            },
        }
    }

    /// Runs this side's part. `started` gets the port at which it listens, `hear` what the other side says meanwhile; its
    /// `true` says that the other side's part is over, which `waits` makes necessary.
    pub(super) fn run(
        &self,
        spec: JobSpec,
        started: impl FnOnce(Option<u16>),
        mut hear: impl FnMut(PeerMessage) -> Result<bool>,
        waits: bool,
    ) -> Result<JobReport> {
        let job = Job::start(spec)?;
        let port = job.address().and_then(|place| place.rsplit_once(':'));
        started(port.and_then(|(_, port)| port.parse().ok()));
        let ender = job.ender();
        let sender = self.sender.clone();
        let (mut report, mut failed) = (None, None);
        let mut is_over_there = !waits;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // This side waits for exactly this.
                let _ = sender.send(Event::Over(job.wait()));
            });
            while report.is_none() || !is_over_there {
                let heard = match self.events.recv() {
                    Ok(Event::Over(over)) => {
                        report = Some(over);
                        continue;
                    }
                    Ok(Event::PeerMessage(word)) => hear(*word),
                    Ok(Event::Gone) | Err(_) => {
                        is_over_there = true;
                        self.is_gone.set(true);
                        Err(self.lost())
                    }
                };
                match heard {
                    Ok(is_over) => is_over_there |= is_over,
                    Err(error) => {
                        failed.get_or_insert(error);
                        ender.end();
                    }
                }
            }
        });
        // What went wrong here ended the part, as SIGTERM would, and is the cause of how it ended.
        let report = report.transpose()?;
        let signal = report.as_ref().and_then(|report| report.interrupted);
        let is_other = signal.is_some_and(|signal| signal != signal_hook::consts::SIGTERM);
        match (failed.filter(|_| !is_other), report) {
            (None, Some(report)) => Ok(report),
            (failed, _) => Err(failed.unwrap_or_else(|| self.lost())),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The thread that hears ends with it.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}
