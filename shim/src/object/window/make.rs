//! How the members of a window make it: who maps what, and what the others need.
//!
//! ```text
//!     what each wants, and whether its arguments are good    gathered by all; ends here where some are not
//!     the first member of each host makes memory             its key is gathered by all
//!     others of the host map it, or nobody does
//!     what each lets others reach                            its keys are gathered by all
//!     whether all have reached all                           gathered by all: nobody begins before
//! ```
//!
//! The memory of a host has the control blocks of its members, then their windows, where it is allocated for them.

mod host;
mod told;

use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, OnceLock};

use tagwire_base::Rank;
use tagwire_coll::Team;
use tagwire_pml::{Messenger, Region};
use tagwire_transport::{BoardWaker, PeerAllocations};

use crate::abi::{Session, Win};
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::attributes::Attributes;
use crate::object::comm::Communicator;
use crate::object::errhandler::Handler;
use crate::object::info::Entries;
use crate::object::window::accesses::{Accesses, Part, Parts};
use crate::object::window::attached::{Attached, TABLE};
use crate::object::window::block::{self, Block, Mapping, Word, long};
use crate::object::window::delegation::Delegated;
use crate::object::window::epochs::Epochs;
use crate::object::window::run::Gathered;
use crate::object::window::{Count, Data, Flavor, Member, Open, Values, Window};
use crate::process::Process;
use crate::raw::{Out, Pointer};
pub(crate) use host::PAGE;
use told::Told;

/// What a program wants of its part of a window.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) flavor: Flavor,
    pub(crate) bytes: usize,
    pub(crate) unit: i64,
    /// Memory of the program, of a window that is created over it.
    pub(crate) base: Option<Out>,
    /// Each part of a shared window begins at a page.
    pub(crate) has_gaps: bool,
    pub(crate) alignment: usize,
}

/// What nobody calls memory: there is no name.
const NO_NAME: u64 = u64::MAX;

/// A window that is being made.
struct Making<'p> {
    process: &'p Process,
    team: Team,
    wanted: Wanted,
    /// What all members have said.
    told: Vec<Told>,
    /// The members of this host.
    near: Vec<usize>,
}

/// Makes a window, with all other members of a communicator. `wanted` is what this process wants, or what is wrong with its
/// arguments: then no member has a window.
///
/// # Errors
/// What is wrong with the arguments of a member, `MPI_ERR_NO_MEM`, `MPI_ERR_RMA_SHARED`; when a member fails.
pub(crate) fn make(
    process: &Process,
    comm: &Communicator,
    wanted: Result<Wanted>,
) -> Result<impl FnOnce(usize) -> Window> {
    comm.check_intra()?;
    let team = comm.team.duplicate()?;
    let making = Making::agreed(process, team, wanted)?;
    let session = comm.session();
    let made = making.map()?;
    Ok(move |handle| made.window(Win(handle), session))
}

/// Regions that others may reach, until they are taken or dropped.
struct Exposed {
    messenger: Arc<Messenger>,
    regions: Vec<Region>,
}

impl Drop for Exposed {
    fn drop(&mut self) {
        for region in self.regions.drain(..) {
            // On a thread that may not call, it stays.
            let _ = self.messenger.window().withdraw(region);
        }
    }
}

/// What a window is made of.
struct Made {
    team: Team,
    wanted: Wanted,
    messenger: Arc<Messenger>,
    mapping: Arc<Mapping>,
    members: Vec<Member>,
    exposed: Exposed,
    is_asked: bool,
    base: Pointer,
    allocated: Option<Pointer>,
}

impl<'p> Making<'p> {
    /// Has all members agree on what they make.
    fn agreed(process: &'p Process, team: Team, wanted: Result<Wanted>) -> Result<Self> {
        let host = u64::from(process.first_local.as_u32());
        let own = match &wanted {
            Ok(wanted) => Told {
                class: 0,
                host,
                bytes: wanted.bytes as u64,
                unit: wanted.unit as u64,
                kind: wanted.flavor as u64 * 2 + u64::from(wanted.has_gaps),
            },
            Err(error) => Told {
                class: error.code() as u64,
                host,
                bytes: 0,
                unit: 1,
                kind: 0,
            },
        };
        let mut all = vec![0; Told::LEN * team.size()];
        team.allgather(&own.encode(), &mut all)?;
        let told: Vec<Told> = all.chunks_exact(Told::LEN).map(Told::decode).collect();
        let wanted = wanted?;
        for (member, other) in told.iter().enumerate() {
            if other.class != 0 {
                let class = Class::of(other.class as i32).unwrap_or(Class::Other);
                let text = format!(
                    "rank {member} has called it with other arguments: {}",
                    class.text()
                );
                return Err(Error::new(class, text));
            }
            if other.kind / 2 != own.kind / 2 {
                let text = format!("rank {member} makes a window of another kind");
                return Err(Error::new(Class::Arg, text));
            }
        }
        let near = (0..told.len()).filter(|member| told[*member].host == host);
        let near: Vec<usize> = near.collect();
        if wanted.flavor == Flavor::Shared && told.iter().any(|other| other.host != host) {
            let text =
                "the ranks are not all on one host (MPI_Comm_split_type finds those that are)";
            return Err(Error::new(Class::RmaShared, text));
        }
        Ok(Self {
            process,
            team,
            wanted,
            told,
            near,
        })
    }

