//! Making communicators, and what is asked of them (MPI-5.0, chapter 7).

use std::sync::Arc;

use tagwire_coll::{Subset, Team};

use crate::abi::{Comm, Errhandler, Group, Info, MAX_OBJECT_NAME, Session, UNDEFINED};
use crate::call::on_comm;
use crate::error::{Class, Error, On, Result};
use crate::object::comm::Communicator;
use crate::object::errhandler::Raiser;
use crate::object::group::{compare, compared};
use crate::object::info::Entries;
use crate::process::Process;
use crate::process::psets::ProcessSet;
use crate::raw::{Ref, Text, TextOut};

/// `MPI_Comm_rank`.
pub fn comm_rank(process: &Process, comm: Comm, rank: Ref<i32>) -> Result {
    rank.set(process.comm(comm)?.rank());
    Ok(())
}

/// `MPI_Comm_size`.
pub fn comm_size(process: &Process, comm: Comm, size: Ref<i32>) -> Result {
    size.set(process.comm(comm)?.size());
    Ok(())
}

/// `MPI_Comm_compare`. Of intercommunicators both groups are compared.
pub fn comm_compare(process: &Process, first: Comm, second: Comm, result: Ref<i32>) -> Result {
    let (one, other) = (process.comm(first)?, process.comm(second)?);
    let found = match (one.remote_group(), other.remote_group()) {
        (None, None) => compared(&one.group(), &other.group()),
        // The less they have in common, the greater the number.
        (Some(remote), Some(others)) => {
            compared(&one.group(), &other.group()).max(compared(&remote, &others))
        }
        _ => compare::UNEQUAL,
    };
    result.set(match found {
        compare::IDENT if first != second => compare::CONGRUENT,
        found => found,
    });
    Ok(())
}

/// `MPI_Comm_dup`. The topology is kept (MPI-5.0, section 7.4.2).
pub fn comm_dup(process: &Process, comm: Comm, new: Ref<Comm>) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        let hints = comm.hints().clone();
        new.set(duplicate(process, &comm, hints)?);
        Ok(())
    })
}

/// `MPI_Comm_dup_with_info`.
pub fn comm_dup_with_info(process: &Process, comm: Comm, info: Info, new: Ref<Comm>) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        let hints = process.early.infos.hints(info)?;
        new.set(duplicate(process, &comm, hints)?);
        Ok(())
    })
}

/// Makes a duplicate, with the attributes that their functions copy.
fn duplicate(process: &Process, comm: &Communicator, hints: Entries) -> Result<Comm> {
    // Other ranks are in the call, so the group is made before a function of the program may fail.
    let team = comm.team.duplicate()?;
    let handle = process.enter_comm_like(team, comm)?;
    let made = process.comm(handle)?;
    *made.hints() = hints;
    if let Some(topology) = comm.topology() {
        made.set_topology(Arc::clone(topology));
    }
    let (from, to) = (comm.handle.0, handle.0);
    let copied = comm.attributes().copy_to(from, to, made.attributes());
    if let Err(error) = copied {
        process.comms.remove(handle.0);
        return Err(error);
    }
    Ok(handle)
}

/// `MPI_Comm_split`.
pub fn comm_split(process: &Process, comm: Comm, color: i32, key: i32, new: Ref<Comm>) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        let color =
            match color {
                UNDEFINED => None,
                color => Some(u32::try_from(color).map_err(|_| {
                    Error::new(Class::Arg, format!("the color {color} is negative"))
                })?),
            };
        if let Some(team) = comm.team.split(color, key)? {
            new.set(process.enter_comm_like(team, &comm)?);
        }
        Ok(())
    })
}

/// `MPI_COMM_TYPE_SHARED` and the types after it.
const SHARED: i32 = 221;
const HARDWARE_UNGUIDED: i32 = 222;
const HARDWARE_GUIDED: i32 = 223;
const RESOURCE_GUIDED: i32 = 224;

/// The resource that the ranks of a host have in common: the one that is told apart.
pub(crate) const SHARED_MEMORY: &str = "mpi_shared_memory";

