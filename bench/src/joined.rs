//! This process is a rank itself, and rank 0 prints: another launcher started it, or its user did,
//! on each of two machines.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use tagwire_base::bootstrap::Bootstrap;
use tagwire_base::{JobSecret, Rank};
use tagwire_launch::detect::Launcher;
use tagwire_launch::{Membership, Store, StoreBootstrap};

use crate::Host;
use crate::args::{BenchArgs, TransportChoice, TwoSided};
use crate::concurrent;
use crate::drive::{command_line, configured, seed_of_clock};
use crate::environment::{Environment, Jobs, Used};
use crate::error::{Error, ExitStatus, Result};
use crate::link::Message;
use crate::mpi::find_library;
use crate::plan::{Carrier, Plan};
use crate::rank;
use crate::report::Report;
use crate::report::output::{Output, terminal_width};

/// Where the side that listens leaves its plan.
const PLAN: &str = "bench/plan";
/// Where the side that connects says that it has taken it.
const TAKEN: &str = "bench/taken";
/// How long the side that connects tries: the other may be started a little later.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(100);
/// How long the side that listens waits for the other when nothing is said.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// Another launcher started the ranks.
pub(crate) fn under_launcher(
    args: &BenchArgs,
    host: &Host,
    launcher: Launcher,
) -> Result<ExitStatus> {
    if args.side_of_two().is_some() {
        return Err(Error::Usage(format!(
            "--listen and --connect are for ranks without a launcher; these were started by {launcher}"
        )));
    }
    let host = configured(args, host)?;
    let (carrier, mut why) = only_carrier(args, &host)?;
    if why.is_empty() {
        why = format!("ranks were started by {launcher}");
    }
    args.check_without_ranks()?;
    // Patterns are only checked by the ranks that draw them: all need the same seed.
    let plan = only_plan(args, Plan::new(args, carrier, args.seed.unwrap_or(0), 0))?;
    let mut printer = Printer::new(args, &host, &plan, why);
    let job = rank::Job {
        host: &host,
        plan: &plan,
    };
    Ok(job.run(&mut |message| printer.take(message)))
}

/// One process on each of two machines; this one is on `side`.
pub(crate) fn with_other_machine(
    args: &BenchArgs,
    host: &Host,
    side: &TwoSided,
) -> Result<ExitStatus> {
    if let Some(limit) = args.timeout {
        let (TwoSided::Listen(address) | TwoSided::Connect(address)) = side;
        end_after(limit, address.clone());
    }
    match side {
        TwoSided::Listen(address) => listen(args, host, address),
        TwoSided::Connect(address) => connect(args, host, address),
    }
}

fn listen(args: &BenchArgs, host: &Host, address: &str) -> Result<ExitStatus> {
    let (carrier, _) = only_carrier(args, host)?;
    let plan = Plan::new(args, carrier, args.seed.unwrap_or_else(seed_of_clock), 0);
    let plan = only_plan(args, plan)?;
    let (drawn, secret) = match &args.secret {
        Some(given) => (None, secret(given)?),
        None => {
            let text = JobSecret::generate()?.to_hex()[..JobSecret::LEN].to_owned();
            let secret = secret(&text)?;
            (Some(text), secret)
        }
    };
    let store = Store::start_tcp(2, address, secret.clone()).map_err(|error| {
        Error::Job(format!(
            "{error}: name an address of this machine and a free port with --listen; port 0 is any \
             that is free"
        ))
    })?;
    let place = store.address().unwrap_or_default().to_owned();
    let _ = writeln!(
        std::io::stderr(),
        "listening at {place}: start 'tagwire bench {} --connect HOST:PORT --secret {}' on the other machine",
        args.test,
        drawn.as_deref().unwrap_or("...")
    );
    // Whoever listens everywhere is reached here as well.
    let own = place
        .replace("0.0.0.0:", "127.0.0.1:")
        .replace("[::]:", "[::1]:");
    let member = Membership::remote(Rank::new(0), 2, &own, secret);
    let mut bootstrap = StoreBootstrap::connect(member)?;
    bootstrap.put(PLAN, plan.to_text()?.as_bytes())?;
    bootstrap.get(Rank::new(1), TAKEN, args.timeout.unwrap_or(FOREVER))?;
    let why = format!("this side listens at {place}");
    Ok(run(args, host, &plan, bootstrap, why))
}