    fn messenger(&self) -> &Arc<Messenger> {
        &self.process.messenger
    }

    /// Returns whether the memory of windows is in that of their host.
    fn is_allocated(&self) -> bool {
        matches!(self.wanted.flavor, Flavor::Allocate | Flavor::Shared)
    }

    /// Returns bytes that all members give, by member.
    fn gathered(&self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let size = self.team.size();
        let mut lengths = vec![0; 8 * size];
        let own_length = (own.len() as u64).to_ne_bytes();
        self.team.allgather(&own_length, &mut lengths)?;
        let lengths: Vec<usize> = lengths
            .as_chunks::<8>()
            .0
            .iter()
            .map(|length| u64::from_ne_bytes(*length) as usize)
            .collect();
        let mut all = vec![0; lengths.iter().sum()];
        self.team.allgatherv(own, &lengths, &mut all)?;
        let mut rest = &all[..];
        let parts = lengths.iter().map(|length| {
            let (part, after) = rest.split_at(*length);
            rest = after;
            part.to_vec()
        });
        Ok(parts.collect())
    }

    /// Returns an error where one of all members has one: its own, or that of the first other.
    fn agree<T>(&self, own: Result<T>) -> Result<T> {
        let class = own.as_ref().err().map_or(0, Error::code);
        let all = self.gathered(&class.to_ne_bytes())?;
        let own = own?;
        for (member, class) in all.iter().enumerate() {
            let code = class
                .first_chunk()
                .map_or(0, |code| i32::from_ne_bytes(*code));
            if code != 0 {
                let class = Class::of(code).unwrap_or(Class::Other);
                let text = format!("rank {member} could not make its part of the window");
                return Err(Error::new(class, text));
            }
        }
        Ok(own)
    }

    fn block_bytes(&self) -> usize {
        let table = match self.wanted.flavor {
            Flavor::Dynamic => TABLE,
            _ => 0,
        };
        block::bytes(self.team.size()) + table
    }

    /// Maps the memory of this host, and reaches that of others.
    fn map(self) -> Result<Made> {
        let (process, mut allocated) = (self.process, None);
        let made = self.map_with(&mut allocated);
        if let (Err(_), Some(start)) = (&made, allocated) {
            process.memory.free(start)?;
        }
        made
    }

