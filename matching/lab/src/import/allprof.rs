//! What liballprof writes (Hoefler and others, the profiler of LogGOPSim): a call a line, its arguments by colons, between the times
//! of its begin and end in microseconds.
//!
//! ```text
//! MPI_Irecv:START:BUFFER:COUNT:TYPE,SIZE,..:SOURCE:TAG:COMM,RANK,SIZE:REQUEST:END
//! ```

use super::calls::is_call;
use super::collectives::{Collective, Kind};
use super::{Importer, shortened};
use crate::traffic::{Outgoing, Request};

pub(super) fn parse(text: &str, importer: &mut Importer) -> Result<(), String> {
    let mut begin = None;
    let mut is_finalized = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let fields: Vec<&str> = line.split(':').collect();
        importer.script.at_line(index + 1);
        call(&fields, importer, (&mut begin, index + 1))
            .map_err(|why| format!("line {}: {why}", index + 1))?;
        importer.calls += 1;
        is_finalized |= fields[0] == "MPI_Finalize";
    }
    match is_finalized {
        true => Ok(()),
        false => Err(format!(
            "line {} is missing: the file ends without MPI_Finalize",
            text.lines().count() + 1
        )),
    }
}

fn call(
    fields: &[&str],
    importer: &mut Importer,
    (begin, line): (&mut Option<f64>, usize),
) -> Result<(), String> {
    let name = fields[0];
    if !is_call(name) {
        return Err(format!("MPI has no call '{}'", shortened(name)));
    }
    let field = |place: usize| {
        let field = fields.get(place);
        field
            .copied()
            .ok_or_else(|| format!("{name} has no argument {place}"))
    };
    let number = |place: usize| {
        let first = field(place)?.split(',').next().unwrap_or_default();
        first
            .parse::<i64>()
            .map_err(|_| format!("'{first}' is no number"))
    };
    let time = |text: &str| {
        let read = text.parse().ok();
        let read = read.filter(|time: &f64| time.is_finite());
        read.ok_or_else(|| format!("'{text}' is no time"))
    };
    let [_, first, .., last] = fields else {
        return Err(format!("{name} has no times of its begin and end"));
    };
    // The clock is read for the first time within MPI_Init, and for the last in MPI_Finalize.
    if *first == "-" && name.starts_with("MPI_Init") {
        return time(last).map(drop);
    }
    let seen = time(first)?;
    let end = match (name, *last) {
        ("MPI_Finalize", "-") => seen,
        _ => time(last)?,
    };
    if end < seen {
        return Err(format!(
            "{name} ends before it begins, at {last}: the line was cut"
        ));
    }
    match name {
        "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize" | "MPI_Comm_rank" | "MPI_Comm_size"
        | "MPI_Wtime" => {
            return Ok(());
        }
        _ => {}
    }
    let at = ((seen - *begin.get_or_insert(seen)) * 1000.0).max(0.0) as u64;
    // By the places of the count and of the type, which has its size behind its number.
    let bytes = |count: usize, kind: usize| {
        let mut words = field(kind)?.split(',').skip(1);
        let size: u64 = words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or_default();
        Ok::<_, String>(size.saturating_mul(number(count)?.unsigned_abs()))
    };
    let context = || u16::try_from(number(7)?).map_err(|_| "its communicator is none".to_owned());
    // The communicator has this rank's number and its size behind it.
    let within_communicator = |rank: u32| {
        let size = field(7)?
            .split(',')
            .nth(2)
            .and_then(|size| size.parse().ok());
        match size {
            Some(size) if rank >= size => Err(format!(
                "{name} is of rank {rank}, and its communicator has {size}"
            )),
            _ => Ok(()),
        }
    };
    let receive = |importer: &Importer| {
        let (source, tag) = (number(5)?, number(6)?);
        // Behind the status or the request.
        field(9)?;
        if let Ok(source) = u32::try_from(source) {
            within_communicator(source)?;
        }
        importer.pattern(source, tag, context()?)
    };
    let send = |synchronous| {
        let to = u32::try_from(number(5)?).map_err(|_| "it sends to no rank".to_owned())?;
        within_communicator(to)?;
        Ok::<_, String>(Outgoing {
            to,
            tag: i32::try_from(number(6)?).map_err(|_| "its tag is none".to_owned())?,
            context: context()?,
            bytes: bytes(3, 4)?,
            synchronous,
        })
    };
    let requests = |place: usize| -> Result<Vec<u64>, String> {
        let words = field(place)?.split([',', ';']);
        let names = words
            .filter(|word| !word.is_empty())
            .map(|word| word.trim().parse());
        let names: Result<Vec<u64>, _> = names.collect();
        names.map_err(|_| format!("'{}' are no requests", fields[place]))
    };
    let name_it = |importer: &mut Importer, request: Request| -> Result<(), String> {
        for name in requests(8)? {
            importer.name(name, request);
        }
        Ok(())
    };
    let to_null = || Ok::<_, String>(number(5)? < 0);
    let from_null = || Ok::<_, String>(is_null(number(5)?));
    match name {
        "MPI_Send" | "MPI_Bsend" | "MPI_Ssend" | "MPI_Rsend" if !to_null()? => {
            let request = importer.send(send(name == "MPI_Ssend")?)?;
            importer.script.seen_at(at);
            importer.script.wait(vec![request]);
        }
        "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend" if !to_null()? => {
            let request = importer.send(send(name == "MPI_Issend")?)?;
            importer.script.seen_at(at);
            name_it(importer, request)?;
        }
        "MPI_Recv" if !from_null()? => {
            let pattern = receive(importer)?;
            let request = importer.script.post(pattern);
            importer.script.seen_at(at);
            importer.script.wait(vec![request]);
        }
        "MPI_Irecv" if !from_null()? => {
            let pattern = receive(importer)?;
            let request = importer.script.post(pattern);
            importer.script.seen_at(at);
            name_it(importer, request)?;
        }
        "MPI_Wait" => {
            let waited = importer.named(requests(2)?);
            field(4)?;
            importer.script.wait(waited);
        }
        "MPI_Waitall" => {
            let waited = importer.named(requests(3)?);
            field(5)?;
            importer.script.wait(waited);
        }
        other => {
            let (own, ranks) = (importer.rank, importer.ranks);
            // Buffers come before counts, and the rank's number and the size of the communicator behind its own number.
            let read = |kind: Kind| {
                let (comm, root, bytes) = match kind {
                    Kind::Barrier => (2, None, 0),
                    Kind::Bcast => (6, Some(5), bytes(3, 4)?),
                    Kind::Reduce => (8, Some(7), bytes(4, 5)?),
                    Kind::Allreduce => (7, None, bytes(4, 5)?),
                    Kind::Allgather | Kind::Alltoall => (8, None, bytes(6, 7)?),
                };
                let root = root.map_or(Ok(0), number)?;
                let context = number(comm)?;
                let within: Vec<u32> = field(comm)?
                    .split(',')
                    .skip(1)
                    .filter_map(|word| word.parse().ok())
                    .collect();
                Ok::<_, String>(Collective {
                    kind,
                    root: u32::try_from(root)
                        .map_err(|_| format!("no rank has the number {root}"))?,
                    context: u16::try_from(context)
                        .map_err(|_| "its communicator is none".to_owned())?,
                    bytes,
                    is_of_all: ranks.is_some_and(|ranks| within == [own, ranks]),
                })
            };
            return importer.collective(other, (at, line), read);
        }
    }
    importer.script.seen_at(at);
    Ok(())
}

/// Whether the source of a receive is `MPI_PROC_NULL`. Its values in MPICH (-1) and Open MPI (-2) are any source in the other, and
/// are taken for that.
const fn is_null(rank: i64) -> bool {
    rank < -2
}