fn connect(args: &BenchArgs, host: &Host, address: &str) -> Result<ExitStatus> {
    // That it is there, the options' check has seen.
    let secret = secret(args.secret.as_deref().unwrap_or_default())?;
    let member = Membership::remote(Rank::new(1), 2, address, secret);
    let mut bootstrap = knock(&member, address, args)?;
    let plan = bootstrap.get(Rank::new(0), PLAN, PATIENCE)?;
    let mut plan = Plan::of_text(&String::from_utf8_lossy(&plan))?;
    if plan.test != args.test {
        return Err(Error::Usage(format!(
            "the side at {address} runs '{}', this one was to run '{}'",
            plan.test, args.test
        )));
    }
    plan.carrier = match &plan.carrier {
        Carrier::Ours(transport) => Carrier::Ours(without_files(transport, host)?),
        Carrier::Mpi(_) => {
            return Err(Error::Usage(
                "transport 'mpi' has launchers of its own".to_owned(),
            ));
        }
    };
    bootstrap.put(TAKEN, b"")?;
    Ok(run(args, host, &plan, bootstrap, String::new()))
}

/// The transport that the other side names, with the libraries that this side's settings name: no other
/// machine says which file this one loads.
fn without_files(transport: &str, host: &Host) -> Result<String> {
    let mut config = host.config.clone();
    config.set("transport", transport)?;
    Ok(tagwire_rails::named(&config))
}

/// Runs `plan` as the rank that `bootstrap` knows.
fn run(
    args: &BenchArgs,
    host: &Host,
    plan: &Plan,
    bootstrap: StoreBootstrap,
    why: String,
) -> ExitStatus {
    let mut printer = Printer::new(args, host, plan, why);
    let job = rank::Job { host, plan };
    job.run_as(Box::new(bootstrap), &mut |message| printer.take(message))
}

/// Connects; again and again for a while, since the two sides are started by hand.
fn knock(member: &Membership, address: &str, args: &BenchArgs) -> Result<StoreBootstrap> {
    let patience = args.timeout.unwrap_or(PATIENCE);
    let until = Instant::now() + patience;
    loop {
        match StoreBootstrap::connect(member.clone()) {
            Err(tagwire_base::Error::System { .. }) if Instant::now() < until => {
                thread::sleep(PAUSE);
            }
            Err(error @ tagwire_base::Error::System { .. }) => {
                return Err(Error::Job(format!(
                    "nobody answers at '{address}' within {} s: {error}; is 'tagwire bench {} \
                     --listen' running there? --connect names another place, and --timeout how \
                     long to try",
                    patience.as_secs_f64(),
                    args.test
                )));
            }
            Err(error @ tagwire_base::Error::Bootstrap(_)) => {
                return Err(Error::Job(format!(
                    "{error}; is it 'tagwire bench {} --listen' that answers at '{address}' \
                     (option --connect)?",
                    args.test
                )));
            }
            other => return Ok(other?),
        }
    }
}

/// What both sides know, as the option says it: a text, or the file that it is in.
fn secret(option: &str) -> Result<JobSecret> {
    JobSecret::of_option(option).map_err(|why| Error::Usage(format!("--secret {why}")))
}

/// Ends this process when `limit` has passed: no launcher does.
fn end_after(limit: Duration, address: String) {
    thread::spawn(move || {
        thread::sleep(limit);
        let _ = writeln!(
            std::io::stderr(),
            "error: the run with the other side at '{address}' did not end within {} s (option \
             --timeout)",
            limit.as_secs_f64()
        );
        std::process::exit(ExitStatus::Failed.code().into());
    });
}

