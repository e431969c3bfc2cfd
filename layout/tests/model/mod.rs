//! The model: a type map as the standard writes it, an entry for each value (MPI-5.0, section 5.1).

use tagwire_layout::{Basic, Datatype, Distributed, Distribution, Error, Member, Order, Slice};

/// A type map with its markers.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Where each value is, in order. The two of a pair are two.
    pub entries: Vec<(i64, Basic)>,
    /// Where parts begin, and where they end with their padding.
    parts: Vec<(i64, i64)>,
    lower: Vec<i64>,
    upper: Vec<i64>,
}

impl Model {
    pub fn of(basic: Basic) -> Self {
        let place = |value: Basic, index: Basic| value.size().max(index.alignment()) as i64;
        Self {
            entries: match basic.pair() {
                Some((value, index)) => vec![(0, value), (place(value, index), index)],
                None => vec![(0, basic)],
            },
            parts: vec![(0, basic.extent() as i64)],
            ..Self::default()
        }
    }

    fn add(&mut self, of: &Self, displacement: i64) {
        let entries = of.entries.iter();
        self.entries
            .extend(entries.map(|(at, basic)| (at + displacement, *basic)));
        if !of.entries.is_empty() {
            let (low, high) = of.padded();
            self.parts.push((low + displacement, high + displacement));
        }
        self.lower
            .extend(of.lower.iter().map(|at| at + displacement));
        self.upper
            .extend(of.upper.iter().map(|at| at + displacement));
    }

    /// Blocks of neighbours, each with its length and its displacement in bytes.
    pub fn blocks(&self, blocks: impl IntoIterator<Item = (u64, i64)>) -> Self {
        let mut all = Self::default();
        for (length, displacement) in blocks {
            for number in 0..length as i64 {
                all.add(self, displacement + number * self.extent());
            }
        }
        all
    }

    pub fn structure(members: &[(u64, i64, Self)]) -> Self {
        let mut all = Self::default();
        for (count, displacement, of) in members {
            all.add(&of.blocks([(*count, *displacement)]), 0);
        }
        all
    }

    pub fn resized(&self, lower: i64, extent: i64) -> Self {
        Self {
            entries: self.entries.clone(),
            parts: self.parts.clone(),
            lower: vec![lower],
            upper: vec![lower + extent],
        }
    }

    /// Where the data begins, and where it ends with its padding.
    fn padded(&self) -> (i64, i64) {
        let low = self.parts.iter().map(|part| part.0).min().unwrap_or(0);
        let mut high = self.parts.iter().map(|part| part.1).max().unwrap_or(0);
        let alignments = self.entries.iter().map(|(_, basic)| basic.alignment());
        while (high - low) % alignments.clone().max().unwrap_or(1) as i64 != 0 {
            high += 1;
        }
        (low, high)
    }

    pub fn lower(&self) -> i64 {
        self.lower
            .iter()
            .copied()
            .min()
            .unwrap_or_else(|| self.padded().0)
    }

    pub fn upper(&self) -> i64 {
        self.upper
            .iter()
            .copied()
            .max()
            .unwrap_or_else(|| self.padded().1)
    }

    pub fn extent(&self) -> i64 {
        self.upper() - self.lower()
    }

    pub fn true_lower(&self) -> i64 {
        self.entries.iter().map(|(at, _)| *at).min().unwrap_or(0)
    }

    pub fn true_upper(&self) -> i64 {
        let ends = self
            .entries
            .iter()
            .map(|(at, basic)| at + basic.size() as i64);
        ends.max().unwrap_or(0)
    }

    pub fn size(&self) -> i64 {
        self.entries
            .iter()
            .map(|(_, basic)| basic.size() as i64)
            .sum()
    }

    /// Where each byte of the packed data lies.
    pub fn places(&self) -> Vec<i64> {
        let bytes = |(at, basic): &(i64, Basic)| *at..*at + basic.size() as i64;
        self.entries.iter().flat_map(bytes).collect()
    }
}

