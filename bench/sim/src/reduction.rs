//! Vectors that come from a device and are summed over all ranks: by the library's own allreduce, by lanes, or partition by partition.
//!
//! ```text
//!     group of 20:   rank 0 ... 19      group of 20:   rank 20 ... 39         a group has neighbouring ranks,
//!                      |         \                       |          \         a lane those with the same number
//!     lane 0:        rank 0 --------------------------- rank 20      \        in all groups
//!     lane 19:                  rank 19 ---------------------------- rank 39
//! ```
//!
//! Partition k of a vector is summed over the group at its member k as soon as the device has copied it, and over lane k from there.
//! These are the programs of a paper on partitioned reductions; lanes are those of Traeff and Hunold, *Decomposing MPI collectives for
//! exploiting multi-lane communication* (CLUSTER 2020).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tagwire_coll::Team;
use tagwire_sim::SimOptions;

use crate::error::Result;
use crate::lent::Collective;
use crate::rank::SimRank;
use crate::threads::Threads;

/// How vectors are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By the library's own allreduce, once all is copied.
    Native,
    /// By a reduce-scatter of groups, allreduces of lanes and an allgather, once all is copied.
    Multilane,
    /// Partition by partition, each reduction started by the thread of the device or by the one that waits.
    Partitioned {
        /// The thread of the device starts them.
        direct: bool,
    },
}

/// What is measured.
#[derive(Clone)]
pub struct Reduction {
    /// Ranks: a multiple of the group.
    pub ranks: u32,
    /// Ranks of a group.
    pub group: u32,
    /// Bytes of a vector: of 64-bit numbers.
    pub bytes: usize,
    /// How it is reduced.
    pub way: Way,
    /// When the device has copied each part, from the start on, and its bytes. Of [`Way::Partitioned`] parts are those of members.
    pub copied: Rc<[(Duration, usize)]>,
    /// How often.
    pub iterations: u64,
}

impl fmt::Debug for Reduction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reduction")
            .field("ranks", &self.ranks)
            .field("group", &self.group)
            .field("bytes", &self.bytes)
            .field("way", &self.way)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

/// The groups of a rank.
struct Groups {
    world: Arc<Team>,
    group: Arc<Team>,
    lane: Arc<Team>,
    me: usize,
}

/// What the threads of a rank share.
struct Shared {
    case: Reduction,
    groups: RefCell<Option<Rc<Groups>>>,
    /// Iterations that have begun, and parts that the device has copied in this one.
    begun: Cell<u64>,
    copied: Cell<usize>,
    /// Reductions of partitions that the device has started in this iteration.
    started: RefCell<Vec<(usize, Collective)>>,
}

/// Runs the iterations, and returns what each took the slowest rank, in nanoseconds.
///
/// # Errors
/// When a rank cannot be opened, an operation fails, or ranks wait for ever.
pub fn run(options: &SimOptions, case: &Reduction) -> Result<Vec<u64>> {
    let mut threads = Threads::new(case.ranks, options.clone());
    let slowest = Rc::new(RefCell::new(vec![0; case.iterations as usize]));
    for rank in 0..case.ranks {
        let rank = threads.open(rank)?;
        let shared = Rc::new(Shared {
            case: case.clone(),
            groups: RefCell::default(),
            begun: Cell::default(),
            copied: Cell::default(),
            started: RefCell::default(),
        });
        let (device, of_device) = (rank.thread(), Rc::clone(&shared));
        threads.spawn(&device.actor().clone(), async move {
            of_device.device(&device).await
        });
        let slowest = Rc::clone(&slowest);
        threads.spawn(&rank.actor().clone(), async move {
            shared.lead(&rank, &slowest).await
        });
    }
    threads.run()?;
    Ok(slowest.take())
}

impl Shared {
    /// The lengths of the members' partitions.
    fn lengths(&self) -> Vec<usize> {
        let (members, elements) = (self.case.group as usize, self.case.bytes / 8);
        let each = elements / members;
        let mut lengths = vec![8 * each; members];
        lengths[members - 1] += 8 * (elements % members);
        lengths
    }

