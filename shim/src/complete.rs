//! Waiting for requests and testing them (MPI-5.0, section 3.7).

use crate::abi::{Comm, Request, SUCCESS, Status, UNDEFINED};
use crate::error::{Class, Error, On, Result};
use crate::process::Process;
use crate::raw::{Array, Ref, StatusRef, Statuses};
use crate::request::{DONE, End, Pending};

/// A request that a call was given, with what it has under way.
#[derive(Debug)]
struct Given {
    place: usize,
    request: Request,
    pending: Pending,
    comm: Comm,
}

impl Given {
    /// Whether it is counted by calls that wait for any: null and inactive ones are not.
    fn is_active(&self) -> bool {
        !matches!(self.pending, Pending::Inactive)
    }
}

/// Looks a request up. `None` for `MPI_REQUEST_NULL`.
fn given(process: &Process, place: usize, request: Request) -> Result<Option<Given>> {
    let (pending, comm) = match request {
        Request::NULL => return Ok(None),
        DONE => (Pending::Sent, Comm::SELF),
        _ => process.requests.pending(request)?,
    };
    Ok(Some(Given {
        place,
        request,
        pending,
        comm,
    }))
}

/// Looks up the active ones among `count` requests.
fn active(process: &Process, count: i32, requests: Array<Request>) -> Result<Vec<Given>> {
    let mut all = Vec::new();
    for place in 0..count_of(count)? {
        let one = given(process, place, requests.get(place))?;
        all.extend(one.filter(Given::is_active));
    }
    Ok(all)
}

fn count_of(count: i32) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::new(Class::Count, format!("the count is {count}")))
}

impl Process {
    /// Waits until a request has ended, and takes its end.
    fn await_end(&self, given: &Given) -> Result<End> {
        let requests = &self.requests;
        match &given.pending {
            Pending::Send(id) => {
                let ended = self.messenger.wait(*id, None)?;
                Ok(crate::request::end_of(&ended, None, true))
            }
            Pending::Recv(id, members) => {
                let ended = self.messenger.wait(*id, None)?;
                Ok(crate::request::end_of(&ended, members.as_deref(), false))
            }
            pending => {
                self.messenger
                    .progress_until(None, || Ok(requests.is_complete(pending).then_some(())))?;
                let end = requests.take(pending);
                Ok(end.unwrap_or(End::good(Status::EMPTY)))
            }
        }
    }

    /// Takes the end of a request that has ended; `None` where it has not.
    fn end_now(&self, given: &Given) -> Option<End> {
        self.requests.take(&given.pending)
    }

    /// Says that the end of a request was taken, to the caller and to the table.
    fn retire(&self, given: &Given) -> Request {
        match given.request {
            DONE => Request::NULL,
            request => self.requests.retire(request),
        }
    }
}

fn result(end: End, comm: Comm) -> Result {
    end.error
        .map_or(Ok(()), |error| Err(error.on(On::Comm(comm))))
}

/// `MPI_Wait`.
pub fn wait(process: &Process, request: Ref<Request>, status: StatusRef) -> Result {
    let Some(given) = given(process, 0, request.get()?)? else {
        status.set(Status::EMPTY);
        return Ok(());
    };
    let end = process.await_end(&given)?;
    status.set(end.status);
    request.set(process.retire(&given));
    result(end, given.comm)
}

/// `MPI_Test`.
pub fn test(process: &Process, request: Ref<Request>, flag: Ref<i32>, status: StatusRef) -> Result {
    let Some(given) = given(process, 0, request.get()?)? else {
        flag.set(1);
        status.set(Status::EMPTY);
        return Ok(());
    };
    process.messenger.progress()?;
    let Some(end) = process.end_now(&given) else {
        flag.set(0);
        return Ok(());
    };
    flag.set(1);
    status.set(end.status);
    request.set(process.retire(&given));
    result(end, given.comm)
}

/// Sets the statuses of several ends. Errors are in the statuses, where there are any.
fn settle(ends: Vec<(usize, Comm, End)>, statuses: Statuses) -> Result {
    let mut first = None;
    // The errors of statuses mean something where the call reports that they do.
    let has_failed = ends.iter().any(|(.., end)| end.error.is_some());
    for (place, comm, end) in ends {
        statuses.at(place).set(end.status);
        let code = end.error.as_ref().map_or(SUCCESS, Error::code);
        if has_failed {
            statuses.set_error(place, code);
        }
        if let Some(error) = end.error {
            first.get_or_insert_with(|| error.on(On::Comm(comm)));
        }
    }
    in_status(first)
}

