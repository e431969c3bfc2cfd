//! Datatypes by what they hold: those of Fortran's kinds, and others that are found by their size (MPI-5.0, section 19.1.9).

use tagwire_layout::{Basic, Datatype as Tree};

use crate::abi::{Datatype, UNDEFINED};
use crate::error::{Class, Error, Result};
use crate::object::datatype::Wanted;
use crate::process::Process;
use crate::raw::Ref;

const COMBINER_F90_REAL: i32 = 113;
const COMBINER_F90_COMPLEX: i32 = 114;
const COMBINER_F90_INTEGER: i32 = 115;

/// `MPI_TYPECLASS_LOGICAL`, which is none of MPI-5.0: programs for later versions of the standard ask for it.
const TYPECLASS_LOGICAL: i32 = 191;
const TYPECLASS_INTEGER: i32 = 192;
const TYPECLASS_REAL: i32 = 193;
const TYPECLASS_COMPLEX: i32 = 194;

/// The bytes of C's `long double`, and of its complex number.
const LONG_DOUBLE: i32 = 16;
const LONG_DOUBLE_COMPLEX: i32 = 32;

/// Decimal digits and exponents of ten that a real number has, and what it is.
const REALS: [(i32, i32, Basic, Basic); 2] = [
    (6, 37, Basic::F32, Basic::Complex32),
    (15, 307, Basic::F64, Basic::Complex64),
];

/// Decimal digits that an integer has, and what it is.
const INTEGERS: [(i32, Basic); 5] = [
    (2, Basic::I8),
    (4, Basic::I16),
    (9, Basic::I32),
    (18, Basic::I64),
    (38, Basic::I128),
];

/// Returns the kind of a real number with a precision and a range, of which one may be left to the library.
fn real(precision: i32, range: i32) -> Result<(Basic, Basic)> {
    let holds = |wanted: i32, has: i32| wanted == UNDEFINED || wanted <= has;
    let found = REALS
        .iter()
        .find(|(digits, exponents, ..)| holds(precision, *digits) && holds(range, *exponents));
    let is_asked = precision != UNDEFINED || range != UNDEFINED;
    match found.filter(|_| is_asked) {
        Some((.., real, complex)) => Ok((*real, *complex)),
        None => Err(none(&format!(
            "a real number of precision {precision} and range {range}"
        ))),
    }
}

#[cold]
fn none(what: &str) -> Error {
    Error::new(Class::Arg, format!("there is no datatype for {what}"))
}

fn found(
    process: &Process,
    combiner: i32,
    arguments: &[i32],
    basic: Basic,
    new: Ref<Datatype>,
) -> Result {
    let wanted = Wanted {
        combiner,
        arguments: arguments.to_vec(),
    };
    new.set(process.types.wanted(wanted, || Tree::of(basic))?);
    Ok(())
}

/// `MPI_Type_create_f90_real`.
pub fn type_create_f90_real(
    process: &Process,
    precision: i32,
    range: i32,
    new: Ref<Datatype>,
) -> Result {
    let (basic, _) = real(precision, range)?;
    found(process, COMBINER_F90_REAL, &[precision, range], basic, new)
}

/// `MPI_Type_create_f90_complex`.
pub fn type_create_f90_complex(
    process: &Process,
    precision: i32,
    range: i32,
    new: Ref<Datatype>,
) -> Result {
    let (_, basic) = real(precision, range)?;
    let arguments = [precision, range];
    found(process, COMBINER_F90_COMPLEX, &arguments, basic, new)
}

/// `MPI_Type_create_f90_integer`.
pub fn type_create_f90_integer(process: &Process, range: i32, new: Ref<Datatype>) -> Result {
    let kind = INTEGERS.iter().find(|(digits, _)| range <= *digits);
    let (_, basic) = kind.ok_or_else(|| none(&format!("an integer of {range} digits")))?;
    found(process, COMBINER_F90_INTEGER, &[range], *basic, new)
}

/// `MPI_Type_match_size`.
pub fn type_match_size(
    process: &Process,
    class: i32,
    size: i32,
    matching: Ref<Datatype>,
) -> Result {
    // Each with the logarithm of its size: the numbers of Fortran's datatypes have a column for it (MPI-5.0, section 20.3).
    let place = match class {
        TYPECLASS_LOGICAL => 0,
        TYPECLASS_INTEGER => 1,
        TYPECLASS_REAL => 2,
        TYPECLASS_COMPLEX => 3,
        _ => {
            let text = format!("{class} is no class of datatypes");
            return Err(Error::new(Class::Arg, text));
        }
    };
    let power = u32::try_from(size)
        .ok()
        .filter(|size| size.is_power_of_two());
    let datatype =
        power.map(|size| Datatype(0x2c0 | (size.trailing_zeros() as usize) << 3 | place));
    let datatype = datatype.filter(|found| process.types.is_predefined(*found));
    // Where Fortran has none, C may.
    let datatype = datatype.or(match (class, size) {
        (TYPECLASS_REAL, LONG_DOUBLE) => Some(Datatype(0x220)),
        (TYPECLASS_COMPLEX, LONG_DOUBLE_COMPLEX) => Some(Datatype(0x224)),
        _ => None,
    });
    let datatype = datatype.ok_or_else(|| none(&format!("{size} bytes of class {class}")))?;
    matching.set(datatype);
    Ok(())
}

/// Pairs of a value and an index: the numbers of both and of the pair.
const PAIRS: [(usize, usize, usize); 9] = [
    (0x210, 0x209, 0x228),
    (0x214, 0x209, 0x229),
    (0x20a, 0x209, 0x22a),
    (0x209, 0x209, 0x22b),
    (0x208, 0x209, 0x22c),
    (0x220, 0x209, 0x22d),
    (0x21a, 0x21a, 0x230),
    (0x21c, 0x21c, 0x231),
    (0x219, 0x219, 0x232),
];

/// `MPI_Type_get_value_index` (MPI-5.0, section 6.9.4).
pub fn type_get_value_index(
    process: &Process,
    value: Datatype,
    index: Datatype,
    pair: Ref<Datatype>,
) -> Result {
    for given in [value, index] {
        process.types.get(given)?;
    }
    let known = PAIRS.iter();
    let mut found = known.filter(|(of, by, _)| (*of, *by) == (value.0, index.0));
    pair.set(
        found
            .next()
            .map_or(Datatype::NULL, |(.., pair)| Datatype(*pair)),
    );
    Ok(())
}
