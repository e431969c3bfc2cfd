//! Messages matched by a pml of ours.
#![allow(unsafe_code)]

mod windows;

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Config, ContextId, Rank, SourceSelector, Tag};
use tagwire_coll::operations::{
    Allgather, Allreduce, Alltoall, Barrier, Blocks, Broadcast, CollectiveOperation, Gather, Parts,
    Reduce, ReduceScatter, Root, Scatter,
};
use tagwire_coll::{Reduction, Team};
use tagwire_layout::{Basic, Layout};
use tagwire_pml::{Counters, Messenger, ProgressThread, RequestId, SendMode, Stats, ThreadLevel};
use tagwire_transport::Allocation;

use super::collective::{Collectives, Form, Operation, Summand};
use super::group::{Divide, Group, Started};
use super::{Endpoint, Port};
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// A rank's messenger.
#[derive(Debug)]
pub(crate) struct PmlPort {
    /// Drives the rank while its benchmark computes, where that was asked for.
    driver: Option<ProgressThread>,
    messenger: Arc<Messenger>,
    team: Arc<Team>,
    deadline: Duration,
    /// Drives the rank while it has windows, where `driver` does not.
    helper: Mutex<Weak<ProgressThread>>,
}

const WORLD: ContextId = ContextId::WORLD;

impl PmlPort {
    /// Opens the rank, for any threads at once or as the configuration says.
    #[inline]
    pub(crate) fn open(
        config: &Config,
        any_thread: bool,
        bootstrap: SharedBootstrap,
    ) -> Result<Self> {
        let level = if any_thread {
            ThreadLevel::Multiple
        } else {
            ThreadLevel::from_config(config)
        };
        let team = Arc::new(tagwire_coll::open(config, level, &bootstrap)?);
        let messenger = Arc::clone(team.messenger());
        // Without the handler, the signal ends the rank instead of making it tell.
        let flag = messenger.dumps().flag();
        let _ = signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&flag));
        Ok(Self {
            driver: ProgressThread::from_config(config, &messenger)?,
            team,
            messenger,
            deadline: config.duration("close-timeout"),
            helper: Mutex::default(),
        })
    }

    /// The rank, for operations beyond those of a port.
    #[inline]
    pub(crate) const fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }

    /// Leaves the job in good order.
    #[inline]
    pub(crate) fn close(mut self) -> Result<()> {
        self.driver = None;
        Ok(self.messenger.close(self.deadline)?)
    }
}

impl PmlPort {
    /// What matches messages and receives.
    pub(crate) fn matcher(&self) -> tagwire_pml::Result<&'static str> {
        Ok(self.messenger.statistics()?.matcher)
    }
}

impl Endpoint for PmlPort {
    #[inline]
    fn rank(&self) -> Rank {
        self.messenger.rank()
    }

    #[inline]
    fn size(&self) -> u32 {
        self.messenger.size()
    }

    #[inline]
    fn send(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        Ok(self
            .messenger
            .send(data.buffer(), to, tag, WORLD, SendMode::Standard)?)
    }

    #[inline]
    fn ssend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<()> {
        Ok(self
            .messenger
            .send(data.buffer(), to, tag, WORLD, SendMode::Synchronous)?)
    }