    /// The same. What it allocates for this process alone is in `allocated`.
    fn map_with(self, allocated: &mut Option<Pointer>) -> Result<Made> {
        let layout = self.agree(self.layout())?;
        let (shared, has_barrier) = self.shared(&layout)?;
        let (mapping, places) = match shared {
            Some(shared) => {
                let near = self.near.iter().copied().zip(layout.places);
                (Mapping::Shared(shared), near.collect())
            }
            None => (
                Mapping::own(self.block_bytes()),
                vec![(self.team.me(), (0, 0))],
            ),
        };
        let mapping = Arc::new(mapping);
        let is_shared = matches!(*mapping, Mapping::Shared(_));
        let own_place = places.iter().find(|(member, _)| *member == self.team.me());
        let (own_block, own_window) = own_place.map_or((0, 0), |(_, place)| *place);
        let long = match has_barrier && places.len() == self.team.size() {
            true => long::UNTAKEN,
            false => long::FREE,
        };
        Block::at(&mapping, own_block, (self.team.me(), self.team.size())).set(
            self.messenger(),
            Word::Long,
            long,
        )?;
        let base = match (&self.wanted.base, is_shared) {
            (Some(base), _) => Ok(*base),
            (None, true) => Ok(mapping.part(own_window, 0)),
            (None, false) => self.allocate(),
        };
        if let (Ok(start), true, false) = (&base, self.is_allocated(), is_shared) {
            *allocated = Some(Pointer(start.read().address().cast_mut()));
        }
        let base = self.agree(base)?;
        let (exposed, keys) = self.agree(self.expose(&mapping, own_block, base))?;
        let has_name = !keys[1].ends_with(&NO_NAME.to_ne_bytes());
        let has_bytes = self.wanted.bytes > 0;
        let is_asked = is_shared && self.wanted.flavor == Flavor::Create && has_bytes && !has_name;
        let keys = [self.gathered(&keys[0])?, self.gathered(&keys[1])?];
        let members = (0..self.team.size()).map(|member| {
            let place = places.iter().find(|(near, _)| *near == member);
            let place = place.map(|(_, place)| (&mapping, *place));
            self.member(member, place, base, (&keys[0][member], &keys[1][member]))
        });
        let members = self.agree(members.collect::<Result<Vec<Member>>>())?;
        let base = match (self.wanted.flavor, self.wanted.bytes) {
            (Flavor::Dynamic, _) => Pointer(std::ptr::null_mut()),
            (Flavor::Allocate, 0) => Pointer(std::ptr::null_mut()),
            _ => Pointer(base.read().address().cast_mut()),
        };
        Ok(Made {
            messenger: Arc::clone(self.messenger()),
            team: self.team,
            wanted: self.wanted,
            mapping,
            members,
            exposed,
            is_asked,
            base,
            allocated: *allocated,
        })
    }

    /// Returns memory for the window of this process, which it shares with none.
    fn allocate(&self) -> Result<Out> {
        if !self.is_allocated() {
            return Ok(Out::EMPTY);
        }
        let memory = &self.process.memory;
        let alignment = self.wanted.alignment.max(PAGE);
        let start = memory.allocate(self.messenger(), self.wanted.bytes, alignment)?;
        Ok(Out::at_address(start.0.cast()))
    }

    /// Lets others reach the control block and the window of this process. Returns their keys; empty ones where nobody needs them.
    fn expose(
        &self,
        mapping: &Mapping,
        block: usize,
        base: Out,
    ) -> Result<(Exposed, [Vec<u8>; 2])> {
        let is_shared = matches!(mapping, Mapping::Shared(_));
        let size = self.team.size();
        let maps_all = match is_shared {
            true => self.near.len() == size,
            false => size == 1,
        };
        let needs_data = match self.wanted.flavor {
            Flavor::Create => size > 1,
            Flavor::Dynamic => false,
            Flavor::Allocate | Flavor::Shared => !maps_all,
        };
        let mut keys = [Vec::new(), Vec::new()];
        let mut exposed = Exposed {
            messenger: Arc::clone(self.messenger()),
            regions: Vec::new(),
        };
        let name = match self.wanted.flavor {
            Flavor::Create => self.name_of(base)?,
            _ => None,
        };
        let parts = [
            (!maps_all).then(|| (mapping.part(block, self.block_bytes()), self.block_bytes())),
            (needs_data && self.wanted.bytes > 0).then_some((base, self.wanted.bytes)),
        ];
        for (part, key) in parts.into_iter().zip(&mut keys) {
            if let Some((start, bytes)) = part {
                let region = self.messenger().window().expose(&start.buffer(0, bytes))?;
                *key = region.key().to_vec();
                exposed.regions.push(region);
            }
        }
        keys[1].extend(name.unwrap_or(NO_NAME).to_ne_bytes());
        Ok((exposed, keys))
    }

    /// Returns what others of this host call the window of this process, where they may map it: memory of `MPI_Alloc_mem`.
    fn name_of(&self, base: Out) -> Result<Option<u64>> {
        let own = self.team.me();
        let mut others = self.near.iter().filter(|member| **member != own);
        let Some(other) = others
            .next()
            .and_then(|other| self.team.members().rank(*other))
        else {
            return Ok(None);
        };
        let (start, bytes) = (base.read().address().addr(), self.wanted.bytes);
        let name = self
            .messenger()
            .with_boards(other, |boards, _| boards.name_of(start, bytes))?;
        Ok(name.flatten())
    }

