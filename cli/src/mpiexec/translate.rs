//! What a line of `mpiexec` asks for, in the options of `tagwire run`.

use std::collections::VecDeque;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command;
use tagwire_base::nearest::nearest;

use super::habits::{self, Means, Work};
use super::hosts;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Help,
    Version,
    Job(Translation),
}

/// A job: the words of `tagwire run` for each of its programs, and what to say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translation {
    pub(super) programs: Vec<Vec<OsString>>,
    pub(super) notes: Vec<String>,
}

/// Translates a line, without the command itself. `run` has the options of `tagwire run`.
///
/// # Errors
/// Names the word that is not understood, and what there is instead.
pub(super) fn translate(run: &Command, words: &[OsString]) -> Result<Asked, String> {
    let mut line = Line {
        run,
        whole: Vec::new(),
        variables: Vec::new(),
        no_effect: Vec::new(),
    };
    let mut programs = Vec::new();
    for part in words.split(|word| word == ":") {
        let mut program = Program::default();
        match line.read(&mut program, part.iter().cloned().collect())? {
            Some(Ending::Help) => return Ok(Asked::Help),
            Some(Ending::Version) => return Ok(Asked::Version),
            Some(Ending::Lines(path)) if words.len() <= 2 => {
                return translate(run, &words_of(&path)?);
            }
            Some(Ending::Lines(_)) => {
                return Err("--configfile stands alone: the file has all programs".to_owned());
            }
            None => programs.push(program),
        }
    }
    line.finish(programs).map(Asked::Job)
}

/// Returns the words of a file whose lines are programs (MPI-5.0, section 11.5, form B).
fn words_of(path: &OsStr) -> Result<Vec<OsString>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: {error}", Path::new(path).display()))?;
    let text = text.replace("\\\n", " ");
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let lines: Vec<Vec<OsString>> = lines
        .map(|line| line.split_whitespace().map(OsString::from).collect())
        .collect();
    if lines.iter().flatten().any(|word| {
        let name = word.to_str().map(|word| word.trim_start_matches('-'));
        name == Some("configfile")
    }) {
        return Err(format!(
            "{}: a --configfile in it",
            Path::new(path).display()
        ));
    }
    Ok(lines.join(&OsString::from(":")))
}

/// Why a line is no job.
enum Ending {
    Help,
    Version,
    Lines(OsString),
}

/// One program, its arguments, and the options in front of it.
#[derive(Debug, Default)]
struct Program {
    /// Options of `tagwire run`.
    options: Vec<OsString>,
    ranks: Option<OsString>,
    per_host: Option<OsString>,
    soft: Option<String>,
    path: Option<OsString>,
    command: Vec<OsString>,
}

/// What all programs of a line have in common.
struct Line<'a> {
    run: &'a Command,
    /// Options of the whole job, each with its value.
    whole: Vec<Vec<OsString>>,
    /// Variables of all ranks.
    variables: Vec<OsString>,
    no_effect: Vec<String>,
}

/// Options that each program has its own of.
const OF_A_PROGRAM: [&str; 2] = ["--wdir", "-x"];

