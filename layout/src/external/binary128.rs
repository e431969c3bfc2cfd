//! From C's `long double` to binary128 and back.
//!
//! ```text
//!                sign    exponent   leading one   fraction
//!  x87           1 bit   15 bits    1 bit         63 bits
//!  binary128     1 bit   15 bits    -             112 bits
//! ```
//!
//! Exponents mean the same in both. All values of the x87 are values of binary128; the other way they are rounded.

/// How many bits of fraction binary128 has, and how many more than the x87.
const FRACTION: u32 = 112;
const MORE: u32 = FRACTION - 63;
/// The exponent of infinities and NaNs, and of the sign above it.
const SPECIAL: u16 = 0x7fff;
const SIGN: u16 = 0x8000;
const LEADING: u64 = 1 << 63;

/// Returns the value of binary128 for a `long double`. Both have their lowest byte first.
pub(super) fn of_long_double(value: [u8; 16]) -> [u8; 16] {
    if cfg!(target_arch = "x86_64") {
        of_x87(value)
    } else {
        value
    }
}

/// Returns the `long double` for a value of binary128. Both have their lowest byte first.
pub(super) fn to_long_double(value: [u8; 16]) -> [u8; 16] {
    if cfg!(target_arch = "x86_64") {
        to_x87(value)
    } else {
        value
    }
}

fn of_x87(value: [u8; 16]) -> [u8; 16] {
    let bits = u128::from_le_bytes(value);
    let (significand, top) = (bits as u64, (bits >> 64) as u16);
    let (sign, exponent) = (top & SIGN, top & SPECIAL);
    let is_leading = significand & LEADING != 0;
    let fraction = u128::from(significand & !LEADING) << MORE;
    let (exponent, fraction) = match exponent {
        // A number of the lowest exponent, written as if it had none.
        0 if is_leading => (1, fraction),
        // What the x87 refuses as invalid is no number.
        1.. if !is_leading => (SPECIAL, 1 << (FRACTION - 1)),
        exponent => (exponent, fraction),
    };
    (u128::from(sign | exponent) << FRACTION | fraction).to_le_bytes()
}

fn to_x87(value: [u8; 16]) -> [u8; 16] {
    let bits = u128::from_le_bytes(value);
    let top = (bits >> FRACTION) as u16;
    let fraction = bits & ((1 << FRACTION) - 1);
    let (sign, exponent) = (top & SIGN, top & SPECIAL);
    let high = (fraction >> MORE) as u64;
    let (exponent, significand) = match exponent {
        SPECIAL if fraction == 0 => (SPECIAL, LEADING),
        // No NaN becomes an infinity.
        SPECIAL => (SPECIAL, LEADING | LEADING >> 1 | high),
        exponent => rounded(exponent, high, fraction),
    };
    (u128::from(sign | exponent) << 64 | u128::from(significand)).to_le_bytes()
}

/// Returns the exponent and the significand of a number, rounded to the nearest, of two to the even one.
fn rounded(exponent: u16, high: u64, fraction: u128) -> (u16, u64) {
    const HALF: u128 = 1 << (MORE - 1);

    let leading = if exponent == 0 { 0 } else { LEADING };
    let rest = fraction & ((1 << MORE) - 1);
    let is_up = rest > HALF || rest == HALF && high & 1 == 1;
    match (leading | high).checked_add(is_up.into()) {
        // It has become the least number with a leading one.
        Some(significand) if exponent == 0 && significand & LEADING != 0 => (1, significand),
        Some(significand) => (exponent, significand),
        None => (exponent + 1, LEADING),
    }
}