/// Memory with `data` at displacement `low` from an origin, and the origin. It reaches no further than it must.
pub fn surrounded(data: &[u8], low: i64) -> (Vec<u8>, usize) {
    let mut memory = vec![0; low.max(0) as usize];
    memory.extend(data);
    let origin = (-low).max(0) as usize;
    memory.resize(memory.len().max(origin), 0);
    (memory, origin)
}

/// A generator that gives the same numbers for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    pub fn count(&mut self, most: u64) -> u64 {
        self.next() % (most + 1)
    }
}

/// How many values a type map may have.
const MOST: usize = 300;

/// A datatype with its model; a basic type where it would be too large.
pub fn tree(random: &mut Random, depth: u32) -> (Datatype, Model) {
    let (datatype, model) = match depth {
        0 => leaf(random),
        _ => {
            let inner = tree(random, depth - 1);
            node(random, depth, inner).unwrap_or_else(|error| panic!("{error}"))
        }
    };
    if model.entries.len() > MOST {
        return leaf(random);
    }
    (datatype, model)
}

fn leaf(random: &mut Random) -> (Datatype, Model) {
    let basic = Basic::ALL[(random.next() % Basic::ALL.len() as u64) as usize];
    (Datatype::of(basic), Model::of(basic))
}

fn node(
    random: &mut Random,
    depth: u32,
    (of, model): (Datatype, Model),
) -> Result<(Datatype, Model), Error> {
    let extent = model.extent();
    let lengths: Vec<u64> = (0..random.count(6)).map(|_| random.count(3)).collect();
    let mut displacements: Vec<i64> = lengths.iter().map(|_| random.within(-6, 12)).collect();
    if random.count(3) == 0 {
        // Equally spaced.
        let (first, step) = (random.within(-3, 3), random.within(-3, 3));
        displacements = (0..displacements.len() as i64)
            .map(|number| first + number * step)
            .collect();
    }
    let (count, length) = (random.count(5), random.count(3));
    let scattered = |unit: i64, length: Option<u64>| {
        let places = lengths.iter().zip(&displacements);
        model.blocks(places.map(|(own, at)| (length.unwrap_or(*own), at * unit)))
    };
    Ok(match random.count(12) {
        0 => (of.contiguous(count)?, model.blocks([(count, 0)])),
        1 | 2 => {
            let stride = random.within(-4, 5);
            let rows = (0..count as i64).map(|row| (length, row * stride * extent));
            (of.vector(count, length, stride)?, model.blocks(rows))
        }
        3 => {
            let stride = random.within(-40, 80);
            let rows = (0..count as i64).map(|row| (length, row * stride));
            (of.hvector(count, length, stride)?, model.blocks(rows))
        }
        4 => (
            of.indexed(&lengths, &displacements)?,
            scattered(extent, None),
        ),
        5 => (of.hindexed(&lengths, &displacements)?, scattered(1, None)),
        6 => (
            of.indexed_block(length, &displacements)?,
            scattered(extent, Some(length)),
        ),
        7 => (
            of.hindexed_block(length, &displacements)?,
            scattered(1, Some(length)),
        ),
        8 => {
            let mut members = vec![(random.count(3), random.within(-20, 60), of, model)];
            for _ in 0..random.count(3) {
                let (of, model) = tree(random, depth - 1);
                members.push((random.count(3), random.within(-20, 60), of, model));
            }
            let models: Vec<_> = members
                .iter()
                .map(|(n, at, _, model)| (*n, *at, model.clone()))
                .collect();
            let members = members
                .into_iter()
                .map(|(count, displacement, of, _)| Member {
                    count,
                    displacement,
                    of,
                });
            (
                Datatype::structure(members.collect::<Vec<_>>())?,
                Model::structure(&models),
            )
        }
        9 => {
            let (lower, extent) = (random.within(-16, 16), random.within(-8, 48));
            (of.resized(lower, extent)?, model.resized(lower, extent))
        }
        10 => (of.duplicate()?, model),
        11 => subarray(random, &of, &model)?,
        _ => darray(random, &of, &model)?,
    })
}

