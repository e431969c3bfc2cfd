//! Processes of threads, each of which has its own messages.

use tagwire_base::named::{Named, Parameter, Range, Spec};
use tagwire_matching::Envelope;

use super::{App, BYTES, Depth, STEPS, Size, from, parameter, product, to};
use crate::random::Random;
use crate::threads::{Exchange, Grid, Stencil};
use crate::traffic::Script;

pub(super) static THREADS: App = App {
    named: Named {
        name: "threads",
        parameters: &[
            parameter(
                "x",
                8,
                1,
                1 << 12,
                "Threads of a process along the first axis",
            ),
            parameter("y", 8, 1, 1 << 12, "Threads along the second"),
            parameter(
                "z",
                0,
                0,
                1 << 12,
                "Threads along the third; 0: there are two axes",
            ),
            Parameter {
                name: "stencil",
                range: Range::Word {
                    default: "all",
                    words: &["faces", "all"],
                },
                help: "Cells that a thread exchanges with: those across its faces (stencils of 5 and 7 cells), or all around it (9 and 27)",
            },
            parameter(
                "seed",
                1,
                0,
                u32::MAX,
                "What the turns of threads follow from",
            ),
            STEPS,
            BYTES,
        ],
    },
    about: "the exchange of 'match threads' of all processes of a grid without rims, three along each axis: a message from each cell outside to each thread beside it, which threads send by turns that are drawn by lot",
    scripts,
    depth,
    size: |spec| {
        let entries = stencil(spec).messages(&grid(spec));
        let ranks = 3_u128.pow(axes(spec) as u32);
        Size {
            messages: entries * ranks * product(spec, ["steps"]),
            looked: entries,
        }
    },
};

fn axes(spec: &Spec) -> usize {
    if spec.number("z") == 0 { 2 } else { 3 }
}

fn grid(spec: &Spec) -> Grid {
    let sides = ["x", "y", "z"].map(|name| spec.number(name));
    Grid::new(&sides[..axes(spec)])
}

fn stencil(spec: &Spec) -> Stencil {
    Stencil::new(axes(spec), spec.word("stencil") == "all")
}

fn scripts(spec: &Spec) -> Vec<Script> {
    let [steps, bytes] = ["steps", "bytes"].map(|name| spec.number(name));
    let Exchange { messages, .. } = Exchange::new(&grid(spec), stencil(spec));
    let mut random = Random::new(u64::from(spec.number("seed")));
    let ranks = 3_u32.pow(axes(spec) as u32);
    let mut scripts = vec![Script::new(); ranks as usize];
    for _ in 0..steps {
        for (rank, script) in (0..).zip(&mut scripts) {
            let receive = |(number, message): (u32, &Envelope)| {
                script.post(from(beside(rank, message.source.as_u32(), 1), number, 0))
            };
            let mut requests: Vec<_> = (0..).zip(&messages).map(receive).collect();
            // Whoever has this rank where the message comes from.
            let mut sends: Vec<(u32, u32)> = (0..)
                .zip(&messages)
                .map(|(number, message)| (beside(rank, message.source.as_u32(), -1), number))
                .collect();
            random.shuffle(&mut sends);
            let send = |(target, number)| script.send(to(target, number, 0, u64::from(bytes)));
            requests.extend(sends.into_iter().map(send));
            script.wait(requests);
        }
    }
    scripts
}

/// The rank at the place of a process around this one, or with -1 the rank around which this one has that place.
fn beside(rank: u32, process: u32, sign: i32) -> u32 {
    let digits = [process / 9, process / 3 % 3, process % 3];
    let own = [rank % 3, rank / 3 % 3, rank / 9];
    let moved = own.iter().zip(digits).map(|(own, digit)| {
        let moved = *own as i32 + sign * (digit as i32 - 1);
        moved.rem_euclid(3) as u32
    });
    moved.zip([1, 3, 9]).map(|(at, weight)| at * weight).sum()
}

fn depth(spec: &Spec) -> Depth {
    let Exchange { messages, .. } = Exchange::new(&grid(spec), stencil(spec));
    let sources: Vec<u32> = messages.iter().map(|one| one.source.as_u32()).collect();
    Depth {
        posted: Some(posted(&sources)),
        // The messages of each source are in random order, and so are those of all.
        shuffled: Some((sources.len() as f64 + 3.0) / 4.0),
    }
}

/// The mean depth where each message comes when its receive is the first that waits, and before it those that its source sent
/// before, in random order. The receives were posted with these sources.
///
/// A receive is found behind those that were posted before it and whose messages come later. Of its own source that is half of
/// those before it. A message comes with the first receive in the order of posting whose message is not sent before it: the k-th
/// of its source with the chance 1 / k - 1 / (k + 1), and itself, the r-th, with 1 / r. A message of another source comes after
/// that with the chance 1 / (c + 1), where c receives of this source lie before that receive.
fn posted(sources: &[u32]) -> f64 {
    let mut names = sources.to_vec();
    names.sort_unstable();
    names.dedup();
    // How many receives of each source lie before each place.
    let mut before = vec![0.0_f64; names.len()];
    let mut all_before: Vec<Vec<f64>> = Vec::with_capacity(sources.len());
    let mut places: Vec<Vec<usize>> = vec![Vec::new(); names.len()];
    let mut ahead = 0.0;
    for (place, source) in sources.iter().enumerate() {
        all_before.push(before.clone());
        let own = names.partition_point(|name| name < source);
        ahead += before[own] / 2.0;
        for (index, earlier) in places[own].iter().enumerate() {
            let k = (index + 1) as f64;
            let chance = 1.0 / (k * (k + 1.0));
            let then = &all_before[*earlier];
            let others = (0..names.len()).filter(|other| *other != own);
            let later = others.map(|other| (before[other] - then[other]) / (then[other] + 1.0));
            ahead += chance * later.sum::<f64>();
        }
        places[own].push(place);
        before[own] += 1.0;
    }
    1.0 + ahead / sources.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_beside_those_that_are_beside_it() {
        for rank in 0..27 {
            for process in 0..27 {
                assert_eq!(beside(beside(rank, process, 1), process, -1), rank);
            }
            assert_eq!(beside(rank, 13, 1), rank);
        }
        // The first axis is the first of a process's digits, and of a rank's.
        assert_eq!((beside(0, 22, 1), beside(0, 14, 1)), (1, 9));
    }

    /// Of two sources with a receive each nothing comes early; a source alone has half of its receives ahead.
    #[test]
    fn small_cases_are_those_that_can_be_counted_by_hand() {
        assert_eq!(posted(&[4, 2]), 1.0);
        assert_eq!(posted(&[7, 7]), 1.25);
        assert_eq!(posted(&[7, 7, 7]), 1.5);
        // The second message of 1 comes first in one case of two, before that of 2 whose receive was posted before.
        assert_eq!(posted(&[1, 2, 1]), 1.0 + (0.5 + 0.5) / 3.0);
    }
}
