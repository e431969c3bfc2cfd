//! Broadcasts.

use crate::algorithms::{Algorithm, Collective, chosen, steps};
use crate::call::{Call, cut, two_parts};
use crate::error::Result;
use crate::{scatter, two_level};

pub(crate) const ALGORITHMS: &[Algorithm] = &[
    Algorithm::any("binomial", steps!(Broadcast: binomial[call, data, root])),
    Algorithm::on_board(Collective::Broadcast),
    Algorithm::any(
        "scatter-ring",
        steps!(Broadcast: scatter_ring[call, data, root]),
    ),
    Algorithm::any(
        "two-level",
        steps!(Broadcast: two_level::broadcast[call, data, root]),
    )
    .with_levels(),
];

pub(crate) async fn broadcast(call: Call<'_>, data: &mut [u8], root: usize) -> Result<()> {
    chosen!(call, Broadcast of data.len(), true; data, root)
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
