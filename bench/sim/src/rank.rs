//! One rank of a simulated job: the calls of a program, as asynchronous functions over the unchanged layers.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_coll::operations::{
    Allgather, Allreduce, Alltoall, Blocks, Broadcast, CollectiveOperation, Parts, Reduce,
    ReduceScatter, Root,
};
use tagwire_coll::{Division, Duplicate, Operator, Request, Team};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_pml::{
    Messenger, PartitionedRecv, PartitionedSend, Policy, RequestId, SendMode, Target,
};
use tagwire_sim::Actor;

use crate::error::{Error, Result};
use crate::lent::{Collective, Lent};

const WORLD: ContextId = ContextId::WORLD;

/// A partitioned operation: bytes of the message, and the partitions of each side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) bytes: usize,
    pub(crate) partitions: u32,
    pub(crate) policy: Policy,
}

/// How long a rank that ends goes on with what it has begun.
const CLOSING: Duration = Duration::from_millis(100);

/// A rank, as a thread of its program has it.
#[derive(Debug)]
pub struct SimRank {
    shared: Rc<Shared>,
    actor: Actor,
}

/// What the threads of a rank share.
#[derive(Debug)]
struct Shared {
    team: Arc<Team>,
    messenger: Arc<Messenger>,
    // Dropped after the port.
    lent: RefCell<Lent>,
}

impl SimRank {
    pub(crate) fn new(team: Arc<Team>, messenger: Arc<Messenger>, actor: Actor) -> Self {
        Self {
            shared: Rc::new(Shared {
                team,
                messenger,
                lent: RefCell::default(),
            }),
            actor,
        }
    }

    /// Returns the rank as one more of its threads has it.
    #[must_use]
    pub fn thread(&self) -> Self {
        Self {
            shared: Rc::clone(&self.shared),
            actor: self.actor.thread(),
        }
    }

    pub(crate) fn port(&self) -> &Arc<Messenger> {
        &self.shared.messenger
    }

    /// Returns a partitioned send of `len` bytes of its own to a rank.
    ///
    /// # Errors
    /// When the layer refuses.
    pub(crate) fn psend(&self, to: u32, tag: Tag, shape: Shape) -> Result<PartitionedSend> {
        let made = self.shared.lent.borrow_mut().psend(shape.bytes, |data| {
            let (to, count) = (Rank::new(to), shape.partitions);
            PartitionedSend::init(self.port(), data, count, to, tag, WORLD, shape.policy)
        });
        Ok(made?)
    }

    /// Returns a partitioned receive, the same.
    ///
    /// # Errors
    /// When the layer refuses.
    pub(crate) fn precv(&self, from: u32, tag: Tag, shape: Shape) -> Result<PartitionedRecv> {
        let made = self.shared.lent.borrow_mut().lend(shape.bytes, |room| {
            let (from, count) = (Rank::new(from), shape.partitions);
            PartitionedRecv::init(self.port(), room, count, from, tag, WORLD)
        });
        Ok(made?)
    }

    /// Returns this rank.
    #[must_use]
    pub fn rank(&self) -> u32 {
        self.port().rank().as_u32()
    }