/// Returns the error of a call on several requests (MPI-5.0, section 3.7.5).
fn in_status(first: Option<Error>) -> Result {
    match first {
        None => Ok(()),
        Some(error) => {
            let (on, text) = (error.raised_on(), error.text().to_owned());
            Err(Error::new(Class::InStatus, text).on(on))
        }
    }
}

/// `MPI_Waitall`.
pub fn waitall(
    process: &Process,
    count: i32,
    requests: Array<Request>,
    statuses: Statuses,
) -> Result {
    let mut all = Vec::with_capacity(count_of(count)?);
    let given = (0..count as usize).map(|place| requests.get(place));
    process
        .requests
        .pending_of_all(given, |request, pending, comm| {
            let place = all.len();
            all.push(Given {
                place,
                request,
                pending,
                comm,
            });
        })?;
    let (mut ends, mut waited) = (Vec::new(), 0);
    let mut failed = None;
    for one in &all {
        let end = match process.await_end(one) {
            Ok(end) => end,
            Err(error) => {
                failed = Some(error);
                break;
            }
        };
        waited += 1;
        if !statuses.are_ignored() || end.error.is_some() {
            ends.push((one.place, one.comm, end));
        }
    }
    // Those whose ends were taken are no more, also where the call fails at another.
    let ended = all[..waited].iter().map(|one| (one.place, one.request));
    let replace = |place, request| requests.set(place, request);
    process.requests.retire_all(ended, replace);
    failed.map_or(Ok(()), Err)?;
    settle(ends, statuses)
}

/// `MPI_Testall`.
pub fn testall(
    process: &Process,
    count: i32,
    requests: Array<Request>,
    flag: Ref<i32>,
    statuses: Statuses,
) -> Result {
    process.messenger.progress()?;
    let count = count_of(count)?;
    let mut all = Vec::with_capacity(count);
    for place in 0..count {
        all.extend(given(process, place, requests.get(place))?);
    }
    let is_complete = |given: &Given| process.requests.is_complete(&given.pending);
    if !all.iter().all(is_complete) {
        flag.set(0);
        return Ok(());
    }
    flag.set(1);
    (0..count).for_each(|place| statuses.at(place).set(Status::EMPTY));
    let mut ends = Vec::with_capacity(all.len());
    for given in all {
        let end = process.end_now(&given);
        requests.set(given.place, process.retire(&given));
        ends.push((
            given.place,
            given.comm,
            end.unwrap_or(End::good(Status::EMPTY)),
        ));
    }
    settle(ends, statuses)
}

/// Takes the end of the first that has ended: programs expect the one of the lowest index, as of other libraries.
fn any_end(process: &Process, all: &[Given]) -> Option<(usize, End)> {
    let given = all.iter().enumerate();
    given
        .filter(|(_, given)| process.requests.is_complete(&given.pending))
        .find_map(|(place, given)| Some((place, process.end_now(given)?)))
}

/// `MPI_Waitany`.
pub fn waitany(
    process: &Process,
    count: i32,
    requests: Array<Request>,
    index: Ref<i32>,
    status: StatusRef,
) -> Result {
    let all = active(process, count, requests)?;
    if all.is_empty() {
        index.set(UNDEFINED);
        status.set(Status::EMPTY);
        return Ok(());
    }
    let (place, end) = process
        .messenger
        .progress_until(None, || Ok(any_end(process, &all)))?;
    one(process, &all[place], end, requests, index, status)
}

/// `MPI_Testany`.
pub fn testany(
    process: &Process,
    count: i32,
    requests: Array<Request>,
    index: Ref<i32>,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    let all = active(process, count, requests)?;
    if all.is_empty() {
        flag.set(1);
        index.set(UNDEFINED);
        status.set(Status::EMPTY);
        return Ok(());
    }
    process.messenger.progress()?;
    match any_end(process, &all) {
        Some((place, end)) => {
            flag.set(1);
            one(process, &all[place], end, requests, index, status)
        }
        None => {
            flag.set(0);
            index.set(UNDEFINED);
            Ok(())
        }
    }
}

