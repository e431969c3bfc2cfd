//! Elements that lie anyhow, and the datatypes that say so.

use tagwire_conformance::Chance;
use tagwire_shim::Process;
use tagwire_shim::abi::Datatype;
use tagwire_shim::call::datatypes;
use tagwire_shim::raw::Twin;

use crate::common::{counts, result};

/// A predefined datatype: an unsigned integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Value {
    pub size: usize,
    pub handle: Datatype,
}

pub const VALUES: [Value; 4] = [
    Value {
        size: 1,
        handle: Datatype(0x241),
    },
    Value {
        size: 2,
        handle: Datatype(0x249),
    },
    Value {
        size: 4,
        handle: Datatype(0x251),
    },
    Value {
        size: 8,
        handle: Datatype(0x259),
    },
];

/// How values of one type lie: positions are counted in values.
#[derive(Debug, Clone)]
pub enum Shape {
    /// One behind the other: a count of the predefined datatype.
    Block(usize),
    Vector {
        blocks: usize,
        block: usize,
        stride: usize,
    },
    /// At these places, in any order.
    Listed(Vec<usize>),
    /// At these places of each tile: a count of a datatype with an extent.
    Tiled {
        places: Vec<usize>,
        tile: usize,
        tiles: usize,
    },
}

impl Shape {
    /// Returns one of `1..=most` values.
    pub fn new(most: usize, chance: &mut Chance) -> Self {
        let values = 1 + chance.below(most as u64) as usize;
        match chance.below(5) {
            0 => {
                let block = 1 + chance.below(3) as usize;
                let stride = block + chance.below(3) as usize;
                let blocks = values.div_ceil(block);
                Self::Vector {
                    blocks,
                    block,
                    stride,
                }
            }
            1 => Self::Listed(places(values, chance)),
            2 => {
                let places = places(values.min(4), chance);
                let tiles = 1 + (values / places.len()) % 5;
                let end = places.iter().max().map_or(1, |last| last + 1);
                let tile = end + chance.below(3) as usize;
                Self::Tiled {
                    places,
                    tile,
                    tiles,
                }
            }
            _ => Self::Block(values),
        }
    }

    /// Returns one of exactly so many values.
    pub fn of(values: usize, chance: &mut Chance) -> Self {
        match chance.below(4) {
            0 => Self::Vector {
                blocks: values,
                block: 1,
                stride: 1 + chance.below(3) as usize,
            },
            1 => Self::Listed(places(values, chance)),
            _ => Self::Block(values),
        }
    }

    /// Returns where its values are, in their order.
    pub fn places(&self) -> Vec<usize> {
        match self {
            Self::Block(values) => (0..*values).collect(),
            Self::Vector {
                blocks,
                block,
                stride,
            } => (0..*blocks)
                .flat_map(|number| (0..*block).map(move |place| number * stride + place))
                .collect(),
            Self::Listed(places) => places.clone(),
            Self::Tiled {
                places,
                tile,
                tiles,
            } => (0..*tiles)
                .flat_map(|number| places.iter().map(move |place| number * tile + place))
                .collect(),
        }
    }

    /// Calls `body` with a count of a datatype, which is freed after.
    pub fn with<T>(
        &self,
        process: &Process,
        value: Value,
        body: impl FnOnce(i64, Datatype) -> T,
    ) -> T {
        let of = value.handle;
        let (mut made, mut inner) = (Datatype::NULL, Datatype::NULL);
        let listed = |places: &[usize], into: &mut Datatype| {
            let at: Vec<i32> = places.iter().map(|place| *place as i32).collect();
            let (count, at) = (at.len() as i64, counts(&at));
            datatypes::type_create_indexed_block(process, Twin::Int, count, 1, at, of, result(into))
        };
        let (twin, mut count) = (Twin::Int, 1);
        let done = match self {
            Self::Block(values) => return body(*values as i64, of),
            Self::Vector {
                blocks,
                block,
                stride,
            } => {
                let [blocks, block, stride] =
                    [*blocks, *block, *stride].map(|number| number as i64);
                datatypes::type_vector(process, twin, blocks, block, stride, of, result(&mut made))
            }
            Self::Listed(places) => listed(places, &mut made),
            Self::Tiled {
                places,
                tile,
                tiles,
            } => {
                count = *tiles as i64;
                let extent = (tile * value.size) as i64;
                listed(places, &mut inner).and_then(|()| {
                    let made = result(&mut made);
                    datatypes::type_create_resized(process, twin, inner, 0, extent, made)
                })
            }
        };
        done.unwrap();
        datatypes::type_commit(process, result(&mut made)).unwrap();
        let end = body(count, made);
        for one in [&mut made, &mut inner] {
            if *one != Datatype::NULL {
                datatypes::type_free(process, result(one)).unwrap();
            }
        }
        end
    }
}

/// Returns so many different places in any order.
fn places(values: usize, chance: &mut Chance) -> Vec<usize> {
    let mut at = 0;
    let rising = (0..values).map(|_| {
        let place = at;
        at += 1 + chance.below(3) as usize;
        place
    });
    let mut places: Vec<usize> = rising.collect();
    for end in (1..values).rev() {
        places.swap(end, chance.below(end as u64 + 1) as usize);
    }
    places
}
