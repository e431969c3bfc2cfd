//! Runs between two machines without a launcher: a user starts `tagwire bench` on each. One listens and the other connects;
//! one decides on jobs and prints, the other helps with its part of each. Who listens decides, unless it stays: then whoever
//! connects does.
//!
//! A job's ranks are children of both sides, the first half of them where one listens. `messages.rs` has what the two say.

use std::io::Write;

use tagwire_base::JobSecret;
use tagwire_base::host::identity;

use crate::Host;
use crate::args::{BenchArgs, TwoSided};
use crate::error::{Error, ExitStatus, Result};

pub(crate) use self::direct::Director;
use self::entrance::Came;
use self::help::help;
use self::listen::Listening;
use self::part::Link;

mod connect;
mod direct;
mod entrance;
mod greeting;
mod help;
mod listen;
mod messages;
mod part;
mod serve;

/// What this side of two is to do.
pub(crate) enum Joined {
    /// It decides on jobs.
    Director(Box<Director>),
    /// It has done what the other side decided.
    Over(ExitStatus),
}

/// Joins the other side.
pub(crate) fn join(args: &BenchArgs, host: &Host, side: &TwoSided) -> Result<Joined> {
    match side {
        TwoSided::Listen(address) if args.forever => {
            serve::forever(args, host, address).map(Joined::Over)
        }
        TwoSided::Listen(address) => listen(args, host, address),
        TwoSided::Connect(address) => {
            let (link, welcome) = connect::connect(args, host, address)?;
            let shares = is_here(welcome.identity.as_deref());
            match welcome.decides_on {
                None => Ok(Joined::Director(Box::new(Director::new(
                    link,
                    host,
                    *welcome.machine,
                    shares,
                )))),
                Some(_) => helped(&link, args, host, shares).map(Joined::Over),
            }
        }
    }
}

/// Waits for the one other side, which helps.
fn listen(args: &BenchArgs, host: &Host, address: &str) -> Result<Joined> {
    let (listening, mut entrance) = Listening::open(args, host, address)?;
    listening.announce("listening", args.test.name);
    loop {
        let Came::Peer(peer) = entrance.next(args.timeout, None)? else {
            return Err(listening.alone(args.timeout.unwrap_or_default()));
        };
        let who = peer.address.clone();
        if let Some((link, ready)) = listening.welcome(peer, Some(args.test)) {
            let shares = is_here(ready.identity.as_deref());
            let director = Director::new(link, host, *ready.machine, shares);
            return Ok(Joined::Director(Box::new(director)));
        }
        let _ = writeln!(std::io::stderr(), "{who} left before anything ran");
    }
}

/// Helps until the other side is done.
fn helped(link: &Link, args: &BenchArgs, host: &Host, shares: bool) -> Result<ExitStatus> {
    let helped = help(link, args, host, shares, &|| false);
    match (helped.failure, helped.is_done) {
        (Some(failure), _) => Err(Error::Elsewhere {
            text: failure.text,
            status: failure.status,
        }),
        (None, false) => Err(link.lost()),
        (None, true) => Ok(ExitStatus::Good),
    }
}

/// Whether what another side has in common with its machine is what this one has.
fn is_here(identity_there: Option<&str>) -> bool {
    identity_there.is_some() && identity().as_deref() == identity_there
}

/// What both sides know: the option names the file that it is in.
fn secret(option: &str) -> Result<JobSecret> {
    JobSecret::of_option(option).map_err(not_a_secret)
}

/// The same for the side that listens, which makes a file that is not there.
fn secret_or_drawn(option: &str) -> Result<JobSecret> {
    JobSecret::of_option_or_drawn(option).map_err(not_a_secret)
}

fn not_a_secret(why: String) -> Error {
    Error::Usage(format!("--secret {why}"))
}
