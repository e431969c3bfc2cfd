//! Runs collectives in their forms: what those of groups and those of neighbours share.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_coll as coll;
use tagwire_coll::Team;
use tagwire_coll::operations::CollectiveOperation;

use crate::abi::Request;
use crate::call::collectives::data::Data;
use crate::error::{Class, Error, Result};
use crate::object::comm::Held;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::process::Process;
use crate::raw::Ref;

/// The form of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    Blocking,
    Nonblocking(Ref<Request>),
    Persistent(Ref<Request>),
}

/// What is done when an operation has ended well.
type Then = Arc<dyn Fn() -> Result + Send + Sync>;

/// A collective under way.
struct Started {
    request: coll::Request,
    then: Then,
}

/// A round of a persistent collective under way.
struct Round {
    made: Arc<Mutex<coll::Persistent>>,
    then: Then,
}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl fmt::Debug for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Round")
    }
}

impl PendingOperation for Started {
    fn is_complete(&self) -> bool {
        self.request.is_complete()
    }

    fn take(&self) -> Option<End> {
        self.request.take().map(|end| finished(end, &self.then))
    }
}

impl Round {
    fn held(&self) -> MutexGuard<'_, coll::Persistent> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingOperation for Round {
    fn is_complete(&self) -> bool {
        self.held().round().is_none_or(coll::Request::is_complete)
    }

    fn take(&self) -> Option<End> {
        let end = self.held().take();
        end.map(|end| finished(end, &self.then))
    }
}

fn finished(end: coll::Result<()>, then: &Then) -> End {
    End::of(end.map_err(Error::from).and_then(|()| then()))
}

/// What is done with data before an operation and after it.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    /// Packed before.
    pub(crate) fill: Vec<Arc<Data>>,
    /// Copied before, once all is packed.
    pub(crate) copy: Vec<(Arc<Data>, Arc<Data>)>,
    /// Unpacked after.
    pub(crate) drain: Vec<Arc<Data>>,
}

impl Moves {
    /// Takes input of a reduction in.
    pub(crate) fn packs(&mut self, data: &Arc<Data>) {
        if data.is_beside() {
            self.fill.push(Arc::clone(data));
        }
    }

    /// Takes the result of one in.
    pub(crate) fn unpacks(&mut self, data: &Arc<Data>) {
        if data.is_beside() {
            self.drain.push(Arc::clone(data));
        }
    }

    fn before(&self) -> Result {
        self.fill.iter().try_for_each(|data| data.fill())?;
        for (from, to) in &self.copy {
            to.write().copy_from_slice(from.read());
        }
        Ok(())
    }

    fn after(&self) -> Result {
        self.drain.iter().try_for_each(|data| data.drain())
    }
}

/// Runs an operation in its form. `make` returns it, for each round.
pub(crate) fn run<O: CollectiveOperation + 'static>(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    moves: Moves,
    make: impl Fn() -> O + Send + Sync + 'static,
) -> Result {
    let team: &Arc<Team> = &comm.team;
    match form {
        Form::Blocking => {
            moves.before()?;
            team.call(make())?;
            moves.after()
        }
        Form::Nonblocking(request) => {
            moves.before()?;
            // SAFETY: the program keeps its buffers until the request is complete, and the request keeps `make`, by which all
            // is held that the operation was made of.
            let started = unsafe { team.start(make()) }?;
            // Data that was packed can be unpacked.
            let then: Then = Arc::new(move || {
                let _ = &make;
                moves.after()
            });
            let started = Started {
                request: started,
                then,
            };
            let pending = Pending::Operation(Arc::new(started));
            request.set(process.requests.enter(pending, comm.handle)?);
            Ok(())
        }
        Form::Persistent(request) => {
            // SAFETY: the same for each round; the operation keeps `make` itself, and a round the operation.
            let made = unsafe { team.init(make) }?;
            let made = Arc::new(Mutex::new(made));
            let moves = Arc::new(moves);
            let moves_after = Arc::clone(&moves);
            let then: Then = Arc::new(move || moves_after.after());
            let again = move || {
                moves.before()?;
                made.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .start()?;
                Ok(Pending::Operation(Arc::new(Round {
                    made: Arc::clone(&made),
                    then: Arc::clone(&then),
                })))
            };
            let entered = process
                .requests
                .enter_persistent(Box::new(again), comm.handle)?;
            request.set(entered);
            Ok(())
        }
    }
}

/// Returns the error of a call that does not allow `MPI_IN_PLACE`.
pub(crate) fn in_place() -> Error {
    Error::new(Class::Buffer, "MPI_IN_PLACE is not allowed here")
}

/// Makes the three forms of calls: `blocking, nonblocking, persistent by body: arguments`, with the body for intercommunicators
/// where they have the call.
macro_rules! forms {
    (@to $body:ident; $process:ident, $comm:ident, $form:ident, $($argument:ident),*) => {{
        $comm.check_intra()?;
        $body($process, $comm, $form, $($argument),*)
    }};
    (@to $body:ident $inter:ident; $process:ident, $comm:ident, $form:ident, $($argument:ident),*) => {
        match $comm.sides() {
            None => $body($process, $comm, $form, $($argument),*),
            Some(_) => $inter($process, &$comm, $form, $($argument),*),
        }
    };
    ($($name:ident, $iname:ident, $init:ident by $body:ident $(between $inter:ident)? ($($argument:ident: $Type:ty),*), $Name:literal;)*) => {$(
        #[doc = concat!("`MPI_", $Name, "`.")]
        pub fn $name(
            process: &$crate::Process,
            $($argument: $Type,)*
            comm: $crate::abi::Comm,
        ) -> $crate::Result {
            let form = $crate::call::collectives::run::Form::Blocking;
            $crate::call::p2p::on_comm(process, comm, |comm| {
                $crate::call::collectives::run::forms!(@to $body $($inter)?; process, comm, form, $($argument),*)
            })
        }

        #[doc = concat!("The nonblocking form of `MPI_", $Name, "`.")]
        pub fn $iname(
            process: &$crate::Process,
            $($argument: $Type,)*
            comm: $crate::abi::Comm,
            request: $crate::raw::Ref<$crate::abi::Request>,
        ) -> $crate::Result {
            let form = $crate::call::collectives::run::Form::Nonblocking(request);
            $crate::call::p2p::on_comm(process, comm, |comm| {
                $crate::call::collectives::run::forms!(@to $body $($inter)?; process, comm, form, $($argument),*)
            })
        }

        #[doc = concat!("The persistent form of `MPI_", $Name, "`.")]
        pub fn $init(
            process: &$crate::Process,
            $($argument: $Type,)*
            comm: $crate::abi::Comm,
            _info: $crate::abi::Info,
            request: $crate::raw::Ref<$crate::abi::Request>,
        ) -> $crate::Result {
            let form = $crate::call::collectives::run::Form::Persistent(request);
            $crate::call::p2p::on_comm(process, comm, |comm| {
                $crate::call::collectives::run::forms!(@to $body $($inter)?; process, comm, form, $($argument),*)
            })
        }
    )*};
}

pub(crate) use forms;