/// Returns what those have in common who can create shared memory: processes of a host that reach each other by the transport's.
fn shared_memory(process: &Process) -> Result<u32> {
    let (first, own) = (process.first_local, process.messenger.rank());
    let shares = first == own || process.messenger.with_boards(first, |_, _| ())?.is_some();
    Ok(if shares { first } else { own }.as_u32())
}

/// Returns the color by what an info says of the wanted groups (MPI-5.0, section 7.4.2). `None` where no group is meant.
fn guided(process: &Process, kind: i32, info: Info) -> Result<Option<u32>> {
    if info == Info::NULL {
        return Ok(None);
    }
    let shared = shared_memory(process)?;
    process.early.infos.read(info, |entries| {
        let set = match entries.get("mpi_pset_name") {
            Some(name) if kind == RESOURCE_GUIDED => ProcessSet::named(name),
            _ => None,
        };
        Ok(match (entries.get("mpi_hw_resource_type"), set) {
            (Some(SHARED_MEMORY), _) => Some(shared),
            (None, Some(ProcessSet::World)) => Some(0),
            (None, Some(ProcessSet::Own)) => Some(process.messenger.rank().as_u32()),
            _ => None,
        })
    })
}

/// `MPI_Comm_split_type`. Ranks of a host share memory, where the transport between them does; other resources are not told apart.
pub fn comm_split_type(
    process: &Process,
    comm: Comm,
    kind: i32,
    key: i32,
    info: Info,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        let color = match kind {
            UNDEFINED | HARDWARE_UNGUIDED => None,
            SHARED => Some(shared_memory(process)?),
            HARDWARE_GUIDED | RESOURCE_GUIDED => guided(process, kind, info)?,
            _ => {
                let text = format!("{kind} is no type to split by");
                return Err(Error::new(Class::Arg, text));
            }
        };
        if let Some(team) = comm.team.split(color, key)? {
            new.set(process.enter_comm_like(team, &comm)?);
        }
        Ok(())
    })
}

/// Makes a communicator of a group, which its members alone call. Several that the same members make at once have different
/// names.
fn subset(process: &Process, comm: &Communicator, group: Group, name: &str) -> Result<Comm> {
    match part(process, &comm.team, group, name)? {
        Some((team, _)) => process.enter_comm_like(team, comm),
        None => Ok(Comm::NULL),
    }
}

/// Returns the members of a group, with the session that it comes from. `None` where this process is none of them.
fn part(
    process: &Process,
    team: &Team,
    group: Group,
    name: &str,
) -> Result<Option<(Team, Session)>> {
    let ranks = process.group(group)?;
    let members = ranks.iter().map(|rank| team.members().member(*rank));
    let members: Option<Vec<usize>> = members.collect();
    let members = members
        .ok_or_else(|| Error::new(Class::Group, "the group is no part of the communicator's"))?;
    if !members.contains(&team.me()) {
        return Ok(None);
    }
    let members = &members[..];
    let made = Subset { members, name }.of(team)?;
    Ok(Some((made, ranks.session())))
}

/// `MPI_Comm_create`.
pub fn comm_create(process: &Process, comm: Comm, group: Group, new: Ref<Comm>) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        new.set(match comm.sides() {
            None => subset(process, &comm, group, "")?,
            Some(_) => subsets(process, &comm, group)?,
        });
        Ok(())
    })
}

/// Makes an intercommunicator of the groups that both sides of another give: of its own group each.
fn subsets(process: &Process, comm: &Communicator, group: Group) -> Result<Comm> {
    let (group, own) = (process.group(group)?, comm.group());
    if !group.iter().all(|rank| own.contains(rank)) {
        let text = "the group is no part of the communicator's local group";
        return Err(Error::new(Class::Group, text));
    }
    let me = process.messenger.rank();
    let place = group.iter().position(|rank| *rank == me);
    let key = place.map_or(0, |place| place as i32);
    match comm.team.split(place.map(|_| 0), key)? {
        Some(team) => process.enter_comm_like(team, comm),
        None => Ok(Comm::NULL),
    }
}