    /// Returns how many ranks the job has.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.port().size()
    }

    /// Returns the rank as the simulation has it.
    #[must_use]
    pub const fn actor(&self) -> &Actor {
        &self.actor
    }

    /// Starts to send `bytes`.
    ///
    /// # Errors
    /// When the layer refuses.
    pub fn isend(&self, to: u32, tag: Tag, bytes: Vec<u8>) -> Result<RequestId> {
        let to = Rank::new(to);
        let bytes = bytes.into_boxed_slice();
        let sent = self.shared.lent.borrow_mut().send(bytes, |data| {
            self.port().isend(data, to, tag, WORLD, SendMode::Standard)
        });
        Ok(sent?)
    }

    /// Starts to receive up to `len` bytes.
    ///
    /// # Errors
    /// When the layer refuses.
    pub fn irecv(&self, from: u32, tag: Tag, len: usize) -> Result<RequestId> {
        self.irecv_into(from, tag, vec![0; len])
    }

    /// Starts to receive into `room`, which is returned by the wait.
    ///
    /// # Errors
    /// When the layer refuses.
    pub fn irecv_into(&self, from: u32, tag: Tag, room: Vec<u8>) -> Result<RequestId> {
        let (from, tag) = (
            SourceSelector::exact(Rank::new(from)),
            TagSelector::exact(tag),
        );
        let posted = self
            .shared
            .lent
            .borrow_mut()
            .recv(room.into_boxed_slice(), |room| {
                self.port().irecv(room, from, tag, WORLD)
            });
        Ok(posted?)
    }

    /// Waits until a request is complete, and returns the bytes that were received, or sent.
    ///
    /// # Errors
    /// How the operation failed.
    pub async fn wait(&self, request: RequestId) -> Result<Box<[u8]>> {
        if request == RequestId::COMPLETE {
            return Ok(Box::default());
        }
        let status = self.until(|| Ok(self.port().take(request)?)).await?;
        let bytes = self
            .shared
            .lent
            .borrow_mut()
            .take(request)
            .unwrap_or_default();
        status
            .failure
            .map_or(Ok(bytes), |failure| Err(failure.into()))
    }

    /// Waits for a receive, and returns the bytes that have come.
    ///
    /// # Errors
    /// How the operation failed.
    pub(crate) async fn wait_for_bytes(&self, request: RequestId) -> Result<Vec<u8>> {
        let status = self.until(|| Ok(self.port().take(request)?)).await?;
        let bytes = self.shared.lent.borrow_mut().take(request);
        let mut bytes = bytes.unwrap_or_default().into_vec();
        bytes.truncate(status.length);
        status
            .failure
            .map_or(Ok(bytes), |failure| Err(failure.into()))
    }

    /// Lets others reach `len` bytes of this rank from now on, and returns what they need for that.
    ///
    /// # Errors
    /// When the layer refuses.
    pub(crate) fn expose(&self, len: usize) -> Result<Vec<u8>> {
        let window = self.port().window();
        let exposed = self
            .shared
            .lent
            .borrow_mut()
            .lend(len, |room| window.expose(room));
        Ok(exposed?.key().to_vec())
    }

    /// Returns the memory of a rank of which it has given the key.
    ///
    /// # Errors
    /// When the layer refuses.
    pub(crate) fn reach(&self, rank: u32, key: &[u8]) -> Result<Target> {
        Ok(self.port().window().reach(Rank::new(rank), key)?)
    }

    /// Starts to write `bytes` into the memory of a rank, which a [flush](Self::flush) ends.
    ///
    /// # Errors
    /// When the layer refuses.
    pub(crate) fn put(&self, target: &Target, offset: u64, bytes: Vec<u8>) -> Result<()> {
        let window = self.port().window();
        let put = self
            .shared
            .lent
            .borrow_mut()
            .put(target, bytes, |data| window.put(data, target, offset));
        Ok(put?)
    }

    /// Waits until what was written into the memory of a rank is there.
    ///
    /// # Errors
    /// That of the first access that did not work.
    pub(crate) async fn flush(&self, target: &Target) -> Result<()> {
        let window = self.port().window();
        self.until(|| Ok(window.test_flush(target)?.then_some(())))
            .await?;
        self.shared.lent.borrow_mut().flushed(target);
        Ok(())
    }

    /// Waits for all members at a barrier.
    ///
    /// # Errors
    /// How it failed.
    pub async fn barrier(&self) -> Result<()> {
        let request = self.shared.lent.borrow().barrier(&self.shared.team)?;
        self.wait_for(&request).await
    }

    /// Sums `data`, 64-bit numbers, over all members.
    ///
    /// # Errors
    /// How it failed.
    pub async fn sum(&self, data: Vec<u8>) -> Result<Box<[u8]>> {
        let sum = self.start_sum(&self.shared.team, data)?;
        self.ended(&sum).await
    }

    /// Returns the group of all ranks.
    pub(crate) fn team(&self) -> &Arc<Team> {
        &self.shared.team
    }

    /// Makes a group of all ranks with a context of its own. All do so, in the same order.
    ///
    /// # Errors
    /// How it failed.
    pub(crate) async fn duplicate(&self) -> Result<Arc<Team>> {
        let made = Duplicate::of(self.team())?;
        let take = || Ok(made.take().transpose()?);
        Ok(Arc::new(self.until(take).await?))
    }

    /// Makes a group of the ranks that give the same `color`, in the order of ranks. All do so, in the same order.
    ///
    /// # Errors
    /// How it failed.
    pub(crate) async fn part(&self, color: u32) -> Result<Arc<Team>> {
        let made = Division::of(self.team(), color, 0)?;
        let take = || Ok(made.take().transpose()?);
        Ok(Arc::new(self.until(take).await?))
    }

    /// Starts to sum `data`, 64-bit numbers, over the members of a group.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn start_sum(&self, team: &Arc<Team>, data: Vec<u8>) -> Result<Collective> {
        self.start(team, data, |data| Allreduce {
            operator: sums(),
            input: None,
            data,
        })
    }

    /// Starts to sum `data` at a member of a group.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn start_reduce(
        &self,
        team: &Arc<Team>,
        data: Vec<u8>,
        root: usize,
    ) -> Result<Collective> {
        let operation = |data: &'static mut [u8]| Reduce::in_place(team, sums(), data, root);
        self.start(team, data, operation)
    }

    /// Starts to sum `data`, of which each member gets a part, at the start of its buffer: `lengths` are theirs, in bytes.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn start_reduce_scatter(
        &self,
        team: &Arc<Team>,
        data: Vec<u8>,
        lengths: Vec<usize>,
    ) -> Result<Collective> {
        self.start(team, data, |out| ReduceScatter {
            operator: sums(),
            input: None,
            lengths: lengths.into(),
            out,
        })
    }

    /// Starts to give all members the parts of each, of these lengths in bytes. This rank's own lies in its place.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn start_allgather(
        &self,
        team: &Arc<Team>,
        data: Vec<u8>,
        lengths: Vec<usize>,
    ) -> Result<Collective> {
        self.start(team, data, |out| Allgather {
            own: None,
            parts: Parts::Of(lengths.into()),
            out,
        })
    }

    /// Starts to exchange the blocks of `data`, one of each member, which get those of others in their places.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn start_alltoall(&self, team: &Arc<Team>, data: Vec<u8>) -> Result<Collective> {
        self.start(team, data, |data| Alltoall {
            input: None,
            out: Blocks::Together(data, Parts::Equal),
        })
    }

    /// Starts to give all members the `data` of one.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn start_broadcast(
        &self,
        team: &Arc<Team>,
        data: Vec<u8>,
        root: usize,
    ) -> Result<Collective> {
        self.start(team, data, |data| Broadcast {
            data,
            root: Root::Member(root),
        })
    }

    fn start<O: CollectiveOperation + 'static>(
        &self,
        team: &Arc<Team>,
        data: Vec<u8>,
        make: impl FnOnce(&'static mut [u8]) -> O,
    ) -> Result<Collective> {
        let mut lent = self.shared.lent.borrow_mut();
        Ok(lent.start(team, data.into_boxed_slice(), make)?)
    }

    /// Makes progress until a collective operation has ended, and returns its buffer.
    ///
    /// # Errors
    /// How it failed.
    pub(crate) async fn ended(&self, collective: &Collective) -> Result<Box<[u8]>> {
        self.wait_for(&collective.request).await?;
        let buffer = self.shared.lent.borrow_mut().take_ended(collective);
        Ok(buffer.unwrap_or_default())
    }

    /// Computes for `time` on a core of its node.
    pub async fn compute(&self, time: Duration) {
        if !time.is_zero() {
            self.actor.compute(time).await;
        }
    }

    /// Computes until `time` has passed since the thread had a core, as a loop does that looks at the clock.
    pub async fn compute_by_clock(&self, time: Duration) {
        if !time.is_zero() {
            self.actor.compute_by_clock(time).await;
        }
    }

    async fn wait_for(&self, request: &Request) -> Result<()> {
        self.until(|| match request.take() {
            None => Ok(None),
            Some(end) => Ok(end.map(Some)?),
        })
        .await
    }

    /// Makes progress until `done` returns a value. Where nothing has come, the simulation goes on with other ranks.
    pub(crate) async fn until<T>(&self, mut done: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        loop {
            if let Some(value) = done()? {
                return Ok(value);
            }
            if self.port().progress()? == 0 {
                if let Some(value) = done()? {
                    return Ok(value);
                }
                self.actor.next().await;
            }
        }
    }

    /// Ends the rank in good order.
    ///
    /// # Errors
    /// What it leaves open.
    pub(crate) fn close(&self) -> Result<()> {
        self.port().close(CLOSING).map_err(Error::from)
    }
}

/// The sum of 64-bit numbers.
const fn sums() -> Operator<'static> {
    Operator::owned(Operation::Sum, Layout::of(Basic::U64))
}