/// The one transport that is asked for, and why a foreign library was found.
fn only_carrier(args: &BenchArgs, host: &Host) -> Result<(Carrier, String)> {
    let lacks = |option: &str| {
        Err(Error::Usage(format!(
            "{option} needs the command to start the ranks itself"
        )))
    };
    if args.launches > 1 {
        return lacks("--launches");
    }
    match &args.transports(&host.config)[..] {
        [TransportChoice::Ours(name)] => Ok((Carrier::Ours(name.clone()), String::new())),
        [TransportChoice::Mpi(path)] => {
            let found = find_library(path.as_deref())?;
            Ok((Carrier::Mpi(found.file), found.why))
        }
        _ => lacks("more than one transport"),
    }
}

/// The plan of the only job of `args`.
fn only_plan(args: &BenchArgs, plan: Plan) -> Result<Plan> {
    let mut variants = concurrent::variants(args)?;
    if concurrent::asked(args).is_some_and(|test| test.sessions) {
        variants.retain(|variant| variant.unit.is_threads());
    }
    match &variants[..] {
        [] => Ok(plan),
        // How many cores there are for all ranks, no rank knows.
        [only] => Ok(plan.of_variant(only, usize::MAX)),
        _ => Err(Error::Usage(
            "several units need the command to start the ranks itself: name one with --units"
                .to_owned(),
        )),
    }
}

/// Prints what rank 0 says.
struct Printer<'a> {
    args: &'a BenchArgs,
    host: &'a Host,
    plan: &'a Plan,
    why: String,
    output: Option<Output<std::io::Stdout>>,
}

impl<'a> Printer<'a> {
    fn new(args: &'a BenchArgs, host: &'a Host, plan: &'a Plan, why: String) -> Self {
        Self {
            args,
            host,
            plan,
            why,
            output: None,
        }
    }

    fn take(&mut self, message: Message) -> Result<()> {
        match (message, &mut self.output) {
            (Message::Greeting(greeting), _) => self.output = Some(self.begin(greeting)?),
            (Message::Failure { rank, message, .. }, _) => {
                let _ = writeln!(std::io::stderr(), "error: rank {rank}: {message}");
            }
            (_, None) => {}
            (Message::Row(row), Some(output)) => output.row(*row)?,
            (Message::Profile(profile), Some(output)) => output.report_mut().add_profile(*profile),
            (Message::Done, Some(output)) => output.finish()?,
        }
        Ok(())
    }

    fn begin(&self, greeting: Used) -> Result<Output<std::io::Stdout>> {
        let cpus = tagwire_base::topology::binding();
        let jobs = Jobs {
            ranks: greeting.ranks,
            launches: 1,
            binding: cpus.map_or_else(|| "unknown".to_owned(), |cpus| cpus.to_string()),
            cores: usize::MAX,
            threads: self.plan.threads,
            seed: self.plan.seed,
        };
        let mut environment = Environment::capture(self.host, &jobs);
        environment.transports = vec![Used {
            why: match &*greeting.why {
                "" => self.why.clone(),
                chosen => format!("{chosen}; {}", self.why),
            },
            ..greeting
        }];
        let args = self.args;
        let mut output = Output::new(
            Report::new(args.test, command_line(), environment),
            args.format,
            args.percentiles.clone(),
            args.output.as_deref(),
            args.rows_per_size() == 1,
            std::io::stdout(),
        )?;
        output.width = terminal_width();
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_side_names_no_file_of_this_one() {
        let registry = tagwire_base::config::Registry::new(&tagwire_coll::settings());
        let host = Host {
            config: tagwire_base::Config::defaults(&registry),
            version: String::new(),
            commit: String::new(),
        };
        for (named, taken) in [
            ("ofi@/tmp/evil.so:tcp", "ofi:tcp"),
            ("shm+ucx@/tmp/evil.so:tcp,self", "shm+ucx:tcp,self"),
            ("shm", "shm"),
        ] {
            assert_eq!(without_files(named, &host).unwrap(), taken);
        }
        assert!(without_files("no-such", &host).is_err());
    }
}