    /// Returns the memory that another of this host calls so, with what keeps it.
    fn mapped(
        &self,
        rank: Rank,
        name: u64,
        bytes: u64,
    ) -> Result<Option<(Out, Arc<dyn PeerAllocations>)>> {
        if name == NO_NAME {
            return Ok(None);
        }
        let allocations = self
            .messenger()
            .with_boards(rank, |boards, of| boards.allocations(of))?;
        Ok(allocations.flatten().and_then(|allocations| {
            let start = allocations.at(name, usize::try_from(bytes).ok()?)?;
            Some((Out::at_address(start.as_ptr()), allocations))
        }))
    }

    /// Returns a member as this process reaches it.
    fn member(
        &self,
        member: usize,
        place: Option<(&Arc<Mapping>, (usize, usize))>,
        base: Out,
        (block_key, data_key): (&[u8], &[u8]),
    ) -> Result<Member> {
        let rank = self.team.members().rank(member);
        let rank = rank.ok_or_else(|| Error::new(Class::Intern, "a member without a rank"))?;
        let told = self.told[member];
        let is_own = member == self.team.me();
        let window = self.messenger().window();
        let (data_key, name) = data_key.split_last_chunk().unwrap_or((&[], &[0xff; 8]));
        let mapped = match is_own {
            true => None,
            false => self.mapped(rank, u64::from_ne_bytes(*name), told.bytes)?,
        };
        let (mapped, allocations) = mapped.unzip();
        let block = match place {
            Some((memory, (at, _))) => Block::at(memory, at, (self.team.me(), self.told.len())),
            None => Block::Remote(window.reach(rank, block_key)?),
        };
        let is_mapped =
            |memory: &Mapping| matches!(memory, Mapping::Shared(_)) && self.is_allocated();
        let data = match (self.wanted.flavor, place, mapped) {
            (Flavor::Dynamic, ..) => Data::Attached,
            _ if told.bytes == 0 => Data::Empty,
            (_, Some((memory, (_, at))), _) if is_mapped(memory) => {
                Data::Mapped(memory.part(at, told.bytes as usize))
            }
            _ if is_own => Data::Mapped(base),
            (.., Some(start)) => Data::Mapped(start),
            _ => Data::Remote(Parts::from(vec![Part {
                target: window.reach(rank, data_key)?,
                start: 0,
                end: told.bytes as i64,
            }])),
        };
        let waker = match (&block, is_own) {
            (Block::Mapped { .. }, false) => self.waker(rank)?,
            _ => None,
        };
        let start = match &data {
            Data::Mapped(start) => *start,
            _ => Out::EMPTY,
        };
        Ok(Member {
            rank,
            block,
            data,
            size: told.bytes,
            unit: told.unit as i64,
            waker,
            open: AtomicU8::new(Open::None as u8),
            start,
            _allocations: allocations,
            starts: Count::default(),
            posts: Count::default(),
            asker: Lock::default(),
        })
    }

    fn waker(&self, rank: Rank) -> Result<Option<Arc<dyn BoardWaker>>> {
        let lent = self
            .messenger()
            .with_boards(rank, |boards, to| boards.waker(to))?;
        Ok(lent.flatten())
    }
}

impl Made {
    fn window(mut self, handle: Win, session: Session) -> Window {
        let size = self.team.size();
        let maps_all = self.members.iter().all(|member| member.block.is_mapped());
        let delegated = Delegated::new(size, !maps_all);
        let values = Values {
            base: self.base,
            size: self.wanted.bytes as i64,
            // Of a wider unit an int tells no more.
            unit: i32::try_from(self.wanted.unit).unwrap_or(i32::MAX),
            flavor: self.wanted.flavor as i32,
            model: super::UNIFIED,
        };
        Window {
            handle,
            flavor: self.wanted.flavor,
            session,
            accesses: Accesses::new(&self.messenger),
            messenger: self.messenger,
            maps_all,
            meetings: Count::default(),
            members: self.members.into(),
            epochs: Lock::new(Epochs::new(size, self.team.me())),
            open: AtomicU8::new(Open::None as u8),
            last_group: Lock::default(),
            is_accessed: AtomicBool::new(false),
            attached: Attached::new(size),
            calls: AtomicU8::new(0),
            values: Box::new(values),
            attributes: Attributes::new(),
            name: Lock::default(),
            errhandler: Lock::new(Handler::Fatal),
            lost: OnceLock::new(),
            hints: Lock::new(Entries::default()),
            regions: Lock::new(std::mem::take(&mut self.exposed.regions)),
            is_asked: self.is_asked,
            serving: Lock::default(),
            gathered: Gathered::default(),
            delegated,
            allocated: Lock::new(self.allocated),
            team: self.team,
            _mapping: self.mapping,
        }
    }
}
