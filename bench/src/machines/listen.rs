//! The side that listens: who it takes part with, and who not.

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use tagwire_base::JobSecret;
use tagwire_base::host::identity;
use tagwire_launch::proof::draw_for_terminal;
use tagwire_launch::reachable;

use super::entrance::{Entrance, FIRST_WORDS, Peer};
use super::greeting::Own;
use super::messages::{PeerMessage, Ready, Welcome};
use super::part::Link;
use crate::Host;
use crate::args::BenchArgs;
use crate::environment::Other;
use crate::error::{Error, Result};
use crate::suite::TestName;

/// A place where the other side is waited for.
pub(super) struct Listening {
    /// Where the other machine reaches it.
    place: String,
    secret: JobSecret,
    /// The secret, where it was drawn here. The user's own is not shown.
    drawn: Option<String>,
    machine: Box<Other>,
}

impl Listening {
    pub(super) fn open(args: &BenchArgs, host: &Host, address: &str) -> Result<(Self, Entrance)> {
        let opened = TcpListener::bind(address).and_then(|listener| {
            let place = reachable(&listener.local_addr()?.to_string());
            Ok((listener, place))
        });
        let (listener, place) = opened.map_err(|error| {
            Error::Job(format!(
                "cannot listen at '{address}': {error}: name an address of this machine and a free port with --listen; \
                 port 0 is any that is free"
            ))
        })?;
        let (drawn, secret) = match &args.secret {
            Some(given) => (None, super::secret_or_drawn(given)?),
            None => {
                let (secret, text) = draw_for_terminal()?;
                (Some(text), secret)
            }
        };
        let own = Own {
            secret: secret.clone(),
            version: host.version.clone(),
        };
        let this = Self {
            place,
            secret,
            drawn,
            machine: Box::new(Other::this(host, String::new())),
        };
        Ok((this, Entrance::new(listener, own)?))
    }

    /// Says where it listens, and what to start on the other machine.
    pub(super) fn announce(&self, what: &str, test: &str) {
        let place = &self.place;
        let secret = match &self.drawn {
            Some(drawn) => format!("this secret: {drawn}"),
            None => "the secret that was given here".to_owned(),
        };
        let _ = writeln!(
            std::io::stderr(),
            "{what} at {place}: start 'tagwire bench {test} --connect {place} --secret @FILE' on the other machine, where FILE has {secret}"
        );
    }

    /// Returns the error of nobody having come.
    pub(super) fn alone(&self, patience: Duration) -> Error {
        Error::Job(format!(
            "nobody who knows the secret connects to '{}' within {} s (option --timeout)",
            self.place,
            patience.as_secs_f64()
        ))
    }

    /// Takes a peer in. `decides_on` is the test of this side, where that decides. Returns the connection and what
    /// the other machine is, where it is still there.
    pub(super) fn welcome(
        &self,
        peer: Peer,
        decides_on: Option<TestName>,
    ) -> Option<(Link, Ready)> {
        let Peer {
            stream,
            speaker,
            mut hearer,
            ..
        } = peer;
        let welcome = PeerMessage::Welcome(Welcome {
            decides_on,
            machine: self.machine.clone(),
            identity: identity(),
        });
        speaker.say(&welcome).ok()?;
        hearer.set_patience(Some(FIRST_WORDS));
        let Ok(PeerMessage::Ready(ready)) = hearer.hear() else {
            return None;
        };
        let link = Link::new(stream, hearer, true, self.secret.clone()).ok()?;
        Some((link, ready))
    }
}
