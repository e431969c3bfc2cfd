//! This process is a rank itself, and rank 0 prints: another launcher started it.

use std::io::Write;

use tagwire_launch::detect::Launcher;

use crate::Host;
use crate::args::{BenchArgs, TransportChoice};
use crate::concurrent::{self, Variant};
use crate::drive::command_line;
use crate::environment::{Environment, Jobs, Used};
use crate::error::{Error, ExitStatus, Result};
use crate::link::Message;
use crate::mpi::find_library;
use crate::plan::{Carrier, Plan};
use crate::rank;
use crate::report::Report;
use crate::report::output::{Output, terminal_width};

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
    let host = host.configured(args)?;
    let (carrier, mut why) = only_carrier(args, &host)?;
    if why.is_empty() {
        why = format!("ranks were started by {launcher}");
    }
    args.check_without_ranks()?;
    // Patterns are only checked by the ranks that draw them: all need the same seed.
    let variant = only_variant(args)?;
    // How many cores there are for all ranks, no rank knows.
    let variant = variant.as_ref().map(|only| (only, usize::MAX));
    let plan = Plan::of(args, variant, carrier, args.seed.unwrap_or(0), 0);
    let mut printer = Printer::new(args, &host, &plan, why);
    let job = rank::Job {
        host: &host,
        plan: &plan,
    };
    Ok(job.run(&mut |message| printer.take(message)))
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
    if args.resume {
        return lacks("--resume");
    }
    if args.by_queue().len() > 1 {
        return lacks("a list of --engine, --posted or --unexpected");
    }
    match &args.transports(&host.config)[..] {
        [TransportChoice::Ours(name)] => Ok((Carrier::Ours(name.clone()), String::new())),
        [TransportChoice::Mpi(path)] => {
            let found = find_library(path.as_deref())?;
            Ok((Carrier::Mpi(found.file), found.why))
        }
        [TransportChoice::Tool(_)] => lacks("a tool"),
        _ => lacks("more than one transport"),
    }
}

/// What the only job of `args` is; `None` of a test without units.
fn only_variant(args: &BenchArgs) -> Result<Option<Variant>> {
    let mut variants = concurrent::variants(args)?;
    if concurrent::asked(args).is_some_and(|test| test.sessions) {
        variants.retain(|variant| variant.unit.is_threads());
    }
    if variants.len() > 1 {
        return Err(Error::Usage(
            "several units need the command to start the ranks itself: name one with --units"
                .to_owned(),
        ));
    }
    Ok(variants.pop())
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
            (_, None) | (Message::OtherGreeting(_), _) => {}
            (Message::Row(mut row), Some(output)) => {
                self.host.mark(&mut row);
                output.row(*row)?;
            }
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
