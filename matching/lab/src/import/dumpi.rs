//! What `dumpi2ascii` prints of DUMPI (SST): a block of lines for each call, `NAME entering at walltime S.N`, its arguments as
//! `int tag=5`, and `NAME returning at walltime S.N`.

use tagwire_matching::Pattern;

use super::calls::is_call;
use super::collectives::{Collective, Kind};
use super::{Importer, shortened};
use crate::traffic::Outgoing;

pub(super) fn parse(text: &str, importer: &mut Importer) -> Result<(), String> {
    let mut begin = None;
    let mut block: Option<Block<'_>> = None;
    let mut is_finalized = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let told = |why: String| format!("line {number}: {why}");
        if let Some((name, rest)) = line.split_once(" entering at walltime ") {
            if is_of_the_program(name) {
                continue;
            }
            if !is_call(name) {
                return Err(told(format!("MPI has no call '{}'", shortened(name))));
            }
            if let Some(open) = &block {
                return Err(told(format!("{name} begins within {}", open.name)));
            }
            let seen = time(rest).map_err(told)?;
            block = Some(Block {
                name,
                at: seen.saturating_sub(*begin.get_or_insert(seen)),
                line: number,
                arguments: Vec::new(),
            });
            importer.script.at_line(number);
        } else if let Some((name, rest)) = line.split_once(" returning at walltime ") {
            if is_of_the_program(name) {
                continue;
            }
            let whole = block.take().filter(|whole| whole.name == name);
            let whole = whole.ok_or_else(|| told(format!("{name} returns and did not begin")))?;
            time(rest).map_err(told)?;
            whole
                .import(importer)
                .map_err(|why| told(format!("{}: {why}", whole.name)))?;
            importer.calls += 1;
            is_finalized |= whole.name == "MPI_Finalize";
        } else if let Some(open) = &mut block {
            open.line(line).map_err(told)?;
        } else if !is_beside(line, is_finalized) {
            let what = shortened(line);
            return Err(told(format!("'{what}' is nothing that dumpi2ascii prints")));
        }
    }
    let last = text.lines().count();
    match block {
        Some(open) => Err(format!("line {last}: the file ends within {}", open.name)),
        None if !is_finalized => Err(format!(
            "line {} is missing: the file ends without MPI_Finalize",
            last + 1
        )),
        None => Ok(()),
    }
}

/// Whether a block is of a function of the program that DUMPI was told of.
fn is_of_the_program(name: &str) -> bool {
    !name.starts_with("MPI")
}

/// Whether a line may stand outside of calls: what comes before the first, counters of the processor behind any, and counts,
/// values and sizes at the end.
fn is_beside(line: &str, is_finalized: bool) -> bool {
    const BEFORE: [&str; 7] = [
        "version=",
        "starttime=",
        "hostname=",
        "username=",
        "meshdim=",
        "meshsize=",
        "meshcrd=",
    ];
    const BEHIND: [&str; 5] = [
        "Total keyvals: ",
        "Performance counters: ",
        "Function address ",
        "Datatype ",
        "    ",
    ];
    let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let counts = || line.contains(" called ") && line.ends_with(" times");
    line.is_empty()
        || begins(&BEFORE)
        || line.starts_with("Perfcounters: [")
        || is_finalized && (begins(&BEHIND) || counts() || line.contains('='))
}

/// The nanoseconds of `S.N, cputime ...`.
fn time(rest: &str) -> Result<u64, String> {
    let (seconds, cpu) = rest.split_once(',').unwrap_or((rest, ""));
    match nanos(seconds) {
        Some(nanos) if cpu.starts_with(" cputime ") => Ok(nanos),
        Some(_) => Err(format!("it ends behind '{seconds}': the line was cut")),
        None => Err(format!("'{seconds}' is no time")),
    }
}

/// Nanoseconds of `S.N`, without the rounding of floating-point numbers.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(digits.parse().ok()?)
}

struct Block<'a> {
    name: &'a str,
    at: u64,
    /// Where it begins.
    line: usize,
    arguments: Vec<(&'a str, &'a str)>,
}

