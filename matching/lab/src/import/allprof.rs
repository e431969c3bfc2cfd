//! What liballprof writes (Hoefler and others, the profiler of LogGOPSim): a call a line, its arguments by colons, between the times
//! of its begin and end in microseconds.
//!
//! ```text
//! MPI_Irecv:START:BUFFER:COUNT:TYPE,SIZE,..:SOURCE:TAG:COMM,RANK,SIZE:REQUEST:END
//! ```

use super::{Importer, pattern};
use crate::traffic::{Outgoing, Request};

pub(super) fn parse(text: &str, importer: &mut Importer) -> Result<(), String> {
    let mut begin = None;
    for (index, line) in text.lines().enumerate() {
        if !line.starts_with("MPI_") {
            continue;
        }
        let fields: Vec<&str> = line.split(':').collect();
        call(&fields, importer, &mut begin).map_err(|why| format!("line {}: {why}", index + 1))?;
    }
    Ok(())
}

fn call(fields: &[&str], importer: &mut Importer, begin: &mut Option<f64>) -> Result<(), String> {
    let name = fields[0];
    match name {
        "MPI_Init" | "MPI_Init_thread" | "MPI_Finalize" | "MPI_Comm_rank" | "MPI_Comm_size"
        | "MPI_Wtime" => {
            return Ok(());
        }
        _ => {}
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
    let seen: f64 = field(1)?
        .parse()
        .map_err(|_| format!("'{}' is no time", fields[1]))?;
    let at = ((seen - *begin.get_or_insert(seen)) * 1000.0).max(0.0) as u64;
    let bytes = || {
        let mut words = field(4)?.split(',').skip(1);
        let size: u64 = words
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or_default();
        Ok::<_, String>(size.saturating_mul(number(3)?.unsigned_abs()))
    };
    let context = || u16::try_from(number(7)?).map_err(|_| "its communicator is none".to_owned());
    let send = |synchronous| {
        let to = u32::try_from(number(5)?).map_err(|_| "it sends to no rank".to_owned())?;
        Ok::<_, String>(Outgoing {
            to,
            tag: i32::try_from(number(6)?).map_err(|_| "its tag is none".to_owned())?,
            context: context()?,
            bytes: bytes()?,
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
            let request = importer.script.send(send(name == "MPI_Ssend")?);
            importer.script.seen_at(at);
            importer.script.wait(vec![request]);
        }
        "MPI_Isend" | "MPI_Ibsend" | "MPI_Issend" | "MPI_Irsend" if !to_null()? => {
            let request = importer.script.send(send(name == "MPI_Issend")?);
            importer.script.seen_at(at);
            name_it(importer, request)?;
        }
        "MPI_Recv" if !from_null()? => {
            let request = importer
                .script
                .post(pattern(number(5)?, number(6)?, context()?)?);
            importer.script.seen_at(at);
            importer.script.wait(vec![request]);
        }
        "MPI_Irecv" if !from_null()? => {
            let request = importer
                .script
                .post(pattern(number(5)?, number(6)?, context()?)?);
            importer.script.seen_at(at);
            name_it(importer, request)?;
        }
        "MPI_Wait" => {
            let waited = importer.named(requests(2)?);
            importer.script.wait(waited);
        }
        "MPI_Waitall" => {
            let waited = importer.named(requests(3)?);
            importer.script.wait(waited);
        }
        other => return leave_out(importer, other),
    }
    importer.script.seen_at(at);
    Ok(())
}

fn leave_out(importer: &mut Importer, call: &str) -> Result<(), String> {
    importer.leave_out(call);
    Ok(())
}

/// Whether the source of a receive is `MPI_PROC_NULL`. Its values in MPICH (-1) and Open MPI (-2) are any source in the other, and
/// are taken for that.
const fn is_null(rank: i64) -> bool {
    rank < -2
}