    #[inline]
    fn recv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        let status = self
            .messenger
            .recv(data.buffer(), from.into(), tag.into(), WORLD)?;
        status.ok().map_err(tagwire_pml::Error::Failed)?;
        Ok(())
    }

    fn recv_looking(&self, data: Incoming, from: Rank, tag: Tag) -> Result<()> {
        let request = self
            .messenger
            .irecv(data.buffer(), from.into(), tag.into(), WORLD)?;
        let mut looks = 0_u32;
        loop {
            if let Some(status) = self.messenger.test(request)? {
                status.ok().map_err(tagwire_pml::Error::Failed)?;
                return Ok(());
            }
            looks = looks.wrapping_add(1);
            // Where threads are more than cores, the others have to get theirs.
            match looks % 16 {
                0 => std::thread::yield_now(),
                _ => std::hint::spin_loop(),
            }
        }
    }

    #[inline]
    fn collectives(&self, form: Form) -> Result<Box<dyn Collectives + '_>> {
        let team = &self.team;
        Ok(match form {
            Form::Blocking => Box::new(PmlCollectives::<false>(team)),
            Form::Nonblocking => Box::new(PmlCollectives::<true>(team)),
        })
    }

    #[inline]
    fn group(&self, divide: Divide) -> Result<Box<dyn Group + '_>> {
        let team = match divide {
            Divide::All => self.team.duplicate()?,
            Divide::Color(color) => {
                let split = self.team.split(Some(color), 0)?;
                split.expect("a member that gives a color has a group")
            }
        };
        Ok(Box::new(PmlGroup(Arc::new(team))))
    }

    #[inline]
    fn allocate(&self, len: usize) -> Result<Option<Allocation>> {
        Ok(self.messenger.allocate(len)?)
    }

    #[inline]
    fn counters(&self) -> Option<Counters> {
        self.messenger.statistics().ok().map(|all| all.counters)
    }

    fn matching(&self) -> Option<Stats> {
        self.messenger.statistics().ok()?.matching
    }

    fn ways(&self) -> Vec<String> {
        let all = self.messenger.statistics().ok();
        let mut ways = all.map(|all| all.ways).unwrap_or_default();
        tagwire_coll::ways(&self.team, &mut ways);
        ways
    }
}

impl Port for PmlPort {
    type Request = RequestId;

    #[inline]
    fn isend(&self, data: Outgoing, to: Rank, tag: Tag) -> Result<RequestId> {
        Ok(self
            .messenger
            .isend(data.buffer(), to, tag, WORLD, SendMode::Standard)?)
    }

    #[inline]
    fn irecv(&self, data: Incoming, from: Rank, tag: Tag) -> Result<RequestId> {
        Ok(self
            .messenger
            .irecv(data.buffer(), from.into(), tag.into(), WORLD)?)
    }

    fn irecv_any(&self, data: Incoming, tag: Tag) -> Result<RequestId> {
        let any = SourceSelector::ANY;
        Ok(self
            .messenger
            .irecv(data.buffer(), any, tag.into(), WORLD)?)
    }

    #[inline]
    fn wait_all(&self, requests: &mut Vec<RequestId>) -> Result<()> {
        self.messenger.wait_all_quiet(requests, None)?;
        requests.clear();
        Ok(())
    }
}

/// A group of ours.
struct PmlGroup(Arc<Team>);

impl Group for PmlGroup {
    #[inline]
    fn maximum(&self, out: Outgoing, into: Incoming) -> Result<()> {
        let operator = Reduction {
            operation: &tagwire_layout::Operation::Max,
            layout: &const { Layout::of(Basic::I32) },
        };
        let from = out.bytes();
        let done = into.with_bytes(|into| {
            self.0.call(Allreduce {
                operator: operator.into(),
                input: Some(from),
                data: into,
            })
        });
        Ok(done?)
    }

    #[inline]
    fn allreduce(&self, out: Outgoing, into: Incoming) -> Result<()> {
        let (operator, from) = (DOUBLES.into(), out.bytes());
        let done = into.with_bytes(|data| {
            self.0.call(Allreduce {
                operator,
                input: Some(from),
                data,
            })
        });
        Ok(done?)
    }

    #[inline]
    fn reduce_scatter(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()> {
        let from = out.bytes();
        let done = into.with_bytes(|into| self.0.reduce_scatter(DOUBLES, from, lengths, into));
        Ok(done?)
    }

    #[inline]
    fn allgather(&self, out: Outgoing, lengths: &[usize], into: Incoming) -> Result<()> {
        let from = out.bytes();
        let is_even = lengths.iter().all(|length| *length == lengths[0]);
        let done = into.with_bytes(|into| match is_even {
            true => self.0.allgather(from, into),
            false => self.0.allgatherv(from, lengths, into),
        });
        Ok(done?)
    }

    #[inline]
    fn start_reduce(
        &self,
        out: Outgoing,
        into: Incoming,
        root: usize,
    ) -> Result<Box<dyn Started + '_>> {
        let is_root = self.0.me() == root;
        let request = into.with_bytes(|into| {
            let operation = Reduce {
                operator: DOUBLES.into(),
                input: Some(out.bytes()),
                out: is_root.then_some(into),
                root: root.into(),
            };
            // SAFETY: memory of a bench is never freed, and nobody touches the pieces before the operation has ended.
            unsafe { self.0.start(operation) }
        });
        Ok(Box::new(PmlStarted(request?)))
    }