impl Line<'_> {
    /// Reads the options in front of a program.
    fn read(
        &mut self,
        program: &mut Program,
        mut words: VecDeque<OsString>,
    ) -> Result<Option<Ending>, String> {
        while let Some(word) = words.pop_front() {
            let option = word.to_str().filter(|word| word.len() > 1);
            let Some(option) = option.filter(|word| word.starts_with('-')) else {
                words.push_front(word);
                break;
            };
            if option == "--" {
                break;
            }
            let (option, value) = attached(option);
            if let Some(value) = value {
                words.push_front(value.into());
            }
            let name = bare(option);
            let before = words.len();
            let ending = match habits::find(name) {
                Some(habit) => self.obey(program, option, habit, &mut words)?,
                None => self.pass(option, &mut words)?,
            };
            if ending.is_some() {
                return Ok(ending);
            }
            if value.is_some() && words.len() == before {
                return Err(format!("{option} takes no value"));
            }
        }
        program.command = words.into();
        Ok(None)
    }

    fn obey(
        &mut self,
        program: &mut Program,
        option: &str,
        habit: &habits::Habit,
        words: &mut VecDeque<OsString>,
    ) -> Result<Option<Ending>, String> {
        let mut values = Vec::new();
        if !matches!(habit.means, Means::Refused(_)) {
            for _ in 0..habit.values {
                let value = words.pop_front();
                values.push(value.ok_or_else(|| format!("{option}: its value is missing"))?);
            }
        }
        match habit.means {
            Means::Already => {}
            Means::NoEffect => self.have_no_effect(option),
            Means::Refused(instead) => {
                return Err(format!("{option} is not known here: {instead}"));
            }
            Means::Run("--ranks", _) => program.ranks = values.pop(),
            Means::Run(same, value) => {
                let value = value.map(OsString::from).or_else(|| values.pop());
                self.set(program, same, value);
            }
            Means::Work(work) => {
                let value = values.pop().unwrap_or_default();
                return self.work(program, option, work, value, words);
            }
        }
        Ok(None)
    }

    fn work(
        &mut self,
        program: &mut Program,
        option: &str,
        work: Work,
        value: OsString,
        words: &mut VecDeque<OsString>,
    ) -> Result<Option<Ending>, String> {
        let text = value.to_str().unwrap_or_default();
        match work {
            Work::Help => return Ok(Some(Ending::Help)),
            Work::Version => return Ok(Some(Ending::Version)),
            Work::Lines => return Ok(Some(Ending::Lines(value))),
            Work::PerHost => program.per_host = Some(value),
            Work::Path => program.path = Some(value),
            Work::Soft => program.soft = Some(text.to_owned()),
            Work::Variable { is_global } => {
                let variable = match text.contains('=') {
                    true => value,
                    false => {
                        let set = words.pop_front();
                        let set = set.ok_or_else(|| format!("{option}: its value is missing"))?;
                        [value.as_os_str(), set.as_os_str()].join(OsStr::new("="))
                    }
                };
                match is_global {
                    true => self.variables.push(variable),
                    false => program.options.extend(["-x".into(), variable]),
                }
            }
            Work::Bind => match binding(text) {
                Some(binding) => self.set(program, "--bind", Some(binding.into())),
                None => self.have_no_effect(&format!("{option} {text}")),
            },
            Work::Hosts => refuse_elsewhere(option, hosts::elsewhere_of(text))?,
            Work::HostFile => refuse_elsewhere(option, hosts::elsewhere_of_file(text)?)?,
            Work::Output => self.output(program, text)?,
            Work::Architecture if text == env::consts::ARCH => {}
            Work::Architecture => {
                return Err(format!(
                    "{option} {text}: this host is {}",
                    env::consts::ARCH
                ));
            }
            Work::ErrorHandler if text == "mpi_errors_are_fatal" => {}
            Work::ErrorHandler => {
                return Err(format!(
                    "{option} {text}: ranks begin with mpi_errors_are_fatal; the program sets another by MPI_Comm_set_errhandler"
                ));
            }
        }
        Ok(None)
    }

    /// Reads `tag,dir=D` as Open MPI 5 has it.
    fn output(&mut self, program: &mut Program, text: &str) -> Result<(), String> {
        for word in text.split(',') {
            match word.split_once('=').unwrap_or((word, "")) {
                ("tag" | "tag-detailed" | "tag-fullname" | "rank", _) => {
                    self.set(program, "--tag-output", None);
                }
                ("dir" | "file", folder) => {
                    self.set(program, "--output-dir", Some(folder.into()));
                }
                ("merge", _) => {}
                _ => self.have_no_effect(&format!("--output {word}")),
            }
        }
        Ok(())
    }

    /// Hands an option of `tagwire run` on.
    fn pass(
        &mut self,
        option: &str,
        words: &mut VecDeque<OsString>,
    ) -> Result<Option<Ending>, String> {
        let name = bare(option);
        let found = self.run.get_arguments().find(|argument| {
            let long = argument.get_long_and_visible_aliases().unwrap_or_default();
            let letter = name.chars().next().filter(|_| name.len() == 1);
            long.contains(&name) || letter.is_some() && argument.get_short() == letter
        });
        let Some(found) = found else {
            let long = self.run.get_arguments().filter_map(clap::Arg::get_long);
            let mut known: Vec<&str> = habits::names().collect();
            known.extend(long);
            let near = nearest(name, known);
            let near = near.map_or_else(String::new, |near| match near.len() {
                1 => format!(", did you mean '-{near}'?"),
                _ => format!(", did you mean '--{near}'?"),
            });
            return Err(format!(
                "{option} is not known here{near}: 'mpiexec --help' lists the options"
            ));
        };
        let mut set = vec![match found.get_long() {
            Some(long) => format!("--{long}").into(),
            None => option.into(),
        }];
        if found.get_action().takes_values() {
            let value = words.pop_front();
            set.push(value.ok_or_else(|| format!("{option}: its value is missing"))?);
        }
        self.add(set);
        Ok(None)
    }

    fn set(&mut self, program: &mut Program, option: &'static str, value: Option<OsString>) {
        let words = std::iter::once(option.into()).chain(value);
        match OF_A_PROGRAM.contains(&option) {
            true => program.options.extend(words),
            false => self.add(words.collect()),
        }
    }

    /// Adds an option of the whole job, which each program may have in front of it.
    fn add(&mut self, set: Vec<OsString>) {
        if !self.whole.contains(&set) {
            self.whole.push(set);
        }
    }

    fn have_no_effect(&mut self, option: &str) {
        if !self.no_effect.iter().any(|known| known == option) {
            self.no_effect.push(option.to_owned());
        }
    }

    fn finish(self, programs: Vec<Program>) -> Result<Translation, String> {
        let mut notes = Vec::new();
        if !self.no_effect.is_empty() {
            let options = self.no_effect.join(", ");
            notes.push(format!("{options}: no effect here"));
        }
        let mut whole: Vec<OsString> = self.whole.into_iter().flatten().collect();
        let several = programs.len() > 1;
        let mut words = Vec::new();
        for (number, mut program) in programs.into_iter().enumerate() {
            if program.command.is_empty() {
                return Err(match several {
                    true => format!("':' number {number}: a program is missing beside it"),
                    false => "which program? mpiexec -n N PROGRAM [ARGUMENTS]".to_owned(),
                });
            }
            let mut line = vec!["--ranks".into(), program.ranks(&mut notes)?];
            // Those of one program come later and have the last word.
            for variable in &self.variables {
                line.extend(["-x".into(), variable.clone()]);
            }
            line.append(&mut whole);
            line.append(&mut program.options);
            line.push("--".into());
            line.extend(program.command());
            words.push(line);
        }
        Ok(Translation {
            programs: words,
            notes,
        })
    }
}

