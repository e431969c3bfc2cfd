//! Wavefronts over a plane of ranks from each corner, slice after slice: what `bench sweep3d --mode single` does.

use super::{Program, grid, tag};

/// Slices of a message.
const SLICES: usize = 16;

/// From which side along x and y a sweep comes: from below, or from above.
const CORNERS: [[bool; 2]; 4] = [[false, false], [true, false], [true, true], [false, true]];

/// How often a round sweeps from each corner.
const PASSES: usize = 2;

pub(super) const PROGRAM: Program = Program {
    name: "sweep3d",
    about: "wavefronts over a plane of ranks from each corner by turns, in 16 slices",
    least: 1,
    peers: |_| 4,
    body: |rank, arguments, clockwork| {
        Box::pin(async move {
            let extents = grid(rank.size());
            let len = (arguments.bytes / SLICES).max(1);
            for round in 0..arguments.rounds {
                for (corner, from) in CORNERS.iter().cycle().take(4 * PASSES).enumerate() {
                    let (before, after) = sides(rank.rank(), extents, *from);
                    for _ in 0..SLICES {
                        for peer in before.into_iter().flatten() {
                            let message = rank.irecv(peer, tag(corner as u32), len)?;
                            rank.wait(message).await?;
                        }
                        rank.compute(arguments.compute).await;
                        for peer in after.into_iter().flatten() {
                            let sent = rank.isend(peer, tag(corner as u32), vec![0; len])?;
                            rank.wait(sent).await?;
                        }
                    }
                }
                clockwork.note(rank, round);
            }
            Ok(())
        })
    },
};

/// Returns the ranks from which a sweep comes to one, along x and y, and those to which it goes.
fn sides(
    own: u32,
    [width, height]: [u32; 2],
    from: [bool; 2],
) -> ([Option<u32>; 2], [Option<u32>; 2]) {
    let places = [(own % width, width, 1), (own / width, height, width)];
    let at = |axis: usize, up: bool| {
        let (place, extent, stride) = places[axis];
        match up {
            true => (place + 1 < extent).then(|| own + stride),
            false => (place > 0).then(|| own - stride),
        }
    };
    let of = |turned: bool| [0, 1].map(|axis| at(axis, from[axis] != turned));
    (of(false), of(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_goes_from_its_corner_to_the_opposite_one() {
        // 0 1 2
        // 3 4 5
        let extents = [3, 2];
        for (from, first, last) in [
            (CORNERS[0], 0, 5),
            (CORNERS[1], 2, 3),
            (CORNERS[2], 5, 0),
            (CORNERS[3], 3, 2),
        ] {
            assert_eq!(sides(first, extents, from).0, [None, None]);
            assert_eq!(sides(last, extents, from).1, [None, None]);
            assert!(sides(first, extents, from).1.iter().all(Option::is_some));
        }
        assert_eq!(sides(4, extents, CORNERS[0]).0, [Some(3), Some(1)]);
        assert_eq!(sides(4, extents, CORNERS[0]).1, [Some(5), None]);
    }
}