    /// The thread of the device.
    async fn device(&self, rank: &SimRank) -> Result<()> {
        let case = &self.case;
        let is_direct = case.way == Way::Partitioned { direct: true };
        for iteration in 1..=case.iterations {
            while self.begun.get() < iteration {
                rank.actor().next().await;
            }
            let mut before = Duration::ZERO;
            for (part, (end, len)) in case.copied.iter().enumerate() {
                rank.actor().sleep(end.saturating_sub(before)).await;
                before = *end;
                if is_direct {
                    let groups = self.groups.borrow().clone();
                    if let Some(groups) = groups {
                        let sum = rank.start_reduce(&groups.group, vec![0; *len], part)?;
                        self.started.borrow_mut().push((part, sum));
                    }
                }
                self.copied.set(part + 1);
                rank.actor().wake();
            }
        }
        Ok(())
    }

    async fn lead(&self, rank: &SimRank, slowest: &RefCell<Vec<u64>>) -> Result<()> {
        let case = &self.case;
        let groups = Rc::new(Groups {
            world: Arc::clone(rank.team()),
            group: rank.part(rank.rank() / case.group).await?,
            lane: rank.part(rank.rank() % case.group).await?,
            me: (rank.rank() % case.group) as usize,
        });
        *self.groups.borrow_mut() = Some(Rc::clone(&groups));
        for iteration in 0..case.iterations as usize {
            rank.barrier().await?;
            let began = rank.actor().now().as_nanos();
            self.copied.set(0);
            self.begun.set(iteration as u64 + 1);
            rank.actor().wake();
            match case.way {
                Way::Native => {
                    self.all_copied(rank).await;
                    let sum = rank.start_sum(&groups.world, vec![0; case.bytes])?;
                    rank.ended(&sum).await?;
                }
                Way::Multilane => {
                    self.all_copied(rank).await;
                    self.by_lanes(rank, &groups).await?;
                }
                Way::Partitioned { direct } => self.by_parts(rank, &groups, direct).await?,
            }
            let took = rank.actor().now().as_nanos() - began;
            let mut slowest = slowest.borrow_mut();
            slowest[iteration] = took.max(slowest[iteration]);
        }
        rank.barrier().await?;
        self.groups.take();
        drop(groups);
        rank.close()
    }

    /// Waits for the device.
    async fn all_copied(&self, rank: &SimRank) {
        while self.copied.get() < self.case.copied.len() {
            rank.actor().next().await;
        }
    }

    async fn by_lanes(&self, rank: &SimRank, groups: &Groups) -> Result<()> {
        let lengths = self.lengths();
        let mine = lengths[groups.me];
        let whole = vec![0; self.case.bytes];
        let sum = rank.start_reduce_scatter(&groups.group, whole, lengths)?;
        rank.ended(&sum).await?;
        if mine > 0 {
            let sum = rank.start_sum(&groups.lane, vec![0; mine])?;
            rank.ended(&sum).await?;
        }
        self.gather(rank, groups).await
    }

    /// All members of a group get the sums of all.
    async fn gather(&self, rank: &SimRank, groups: &Groups) -> Result<()> {
        let whole = vec![0; self.case.bytes];
        let all = rank.start_allgather(&groups.group, whole, self.lengths())?;
        rank.ended(&all).await.map(drop)
    }

    async fn by_parts(&self, rank: &SimRank, groups: &Groups, direct: bool) -> Result<()> {
        let count = self.case.copied.len();
        let mut open: Vec<(usize, Collective)> = Vec::new();
        let (mut begun, mut lane) = (0, None);
        loop {
            while !direct && begun < self.copied.get() {
                let len = self.case.copied[begun].1;
                let sum = rank.start_reduce(&groups.group, vec![0; len], begun)?;
                open.push((begun, sum));
                begun += 1;
            }
            if direct {
                let started = self.started.take();
                begun += started.len();
                open.extend(started);
            }
            let is_over = |(_, sum): &mut (usize, Collective)| sum.request.is_complete();
            let over: Vec<_> = open.extract_if(.., is_over).collect();
            for (part, sum) in &over {
                let mine = rank.ended(sum).await?;
                if *part == groups.me {
                    lane = Some(rank.start_sum(&groups.lane, mine.into_vec())?);
                }
            }
            if over.is_empty() {
                if begun == count && open.is_empty() {
                    break;
                }
                if rank.port().progress()? == 0 {
                    rank.actor().next().await;
                }
            }
        }
        if let Some(lane) = &lane {
            rank.ended(lane).await?;
        }
        self.gather(rank, groups).await
    }
}
