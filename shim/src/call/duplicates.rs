//! Duplicates of communicators that are made without waiting (MPI-5.0, section 7.4.2).

use std::sync::{Arc, Weak};

use tagwire_coll::Duplicate;

use crate::abi::{Comm, Info, Request, Status};
use crate::call::on_comm;
use crate::error::Result;
use crate::object::comm::Communicator;
use crate::object::info::Entries;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::process::Process;
use crate::raw::Ref;

/// A duplicate that is being made. Its communicator is there from the call on, with the group of the first one: programs set
/// error handlers and names before they wait, as other libraries let them. Messages have to wait (MPI-5.0, section 7.4.2).
#[derive(Debug)]
struct Duplicating {
    process: Weak<Process>,
    made: Duplicate,
    handle: Comm,
}

impl PendingOperation for Duplicating {
    fn is_complete(&self) -> bool {
        self.made.is_complete()
    }

    fn take(&self) -> Option<End> {
        let team = self.made.take()?;
        let comms = &self.process.upgrade()?.comms;
        let status = Status::EMPTY;
        let error = match team {
            Ok(team) => {
                let team = Arc::new(team);
                comms.replace(self.handle.0, |comm| comm.with_team(team));
                None
            }
            Err(error) => {
                comms.remove(self.handle.0);
                Some(error.into())
            }
        };
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
        let entered = process.comms.insert_with(|handle| {
            let (handle, team) = (Comm(handle), Arc::clone(&held.team));
            Communicator::new(handle, team, (held.errhandler(), held.session()), "")
        });
        let handle = Comm(entered?);
        let made = match Duplicate::of(&held.team) {
            Ok(made) => made,
            Err(error) => {
                process.comms.remove(handle.0);
                return Err(error.into());
            }
        };
        let duplicating = Duplicating {
            process: Arc::downgrade(process),
            made,
            handle,
        };
        let pending = Pending::Operation(Arc::new(duplicating));
        let entered = process.requests.enter(pending, comm)?;
        let copy = process.comm(handle)?;
        *copy.hints() = hints;
        if let Some(topology) = held.topology() {
            copy.set_topology(Arc::clone(topology));
        }
        // Other ranks are in the call, which goes on also where a function of the program fails now.
        let (from, to) = (held.attributes(), copy.attributes());
        if let Err(error) = from.copy_to(comm.0, handle.0, to) {
            process.requests.free(entered)?;
            process.comms.remove(handle.0);
            return Err(error);
        }
        new.set(handle);
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
