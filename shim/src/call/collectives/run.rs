//! Calls of collectives in their forms: the buffers of an operation, and how it is run.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tagwire_coll as coll;
use tagwire_coll::Collective;
use tagwire_coll::operations::{Bystander, CollectiveOperation, InterRoot};

use super::data::{Data, Side};
use crate::abi::{PROC_NULL, ROOT, Request};
use crate::error::{Class, Error, Result};
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

/// The root of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Root {
    /// A member of the one group.
    Member(usize),
    /// One of two groups.
    Inter(InterRoot),
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

    /// Returns the root; `None` to the others of its group in an intercommunicator, where it passes `MPI_ROOT`, these
    /// `MPI_PROC_NULL`, and the other group its rank (MPI-5.0, section 6.2.3).
    pub(super) fn root(&self, root: i32) -> Result<Option<Root>> {
        let size = self.members();
        let member = usize::try_from(root).ok().filter(|member| *member < size);
        match (self.is_intra(), root, member) {
            (true, _, Some(member)) => Ok(Some(Root::Member(member))),
            (false, _, Some(member)) => Ok(Some(Root::Inter(InterRoot::There(member)))),
            (false, ROOT, _) => Ok(Some(Root::Inter(InterRoot::Here))),
            (false, PROC_NULL, _) => Ok(None),
            (is_intra, _, None) => {
                let group = if is_intra { "group" } else { "remote group" };
                let text = format!("there is no rank {root} in a {group} of {size}");
                Err(Error::new(Class::Root, text))
            }
        }
    }

    /// Returns whether a root is this process.
    pub(super) fn is_root(&self, root: Root) -> bool {
        match root {
            Root::Member(member) => self.comm.team.me() == member,
            Root::Inter(root) => root == InterRoot::Here,
        }
    }

    /// Takes part in an operation whose root is another of this group.
    pub(super) fn stand_by(&self, of: Collective) -> Result {
        self.run(Pair::none(), move |_| Bystander { of })
    }

    /// Returns what this process gives to a gather: its data, or, in place, its block of `all`. Between two groups nothing is in
    /// place (MPI-5.0, section 6.2.3).
    pub(super) fn own(&self, own: Side, all: Option<Side>) -> Result<Data> {
        match all.filter(|_| own.is_in_place() && self.is_intra()) {
            Some(all) => all.copy_of_block(self.process, self.comm.team.me()),
            None => own.block(self.process, 0),
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
                let made = Arc::new(Mutex::new(made));
                let again = move || {
                    buffers.pack()?;
                    let round = Round {
                        made: Arc::clone(&made),
                        buffers: Arc::clone(&buffers),
                    };
                    round.held().start()?;
                    Ok(Pending::Operation(Arc::new(round)))
                };
                let again = Box::new(again);
                request.set(self.process.requests.enter_persistent(again, comm)?);
                Ok(())
            }
        }
    }
}

/// The buffers of an operation.
pub(super) trait Buffers: Send + Sync + 'static {
    /// Their bytes, as the operation finds them.
    type Lent;

    /// Makes the buffers ready: packs data.
    fn pack(&self) -> Result;

    /// Unpacks the result.
    fn unpack(&self) -> Result;

    /// Returns the bytes.
    ///
    /// # Safety
    /// While they are used the program keeps its memory for the operation, nobody else uses the buffers, and these stay.
    unsafe fn lend(&self) -> Self::Lent;

    /// Runs an operation that is over when `operation` returns.
    fn with(&self, operation: impl FnOnce(Self::Lent) -> Result) -> Result {
        self.pack()?;
        // SAFETY: the operation ends before the call of the program does, and before the buffers go.
        operation(unsafe { self.lend() })?;
        self.unpack()
    }
}

/// What an operation reads, and what it writes.
#[derive(Debug)]
pub(super) struct Pair {
    input: Data,
    output: Data,
    first: First,
    /// Whether the output is the program's result.
    has_result: bool,
}

/// What the output has when the operation begins.
#[derive(Debug, Clone, Copy)]
enum First {
    Nothing,
    /// What the program has there.
    Own,
    /// What the input has.
    Input,
}

impl Pair {
    /// Returns buffers of nothing.
    pub(super) const fn none() -> Self {
        Self::received(Data::none())
    }

    /// Returns a buffer that the operation writes.
    pub(super) const fn received(output: Data) -> Self {
        Self {
            input: Data::none(),
            output,
            first: First::Nothing,
            has_result: true,
        }
    }

