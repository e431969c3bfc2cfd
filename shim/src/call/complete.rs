//! Waiting for requests and testing them (MPI-5.0, section 3.7).

use std::mem;

use tagwire_pml::RequestId;

use crate::abi::{Request, SUCCESS, Status, UNDEFINED};
use crate::call::count_of;
use crate::error::{Class, Error, On, Result};
use crate::object::request::{Awaited, DONE, Messages, Settled};
use crate::process::Process;
use crate::raw::{Array, Ref, StatusRef, Statuses};

/// A request that a call was given, with what is waited for.
#[derive(Debug)]
struct Given {
    place: usize,
    request: Request,
    awaited: Awaited,
}

/// Looks `count` requests up.
fn all_given(process: &Process, count: i32, requests: Array<Request>) -> Result<Vec<Given>> {
    let count = count_of(count, Class::Count)?;
    let mut all = Vec::with_capacity(count);
    let given = (0..count).map(|place| requests.get(place));
    process.requests.awaited_all(given, |request, awaited| {
        let place = all.len();
        all.push(Given {
            place,
            request,
            awaited,
        });
    })?;
    Ok(all)
}

/// The same for the active ones among them.
fn active(process: &Process, count: i32, requests: Array<Request>) -> Result<Vec<Given>> {
    let mut all = all_given(process, count, requests)?;
    all.retain(|given| given.awaited.is_active());
    Ok(all)
}

impl Process {
    /// Waits until a request has ended, and takes its end.
    fn settle(&self, request: Request, awaited: &Awaited) -> Result<Settled> {
        let on = |error: tagwire_pml::Error| {
            Error::from(error).on(On::Comm(self.requests.comm(request)))
        };
        match awaited {
            Awaited::Message(id) => {
                let ended = self.messenger.wait(*id, None).map_err(on)?;
                self.requests.settle(request, Some(&ended))
            }
            Awaited::Inactive | Awaited::Ended => {
                // What was sent may wait to leave with other messages.
                self.messenger.flush().map_err(on)?;
                self.requests.settle(request, None)
            }
            Awaited::Operation(operation) => {
                let look = || Ok(operation.take());
                let end = self.messenger.progress_until(None, look).map_err(on)?;
                self.requests.settle_with(request, end)
            }
        }
    }
}

/// `MPI_Wait`.
pub fn wait(process: &Process, request: Ref<Request>, status: StatusRef) -> Result {
    let given = request.get()?;
    if given == DONE {
        if !process.messenger.at_once().pass() {
            process.messenger.wait(RequestId::COMPLETE, None)?;
        }
        request.set(Request::NULL);
        status.set(Status::EMPTY);
        return Ok(());
    }
    match process.requests.try_wait(given, status) {
        Some(retired) => {
            request.set(retired);
            Ok(())
        }
        None => wait_slow(process, request, status),
    }
}

#[inline(never)]
fn wait_slow(process: &Process, request: Ref<Request>, status: StatusRef) -> Result {
    let given = request.get()?;
    let awaited = process.requests.awaited(given)?;
    let settled = process.settle(given, &awaited)?;
    status.set(settled.end.status);
    request.set(settled.request);
    settled.outcome()
}

/// `MPI_Test`.
pub fn test(process: &Process, request: Ref<Request>, flag: Ref<i32>, status: StatusRef) -> Result {
    let id = process.requests.try_message(request.get()?);
    if id.is_some_and(|id| process.messenger.at_once().is_pending(id)) {
        flag.set(0);
        return Ok(());
    }
    test_slow(process, id, request, flag, status)
}

/// The same where something may have happened, of a request that waits for message `id`, if it is known to.
#[inline(never)]
fn test_slow(
    process: &Process,
    id: Option<RequestId>,
    request: Ref<Request>,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    let given = request.get()?;
    let settled = match id.and_then(|id| process.messenger.at_once().test(id)) {
        Some(None) => None,
        Some(Some(ended)) => Some(process.requests.settle(given, Some(&ended))?),
        None => {
            let awaited = process.requests.awaited(given)?;
            process.messenger.progress()?;
            process.requests.take(given, &awaited)?
        }
    };
    tested(settled, request, flag, status)
}

fn tested(
    settled: Option<Settled>,
    request: Ref<Request>,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    flag.set(i32::from(settled.is_some()));
    let Some(settled) = settled else {
        return Ok(());
    };
    status.set(settled.end.status);
    request.set(settled.request);
    settled.outcome()
}

/// `MPI_Request_get_status`.
pub fn request_get_status(
    process: &Process,
    request: Request,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    process.messenger.progress()?;
    let end = match request {
        Request::NULL => Some(Status::EMPTY),
        _ => process.requests.peek(request)?,
    };
    flag.set(i32::from(end.is_some()));
    if let Some(end) = end {
        status.set(end);
    }
    Ok(())
}

