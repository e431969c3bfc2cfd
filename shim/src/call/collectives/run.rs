//! Calls of collectives in their forms, and how their operations are run.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;

use tagwire_coll as coll;
use tagwire_coll::operations::{CollectiveOperation, Parts, Root};

use super::buffers::Buffers;
use super::data::{Data, Side};
use crate::abi::{PROC_NULL, ROOT, Request};
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::comm::Communicator;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::process::Process;
use crate::raw::Ref;

/// The form of a call.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Blocking,
    Nonblocking(Ref<Request>),
    Persistent(Ref<Request>),
}

/// A call of a collective.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) process: &'a Process,
    pub(super) comm: &'a Arc<Communicator>,
    pub(super) form: Form,
}

impl Call<'_> {
    pub(super) const fn is_blocking(&self) -> bool {
        matches!(self.form, Form::Blocking)
    }

    /// Returns whether its communicator has one group.
    pub(super) fn is_intra(&self) -> bool {
        self.comm.sides().is_none()
    }

    /// Returns whether it may go by the [fast path](super::fast).
    pub(super) fn is_fast(&self) -> bool {
        self.is_blocking() && self.is_intra()
    }

    /// Returns how many blocks a buffer for all has: those of the members, or of the remote group's.
    pub(super) fn members(&self) -> usize {
        self.comm.peers().len()
    }

    /// Returns the root. In an intercommunicator it passes `MPI_ROOT`, the others of its group `MPI_PROC_NULL`, and the other group
    /// its rank (MPI-5.0, section 6.2.3).
    pub(super) fn root(&self, root: i32) -> Result<Root> {
        let size = self.members();
        let member = usize::try_from(root).ok().filter(|member| *member < size);
        match (self.is_intra(), root, member) {
            (true, _, Some(member)) => Ok(Root::Member(member)),
            (false, _, Some(member)) => Ok(Root::There(member)),
            (false, ROOT, _) => Ok(Root::Here),
            (false, PROC_NULL, _) => Ok(Root::Beside),
            (is_intra, _, None) => {
                let group = if is_intra { "group" } else { "remote group" };
                let text = format!("there is no rank {root} in a {group} of {size}");
                Err(Error::new(Class::Root, text))
            }
        }
    }

    /// Returns whether a root is this process.
    pub(super) fn is_root(&self, root: Root) -> bool {
        root.is_me(&self.comm.team)
    }

    /// Returns whether a side has no buffer of its own. Between two groups nothing is in place (MPI-5.0, section 6.2.3).
    pub(super) fn is_in_place(&self, side: Side) -> bool {
        side.is_in_place() && self.is_intra()
    }

    /// Returns the data of a side, unless it is in place.
    pub(super) fn input(
        &self,
        side: Side,
        data: impl FnOnce(Side) -> Result<Data>,
    ) -> Result<Option<Data>> {
        match self.is_in_place(side) {
            true => Ok(None),
            false => data(side).map(Some),
        }
    }

    /// Returns the lengths of the blocks of all, which are `data`.
    pub(super) fn parts(&self, all: Side, data: &Data) -> Parts<'static> {
        match all.equal_blocks() {
            Some(_) => Parts::Equal,
            None => Parts::Of(data.lengths(self.members()).into()),
        }
    }

    /// Returns the blocks of all.
    pub(super) fn all(&self, all: Side) -> Result<Data> {
        all.all(self.process, self.members())
    }

    /// Runs an operation in the form of the call. `make` returns it for the bytes of its buffers, for each round.
    pub(super) fn run<B: Buffers, O: CollectiveOperation + 'static>(
        &self,
        buffers: B,
        make: impl Fn(B::Lent) -> O + Send + Sync + 'static,
    ) -> Result {
        let (team, comm) = (&self.comm.team, self.comm.handle);
        match self.form {
            Form::Blocking => buffers.with(|lent| Ok(team.call(make(lent))?)),
            Form::Nonblocking(request) => {
                buffers.pack()?;
                // SAFETY: the program keeps its memory until the request is complete, and the request keeps the buffers.
                let started = unsafe { team.start(make(buffers.lend())) }?;
                let started = Started {
                    request: started,
                    buffers,
                };
                let pending = Pending::Operation(Arc::new(started));
                request.set(self.process.requests.enter(pending, comm)?);
                Ok(())
            }
            Form::Persistent(request) => {
                let buffers = Arc::new(buffers);
                let lent = Arc::clone(&buffers);
                // SAFETY: as above for each round, which begins when the last one has ended; the operation keeps the buffers,
                // and a round the operation.
                let made = unsafe { team.init(move || make(lent.lend())) }?;
                let made = Arc::new(Lock::new(made));
                let again = move || {
                    buffers.pack()?;
                    let round = Round {
                        made: Arc::clone(&made),
                        buffers: Arc::clone(&buffers),
                    };
                    round.made.lock().start()?;
                    Ok(Pending::Operation(Arc::new(round)))
                };
                let again = Box::new(again);
                request.set(self.process.requests.enter_persistent(again, comm)?);
                Ok(())
            }
        }
    }
}