/// The coordinates of an array, in the order of memory, with the number of each element.
fn coordinates(sizes: &[u64], order: Order) -> Vec<(Vec<u64>, i64)> {
    let all: u64 = sizes.iter().product();
    let places = (0..all).map(|number| {
        let (mut rest, mut place) = (number, vec![0; sizes.len()]);
        let mut dimensions: Vec<usize> = (0..sizes.len()).collect();
        if order == Order::C {
            dimensions.reverse();
        }
        for dimension in dimensions {
            (place[dimension], rest) = (rest % sizes[dimension], rest / sizes[dimension]);
        }
        (place, number as i64)
    });
    places.collect()
}

fn array(sizes: &[u64], order: Order, model: &Model, has: impl Fn(usize, u64) -> bool) -> Model {
    let mine = coordinates(sizes, order).into_iter().filter(|(place, _)| {
        place
            .iter()
            .enumerate()
            .all(|(dimension, at)| has(dimension, *at))
    });
    let extent = model.extent();
    let part = model.blocks(mine.map(|(_, number)| (1, number * extent)));
    part.resized(0, sizes.iter().product::<u64>() as i64 * extent)
}

fn order(random: &mut Random) -> Order {
    [Order::C, Order::Fortran][random.count(1) as usize]
}

fn subarray(random: &mut Random, of: &Datatype, model: &Model) -> Result<(Datatype, Model), Error> {
    let slices: Vec<Slice> = (0..=random.count(2))
        .map(|_| {
            let size = 1 + random.count(4);
            let start = random.count(size - 1);
            let length = 1 + random.count(size - start - 1);
            Slice {
                size,
                length,
                start,
            }
        })
        .collect();
    let order = order(random);
    let sizes: Vec<u64> = slices.iter().map(|slice| slice.size).collect();
    let has = |dimension: usize, at: u64| {
        let Slice { length, start, .. } = slices[dimension];
        (start..start + length).contains(&at)
    };
    Ok((
        of.subarray(&slices, order)?,
        array(&sizes, order, model, has),
    ))
}

fn darray(random: &mut Random, of: &Datatype, model: &Model) -> Result<(Datatype, Model), Error> {
    let dimensions: Vec<Distributed> = (0..=random.count(2))
        .map(|_| {
            let (size, processes) = (random.count(7), 1 + random.count(2));
            let least = size.div_ceil(processes);
            let (distribution, processes) = match random.count(4) {
                0 => (Distribution::Block(None), processes),
                1 => (
                    Distribution::Block(Some(least.max(1) + random.count(2))),
                    processes,
                ),
                2 => (Distribution::Cyclic(None), processes),
                3 => (Distribution::Cyclic(Some(1 + random.count(3))), processes),
                _ => (Distribution::None, 1),
            };
            Distributed {
                size,
                distribution,
                processes,
            }
        })
        .collect();
    let processes: u64 = dimensions
        .iter()
        .map(|dimension| dimension.processes)
        .product();
    let (rank, order) = (random.count(processes - 1), order(random));
    let sizes: Vec<u64> = dimensions.iter().map(|dimension| dimension.size).collect();
    let grid: Vec<u64> = dimensions
        .iter()
        .map(|dimension| dimension.processes)
        .collect();
    let (mine, _) = coordinates(&grid, Order::C)[rank as usize].clone();
    let has = |dimension: usize, at: u64| {
        let Distributed {
            size,
            distribution,
            processes,
        } = dimensions[dimension];
        let block = match distribution {
            Distribution::Block(None) => size.div_ceil(processes),
            Distribution::Cyclic(None) => 1,
            Distribution::Block(Some(block)) | Distribution::Cyclic(Some(block)) => block,
            Distribution::None => size,
        };
        at / block % processes == mine[dimension]
    };
    Ok((
        of.darray(processes, rank, &dimensions, order)?,
        array(&sizes, order, model, has),
    ))
}
