//! Accesses by the member alone: each run of bytes by a system call, or reads through a window of the file.

use crate::transfer::Calls;
use crate::{Access, Data, Extent, Outcome, Result, Room};

/// Bytes of memory in which data is packed, and unpacked from.
const STAGE: u64 = 1 << 20;

/// Writes the data, each run of bytes by a system call.
pub(crate) fn write(calls: Calls<'_>, access: Access<'_>, data: &Data<'_>) -> Outcome {
    let mut stage = Vec::new();
    let mut done = 0;
    while done < data.len() {
        let (part, bytes): (u64, &[u8]) = match data {
            Data::Bytes(bytes) => (data.len(), bytes),
            Data::Packed(_) => {
                let part = STAGE.min(data.len() - done);
                stage.resize(part as usize, 0);
                data.copy(done, &mut stage);
                (part, &stage)
            }
        };
        let extents = match access.extents(done, part) {
            Ok(extents) => extents,
            Err(error) => return Outcome::failed(done, error),
        };
        let mut rest = bytes;
        for extent in extents {
            let (now, after) = rest.split_at(extent.len as usize);
            let written = calls.write(extent.offset, now);
            done += written.bytes;
            if written.error.is_some() {
                return Outcome {
                    bytes: done,
                    ..written
                };
            }
            rest = after;
        }
    }
    Outcome::good(done)
}

/// Reads into the room, each run of bytes by a system call.
pub(crate) fn read(calls: Calls<'_>, access: Access<'_>, room: &mut Room<'_>) -> Outcome {
    let total = room.len();
    if let Room::Bytes(bytes) = room {
        let extents = match access.extents(0, total) {
            Ok(extents) => extents,
            Err(error) => return error.into(),
        };
        return runs(calls, extents, bytes).0;
    }
    let mut stage = Vec::new();
    let mut done = 0;
    while done < total {
        let part = STAGE.min(total - done);
        stage.resize(part as usize, 0);
        let extents = match access.extents(done, part) {
            Ok(extents) => extents,
            Err(error) => return Outcome::failed(done, error),
        };
        let (read, is_whole) = runs(calls, extents, &mut stage);
        room.fill(done, &stage[..read.bytes as usize]);
        done += read.bytes;
        if !is_whole {
            return Outcome {
                bytes: done,
                ..read
            };
        }
    }
    Outcome::good(done)
}

/// Reads runs of bytes one behind the other. Returns how that ended, and whether it was the end of the runs.
fn runs(
    calls: Calls<'_>,
    extents: impl Iterator<Item = Extent>,
    bytes: &mut [u8],
) -> (Outcome, bool) {
    let (mut rest, mut done) = (bytes, 0);
    for extent in extents {
        let (now, after) = rest.split_at_mut(extent.len as usize);
        let read = calls.read(extent.offset, now);
        done += read.bytes;
        if read.bytes < extent.len {
            return (
                Outcome {
                    bytes: done,
                    ..read
                },
                false,
            );
        }
        rest = after;
    }
    (Outcome::good(done), true)
}

/// Reads into the room through a window of so many bytes: what lies between the runs of bytes is read with them, and dropped.
pub(crate) fn sieve(
    calls: Calls<'_>,
    access: Access<'_>,
    room: &mut Room<'_>,
    window: u64,
) -> Outcome {
    // A hint that a caller has set to 0 would read nothing for ever.
    let window = window.max(1);
    let mut bytes = Vec::new();
    let mut done = 0;
    while done < room.len() {
        match fill(calls, access, room, (done, window), &mut bytes) {
            Ok((0, end)) => return Outcome { bytes: done, ..end },
            Ok((filled, end)) => {
                done += filled;
                if end.error.is_some() {
                    return Outcome { bytes: done, ..end };
                }
            }
            Err(error) => return Outcome::failed(done, error),
        }
    }
    Outcome::good(done)
}

/// Fills what comes next from one window. Returns how many bytes of data that were, and how the read ended: none where the file
/// ends.
fn fill(
    calls: Calls<'_>,
    access: Access<'_>,
    room: &mut Room<'_>,
    (done, window): (u64, u64),
    bytes: &mut Vec<u8>,
) -> Result<(u64, Outcome)> {
    let left = room.len() - done;
    let start = access
        .view
        .offset_of(access.position.saturating_add(done))?;
    let limit = start.saturating_add(window);
    let within = access.before(limit, done + left)? - done;
    let last = access.view.offset_of(access.position + done + within - 1)?;
    bytes.resize((last + 1 - start) as usize, 0);
    let read = calls.read(start, bytes);
    let mut filled = 0;
    for extent in access.extents(done, within)? {
        let from = extent.offset - start;
        let to = (from + extent.len).min(read.bytes);
        if to <= from {
            break;
        }
        room.fill(done + filled, &bytes[from as usize..to as usize]);
        filled += to - from;
    }
    Ok((filled, read))
}