/// What a call on several requests has to say of their errors (MPI-5.0, section 3.7.5).
#[derive(Debug, Default)]
struct Errors {
    /// Of each request that ended, in the order of their statuses. Empty as long as there is none.
    codes: Vec<i32>,
    first: Option<Error>,
}

impl Errors {
    /// Notes the end of the request whose status is at `place`.
    #[inline]
    fn note(&mut self, place: usize, settled: Settled) {
        if settled.end.error.is_some() {
            self.fail(place, settled);
        }
    }

    #[cold]
    fn fail(&mut self, place: usize, settled: Settled) {
        if let Err(error) = settled.outcome() {
            self.codes.resize(self.codes.len().max(place), SUCCESS);
            self.codes.push(error.code());
            self.first.get_or_insert(error);
        }
    }

    /// Sets the errors of `count` statuses, which mean something where the call reports that they do, and returns that.
    fn report(mut self, count: usize, statuses: Statuses) -> Result {
        let Some(first) = self.first else {
            return Ok(());
        };
        self.codes.resize(count, SUCCESS);
        for (place, code) in self.codes.into_iter().enumerate() {
            statuses.set_error(place, code);
        }
        let (on, text) = (first.raised_on(), first.text().to_owned());
        Err(Error::new(Class::InStatus, text).on(on))
    }
}

/// `MPI_Waitall`.
pub fn waitall(
    process: &Process,
    count: i32,
    requests: Array<Request>,
    statuses: Statuses,
) -> Result {
    let number = count_of(count, Class::Count)?;
    let mut errors = Errors::default();
    let mut place = 0;
    let mut is_checked = false;
    while place < number {
        match process
            .requests
            .try_wait_each(place..number, requests, statuses)
        {
            Some(next) => place = next,
            // Other threads come in between: the table is entered for all at once.
            None if place == 0 => {
                let given = (0..number).map(|place| requests.get(place));
                if let Some(messages) = process.requests.messages(given)? {
                    return wait_for_messages(process, number, &messages, requests, statuses);
                }
            }
            None => {}
        }
        if place < number {
            if !mem::replace(&mut is_checked, true) {
                process
                    .requests
                    .check((place..number).map(|place| requests.get(place)))?;
            }
            // Those whose ends were taken are no more, also where the call fails at another.
            errors.note(place, wait_for_one(process, place, requests, statuses)?);
            place += 1;
        }
    }
    if !process.messenger.at_once().pass() {
        process.messenger.wait(RequestId::COMPLETE, None)?;
    }
    errors.report(number, statuses)
}

/// Waits for one of several requests, whatever it waits for.
#[inline(never)]
fn wait_for_one(
    process: &Process,
    place: usize,
    requests: Array<Request>,
    statuses: Statuses,
) -> Result<Settled> {
    let given = requests.get(place);
    let awaited = process.requests.awaited(given)?;
    let settled = process.settle(given, &awaited)?;
    requests.set(place, settled.request);
    show(statuses, place, &settled, &awaited);
    Ok(settled)
}

/// Writes status `number`.
fn show(statuses: Statuses, number: usize, settled: &Settled, awaited: &Awaited) {
    statuses.at(number).set(settled.end.status);
    if awaited.shows_success() {
        statuses.set_error(number, SUCCESS);
    }
}

/// Waits for requests that have messages under way, or nothing.
fn wait_for_messages(
    process: &Process,
    number: usize,
    messages: &Messages,
    requests: Array<Request>,
    statuses: Statuses,
) -> Result {
    let mut ends = Vec::with_capacity(messages.ids.len());
    let waited = process
        .messenger
        .wait_each(&messages.ids, |_, ended| ends.push(*ended));
    // Where that fails, those before have ended, and are no more.
    let ended = match &waited {
        Ok(()) => number,
        Err(_) => messages.place(ends.len()).unwrap_or(number),
    };
    let mut errors = Errors::default();
    process.requests.settle_all(
        (0..ended).map(|place| requests.get(place)),
        messages,
        &ends,
        !statuses.are_ignored(),
        |place, request| requests.set(place, request),
        |place, settled| {
            requests.set(place, settled.request);
            statuses.at(place).set(settled.end.status);
            errors.note(place, settled);
        },
    )?;
    waited?;
    errors.report(number, statuses)
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
    let all = all_given(process, count, requests)?;
    let is_complete = |given: &Given| process.requests.is_complete(&given.awaited);
    if !all.iter().all(is_complete) {
        flag.set(0);
        return Ok(());
    }
    flag.set(1);
    let mut errors = Errors::default();
    for given in &all {
        let settled = process.settle(given.request, &given.awaited)?;
        requests.set(given.place, settled.request);
        show(statuses, given.place, &settled, &given.awaited);
        errors.note(given.place, settled);
    }
    errors.report(all.len(), statuses)
}