/// `MPI_Comm_create_group`.
pub fn comm_create_group(
    process: &Process,
    comm: Comm,
    group: Group,
    tag: i32,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        crate::object::comm::tag(tag)?;
        new.set(subset(process, &comm, group, &tag.to_string())?);
        Ok(())
    })
}

/// `MPI_Comm_create_from_group`. Until there is a communicator, errors are raised by its error handler (MPI-5.0, section 7.4.2).
pub fn comm_create_from_group(
    process: &Process,
    group: Group,
    name: Text,
    info: Info,
    errhandler: Errhandler,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    let handler = process.early.handlers.get_for(errhandler, Raiser::Comm)?;
    let made = || {
        let (name, hints) = (name.get()?, process.early.infos.hints(info)?);
        // Names of this call are no numbers, as those of `MPI_Comm_create_group` are.
        let name = format!("name {name}");
        let made = part(process, &process.world.team, group, &name)?;
        let Some((team, session)) = made else {
            return Ok(Comm::NULL);
        };
        let handle = process.enter_comm(team, (handler.clone(), session))?;
        *process.comm(handle)?.hints() = hints;
        Ok(handle)
    };
    new.set(made().map_err(|error: Error| error.on(On::Handler(errhandler)))?);
    Ok(())
}

/// `MPI_Comm_free`. A buffer that is attached to it is detached, which waits until its messages have been delivered.
pub fn comm_free(process: &Process, comm: Ref<Comm>) -> Result {
    let given = comm.get()?;
    if matches!(given, Comm::WORLD | Comm::SELF) {
        let text = "a predefined communicator cannot be freed";
        return Err(Error::new(Class::Comm, text).on(On::Comm(given)));
    }
    on_comm(process, given, |comm| {
        comm.attributes().delete_all(given.0)?;
        comm.buffer().detach(&process.messenger)?;
        let has_requests = |comm| process.requests.are_of(comm);
        process.freed.enter(given, comm.errhandler(), has_requests);
        Ok(())
    })?;
    // What is under way keeps the group until it has ended.
    process.comms.remove(given.0);
    comm.set(Comm::NULL);
    Ok(())
}

/// `MPI_Comm_disconnect`. What is under way goes on until it has ended.
pub fn comm_disconnect(process: &Process, comm: Ref<Comm>) -> Result {
    comm_free(process, comm)
}

/// `MPI_Comm_get_parent`. No process was started by another's call.
pub fn comm_get_parent(_: &Process, parent: Ref<Comm>) -> Result {
    parent.set(Comm::NULL);
    Ok(())
}

/// `MPI_Comm_set_name`.
pub fn comm_set_name(process: &Process, comm: Comm, name: Text) -> Result {
    let (comm, mut name) = (process.comm(comm)?, name.get()?);
    while name.len() >= MAX_OBJECT_NAME {
        name.pop();
    }
    *comm.name() = name;
    Ok(())
}

/// `MPI_Comm_get_name`.
pub fn comm_get_name(process: &Process, comm: Comm, name: TextOut, length: Ref<i32>) -> Result {
    if comm == Comm::NULL {
        length.set(name.set("MPI_COMM_NULL", MAX_OBJECT_NAME));
        return Ok(());
    }
    let comm = process.comm(comm)?;
    length.set(name.set(&comm.name(), MAX_OBJECT_NAME));
    Ok(())
}

/// `MPI_Comm_set_errhandler`.
pub fn comm_set_errhandler(process: &Process, comm: Comm, handler: Errhandler) -> Result {
    on_comm(process, comm, |comm| {
        comm.set_errhandler(process.early.handlers.get_for(handler, Raiser::Comm)?);
        Ok(())
    })
}

/// `MPI_Comm_get_errhandler`. The program frees what it gets.
pub fn comm_get_errhandler(process: &Process, comm: Comm, handler: Ref<Errhandler>) -> Result {
    on_comm(process, comm, |comm| {
        handler.set(process.early.handlers.show(&comm.errhandler())?);
        Ok(())
    })
}
