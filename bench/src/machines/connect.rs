//! The side that connects.

use std::io::Write;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use tagwire_base::JobSecret;
use tagwire_base::host::identity;
use tagwire_launch::connect_tcp;

use super::part::Link;
use super::words::{Hearer, Hello, LANGUAGE, Ready, Silence, Speaker, Welcome, Word};
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
    // That it is there, the options' check has seen.
    let secret = super::secret(args.secret.as_deref().unwrap_or_default())?;
    let stream = knock(args, address)?;
    let failed = |error| Error::system(format!("use the connection to '{address}'"), error);
    let speaker = Speaker::new(stream.try_clone().map_err(failed)?);
    let mut hearer = Hearer::new(stream.try_clone().map_err(failed)?);
    hearer.set_patience(Some(args.timeout.unwrap_or(PATIENCE)));
    let hello = Word::Hello(Hello {
        language: LANGUAGE.to_owned(),
        secret: secret.to_hex(),
        version: host.version.clone(),
    });
    let _ = speaker.say(&hello);
    let welcome = welcome(args, address, &mut hearer)?;
    check(args, address, &welcome)?;
    let ready = Word::Ready(Ready {
        machine: Box::new(Other::this(host, String::new())),
        identity: identity(),
    });
    let _ = speaker.say(&ready);
    let link = Link::new(stream, hearer, false, secret).map_err(failed)?;
    Ok((link, welcome))
}

/// Waits for the welcome; as long as others are served first.
fn welcome(args: &BenchArgs, address: &str, hearer: &mut Hearer) -> Result<Welcome> {
    loop {
        let silence = match hearer.hear() {
            Ok(Word::Welcome(welcome)) => return Ok(welcome),
            Ok(Word::Wait { busy_with }) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "{address} is busy with {busy_with}: waiting"
                );
                hearer.set_patience(args.timeout);
                // Its welcome is longer than what a stranger may say.
                hearer.trust();
                continue;
            }
            Ok(Word::Refused { why }) => {
                return Err(Error::Job(format!(
                    "the side that listens at '{address}' refuses this one: {why}"
                )));
            }
            Ok(_) => Silence::Foreign,
            Err(silence) => silence,
        };
        let within = args.timeout.unwrap_or(PATIENCE).as_secs_f64();
        return Err(Error::Job(match silence {
            Silence::Late => format!(
                "whoever listens at '{address}' says nothing within {within} s (option --timeout); is it 'tagwire bench \
                 --listen'?"
            ),
            _ => format!(
                "what answers at '{address}' does not speak as 'tagwire bench --listen' does (option --connect)"
            ),
        }));
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
    let start = Instant::now();
    loop {
        let left = patience.saturating_sub(start.elapsed());
        match connect_tcp(address, left) {
            Ok(socket) => return Ok(socket.into()),
            Err(_) if left > PAUSE => thread::sleep(PAUSE),
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

/// The secret as hexadecimal digits is longer than the secret: a first line has room for it.
const _: () = assert!(JobSecret::LEN * 2 < 1024);