    #[inline]
    fn start_allreduce(&self, out: Outgoing, into: Incoming) -> Result<Box<dyn Started + '_>> {
        let request = into.with_bytes(|data| {
            let operation = Allreduce {
                operator: DOUBLES.into(),
                input: Some(out.bytes()),
                data,
            };
            // SAFETY: as above.
            unsafe { self.0.start(operation) }
        });
        Ok(Box::new(PmlStarted(request?)))
    }
}

/// An operation of a group of ours.
struct PmlStarted(tagwire_coll::Request);

impl Started for PmlStarted {
    #[inline]
    fn test(&mut self) -> Result<bool> {
        Ok(self.0.test()?)
    }

    #[inline]
    fn wait(&mut self) -> Result<()> {
        Ok(self.0.wait(None)?)
    }
}

/// The sum of doubles.
const DOUBLES: Reduction<'static> = sum(size_of::<f64>());

/// The operations of our groups; nonblocking ones are started and waited for.
struct PmlCollectives<'a, const NONBLOCKING: bool>(&'a Arc<Team>);

/// Returns the sum of messages of `size` bytes.
#[inline]
const fn sum(size: usize) -> Reduction<'static> {
    Reduction {
        operation: &tagwire_layout::Operation::Sum,
        layout: match Summand::of(size) {
            Summand::Double => &const { Layout::of(Basic::F64) },
            Summand::Byte => &const { Layout::of(Basic::U8) },
        },
    }
}

impl<const NONBLOCKING: bool> PmlCollectives<'_, NONBLOCKING> {
    #[inline]
    fn run(&self, operation: impl CollectiveOperation) -> tagwire_coll::Result<()> {
        if !NONBLOCKING {
            return self.0.call(operation);
        }
        // SAFETY: it is waited for before the buffers are touched; memory of a bench is never freed.
        unsafe { self.0.start(operation) }?.wait(None)
    }
}

impl<const NONBLOCKING: bool> Collectives for PmlCollectives<'_, NONBLOCKING> {
    #[inline]
    fn call(&self, operation: Operation, out: Outgoing, into: Incoming) -> Result<()> {
        let (from, root, parts) = (out.bytes(), Root::Member(0), Parts::Equal);
        let leads = root.is_me(self.0);
        let operator = sum(into.len()).into();
        let done = into.with_bytes(|into| match operation {
            Operation::Barrier => self.run(Barrier),
            Operation::Bcast => self.run(Broadcast { data: into, root }),
            Operation::Reduce => self.run(Reduce {
                operator,
                input: Some(from),
                out: leads.then_some(into),
                root,
            }),
            Operation::Allreduce => self.run(Allreduce {
                operator,
                input: Some(from),
                data: into,
            }),
            Operation::ReduceScatter => {
                let lengths = vec![into.len(); self.0.size()].into();
                self.run(ReduceScatter {
                    operator,
                    input: Some(from),
                    lengths,
                    out: into,
                })
            }
            Operation::Allgather => self.run(Allgather {
                own: Some(from),
                parts,
                out: into,
            }),
            Operation::Alltoall => self.run(Alltoall {
                input: Some(Blocks::Together(from, Parts::Equal)),
                out: Blocks::Together(into, parts),
            }),
            Operation::Gather => self.run(Gather {
                own: Some(from),
                parts,
                out: leads.then_some(into),
                root,
            }),
            Operation::Scatter => self.run(Scatter {
                input: leads.then_some(from),
                parts,
                own: Some(into),
                root,
            }),
        });
        Ok(done?)
    }
}