/// A collective under way.
struct Started<B> {
    request: coll::Request,
    buffers: B,
}

impl<B> fmt::Debug for Started<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

impl<B: Buffers> PendingOperation for Started<B> {
    fn is_complete(&self) -> bool {
        self.request.is_complete()
    }

    fn take(&self) -> Option<End> {
        let end = self.request.take();
        end.map(|end| finished(end, &self.buffers))
    }
}

/// A round of a persistent collective under way.
struct Round<B> {
    made: Arc<Lock<coll::Persistent>>,
    buffers: Arc<B>,
}

impl<B> fmt::Debug for Round<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Round")
    }
}

impl<B: Buffers> PendingOperation for Round<B> {
    fn is_complete(&self) -> bool {
        self.made
            .lock()
            .round()
            .is_none_or(coll::Request::is_complete)
    }

    fn take(&self) -> Option<End> {
        let end = self.made.lock().take();
        end.map(|end| finished(end, &*self.buffers))
    }
}

/// Returns how an operation ended, once its result was unpacked.
fn finished(end: coll::Result<()>, buffers: &impl Buffers) -> End {
    End::of(end.map_err(Error::from).and_then(|()| buffers.unpack()))
}

/// Makes the three forms of calls: `blocking, nonblocking, persistent(parameters), name: body(arguments)`.
macro_rules! forms {
    ($($name:ident, $iname:ident, $init:ident($($parameter:ident: $Type:ty),*), $Name:literal:
        $family:ident::$body:ident($($argument:expr),*);)*) => {$(
        #[doc = concat!("`MPI_", $Name, "`.")]
        pub fn $name(process: &Process, $($parameter: $Type,)* comm: Comm) -> Result {
            on_comm(process, comm, |comm| {
                let call = Call { process, comm: &comm, form: Form::Blocking };
                $family::$body(&call, $($argument),*)
            })
        }

        #[doc = concat!("The nonblocking form of `MPI_", $Name, "`.")]
        pub fn $iname(
            process: &Process,
            $($parameter: $Type,)*
            comm: Comm,
            request: Ref<Request>,
        ) -> Result {
            on_comm(process, comm, |comm| {
                let call = Call { process, comm: &comm, form: Form::Nonblocking(request) };
                $family::$body(&call, $($argument),*)
            })
        }

        #[doc = concat!("The persistent form of `MPI_", $Name, "`.")]
        pub fn $init(
            process: &Process,
            $($parameter: $Type,)*
            comm: Comm,
            _info: Info,
            request: Ref<Request>,
        ) -> Result {
            on_comm(process, comm, |comm| {
                let call = Call { process, comm: &comm, form: Form::Persistent(request) };
                $family::$body(&call, $($argument),*)
            })
        }
    )*};
}

pub(super) use forms;
