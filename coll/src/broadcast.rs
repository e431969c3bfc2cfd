//! Broadcasts.

use crate::algorithms::Collective;
use crate::call::{Call, cut, two_parts};
use crate::error::Result;
use crate::functions::{Functions, Steps, steps};
use crate::scatter;

type Function = for<'a> fn(Call<'a>, &'a mut [u8], usize) -> Steps<'a>;

const FUNCTIONS: Functions<Function> = Functions::of(
    Collective::Broadcast,
    &[
        ("binomial", steps!(binomial[call, data, root])),
        ("scatter-ring", steps!(scatter_ring[call, data, root])),
        ("two-level", steps!(two_level[call, data, root])),
    ],
);

/// Returns the steps of the algorithm that is chosen.
pub(crate) fn broadcast<'a>(call: Call<'a>, data: &'a mut [u8], root: usize) -> Result<Steps<'a>> {
    let algorithm = call.choose(Collective::Broadcast, data.len(), true);
    Ok(FUNCTIONS.get(algorithm)?(call, data, root))
}

/// A binomial tree: log2(n) steps, the data whole in each.
pub(crate) async fn binomial(call: Call<'_>, data: &mut [u8], root: usize) -> Result<()> {
    let (size, place) = (call.size(), call.before(root));
    let mut mask = 1;
    while mask < size {
        if place & mask != 0 {
            call.recv(data, (place - mask + root) % size).await?;
            break;
        }
        mask *= 2;
    }
    while mask > 1 {
        mask /= 2;
        if place + mask < size {
            call.send(data, (place + mask + root) % size).await?;
        }
    }
    Ok(())
}

/// A scatter and a ring (van de Geijn): each member sends and receives the data twice at most, whatever the size.
async fn scatter_ring(call: Call<'_>, data: &mut [u8], root: usize) -> Result<()> {
    let (size, place) = (call.size(), call.before(root));
    let lengths = cut(data.len(), size, 1);
    scatter::down_the_tree(call, data, &lengths, root).await?;
    // Blocks are numbered from the root, as places are.
    for step in 0..size.saturating_sub(1) {
        let out = (place + size - step) % size;
        let into = (place + size - step - 1) % size;
        let (read, write) = (Call::range(&lengths, out), Call::range(&lengths, into));
        let (read, write) = two_parts(data, read, write);
        call.exchange(read, call.after(1), write, call.before(1))
            .await?;
    }
    Ok(())
}

/// The root gives the data to its leader, that one to the others, and each to its host.
async fn two_level(call: Call<'_>, data: &mut [u8], root: usize) -> Result<()> {
    let levels = call.all_levels()?;
    let (host, first) = (call.among(levels.host()), levels.host_of(root));
    let is_first = levels.own_host() == first;
    if is_first {
        binomial(host, data, levels.place(root)).await?;
    }
    if let Some(leaders) = levels.leaders() {
        broadcast(call.among(leaders), data, first)?.await?;
    }
    match is_first {
        true => Ok(()),
        false => binomial(host, data, 0).await,
    }
}
