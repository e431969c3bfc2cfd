//! The side that listens: who it takes part with, and who not.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tagwire_base::JobSecret;
use tagwire_base::host::identity;
use tagwire_launch::watch_tcp;

use super::part::Link;
use super::words::{Hearer, Hello, LANGUAGE, Ready, Silence, Speaker, Welcome, Word};
use crate::Host;
use crate::args::{BenchArgs, TestName};
use crate::environment::Other;
use crate::error::{Error, Result};

/// How long whoever connects may take to say who it is.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// A place where the other side is waited for.
pub(super) struct Listening<'a> {
    pub listener: TcpListener,
    pub place: String,
    secret: JobSecret,
    /// The secret for the user's eyes: drawn here, or the user's own, which is not shown.
    shown: String,
    host: &'a Host,
    machine: Box<Other>,
}

/// Somebody who has shown the secret.
pub(super) struct Guest {
    pub stream: TcpStream,
    pub speaker: Speaker,
    pub hearer: Hearer,
    pub address: String,
}

impl<'a> Listening<'a> {
    pub(super) fn open(args: &BenchArgs, host: &'a Host, address: &str) -> Result<Self> {
        let (shown, secret) = match &args.secret {
            Some(given) => ("...".to_owned(), super::secret(given)?),
            None => {
                let mut text = JobSecret::generate()?.to_hex();
                text.truncate(JobSecret::LEN);
                let secret = super::secret(&text)?;
                (text, secret)
            }
        };
        let opened = TcpListener::bind(address).and_then(|listener| {
            let place = listener.local_addr()?.to_string();
            Ok((listener, place))
        });
        let (listener, place) = opened.map_err(|error| {
            Error::Job(format!(
                "cannot listen at '{address}': {error}: name an address of this machine and a free port with --listen; \
                 port 0 is any that is free"
            ))
        })?;
        Ok(Self {
            listener,
            place,
            secret,
            shown,
            host,
            machine: Box::new(Other::this(host, String::new())),
        })
    }

    /// Says where it listens, and what to start on the other machine.
    pub(super) fn announce(&self, what: &str, test: &str) {
        let _ = writeln!(
            std::io::stderr(),
            "{what} at {}: start 'tagwire bench {test} --connect HOST:PORT --secret {}' on the other machine",
            self.place,
            self.shown
        );
    }

    /// Returns the next connection, for which it waits so long.
    pub(super) fn next(&self, patience: Option<Duration>) -> Result<TcpStream> {
        let failed = |error: std::io::Error| Error::system("wait for the other side", error);
        let mut sources = [PollFd::new(&self.listener, PollFlags::IN)];
        let limit = patience.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        match poll(&mut sources, limit.as_ref()) {
            Ok(0) => Err(Error::Job(format!(
                "nobody connects to '{}' within {} s (option --timeout)",
                self.place,
                patience.unwrap_or_default().as_secs_f64()
            ))),
            Ok(_) => self
                .listener
                .accept()
                .map(|(stream, _)| stream)
                .map_err(failed),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Returns who has connected, if it is somebody to take part with; else says who it is and why not.
    pub(super) fn greet(&self, stream: TcpStream) -> Option<Guest> {
        let address = stream
            .peer_addr()
            .map_or_else(|_| "somebody".to_owned(), |address| address.to_string());
        self.check(stream, &address)
            .inspect_err(|why| {
                let _ = writeln!(std::io::stderr(), "refused {address}: {why}");
            })
            .ok()
    }

    fn check(&self, stream: TcpStream, address: &str) -> Result<Guest, String> {
        let failed = |error: std::io::Error| error.to_string();
        watch_tcp(&stream).map_err(|error| error.to_string())?;
        let speaker = Speaker::new(stream.try_clone().map_err(failed)?);
        let mut hearer = Hearer::new(stream.try_clone().map_err(failed)?);
        hearer.set_patience(Some(FIRST_WORD));
        let hello = match hearer.hear() {
            Ok(Word::Hello(hello)) => hello,
            Ok(_) | Err(Silence::Foreign) => return Err("it is no 'tagwire bench'".to_owned()),
            Err(Silence::Gone) => return Err("it left without a word".to_owned()),
            Err(Silence::Late) => {
                let within = FIRST_WORD.as_secs();
                return Err(format!("it said nothing within {within} s"));
            }
        };
        if let Err(why) = self.fits(&hello) {
            let refused = Word::Refused { why: why.clone() };
            let _ = speaker.say(&refused);
            return Err(why);
        }
        hearer.trust();
        Ok(Guest {
            stream,
            speaker,
            hearer,
            address: address.to_owned(),
        })
    }

    fn fits(&self, hello: &Hello) -> Result<(), String> {
        let shown = JobSecret::from_hex(&hello.secret);
        if !shown.is_some_and(|shown| self.secret.matches(shown.as_bytes())) {
            return Err("its secret is another one (option --secret)".to_owned());
        }
        let own = &self.host.version;
        if hello.language != LANGUAGE || hello.version != *own {
            return Err(format!(
                "it is Tagwire {}, and this side is {own}: both sides need the same version",
                hello.version
            ));
        }
        Ok(())
    }

    /// Takes a guest in. `decides_on` is the test of this side, where that decides. Returns the connection and what
    /// the other machine is, where it is still there.
    pub(super) fn welcome(
        &self,
        guest: Guest,
        decides_on: Option<TestName>,
    ) -> Option<(Link, Ready)> {
        let Guest {
            stream,
            speaker,
            mut hearer,
            ..
        } = guest;
        let welcome = Word::Welcome(Welcome {
            decides_on,
            machine: self.machine.clone(),
            identity: identity(),
        });
        speaker.say(&welcome).ok()?;
        hearer.set_patience(Some(FIRST_WORD));
        let Ok(Word::Ready(ready)) = hearer.hear() else {
            return None;
        };
        let link = Link::new(stream, hearer, true, self.secret.clone()).ok()?;
        Some((link, ready))
    }
}
