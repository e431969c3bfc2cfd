//! external32: the one form of data that all implementations of MPI read (MPI-5.0, section 14.5.2).
//!
//! Values are big-endian, without gaps, of the lengths of the standard's table. Some of those are not the machine's: `long`
//! has 4 bytes and `wchar_t` 2. What does not fit is cut off at its upper end, as other implementations do.

mod binary128;
mod portable;
mod value;

use value::Form;

use crate::{Error, Packer, Program, Result, Source, Target, Unpacker};

/// How many bytes of packed data are converted at once.
const PIECE: usize = 4096;

impl Program {
    /// Returns how many bytes `count` elements have in external32, as `MPI_Pack_external_size` (MPI-5.0, section 5.3).
    ///
    /// # Errors
    ///
    /// [`Error::NotExternal`] if there is a pair among the basic types, which the standard's table does not have.
    /// [`Error::Overflow`] if the size does not fit 63 bits.
    pub fn external_size(&self, count: u64) -> Result<u64> {
        let each = |basic| Form::of(basic).map(|form| form.external() as u64);
        let total = self.signature().total(&each)?.checked_mul(count.into());
        let fits = total.and_then(|bytes| i64::try_from(bytes).ok());
        fits.map(i64::unsigned_abs).ok_or(Error::Overflow)
    }

    /// Returns how many bytes of memory the values have that are whole in the first `bytes` bytes of `count` elements in external32.
    ///
    /// # Errors
    ///
    /// As [`external_size`](Self::external_size).
    pub fn native_size(&self, count: u64, bytes: u64) -> Result<u64> {
        let all = self.external_size(count)?;
        if all == 0 {
            return Ok(0);
        }
        let bytes = bytes.min(all);
        let each = all / count;
        let mut native = bytes / each * self.size();
        let mut left = bytes % each;
        if left == 0 {
            return Ok(native);
        }
        self.signature().try_for_each(&mut |basic, number| {
            let form = Form::of(basic)?;
            let external = form.external() as u64;
            let whole = number.min(left / external);
            native += whole * form.native() as u64;
            // A value of which a part is missing is the last.
            left = if whole < number {
                0
            } else {
                left - whole * external
            };
            Ok::<_, Error>(())
        })?;
        Ok(native)
    }
}

/// Packs `count` elements in external32 into the beginning of `out`, as `MPI_Pack_external` (MPI-5.0, section 5.3). Returns how
/// many bytes.
///
/// # Errors
///
/// As [`Program::external_size`] and [`Packer::new`]. [`Error::Position`] if `out` is too short. Then nothing is packed.
pub fn pack_external(
    program: &Program,
    count: u64,
    source: Source<'_>,
    out: &mut [u8],
) -> Result<usize> {
    let size = sized(program, count, out.len())?;
    let mut packer = Packer::new(program, count, source)?;
    let mut native = [0; PIECE];
    let mut rest = &mut out[..size];
    convert(program, count, &mut |form, number| {
        let native = &mut native[..number * form.native()];
        packer.pack(native);
        let (now, later) = std::mem::take(&mut rest).split_at_mut(number * form.external());
        let values = native.chunks_exact(form.native());
        for (value, external) in values.zip(now.chunks_exact_mut(form.external())) {
            form.encode(value, external);
        }
        rest = later;
    })?;
    Ok(size)
}

/// Unpacks `count` elements in external32 from the beginning of `bytes`, as `MPI_Unpack_external` (MPI-5.0, section 5.3).
/// Returns how many bytes.
///
/// # Errors
///
/// As [`Program::external_size`] and [`Unpacker::new`]. [`Error::Position`] if `bytes` are too few. Then nothing is unpacked.
pub fn unpack_external(
    program: &Program,
    count: u64,
    target: Target<'_>,
    bytes: &[u8],
) -> Result<usize> {
    let size = sized(program, count, bytes.len())?;
    unpack_external_part(program, count, target, &bytes[..size])?;
    Ok(size)
}

/// Unpacks the values that are whole in `bytes`, which is the beginning of `count` elements in external32: a file may end within
/// an element. Returns how many bytes of memory they have.
///
/// # Errors
///
/// As [`Program::external_size`] and [`Unpacker::new`]. Then nothing is unpacked.
pub fn unpack_external_part(
    program: &Program,
    count: u64,
    target: Target<'_>,
    bytes: &[u8],
) -> Result<u64> {
    let size = program.native_size(count, bytes.len() as u64)?;
    let mut unpacker = Unpacker::new(program, count, target)?;
    let mut native = [0; PIECE];
    let (mut rest, mut left) = (bytes, size);
    // Elements behind the last value are not gone through.
    let begun = size.div_ceil(program.size().max(1));
    convert(program, begun, &mut |form, number| {
        let number = number.min((left / form.native() as u64) as usize);
        let native = &mut native[..number * form.native()];
        left -= native.len() as u64;
        let (now, later) = rest.split_at(number * form.external());
        let values = native.chunks_exact_mut(form.native());
        for (value, external) in values.zip(now.chunks_exact(form.external())) {
            form.decode(external, value);
        }
        unpacker.unpack(native);
        rest = later;
    })?;
    Ok(size)
}

/// Returns the size of elements in external32, for which there is `room`.
fn sized(program: &Program, count: u64, room: usize) -> Result<usize> {
    let size = program.external_size(count)?;
    match usize::try_from(size) {
        Ok(bytes) if bytes <= room => Ok(bytes),
        _ => Err(Error::Position {
            position: size,
            length: room as u64,
        }),
    }
}

/// Calls a function for the values of elements in their order: for as many of one form as a piece holds.
fn convert(program: &Program, count: u64, values: &mut impl FnMut(Form, usize)) -> Result<()> {
    // Elements without data would be gone through for nothing.
    let count = if program.size() == 0 { 0 } else { count };
    for _ in 0..count {
        program.signature().try_for_each(&mut |basic, mut left| {
            let form = Form::of(basic)?;
            let most = (PIECE / form.native()) as u64;
            while left > 0 {
                let number = left.min(most);
                values(form, number as usize);
                left -= number;
            }
            Ok(())
        })?;
    }
    Ok(())
}