impl<'a> Block<'a> {
    /// Takes an argument, `TYPE NAME=VALUE`. Those of two dimensions go over several lines.
    fn line(&mut self, line: &'a str) -> Result<(), String> {
        let argument = line.split_once('=').and_then(|(left, value)| {
            let (_, name) = left.rsplit_once(' ')?;
            // An array has its length behind its name.
            Some((name.split('[').next()?, value))
        });
        match argument {
            _ if line.starts_with("Perfcounters: [") || line.starts_with([',', ']']) => Ok(()),
            Some(argument) => {
                self.arguments.push(argument);
                Ok(())
            }
            None => Err(format!(
                "'{}' is no argument of {}",
                shortened(line),
                self.name
            )),
        }
    }

    fn text(&self, name: &str) -> Result<&str, String> {
        let mut all = self.arguments.iter();
        let found = all.find(|(known, _)| *known == name);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| format!("it has no argument '{name}'"))
    }

    /// The number before the name in parentheses, as in `-1 (MPI_ANY_SOURCE)`.
    fn number(&self, name: &str) -> Result<i64, String> {
        let text = self.text(name)?;
        let word = text.split(' ').next().unwrap_or_default();
        word.parse()
            .map_err(|_| format!("'{text}' of '{name}' is no number"))
    }

    /// The numbers of `[2, 3]`.
    fn list(&self, name: &str) -> Result<Vec<i64>, String> {
        let text = self.text(name)?.trim_start_matches('[');
        let inner = text.split(']').next().unwrap_or_default();
        let words = inner
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty());
        let numbers: Result<Vec<i64>, _> = words.map(str::parse).collect();
        numbers.map_err(|_| format!("'{text}' of '{name}' are no numbers"))
    }

    fn requests(&self, name: &str) -> Result<Vec<u64>, String> {
        Ok(self
            .list(name)?
            .into_iter()
            .map(i64::unsigned_abs)
            .collect())
    }

    fn is_null(&self, name: &str) -> Result<bool, String> {
        Ok(self.text(name)?.contains("MPI_PROC_NULL"))
    }

    fn receive(&self, importer: &Importer, source: &str, tag: &str) -> Result<Pattern, String> {
        importer.pattern(self.number(source)?, self.number(tag)?, self.context()?)
    }

    fn context(&self) -> Result<u16, String> {
        let number = self.number("comm")?;
        u16::try_from(number).map_err(|_| format!("communicator {number} is none"))
    }

    fn bytes(&self, count: &str, kind: &str) -> Result<u64, String> {
        let count = self.number(count)?.unsigned_abs();
        Ok(count.saturating_mul(size(self.text(kind)?)))
    }

    fn collective(&self, kind: Kind, is_one_of_all: bool) -> Result<Collective, String> {
        let bytes = match kind {
            Kind::Barrier => 0,
            Kind::Allgather | Kind::Alltoall => self.bytes("recvcount", "recvtype")?,
            _ => self.bytes("count", "datatype")?,
        };
        let root = match kind {
            Kind::Bcast | Kind::Reduce => self.number("root")?,
            _ => 0,
        };
        // Who is in another communicator is told nowhere.
        let is_of_world = self.text("comm")?.contains("MPI_COMM_WORLD");
        Ok(Collective {
            kind,
            root: u32::try_from(root).map_err(|_| format!("no rank has the number {root}"))?,
            context: self.context()?,
            bytes,
            is_of_all: is_of_world && is_one_of_all,
        })
    }

    fn send(&self, [to, tag, count, kind]: [&str; 4]) -> Result<Outgoing, String> {
        let dest = self.number(to)?;
        let number = self.number(tag)?;
        let bytes = self.bytes(count, kind)?;
        Ok(Outgoing {
            to: u32::try_from(dest).map_err(|_| format!("it sends to no rank, {dest}"))?,
            tag: i32::try_from(number).map_err(|_| format!("no tag has the number {number}"))?,
            context: self.context()?,
            bytes,
            synchronous: matches!(self.name, "MPI_Ssend" | "MPI_Issend"),
        })
    }

    fn import(&self, importer: &mut Importer) -> Result<(), String> {
        const SEND: [&str; 4] = ["dest", "tag", "count", "datatype"];
        match self.name {
            "MPI_Send" | "MPI_Bsend" | "MPI_Ssend" | "MPI_Rsend" if !self.is_null("dest")? => {
                let request = importer.send(self.send(SEND)?)?;
                importer.script.seen_at(self.at);
                importer.script.wait(vec![request]);
            }
            "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend"
                if !self.is_null("dest")? =>
            {
                let request = importer.send(self.send(SEND)?)?;
                for name in self.requests("request")? {
                    importer.name(name, request);
                }
            }
            "MPI_Recv" if !self.is_null("source")? => {
                let request = importer
                    .script
                    .post(self.receive(importer, "source", "tag")?);
                importer.script.seen_at(self.at);
                importer.script.wait(vec![request]);
            }
            "MPI_Irecv" if !self.is_null("source")? => {
                let request = importer
                    .script
                    .post(self.receive(importer, "source", "tag")?);
                for name in self.requests("request")? {
                    importer.name(name, request);
                }
            }
            "MPI_Sendrecv" => self.exchange(importer)?,
            "MPI_Wait" => self.wait(importer, self.requests("request")?),
            "MPI_Waitall" => self.wait(importer, self.requests("requests")?),
            "MPI_Waitany" => {
                let (all, one) = (self.requests("requests")?, self.number("index")?);
                let one = usize::try_from(one)
                    .ok()
                    .and_then(|place| all.get(place).copied());
                self.wait(importer, one.into_iter().collect());
            }
            "MPI_Waitsome" => {
                let (all, some) = (self.requests("requests")?, self.list("indices")?);
                let places = some
                    .into_iter()
                    .filter_map(|place| usize::try_from(place).ok());
                let some = places.filter_map(|place| all.get(place).copied()).collect();
                self.wait(importer, some);
            }
            "MPI_Test" => {
                if self.number("flag")? != 0 {
                    self.wait(importer, self.requests("request")?);
                }
            }
            "MPI_Probe" => importer
                .script
                .probe(self.receive(importer, "source", "tag")?),
            "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize" | "MPI_Comm_rank" | "MPI_Comm_size"
            | "MPI_Wtime" | "MPI_Get_count" => return Ok(()),
            other => {
                let is_one_of_all = importer.ranks.is_some();
                let read = |kind| self.collective(kind, is_one_of_all);
                return importer.collective(other, (self.at, self.line), read);
            }
        }
        importer.script.seen_at(self.at);
        Ok(())
    }

    fn wait(&self, importer: &mut Importer, names: Vec<u64>) {
        let waited = importer.named(names);
        importer.script.wait(waited);
    }

    fn exchange(&self, importer: &mut Importer) -> Result<(), String> {
        let mut requests = Vec::new();
        if !self.is_null("source")? {
            requests.push(
                importer
                    .script
                    .post(self.receive(importer, "source", "recvtag")?),
            );
            importer.script.seen_at(self.at);
        }
        if !self.is_null("dest")? {
            let outgoing = self.send(["dest", "sendtag", "sendcount", "sendtype"])?;
            requests.push(importer.send(outgoing)?);
            importer.script.seen_at(self.at);
        }
        importer.script.wait(requests);
        Ok(())
    }
}

/// Bytes of a basic type by its name; 1 for others, whose size a trace does not have.
fn size(kind: &str) -> u64 {
    let name = kind.split(['(', ')']).nth(1).unwrap_or_default();
    match name {
        "MPI_DOUBLE"
        | "MPI_LONG"
        | "MPI_UNSIGNED_LONG"
        | "MPI_LONG_LONG"
        | "MPI_LONG_LONG_INT"
        | "MPI_DOUBLE_PRECISION"
        | "MPI_COMPLEX" => 8,
        "MPI_INT" | "MPI_UNSIGNED" | "MPI_FLOAT" | "MPI_INTEGER" | "MPI_REAL" | "MPI_LOGICAL" => 4,
        "MPI_SHORT" | "MPI_UNSIGNED_SHORT" => 2,
        "MPI_DOUBLE_COMPLEX" | "MPI_LONG_DOUBLE" => 16,
        _ => 1,
    }
}
