//! A server that stays: it takes part in the runs of those who connect, one after the other.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use tagwire_launch::KeptSignals;

use super::entrance::{Came, Entrance, Peer};
use super::help::help;
use super::listen::Listening;
use super::messages::{PeerMessage, Speaker};
use crate::Host;
use crate::args::BenchArgs;
use crate::error::{Error, ExitStatus, Result};

/// The signals that end it.
const SIGNALS: [i32; 3] = [
    signal_hook::consts::SIGINT,
    signal_hook::consts::SIGTERM,
    signal_hook::consts::SIGHUP,
];

/// A server.
struct Server<'a> {
    args: &'a BenchArgs,
    host: &'a Host,
    listening: Listening,
    ending: Ending,
    /// Who is served.
    turn: Mutex<()>,
    served: Mutex<Option<String>>,
    /// The connections, by number, so that they can be ended.
    connections: Mutex<(u64, BTreeMap<u64, TcpStream>)>,
}

/// Serves whoever connects, until a signal comes.
pub(super) fn forever(args: &BenchArgs, host: &Host, address: &str) -> Result<ExitStatus> {
    let (listening, mut entrance) = Listening::open(args, host, address)?;
    let ending = Ending::watch()?;
    listening.announce("serving", "TEST");
    let server = Server {
        args,
        host,
        listening,
        ending,
        turn: Mutex::default(),
        served: Mutex::default(),
        connections: Mutex::default(),
    };
    server.run(&mut entrance)
}

impl Server<'_> {
    fn run(&self, entrance: &mut Entrance) -> Result<ExitStatus> {
        let ending = self.ending.events.as_fd();
        std::thread::scope(|scope| {
            loop {
                let came = entrance.next(None, Some(ending))?;
                if let Some(signal) = self.ending.signal() {
                    self.end(signal);
                    return Ok(ExitStatus::Signal(signal));
                }
                if let Came::Peer(peer) = came {
                    self.take(scope, peer);
                }
            }
        })
    }

    /// Serves a peer in a thread of its own.
    fn take<'s>(&'s self, scope: &'s Scope<'s, '_>, peer: Peer) {
        let address = peer.address.clone();
        let taken = peer.stream.try_clone().and_then(|known| {
            let number = self.note(known);
            let serve = move || {
                self.serve_peer(peer);
                locked(&self.connections).1.remove(&number);
            };
            let thread = std::thread::Builder::new().spawn_scoped(scope, serve);
            thread.map(drop).inspect_err(|error| {
                let why = format!("the server has no thread for it: {error}");
                if let Some(known) = locked(&self.connections).1.remove(&number) {
                    let _ = Speaker::new(known).say(&PeerMessage::Refused { why });
                }
            })
        });
        if let Err(error) = taken {
            let _ = writeln!(std::io::stderr(), "{address}: cannot be served: {error}");
        }
    }

    /// Notes a connection, so that it can be ended.
    fn note(&self, stream: TcpStream) -> u64 {
        let mut connections = locked(&self.connections);
        let number = connections.0;
        connections.0 += 1;
        connections.1.insert(number, stream);
        number
    }

    /// Ends the connections that nothing runs over; a job that runs has the signal too, and says so to its other side.
    fn end(&self, signal: u8) {
        let served = locked(&self.served).clone();
        let text = match served {
            Some(other) => format!("ended by signal {signal} while it served {other}"),
            None => format!("ended by signal {signal}"),
        };
        let _ = writeln!(std::io::stderr(), "{text}");
        for stream in locked(&self.connections).1.values() {
            let _ = stream.shutdown(Shutdown::Read);
        }
    }

    /// Serves somebody when it is its turn.
    fn serve_peer(&self, peer: Peer) {
        let turn = self.turn.try_lock().ok().unwrap_or_else(|| {
            let busy_with = locked(&self.served).clone().unwrap_or_default();
            let _ = peer.speaker.say(&PeerMessage::Wait { busy_with });
            self.turn.lock().unwrap_or_else(PoisonError::into_inner)
        });
        let other = peer.address.clone();
        *locked(&self.served) = Some(other.clone());
        let told = match self.listening.welcome(peer, None) {
            None => "left before anything ran".to_owned(),
            Some((link, ready)) => {
                let shares = super::is_here(ready.identity.as_deref());
                let helped = help(&link, self.args, self.host, shares, &|| {
                    self.ending.signal().is_some()
                });
                let jobs = match helped.jobs {
                    1 => "1 job".to_owned(),
                    jobs => format!("{jobs} jobs"),
                };
                match (helped.failure, helped.is_done) {
                    (None, true) => format!("{jobs}, done"),
                    (Some(failure), true) => format!("{jobs}, the last failure: {}", failure.text),
                    (None, false) => format!("{jobs}, and it left without a word"),
                    (Some(failure), false) => {
                        format!("{jobs}, and it left in the middle: {}", failure.text)
                    }
                }
            }
        };
        let _ = writeln!(std::io::stderr(), "{other}: {told}");
        *locked(&self.served) = None;
        drop(turn);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The signals that end a server, as something to wait for.
struct Ending {
    /// Becomes readable.
    events: UnixStream,
    number: Arc<AtomicUsize>,
    registered: Vec<signal_hook::SigId>,
    /// Between jobs, too, signals are this one's affair.
    _kept: KeptSignals,
}

impl Ending {
    fn watch() -> Result<Self> {
        let failed = |error| Error::system("watch for signals", error);
        let (events, sender) = UnixStream::pair().map_err(failed)?;
        let mut this = Self {
            events,
            number: Arc::default(),
            registered: Vec::new(),
            _kept: KeptSignals::keep().map_err(Error::Launch)?,
        };
        for signal in SIGNALS {
            let number = Arc::clone(&this.number);
            let flag = signal_hook::flag::register_usize(signal, number, signal as usize);
            this.registered.push(flag.map_err(failed)?);
            let sender = sender.try_clone().map_err(failed)?;
            let wake = signal_hook::low_level::pipe::register(signal, sender);
            this.registered.push(wake.map_err(failed)?);
        }
        Ok(this)
    }

    /// Returns the signal that has come.
    fn signal(&self) -> Option<u8> {
        match self.number.load(Relaxed) {
            0 => None,
            number => u8::try_from(number).ok(),
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        for &id in &self.registered {
            signal_hook::low_level::unregister(id);
        }
    }
}
