//! Generalized requests: operations of the program (MPI-5.0, section 13.2).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tagwire_pml::Messenger;

use crate::abi::{Comm, Request, Status};
use crate::callbacks::{GrequestCancelFunction, GrequestFreeFunction, GrequestQueryFunction};
use crate::error::{Error, Result};
use crate::functions::{cancel_operation, free_operation, query_operation};
use crate::lock::Lock;
use crate::object::pending::{End, Freed, Look, Pending, PendingOperation};
use crate::process::Process;
use crate::raw::{Pointer, Ref};

/// An operation of the program.
struct Generalized {
    messenger: Arc<Messenger>,
    query: GrequestQueryFunction,
    free: GrequestFreeFunction,
    cancel: GrequestCancelFunction,
    extra: Pointer,
    is_complete: AtomicBool,
    state: Lock<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What the program has said of the end, and with which code: it is asked once.
    queried: Option<(Status, i32)>,
    /// The request was freed.
    is_released: bool,
    /// What the program keeps of it was freed.
    is_freed: bool,
}

impl fmt::Debug for Generalized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Generalized")
    }
}

impl Generalized {
    /// Asks the program how the operation ended.
    fn queried(&self) -> (Status, i32) {
        if let Some(known) = self.state.lock().queried {
            return known;
        }
        let told = query_operation(self.query, self.extra);
        *self.state.lock().queried.get_or_insert(told)
    }

    /// Has the program free what it keeps, once.
    fn release(&self) -> Result {
        let is_freed = std::mem::replace(&mut self.state.lock().is_freed, true);
        match is_freed {
            true => Ok(()),
            false => free_operation(self.free, self.extra),
        }
    }
}

impl PendingOperation for Generalized {
    fn is_complete(&self) -> bool {
        self.is_complete.load(SeqCst)
    }

    fn take(&self) -> Option<End> {
        if !self.is_complete() {
            return None;
        }
        let (status, code) = self.queried();
        let freed = self.release();
        let error = failed(code).err().or_else(|| freed.err());
        Some(End { status, error })
    }

    fn look(&self) -> Look {
        if !self.is_complete() {
            return Look::UnderWay;
        }
        let (status, code) = self.queried();
        Look::Ended(failed(code).map(|()| status))
    }

    fn cancel(&self) -> Result {
        cancel_operation(self.cancel, self.extra, self.is_complete.load(SeqCst))
    }

    fn free(&self) -> Result<Freed> {
        self.state.lock().is_released = true;
        if !self.is_complete.load(SeqCst) {
            return Ok(Freed::Kept);
        }
        self.release().map(|()| Freed::Gone)
    }

    fn complete(&self) -> Result<bool> {
        self.is_complete.store(true, SeqCst);
        self.messenger.notify();
        Ok(self.state.lock().is_released)
    }
}

/// Returns the error of a code that a function has returned.
fn failed(code: i32) -> Result {
    match code {
        crate::abi::SUCCESS => Ok(()),
        _ => {
            let text = format!("the function that queries a generalized request returned {code}");
            Err(Error::of_code(code, text))
        }
    }
}

/// `MPI_Grequest_start`.
pub fn grequest_start(
    process: &Process,
    query: GrequestQueryFunction,
    free: GrequestFreeFunction,
    cancel: GrequestCancelFunction,
    extra: Pointer,
    request: Ref<Request>,
) -> Result {
    let generalized = Generalized {
        messenger: Arc::clone(&process.messenger),
        query,
        free,
        cancel,
        extra,
        is_complete: AtomicBool::new(false),
        state: Lock::default(),
    };
    let pending = Pending::Operation(Arc::new(generalized));
    request.set(process.requests.enter(pending, Comm::SELF)?);
    Ok(())
}

/// `MPI_Grequest_complete`.
pub fn grequest_complete(process: &Process, request: Request) -> Result {
    let operation = process.requests.operation(request)?;
    match operation.complete()? {
        // It was kept for this call. Who freed it meanwhile may have seen that it has ended, and then there is none any more.
        true => {
            let _ = process.requests.free(request);
            Ok(())
        }
        false => Ok(()),
    }
}
