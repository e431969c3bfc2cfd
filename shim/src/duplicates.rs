//! Duplicates of communicators that are made without waiting (MPI-5.0, section 7.4.2).

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tagwire_coll::Duplicate;

use crate::abi::{Comm, Info, Request, Status};
use crate::attributes::Attributes;
use crate::comm::Communicator;
use crate::errhandler::Handler;
use crate::error::{Class, Error, Result};
use crate::info::Entries;
use crate::ongoing::Ongoing;
use crate::p2p::on_comm;
use crate::process::Process;
use crate::raw::Ref;
use crate::request::{End, Pending, Requests};
use crate::topology::Topology;

/// A duplicate that is being made. Its handle is there from the call on.
struct Duplicating {
    process: Weak<Process>,
    made: Duplicate,
    handle: Comm,
    /// What it has of the communicator as it was when the call was made. `None` where the call has failed.
    copied: Mutex<Option<Copied>>,
}

struct Copied {
    errhandler: Handler,
    attributes: Attributes,
    hints: Entries,
    topology: Option<Arc<Topology>>,
}

impl Ongoing for Duplicating {
    fn is_complete(&self, _: &Requests) -> bool {
        self.made.is_complete()
    }

    fn take(&self, _: &Requests) -> Option<End> {
        let team = self.made.take()?;
        let mut copied = self.copied.lock().unwrap_or_else(PoisonError::into_inner);
        let (process, copied) = (self.process.upgrade()?, copied.take());
        let (comm, error) = match (team, copied) {
            (Ok(team), Some(copied)) => {
                let (handle, team) = (self.handle, Arc::new(team));
                let Copied {
                    errhandler,
                    attributes,
                    hints,
                    topology,
                } = copied;
                let comm = Communicator::new(handle, team, errhandler, "", attributes);
                *comm.hints() = hints;
                if let Some(topology) = topology {
                    comm.set_topology(topology);
                }
                (Some(comm), None)
            }
            (Ok(_), None) => (None, None),
            (Err(error), _) => (None, Some(error.into())),
        };
        process.comms.settle(self.handle.0, comm);
        let status = Status::EMPTY;
        Some(End { status, error })
    }
}

fn duplicate(
    process: &Arc<Process>,
    comm: Comm,
    hints: impl FnOnce(&Communicator) -> Result<Entries>,
    new: Ref<Comm>,
    request: Ref<Request>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |held| {
        let hints = hints(&held)?;
        let reserved = process.comms.reserve();
        let handle = reserved.ok_or_else(|| Error::new(Class::Other, "too many communicators"))?;
        let made = match Duplicate::of(&held.team) {
            Ok(made) => made,
            Err(error) => {
                process.comms.settle(handle, None);
                return Err(error.into());
            }
        };
        // Other ranks are in the call, which goes on also where a function of the program fails now.
        let attributes = Attributes::new();
        let copied = held.attributes().copy_to(comm.0, handle, &attributes);
        let kept = copied.is_ok().then(|| Copied {
            errhandler: held.errhandler(),
            attributes,
            hints,
            topology: held.topology().cloned(),
        });
        let duplicating = Duplicating {
            process: Arc::downgrade(process),
            made,
            handle: Comm(handle),
            copied: Mutex::new(kept),
        };
        let pending = Pending::Ongoing(Arc::new(duplicating));
        let entered = process.requests.enter(pending, comm)?;
        if let Err(error) = copied {
            process.requests.free(entered)?;
            return Err(error);
        }
        new.set(Comm(handle));
        request.set(entered);
        Ok(())
    })
}

/// `MPI_Comm_idup`.
pub fn comm_idup(
    process: &Arc<Process>,
    comm: Comm,
    new: Ref<Comm>,
    request: Ref<Request>,
) -> Result {
    let hints = |comm: &Communicator| Ok(comm.hints().clone());
    duplicate(process, comm, hints, new, request)
}

/// `MPI_Comm_idup_with_info`.
pub fn comm_idup_with_info(
    process: &Arc<Process>,
    comm: Comm,
    info: Info,
    new: Ref<Comm>,
    request: Ref<Request>,
) -> Result {
    let hints = |_: &Communicator| process.early.infos.hints(info);
    duplicate(process, comm, hints, new, request)
}