fn one(
    process: &Process,
    given: &Given,
    end: End,
    requests: Array<Request>,
    index: Ref<i32>,
    status: StatusRef,
) -> Result {
    index.set(given.place as i32);
    status.set(end.status);
    requests.set(given.place, process.retire(given));
    result(end, given.comm)
}

/// Takes all that have ended.
fn some_ends(process: &Process, all: &mut Vec<Given>) -> Vec<(Given, End)> {
    let mut ends = Vec::new();
    let mut place = 0;
    while place < all.len() {
        match process.end_now(&all[place]) {
            Some(end) => ends.push((all.remove(place), end)),
            None => place += 1,
        }
    }
    ends
}

fn report_some(
    process: &Process,
    ends: Vec<(Given, End)>,
    (requests, count, indices, statuses): (Array<Request>, Ref<i32>, Array<i32>, Statuses),
) -> Result {
    count.set(ends.len() as i32);
    let mut first = None;
    let has_failed = ends.iter().any(|(_, end)| end.error.is_some());
    for (number, (given, end)) in ends.into_iter().enumerate() {
        indices.set(number, given.place as i32);
        requests.set(given.place, process.retire(&given));
        statuses.at(number).set(end.status);
        let code = end.error.as_ref().map_or(SUCCESS, Error::code);
        if has_failed {
            statuses.set_error(number, code);
        }
        if let Some(error) = end.error {
            first.get_or_insert_with(|| error.on(On::Comm(given.comm)));
        }
    }
    in_status(first)
}

/// `MPI_Waitsome`.
pub fn waitsome(
    process: &Process,
    incount: i32,
    requests: Array<Request>,
    outcount: Ref<i32>,
    indices: Array<i32>,
    statuses: Statuses,
) -> Result {
    let mut all = active(process, incount, requests)?;
    if all.is_empty() {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    let ends = process.messenger.progress_until(None, || {
        let ends = some_ends(process, &mut all);
        Ok((!ends.is_empty()).then_some(ends))
    })?;
    report_some(process, ends, (requests, outcount, indices, statuses))
}

/// `MPI_Testsome`.
pub fn testsome(
    process: &Process,
    incount: i32,
    requests: Array<Request>,
    outcount: Ref<i32>,
    indices: Array<i32>,
    statuses: Statuses,
) -> Result {
    let mut all = active(process, incount, requests)?;
    if all.is_empty() {
        outcount.set(UNDEFINED);
        return Ok(());
    }
    process.messenger.progress()?;
    let ends = some_ends(process, &mut all);
    report_some(process, ends, (requests, outcount, indices, statuses))
}

/// `MPI_Start`.
pub fn start(process: &Process, request: Ref<Request>) -> Result {
    process.requests.start(request.get()?)
}

/// `MPI_Startall`.
pub fn startall(process: &Process, count: i32, requests: Array<Request>) -> Result {
    (0..count_of(count)?).try_for_each(|place| process.requests.start(requests.get(place)))
}

/// `MPI_Request_free`.
pub fn request_free(process: &Process, request: Ref<Request>) -> Result {
    let given = request.get()?;
    if given == Request::NULL {
        return Err(Error::new(
            Class::Request,
            "the request is MPI_REQUEST_NULL",
        ));
    }
    process.requests.free(given)?;
    request.set(Request::NULL);
    Ok(())
}

/// `MPI_Cancel`. Sends are not cancelled, which the standard allows (MPI-5.0, section 3.8.4).
pub fn cancel(process: &Process, request: Ref<Request>) -> Result {
    let given = given(process, 0, request.get()?)?;
    let given = given.ok_or_else(|| Error::new(Class::Request, "there is no such request"))?;
    if let Pending::Recv(id, _) = given.pending {
        process
            .messenger
            .cancel(id)
            .map_err(|error| Error::from(error).on(On::Comm(given.comm)))?;
    }
    if let Pending::Ongoing(ongoing) = &given.pending {
        ongoing
            .cancel()
            .map_err(|error| error.on(On::Comm(given.comm)))?;
    }
    Ok(())
}

/// `MPI_Test_cancelled`.
pub fn test_cancelled(_: &Process, status: StatusRef, flag: Ref<i32>) -> Result {
    flag.set(i32::from(status.get().is_cancelled()));
    Ok(())
}
