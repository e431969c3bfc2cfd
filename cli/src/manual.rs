//! What shells and `man` read of this command.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use clap::Command;

use crate::failure::Failure;
use crate::pages::{CompletionOptions, ManOptions};
use crate::{cli, mpi, mpiexec, output, stamp};

/// Prints a script for a shell.
pub fn completions(options: &CompletionOptions) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut all(), "tagwire", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the version.
pub fn version() -> Result<ExitCode, Failure> {
    output::print(&format!("tagwire {}\n", stamp::VERSION_LINE))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages into a folder.
pub fn man(options: &ManOptions) -> Result<ExitCode, Failure> {
    let folder = &options.folder;
    fs::create_dir_all(folder).map_err(|error| unwritten(folder, &error))?;
    for (name, page) in pages()? {
        let place = folder.join(name);
        fs::write(&place, page).map_err(|error| unwritten(&place, &error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the pages with the names of their files: that of this command, one for each of its parts, `mpiexec` and `mpirun`.
pub fn pages() -> Result<Vec<(String, String)>, Failure> {
    let mut all = all();
    all.build();
    let mut pages = vec![("tagwire.1".to_owned(), page(&all, "tagwire")?)];
    for part in all
        .get_subcommands()
        .filter(|part| part.get_name() != "help")
    {
        let name = format!("tagwire-{}", part.get_name());
        pages.push((format!("{name}.1"), page(part, &name)?));
    }
    for name in mpi::LAUNCHERS {
        pages.push((format!("{name}.1"), mpiexec::page(name)));
    }
    Ok(pages)
}

fn page(command: &Command, name: &str) -> Result<String, Failure> {
    let command = command.clone().version(stamp::VERSION_LINE);
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::run(format!("the page of {name}: {error}")))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn all() -> Command {
    cli::command(&tagwire::settings::registry())
}

fn unwritten(place: &Path, error: &std::io::Error) -> Failure {
    Failure::run(format!("{}: {error}", place.display()))
}
