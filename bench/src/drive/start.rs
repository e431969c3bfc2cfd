//! How the jobs of a run are started: what carries their messages, and which launcher.

use std::path::{Path, PathBuf};

use crate::Host;
use crate::args::{BenchArgs, Tool, TransportChoice};
use crate::environment::{MPI, Used};
use crate::error::{Error, Result};
use crate::mpi::{Family, Mpi, find_launcher, find_library};
use crate::plan::Carrier;

/// How the jobs over one transport are started.
#[derive(Debug, Clone)]
pub(crate) struct Start {
    /// As the command names it.
    pub name: String,
    pub carrier: Carrier,
    pub used: Used,
    /// The foreign launcher and its kind.
    pub mpiexec: Option<(PathBuf, Family)>,
}

/// A transport that cannot be used: its name and why.
pub(crate) type Unusable = (String, Error);

/// How the jobs are started, and what cannot be, where several are asked for.
pub(crate) fn starts(args: &BenchArgs, host: &Host) -> Result<(Vec<Start>, Vec<Unusable>)> {
    let choices = args.transports(&host.config);
    if args.rank_count() > 1 && choices.iter().any(TransportChoice::reaches_nobody) {
        return Err(Error::Usage(
            "transport 'null' carries nothing to another rank: name one that does".to_owned(),
        ));
    }
    let (mut starts, mut unusable) = (Vec::new(), Vec::new());
    for choice in &choices {
        match start_of(args, choice) {
            Ok(start) => starts.push(start),
            Err(error) if choices.len() > 1 || args.keep_going => {
                unusable.push((as_asked(choice), error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok((starts, unusable))
}

/// A transport as the command names it.
fn as_asked(choice: &TransportChoice) -> String {
    match choice {
        TransportChoice::Ours(name) => name.clone(),
        TransportChoice::Tool(tool) => tool.to_string(),
        TransportChoice::Mpi(None) => MPI.to_owned(),
        TransportChoice::Mpi(Some(path)) => format!("{MPI}:{}", path.display()),
    }
}

fn start_of(args: &BenchArgs, choice: &TransportChoice) -> Result<Start> {
    let path = match choice {
        TransportChoice::Mpi(path) => path,
        TransportChoice::Ours(name) => return Ok(start_of_ours(args, name)),
        TransportChoice::Tool(tool) => return start_of_tool(args, tool),
    };
    let found = find_library(path.as_deref())?;
    // Loaded here too, so that a library that cannot be used is known before anything starts.
    let mpi = Mpi::load(&found.file)?;
    let mpiexec = find_launcher(&found.file, args.mpiexec.as_deref())?;
    let used = Used {
        transport: MPI.to_owned(),
        why: found.why,
        library: Some(mpi.version().to_owned()),
        file: Some(mpi.file().display().to_string()),
        launcher: Some(mpiexec.display().to_string()),
        ..Used::default()
    };
    let family = Family::of(mpi.version());
    Ok(Start {
        name: as_asked(choice),
        carrier: Carrier::Mpi(found.file),
        used,
        mpiexec: Some((mpiexec, family)),
    })
}

fn start_of_tool(args: &BenchArgs, tool: &Tool) -> Result<Start> {
    let used = Used {
        transport: tool.to_string(),
        why: "asked for".to_owned(),
        library: Some(tool.library(args)?),
        file: tool.file(args),
        ranks: 2,
        ..Used::default()
    };
    Ok(Start {
        name: tool.to_string(),
        carrier: Carrier::Tool(tool.clone()),
        used,
        mpiexec: None,
    })
}

fn start_of_ours(args: &BenchArgs, name: &str) -> Start {
    let asked = name;
    let name = match asked {
        tagwire_rails::AUTO if args.side_of_two().is_none() => tagwire_rails::ON_ONE_HOST,
        named => named,
    };
    let why = match (args.transport.is_empty(), asked) {
        (_, tagwire_rails::AUTO) if args.side_of_two().is_some() => "the default",
        (_, tagwire_rails::AUTO) => "the default; all ranks are on this machine",
        (true, _) => "by the setting 'transport'",
        (false, _) => "asked for",
    };
    Start {
        name: asked.to_owned(),
        carrier: Carrier::Ours(name.to_owned()),
        used: Used {
            transport: name.to_owned(),
            why: why.to_owned(),
            ..Used::default()
        },
        mpiexec: None,
    }
}

/// Refuses two names of one thing: what differs between them would be noise.
pub(super) fn refuse_aliases(starts: &[Start], opened: &[Used]) -> Result<()> {
    for (place, one) in opened.iter().enumerate() {
        let same = (0..place).find(|&other| is_alias(one, &opened[other]));
        if let Some(other) = same {
            let what = one.provider.as_ref().or(one.library.as_ref());
            return Err(Error::Usage(format!(
                "transports '{}' and '{}' are the same: both open {} of {}; name one of them",
                starts[other].name,
                starts[place].name,
                what.map_or("it", String::as_str),
                one.file.as_deref().unwrap_or_default(),
            )));
        }
    }
    Ok(())
}

/// Whether two transports are the same part of the same file.
pub(super) fn is_alias(one: &Used, other: &Used) -> bool {
    let real = |used: &Used| {
        let file = used.file.clone()?;
        Some(std::fs::canonicalize(&file).unwrap_or_else(|_| Path::new(&file).to_owned()))
    };
    let part = |used: &Used| {
        used.provider
            .clone()
            .unwrap_or_else(|| used.transport.clone())
    };
    part(one) == part(other) && real(one).is_some() && real(one) == real(other)
}
