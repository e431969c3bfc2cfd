//! The side that connects.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use tagwire_base::host::identity;
use tagwire_launch::door::COME_AGAIN;
use tagwire_launch::{Deadline, connect_tcp};

use super::greeting::{Own, Unknown, introduce};
use super::messages::{Hearer, PeerMessage, Ready, Silence, Speaker, Welcome};
use super::part::Link;
use crate::Host;
use crate::args::BenchArgs;
use crate::environment::Other;
use crate::error::{Error, Result};

/// How long the side that connects tries: the other may be started a little later.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Connects to the side that listens at `address`, and returns how that welcomes this one.
pub(super) fn connect(args: &BenchArgs, host: &Host, address: &str) -> Result<(Link, Welcome)> {
    let own = Own {
        // That it is there, the options' check has seen.
        secret: super::secret(args.secret.as_deref().unwrap_or_default())?,
        version: host.version.clone(),
    };
    let (stream, speaker, mut hearer) = meet(args, &own, address)?;
    let welcome = welcome(args, address, &mut hearer)?;
    check(args, address, &welcome)?;
    let ready = PeerMessage::Ready(Ready {
        machine: Box::new(Other::this(host, String::new())),
        identity: identity(),
    });
    let _ = speaker.say(&ready);
    let link = Link::new(stream, hearer, false, own.secret)
        .map_err(|error| Error::system(format!("use the connection to '{address}'"), error))?;
    Ok((link, welcome))
}

/// Connects, and gets to know the side that listens. Where pending peers crowd it may drop a connection unheard: then this comes
/// again.
fn meet(args: &BenchArgs, own: &Own, address: &str) -> Result<(TcpStream, Speaker, Hearer)> {
    let failed = |error| Error::system(format!("use the connection to '{address}'"), error);
    let mut pauses = COME_AGAIN.iter();
    loop {
        let stream = knock(args, address)?;
        let speaker = Speaker::new(stream.try_clone().map_err(failed)?);
        let mut hearer = Hearer::new(stream.try_clone().map_err(failed)?);
        hearer.set_patience(Some(args.timeout.unwrap_or(PATIENCE)));
        let Err(why) = introduce(&speaker, &mut hearer, own) else {
            return Ok((stream, speaker, hearer));
        };
        let is_unheard = why == Unknown::Silent(Silence::Gone);
        match pauses.next().filter(|_| is_unheard) {
            Some(pause) => thread::sleep(*pause),
            None => return Err(unknown(args, address, why)),
        }
    }
}

/// Returns the error of not being known to the side that listens.
fn unknown(args: &BenchArgs, address: &str, why: Unknown) -> Error {
    match why {
        Unknown::Refused(why) => refused(address, &why),
        Unknown::Impostor => Error::Job(format!(
            "whoever listens at '{address}' does not know the secret (option --secret)"
        )),
        Unknown::Silent(silence) => silent(args, address, &silence),
        Unknown::Unprepared(why) => Error::Job(why),
    }
}

fn refused(address: &str, why: &str) -> Error {
    Error::Job(format!(
        "the side that listens at '{address}' refuses this one: {why}"
    ))
}

fn silent(args: &BenchArgs, address: &str, silence: &Silence) -> Error {
    let within = args.timeout.unwrap_or(PATIENCE).as_secs_f64();
    Error::Job(match silence {
        Silence::Late => format!(
            "whoever listens at '{address}' says nothing within {within} s (option --timeout); is it 'tagwire bench \
             --listen'?"
        ),
        _ => format!(
            "what answers at '{address}' does not speak as 'tagwire bench --listen' does (option --connect)"
        ),
    })
}

/// Waits for the welcome; as long as others are served first.
fn welcome(args: &BenchArgs, address: &str, hearer: &mut Hearer) -> Result<Welcome> {
    loop {
        let silence = match hearer.hear() {
            Ok(PeerMessage::Welcome(welcome)) => return Ok(welcome),
            Ok(PeerMessage::Wait { busy_with }) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "{address} is busy with {busy_with}: waiting"
                );
                hearer.set_patience(args.timeout);
                continue;
            }
            Ok(PeerMessage::Refused { why }) => return Err(refused(address, &why)),
            Ok(_) => Silence::Foreign,
            Err(silence) => silence,
        };
        return Err(silent(args, address, &silence));
    }
}

/// Checks that this side's options fit what the other one decides.
fn check(args: &BenchArgs, address: &str, welcome: &Welcome) -> Result<()> {
    let Some(test) = welcome.decides_on else {
        return Ok(());
    };
    if test != args.test {
        return Err(Error::Usage(format!(
            "the side at {address} runs '{test}', this one was to run '{}'",
            args.test
        )));
    }
    if args.decides() {
        return Err(Error::Usage(
            "--connect takes over what the side that listens was told, and that side keeps the results; one with --forever \
             lets the side that connects decide"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Connects; again and again for a while, since the two sides are started by hand.
fn knock(args: &BenchArgs, address: &str) -> Result<TcpStream> {
    let patience = args.timeout.unwrap_or(PATIENCE);
    let until = Deadline::within(Some(patience));
    let mut is_told = false;
    loop {
        let left = until.left().unwrap_or(Duration::MAX);
        match connect_tcp(address, left) {
            Ok(socket) => return Ok(socket.into()),
            Err(_) if left > PAUSE => {
                if !std::mem::replace(&mut is_told, true) {
                    let within = patience.as_secs_f64();
                    let _ = writeln!(
                        std::io::stderr(),
                        "waiting for {address}, {within} s at most (--timeout)"
                    );
                }
                thread::sleep(PAUSE);
            }
            Err(error) => {
                return Err(Error::Job(format!(
                    "nobody answers at '{address}' within {} s: {error}; is 'tagwire bench {} --listen' running there? \
                     --connect names another place, and --timeout how long to try",
                    patience.as_secs_f64(),
                    args.test
                )));
            }
        }
    }
}
