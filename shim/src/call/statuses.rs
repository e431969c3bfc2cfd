//! Looking at several requests, which stay as they are (MPI-5.0, section 3.7.6).

use crate::abi::{Request, Status, UNDEFINED};
use crate::call::count_of;
use crate::error::{Class, On, Result};
use crate::process::Process;
use crate::raw::{Array, List, Ref, StatusRef, Statuses};

/// What a request is.
enum Seen {
    /// Null, or persistent and inactive.
    Inactive,
    Active,
    Complete(Status),
}

impl Seen {
    const fn is_active(&self) -> bool {
        !matches!(self, Self::Inactive)
    }
}

fn look(process: &Process, request: Request) -> Result<Seen> {
    let requests = &process.requests;
    if !requests.awaited(request)?.is_active() {
        return Ok(Seen::Inactive);
    }
    let end = requests.peek(request);
    let end = end.map_err(|error| error.on(On::Comm(requests.comm(request))))?;
    Ok(end.map_or(Seen::Active, Seen::Complete))
}

/// Looks at several, after progress.
fn look_at(process: &Process, count: i32, requests: List<Request>) -> Result<Vec<Seen>> {
    let count = count_of(count, Class::Count)?;
    process.messenger.progress()?;
    let requests = requests.slice(count).iter();
    requests.map(|request| look(process, *request)).collect()
}

/// `MPI_Request_get_status_any`.
pub fn request_get_status_any(
    process: &Process,
    count: i32,
    requests: List<Request>,
    index: Ref<i32>,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    let all = look_at(process, count, requests)?;
    let complete = all.iter().enumerate().find_map(|(place, seen)| match seen {
        Seen::Complete(seen) => Some((place as i32, *seen)),
        _ => None,
    });
    let none = !all.iter().any(Seen::is_active);
    flag.set(i32::from(none || complete.is_some()));
    index.set(complete.map_or(UNDEFINED, |(place, _)| place));
    if none {
        // An empty status has no error (MPI-5.0, section 3.7.3).
        status.change(|_| Status::EMPTY);
    }
    if let Some((_, seen)) = complete {
        status.set(seen);
    }
    Ok(())
}

/// `MPI_Request_get_status_all`.
pub fn request_get_status_all(
    process: &Process,
    count: i32,
    requests: List<Request>,
    flag: Ref<i32>,
    statuses: Statuses,
) -> Result {
    let all = look_at(process, count, requests)?;
    let are_complete = !all.iter().any(|seen| matches!(seen, Seen::Active));
    flag.set(i32::from(are_complete));
    if are_complete {
        for (place, seen) in all.into_iter().enumerate() {
            statuses.at(place).set(match seen {
                Seen::Complete(seen) => seen,
                _ => Status::EMPTY,
            });
        }
    }
    Ok(())
}

/// `MPI_Request_get_status_some`.
pub fn request_get_status_some(
    process: &Process,
    incount: i32,
    requests: List<Request>,
    outcount: Ref<i32>,
    indices: Array<i32>,
    statuses: Statuses,
) -> Result {
    let all = look_at(process, incount, requests)?;
    if !all.iter().any(Seen::is_active) {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    let mut number = 0;
    for (place, seen) in all.into_iter().enumerate() {
        if let Seen::Complete(seen) = seen {
            indices.set(number, place as i32);
            statuses.at(number).set(seen);
            number += 1;
        }
    }
    outcount.set(number as i32);
    Ok(())
}
