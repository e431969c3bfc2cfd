//! Intercommunicators: how they are made and what is asked of them (MPI-5.0, section 7.6). All else about them is in the calls of
//! communicators.

use tagwire_coll::{Bridge, Error as CollError, Leader, Subset, Team};

use crate::abi::{Comm, Errhandler, Group, Info};
use crate::call::on_comm;
use crate::error::{Class, Error, On, Result};
use crate::object::comm::{CommRef, tag};
use crate::object::errhandler::Raiser;
use crate::object::group::Ranks;
use crate::process::Process;
use crate::raw::{Ref, Text};

/// `MPI_Comm_test_inter`.
pub fn comm_test_inter(process: &Process, comm: Comm, flag: Ref<i32>) -> Result {
    let comm = process.comm(comm)?;
    flag.set(i32::from(comm.sides().is_some()));
    Ok(())
}

/// `MPI_Comm_remote_size`.
pub fn comm_remote_size(process: &Process, comm: Comm, size: Ref<i32>) -> Result {
    on_comm(process, comm, |comm| {
        let sides = comm.sides().ok_or_else(of_one_group)?;
        size.set(sides.remote().len() as i32);
        Ok(())
    })
}

/// `MPI_Comm_remote_group`.
pub fn comm_remote_group(process: &Process, comm: Comm, group: Ref<Group>) -> Result {
    group.set(Group::NULL);
    on_comm(process, comm, |comm| {
        let ranks = comm.remote_group().ok_or_else(of_one_group)?;
        group.set(process.enter_group(Ranks::new(ranks, comm.session()))?);
        Ok(())
    })
}

/// `MPI_Intercomm_merge`.
pub fn intercomm_merge(process: &Process, comm: Comm, high: i32, new: Ref<Comm>) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        comm.sides().ok_or_else(of_one_group)?;
        let team = comm.team.merge(high != 0)?;
        new.set(process.enter_comm_like(team, &comm)?);
        Ok(())
    })
}

#[cold]
fn of_one_group() -> Error {
    Error::new(Class::Comm, "the communicator is no intercommunicator")
}

/// `MPI_Intercomm_create`. What a leader alone is told wrongly is an error of all of its group.
pub fn intercomm_create(
    process: &Process,
    local: Comm,
    leader: i32,
    peer: Comm,
    remote: i32,
    number: i32,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, local, |local| {
        local.check_intra()?;
        let leader = place(leader, local.team.size())?;
        if local.team.me() != leader {
            let bridge = Bridge { leader, to: None };
            new.set(process.enter_comm_like(between(bridge, &local.team)?, &local)?);
            return Ok(());
        }
        let way = || {
            tag(number)?;
            way(process.comm(peer)?, remote)
        };
        let way: Result<_> = way();
        let name = format!("intercommunicator {number}");
        let to = way.as_ref().ok().map(|way| way.leader(&name));
        let made = between(Bridge { leader, to }, &local.team);
        way?;
        new.set(process.enter_comm_like(made?, &local)?);
        Ok(())
    })
}

/// A leader's way to the other.
struct Way<'p> {
    peer: CommRef<'p>,
    number: usize,
    members: Vec<usize>,
}

impl Way<'_> {
    fn leader<'a>(&'a self, name: &'a str) -> Leader<'a> {
        Leader {
            peer: &self.peer.team,
            number: self.number,
            members: &self.members,
            name,
        }
    }
}

/// Returns the way to a rank of a communicator, which may be an intercommunicator.
fn way(peer: CommRef<'_>, remote: i32) -> Result<Way<'_>> {
    let number = place(remote, peer.peers().len())?;
    let start = peer.sides().map_or(0, |sides| sides.remote().start);
    Ok(Way {
        number: start + number,
        members: (0..peer.team.size()).collect(),
        peer,
    })
}

/// Returns a rank of a group of `size`.
fn place(rank: i32, size: usize) -> Result<usize> {
    let place = usize::try_from(rank).ok().filter(|place| *place < size);
    place.ok_or_else(|| {
        let text = format!("there is no rank {rank} in a group of {size}");
        Error::new(Class::Rank, text)
    })
}

/// Makes the group of both.
fn between(bridge: Bridge<'_>, side: &Team) -> Result<Team> {
    bridge.of(side).map_err(|error| match error {
        // The groups overlap, or the other leader is none.
        CollError::Argument(text) => Error::new(Class::Comm, text),
        error => error.into(),
    })
}

/// `MPI_Intercomm_create_from_groups`. Until there is a communicator, errors are raised by its error handler.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn intercomm_create_from_groups(
    process: &Process,
    local: Group,
    leader: i32,
    remote: Group,
    remote_leader: i32,
    name: Text,
    info: Info,
    errhandler: Errhandler,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    let handler = process.early.handlers.get_for(errhandler, Raiser::Comm)?;
    let made = || {
        let (name, hints) = (name.get()?, process.early.infos.hints(info)?);
        let local = process.group(local)?;
        let leader = place(leader, local.len())?;
        let name = format!("intercommunicator name {name}");
        let members = numbers(&local);
        let world = &process.world.team;
        if !members.contains(&world.me()) {
            let text = "this process is not in its local group";
            return Err(Error::new(Class::Group, text));
        }
        let subset = Subset {
            members: &members,
            name: &name,
        };
        let side = subset.of(world)?;
        let team = if side.me() == leader {
            let known = || {
                let remote = process.group(remote)?;
                let number = place(remote_leader, remote.len())?;
                Ok((numbers(&remote), remote[number].index()))
            };
            let known: Result<(Vec<usize>, usize)> = known();
            let all = known.as_ref().map_or(&[][..], |(others, _)| others);
            let all = [&members[..], all].concat();
            let to = known.as_ref().ok().map(|(_, number)| Leader {
                peer: world,
                number: *number,
                members: &all,
                name: &name,
            });
            let made = between(Bridge { leader, to }, &side);
            known?;
            made?
        } else {
            between(Bridge { leader, to: None }, &side)?
        };
        let handle = process.enter_comm(team, (handler.clone(), local.session()))?;
        *process.comm(handle)?.hints() = hints;
        Ok(handle)
    };
    new.set(made().map_err(|error: Error| error.on(On::Handler(errhandler)))?);
    Ok(())
}

/// Returns the members of a group, by their numbers in the job.
fn numbers(group: &Ranks) -> Vec<usize> {
    group.iter().map(|rank| rank.index()).collect()
}