/// Takes the end of the first that has ended: programs expect the one of the lowest index, as of other libraries.
fn any_end(process: &Process, all: &[Given]) -> Result<Option<(usize, Settled)>> {
    for given in all {
        if process.requests.is_complete(&given.awaited)
            && let Some(settled) = process.requests.take(given.request, &given.awaited)?
        {
            return Ok(Some((given.place, settled)));
        }
    }
    Ok(None)
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
    let (place, settled) = wait_until(process, || any_end(process, &all))?;
    one(place, settled, requests, index, status)
}

/// Makes progress until `look` finds something.
fn wait_until<T>(process: &Process, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    process.messenger.progress_until(None, || {
        Ok(match look() {
            Ok(None) => None,
            Ok(Some(found)) => Some(Ok(found)),
            Err(error) => Some(Err(error)),
        })
    })?
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
    match any_end(process, &all)? {
        Some((place, settled)) => {
            flag.set(1);
            one(place, settled, requests, index, status)
        }
        None => {
            flag.set(0);
            index.set(UNDEFINED);
            Ok(())
        }
    }
}

fn one(
    place: usize,
    settled: Settled,
    requests: Array<Request>,
    index: Ref<i32>,
    status: StatusRef,
) -> Result {
    index.set(place as i32);
    status.set(settled.end.status);
    requests.set(place, settled.request);
    settled.outcome()
}

/// Ends that were taken, with their requests, and what then kept others from being taken.
#[derive(Debug, Default)]
struct Ends {
    taken: Vec<(Given, Settled)>,
    error: Option<Error>,
}

impl Ends {
    const fn are_none(&self) -> bool {
        self.taken.is_empty() && self.error.is_none()
    }
}

/// Takes all that have ended.
fn some_ends(process: &Process, all: &mut Vec<Given>) -> Ends {
    let mut ends = Ends::default();
    for given in std::mem::take(all) {
        match process.requests.take(given.request, &given.awaited) {
            Ok(Some(settled)) => ends.taken.push((given, settled)),
            Ok(None) => all.push(given),
            Err(error) => {
                let on = || error.on(On::Comm(process.requests.comm(given.request)));
                ends.error.get_or_insert_with(on);
            }
        }
    }
    ends
}

/// Reports the ends that were taken also where others could not be: their requests are no more.
fn report_some(
    ends: Ends,
    requests: Array<Request>,
    count: Ref<i32>,
    indices: Array<i32>,
    statuses: Statuses,
) -> Result {
    count.set(ends.taken.len() as i32);
    let mut errors = Errors::default();
    let number = ends.taken.len();
    for (number, (given, settled)) in ends.taken.into_iter().enumerate() {
        indices.set(number, given.place as i32);
        requests.set(given.place, settled.request);
        show(statuses, number, &settled, &given.awaited);
        errors.note(number, settled);
    }
    let reported = errors.report(number, statuses);
    ends.error.map_or(reported, Err)
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
    let ends = wait_until(process, || {
        let ends = some_ends(process, &mut all);
        Ok((!ends.are_none()).then_some(ends))
    })?;
    report_some(ends, requests, outcount, indices, statuses)
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
    report_some(ends, requests, outcount, indices, statuses)
}

/// `MPI_Start`.
pub fn start(process: &Process, request: Ref<Request>) -> Result {
    process.requests.start(request.get()?)
}

/// `MPI_Startall`.
pub fn startall(process: &Process, count: i32, requests: Array<Request>) -> Result {
    (0..count_of(count, Class::Count)?)
        .try_for_each(|place| process.requests.start(requests.get(place)))
}

/// `MPI_Request_free`.
pub fn request_free(process: &Process, request: Ref<Request>) -> Result {
    process.requests.free(request.get()?)?;
    request.set(Request::NULL);
    Ok(())
}

/// `MPI_Cancel`. Sends are not cancelled, which the standard allows (MPI-5.0, section 3.8.4).
pub fn cancel(process: &Process, request: Ref<Request>) -> Result {
    let given = request.get()?;
    let outcome = process.requests.cancel(given);
    outcome.map_err(|error| error.on(On::Comm(process.requests.comm(given))))
}

/// `MPI_Test_cancelled`.
pub fn test_cancelled(_: &Process, status: StatusRef, flag: Ref<i32>) -> Result {
    flag.set(i32::from(status.get().is_cancelled()));
    Ok(())
}
