//! Accesses by chance, and what they do to an array of bytes.

use std::sync::Arc;

use tagwire_files::{Hints, Switch, View};
use tagwire_layout::{Basic, Datatype, Member, Packer, Program, Source, Target, Unpacker};

use super::Chance;

/// What each member of a group does.
#[derive(Debug)]
pub struct Case {
    pub members: Vec<Part>,
    pub hints: Hints,
    pub file: Vec<u8>,
}

/// What one does.
#[derive(Debug)]
pub struct Part {
    pub view: View,
    /// In bytes of data.
    pub position: u64,
    pub data: Vec<u8>,
    /// The offset of each byte of the view's data, from position 0 to the end of the access.
    pub offsets: Arc<[u64]>,
    /// The data has gaps in memory.
    pub has_gaps: bool,
}

impl Part {
    /// Returns the offsets of the bytes of its access.
    pub fn own(&self) -> &[u64] {
        &self.offsets[self.position as usize..]
    }

    /// Returns its access.
    pub fn access(&self) -> tagwire_files::Access<'_> {
        tagwire_files::Access::new(&self.view, self.position)
    }
}

impl Case {
    /// Returns a case of `size` members. Their bytes are in each other's gaps, and nobody's are left out.
    pub fn new(size: usize, chance: &mut Chance) -> Self {
        let unit = chance.one_of(&[1_u64, 2, 4]);
        let displacement = chance.below(40);
        // Which member has each etype of a tile; `size` and above: none.
        let is_simple = chance.below(8) == 0;
        let tile = 1 + chance.below(24);
        let run = 1 + chance.below(4);
        let mut owner = chance.below(size as u64 + 1);
        let owners = (0..tile).map(|_| {
            if chance.below(run) == 0 {
                owner = chance.below(size as u64 + 1);
            }
            owner
        });
        let owners: Vec<u64> = owners.collect();
        let tiles = 1 + chance.below(6);
        let members = (0..size as u64).map(|member| {
            let own: Vec<u64> = match is_simple {
                // All bytes from a place of its own on.
                true => (0..tile).collect(),
                false => (0..tile)
                    .filter(|at| owners[*at as usize] == member)
                    .collect(),
            };
            let displacement = match is_simple {
                true => displacement + member * tile * tiles * unit,
                false => displacement,
            };
            part(&own, (unit, tile), (displacement, tiles), chance)
        });
        let members = members.collect();
        let file = chance.below(400) as usize;
        Self {
            members,
            hints: hints(chance),
            file: chance.bytes(file),
        }
    }

    /// Returns the file after all of the data was written.
    pub fn written(&self) -> Vec<u8> {
        let mut file = self.file.clone();
        for part in &self.members {
            for (offset, byte) in part.own().iter().zip(&part.data) {
                let at = *offset as usize;
                file.resize(file.len().max(at + 1), 0);
                file[at] = *byte;
            }
        }
        file
    }
}

/// Returns what a member does that has these etypes of each tile.
fn part(
    own: &[u64],
    (unit, tile): (u64, u64),
    (displacement, tiles): (u64, u64),
    chance: &mut Chance,
) -> Part {
    let etype = Datatype::of(Basic::Byte).contiguous(unit).unwrap();
    let members = own.iter().map(|at| Member {
        count: 1,
        displacement: (at * unit) as i64,
        of: etype.clone(),
    });
    let filetype = Datatype::structure(members.collect::<Vec<_>>()).unwrap();
    let extent = match tiles {
        // Within one tile it does not matter where the next begins.
        1 if chance.is_true() => chance.below(tile * unit + 1),
        _ => tile * unit,
    };
    let filetype = filetype.resized(0, extent as i64).unwrap();
    let view = View::new(displacement, &Program::of(&etype), &Program::of(&filetype)).unwrap();
    let units = own.len() as u64 * tiles;
    let start = chance.below(units + 1);
    let count = match chance.below(4) {
        0 => 0,
        1 => units - start,
        _ => chance.below(units - start + 1),
    };
    let each = (0..tiles).flat_map(|number| {
        own.iter().flat_map(move |at| {
            let first = displacement + (number * tile + at) * unit;
            first..first + unit
        })
    });
    let end = ((start + count) * unit) as usize;
    Part {
        view,
        position: start * unit,
        data: chance.bytes((count * unit) as usize),
        offsets: each.take(end).collect(),
        has_gaps: chance.is_true(),
    }
}

fn hints(chance: &mut Chance) -> Hints {
    let switches = [Switch::Automatic, Switch::Enable, Switch::Disable];
    Hints {
        buffer: 1 + chance.below(60),
        aggregators: chance.one_of(&[None, Some(1), Some(2), Some(7)]),
        per_host: chance.one_of(&[1, 2, usize::MAX]),
        two_phase_writes: chance.one_of(&[Switch::Enable, Switch::Enable, Switch::Automatic]),
        two_phase_reads: chance.one_of(&[Switch::Enable, Switch::Enable, Switch::Automatic]),
        sieve: chance.one_of(&switches),
        window: 1 + chance.below(60),
        unit: Some(1 + chance.below(60)),
        ..Hints::default()
    }
}

/// A datatype of one byte and a gap.
fn gaps() -> Program {
    Program::of(&Datatype::of(Basic::Byte).resized(0, 3).unwrap())
}

/// Calls `body` with the data of a part, in one block or with gaps.
pub fn with_data<T>(
    data: &[u8],
    has_gaps: bool,
    body: impl FnOnce(&tagwire_files::Data<'_>) -> T,
) -> T {
    if !has_gaps {
        return body(&tagwire_files::Data::Bytes(data));
    }
    let spread: Vec<u8> = data.iter().flat_map(|byte| [*byte, 0xee, 0xee]).collect();
    let packer = Packer::new(&gaps(), data.len() as u64, Source::of(&spread)).unwrap();
    body(&tagwire_files::Data::Packed(packer))
}

/// Calls `body` with room for so many bytes. Returns what they are then: 0 where nothing was filled in.
pub fn with_room<T>(
    len: usize,
    has_gaps: bool,
    body: impl FnOnce(&mut tagwire_files::Room<'_>) -> T,
) -> (T, Vec<u8>) {
    if !has_gaps {
        let mut bytes = vec![0; len];
        let end = body(&mut tagwire_files::Room::Bytes(&mut bytes));
        return (end, bytes);
    }
    let mut spread = vec![0; len * 3];
    let unpacker = Unpacker::new(&gaps(), len as u64, Target::of(&mut spread)).unwrap();
    let end = body(&mut tagwire_files::Room::Unpacked(unpacker));
    (end, spread.chunks(3).map(|three| three[0]).collect())
}
