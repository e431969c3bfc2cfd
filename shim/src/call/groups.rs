//! Groups of processes (MPI-5.0, section 7.3).

use tagwire_base::Rank;

use crate::abi::{Comm, Group, PROC_NULL, UNDEFINED};
use crate::call::count_of;
use crate::error::{Class, Error, Result};
use crate::object::group::{Ranks, compared};
use crate::process::Process;
use crate::raw::{List, Ref};

/// `MPI_Comm_group`.
pub fn comm_group(process: &Process, comm: Comm, group: Ref<Group>) -> Result {
    let comm = process.comm(comm)?;
    let ranks = Ranks::new(comm.group(), comm.session());
    group.set(process.enter_group(ranks)?);
    Ok(())
}

/// `MPI_Group_size`.
pub fn group_size(process: &Process, group: Group, size: Ref<i32>) -> Result {
    size.set(process.group(group)?.len() as i32);
    Ok(())
}

/// `MPI_Group_rank`.
pub fn group_rank(process: &Process, group: Group, rank: Ref<i32>) -> Result {
    let own = process.messenger.rank();
    let found = process.group(group)?.iter().position(|rank| *rank == own);
    rank.set(found.map_or(UNDEFINED, |place| place as i32));
    Ok(())
}

/// `MPI_Group_translate_ranks`.
pub fn group_translate_ranks(
    process: &Process,
    first: Group,
    count: i32,
    ranks: List<i32>,
    second: Group,
    translated: crate::raw::Array<i32>,
) -> Result {
    let (first, second) = (process.group(first)?, process.group(second)?);
    let count = count_of(count, Class::Arg)?;
    for (place, rank) in ranks.slice(count).iter().enumerate() {
        let number = match *rank {
            PROC_NULL => PROC_NULL,
            rank => {
                let known = usize::try_from(rank).ok().and_then(|rank| first.get(rank));
                let known = known.ok_or_else(|| no_rank(rank, first.len()))?;
                let found = second.iter().position(|other| other == known);
                found.map_or(UNDEFINED, |place| place as i32)
            }
        };
        translated.set(place, number);
    }
    Ok(())
}

/// `MPI_Group_compare`.
pub fn group_compare(process: &Process, first: Group, second: Group, result: Ref<i32>) -> Result {
    let (first, second) = (process.group(first)?, process.group(second)?);
    result.set(compared(&first, &second));
    Ok(())
}

/// Makes a group of such members, of the session of `first`.
fn combine(
    process: &Process,
    first: &Ranks,
    members: impl Iterator<Item = Rank>,
    group: Ref<Group>,
) -> Result {
    let made = Ranks::new(members.collect(), first.session());
    group.set(process.enter_group(made)?);
    Ok(())
}

/// `MPI_Group_union`.
pub fn group_union(process: &Process, first: Group, second: Group, group: Ref<Group>) -> Result {
    let (first, second) = (process.group(first)?, process.group(second)?);
    let more = second.iter().filter(|rank| !first.contains(rank));
    combine(process, &first, first.iter().chain(more).copied(), group)
}

/// `MPI_Group_intersection`.
pub fn group_intersection(
    process: &Process,
    first: Group,
    second: Group,
    group: Ref<Group>,
) -> Result {
    let (first, second) = (process.group(first)?, process.group(second)?);
    let both = first.iter().filter(|rank| second.contains(rank));
    combine(process, &first, both.copied(), group)
}

/// `MPI_Group_difference`.
pub fn group_difference(
    process: &Process,
    first: Group,
    second: Group,
    group: Ref<Group>,
) -> Result {
    let (first, second) = (process.group(first)?, process.group(second)?);
    let rest = first.iter().filter(|rank| !second.contains(rank));
    combine(process, &first, rest.copied(), group)
}

/// Makes the calls that choose members of a group: `those of ranks, the others, of the type of ranks: the places of ranks`.
macro_rules! choices {
    ($($incl:ident $excl:ident($ranks:ident: $Ranks:ty), $Name:literal: $places:expr;)*) => {$(
        #[doc = concat!("`MPI_Group_", $Name, "incl`.")]
        pub fn $incl(
            process: &Process,
            of: Group,
            count: i32,
            $ranks: $Ranks,
            group: Ref<Group>,
        ) -> Result {
            let of = process.group(of)?;
            let places = $places($ranks.slice(count_of(count, Class::Arg)?), of.len())?;
            combine(process, &of, places.into_iter().map(|place| of[place]), group)
        }

        #[doc = concat!("`MPI_Group_", $Name, "excl`.")]
        pub fn $excl(
            process: &Process,
            of: Group,
            count: i32,
            $ranks: $Ranks,
            group: Ref<Group>,
        ) -> Result {
            let of = process.group(of)?;
            let places = $places($ranks.slice(count_of(count, Class::Arg)?), of.len())?;
            let rest = (0..of.len()).filter(|place| !places.contains(place));
            combine(process, &of, rest.map(|place| of[place]), group)
        }
    )*};
}

choices! {
    group_incl group_excl(ranks: List<i32>), "": distinct;
    group_range_incl group_range_excl(ranges: List<[i32; 3]>), "range_": in_ranges;
}

/// `MPI_Group_free`.
pub fn group_free(process: &Process, group: Ref<Group>) -> Result {
    let given = group.get()?;
    if given != Group::EMPTY {
        process.group(given)?;
        process.groups.remove(given.0);
    }
    group.set(Group::NULL);
    Ok(())
}

/// Returns ranks as places in a group, each once.
fn distinct(ranks: &[i32], size: usize) -> Result<Vec<usize>> {
    let mut places = Vec::with_capacity(ranks.len());
    for rank in ranks {
        let place = usize::try_from(*rank).ok().filter(|place| *place < size);
        let place = place.ok_or_else(|| no_rank(*rank, size))?;
        if places.contains(&place) {
            return Err(Error::new(
                Class::Rank,
                format!("rank {rank} is named twice"),
            ));
        }
        places.push(place);
    }
    Ok(places)
}

/// Returns the places in ranges of first, last and stride.
fn in_ranges(ranges: &[[i32; 3]], size: usize) -> Result<Vec<usize>> {
    let mut ranks = Vec::new();
    for [first, last, stride] in ranges.iter().copied() {
        if stride == 0 {
            return Err(Error::new(Class::Arg, "the stride of a range is 0"));
        }
        let mut rank = i64::from(first);
        while (stride > 0 && rank <= i64::from(last)) || (stride < 0 && rank >= i64::from(last)) {
            // Beyond the group it is refused, however long the range is.
            if ranks.len() > size {
                return Err(no_rank(last, size));
            }
            ranks.push(rank as i32);
            rank += i64::from(stride);
        }
    }
    distinct(&ranks, size)
}

fn no_rank(rank: i32, size: usize) -> Error {
    Error::new(
        Class::Rank,
        format!("there is no rank {rank} in a group of {size}"),
    )
}