impl Program {
    /// Returns the number of ranks.
    fn ranks(&mut self, notes: &mut Vec<String>) -> Result<OsString, String> {
        let Some(ranks) = self.ranks.take().or_else(|| self.per_host.take()) else {
            let program = self.command.first().map(|word| word.display().to_string());
            notes.push(format!(
                "1 rank of {}, since there is no -n",
                program.unwrap_or_default()
            ));
            return Ok("1".into());
        };
        match &self.soft {
            None => Ok(ranks),
            Some(soft) => {
                let most = ranks.to_str().and_then(|ranks| ranks.parse().ok());
                let most = most.ok_or_else(|| format!("-n {}: no number", ranks.display()))?;
                let number = largest(soft, most).ok_or_else(|| {
                    format!("-soft {soft}: no number of at most {most} ranks in it")
                })?;
                Ok(number.to_string().into())
            }
        }
    }

    /// Returns the program, found in its search path, and its arguments.
    fn command(self) -> Vec<OsString> {
        let mut command = self.command;
        let (Some(path), Some(program)) = (self.path, command.first_mut()) else {
            return command;
        };
        if !program.as_encoded_bytes().contains(&b'/') {
            let mut places = env::split_paths(&path).map(|folder| folder.join(&*program));
            if let Some(place) = places.find(|place| place.is_file()) {
                *program = std::path::absolute(&place).unwrap_or(place).into();
            }
        }
        command
    }
}

/// Removes one or two dashes.
fn bare(option: &str) -> &str {
    let name = option.strip_prefix('-').unwrap_or(option);
    name.strip_prefix('-').unwrap_or(name)
}

/// Splits `--name=value`, and the number from `-n4`.
fn attached(option: &str) -> (&str, Option<&str>) {
    if let Some((name, value)) = option.split_once('=').filter(|(name, _)| *name != "-x") {
        return (name, Some(value));
    }
    for name in ["-np", "-n", "-c"] {
        let value = option.strip_prefix(name).filter(|rest| !rest.is_empty());
        if let Some(value) = value.filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit())) {
            return (&option[..name.len()], Some(value));
        }
    }
    (option, None)
}

/// Returns what `--bind` takes for a binding of others; `None` for what there is not.
fn binding(text: &str) -> Option<&str> {
    let (unit, more) = text.split_once(':').unwrap_or((text, ""));
    match unit {
        "none" | "core" => Some(unit),
        // As many CPUs as the system tells.
        "hwthread" | "pu" | "cpu" => Some("core"),
        "user" => Some(more),
        _ => None,
    }
}

fn refuse_elsewhere(option: &str, host: Option<String>) -> Result<(), String> {
    host.map_or(Ok(()), |host| {
        Err(format!(
            "{option} names '{host}', which is not this host: ranks are started here; other hosts bring theirs by --listen and --connect ('mpiexec --help'), or start the program by srun or prterun"
        ))
    })
}

/// Returns the largest of the numbers that is at most `most`: a list of `a`, `a:b` and `a:b:step` (MPI-5.0, section 11.8.1).
fn largest(soft: &str, most: i64) -> Option<i64> {
    let numbers = soft.split(',').map(|part| {
        let numbers = part.trim().split(':').map(str::parse::<i32>);
        let numbers: Vec<i64> = numbers
            .map(|number| number.map(i64::from))
            .collect::<Result<_, _>>()
            .ok()?;
        let (first, last, step) = match numbers[..] {
            [only] => (only, only, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return None,
        };
        let found = if step > 0 {
            let high = last.min(most);
            high - (high - first).rem_euclid(step)
        } else {
            let over = (first - most).max(0);
            first + (over - step - 1).div_euclid(-step) * step
        };
        (found >= first.min(last).max(1)).then_some(found)
    });
    numbers.flatten().max()
}

#[cfg(test)]
mod tests;