    /// Returns a buffer that the operation reads and writes.
    pub(super) const fn in_place(output: Data) -> Self {
        Self::received(output).with_output()
    }

    /// Returns a buffer that the operation may write, and does not: it sends it.
    pub(super) const fn sent(data: Data) -> Self {
        let mut buffers = Self::in_place(data);
        buffers.has_result = false;
        buffers
    }

    /// Returns buffers that the operation reads, and writes.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where both are in the same memory.
    pub(super) fn new(input: Data, output: Data) -> Result<Self> {
        input.check_disjoint(&output)?;
        Ok(Self {
            input,
            ..Self::received(output)
        })
    }

    /// Returns the same for an operation that reads the output too.
    pub(super) const fn with_output(mut self) -> Self {
        self.first = First::Own;
        self
    }

    /// Returns the same for an operation that reads its input in the output.
    pub(super) const fn over_input(mut self) -> Self {
        if matches!(self.first, First::Nothing) {
            self.first = First::Input;
        }
        self
    }

    pub(super) const fn input(&self) -> &Data {
        &self.input
    }

    pub(super) const fn output(&self) -> &Data {
        &self.output
    }
}

impl Buffers for Pair {
    type Lent = (&'static [u8], &'static mut [u8]);

    fn pack(&self) -> Result {
        self.input.pack()?;
        match self.first {
            First::Nothing => {}
            First::Own => self.output.pack()?,
            First::Input => {
                let (from, bytes) = (self.input.place().read(), self.input.len());
                self.output.place().copy(from, bytes);
            }
        }
        Ok(())
    }

    fn unpack(&self) -> Result {
        match self.has_result {
            true => self.output.unpack(),
            false => Ok(()),
        }
    }

    unsafe fn lend(&self) -> Self::Lent {
        // SAFETY: the caller's promise.
        unsafe { (read(&self.input), written(&self.output)) }
    }
}

/// What an operation with neighbours reads, and what it writes: a block for each edge.
#[derive(Debug)]
pub(super) struct Edges {
    pub(super) input: Vec<Data>,
    pub(super) output: Vec<Data>,
}

impl Buffers for Edges {
    type Lent = (Vec<&'static [u8]>, Vec<&'static mut [u8]>);

    fn pack(&self) -> Result {
        self.input.iter().try_for_each(Data::pack)
    }

    fn unpack(&self) -> Result {
        self.output.iter().try_for_each(Data::unpack)
    }

    unsafe fn lend(&self) -> Self::Lent {
        // SAFETY: the caller's promise.
        let input = self.input.iter().map(|data| unsafe { read(data) });
        // SAFETY: as above.
        let output = self.output.iter().map(|data| unsafe { written(data) });
        (input.collect(), output.collect())
    }
}

/// Returns the bytes of input.
///
/// # Safety
/// As [`Buffers::lend`].
unsafe fn read(data: &Data) -> &'static [u8] {
    // SAFETY: the caller's promise.
    unsafe { data.place().read().bytes(0, data.len()) }
}

/// Returns the bytes of output.
///
/// # Safety
/// As [`Buffers::lend`].
unsafe fn written(data: &Data) -> &'static mut [u8] {
    // SAFETY: the caller's promise.
    unsafe { data.place().bytes(0, data.len()) }
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
    made: Arc<Mutex<coll::Persistent>>,
    buffers: Arc<B>,
}

impl<B> Round<B> {
    fn held(&self) -> MutexGuard<'_, coll::Persistent> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> fmt::Debug for Round<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Round")
    }
}

impl<B: Buffers> PendingOperation for Round<B> {
    fn is_complete(&self) -> bool {
        self.held().round().is_none_or(coll::Request::is_complete)
    }

    fn take(&self) -> Option<End> {
        let end = self.held().take();
        end.map(|end| finished(end, &*self.buffers))
    }
}

/// Returns how an operation ended, once its result was unpacked.
fn finished(end: coll::Result<()>, buffers: &impl Buffers) -> End {
    End::of(end.map_err(Error::from).and_then(|()| buffers.unpack()))
}

/// Returns the error of a call that does not allow `MPI_IN_PLACE`.
#[cold]
pub(super) fn in_place() -> Error {
    Error::new(Class::Buffer, "MPI_IN_PLACE is not allowed here")
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
