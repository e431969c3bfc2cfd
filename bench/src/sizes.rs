//! The grammar of message sizes: `8`, `4K`, `8:1M`, `8:1M:x2`, `8:64:+8`, `1,3,17`, `netpipe:8M`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The largest size that may be asked for.
pub const LARGEST: u64 = 1 << 40;

/// How far from its sizes NetPIPE measures too, in bytes.
const PERTURBATION: u64 = 3;

/// How many sizes one run may have.
const MOST: usize = 10_000;

/// A list of message sizes in bytes, in the order in which they are measured.
///
/// ```
/// use tagwire_bench::Sizes;
/// let sizes: Sizes = "1,8:32,1K:3K:+1K".parse()?;
/// assert_eq!(sizes.as_slice(), [1, 8, 16, 32, 1024, 2048, 3072]);
/// # Ok::<(), tagwire_bench::SizesError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sizes(Vec<u64>);

/// What is wrong with a list of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizesError {
    /// A piece is empty.
    #[error(
        "a size is missing; write '8', '4K', '8:1M', '8:1M:x2', '8:64:+8', '1,3,17' or 'netpipe:8M'"
    )]
    Missing,
    /// A piece is no number.
    #[error(
        "'{0}' is no size; write '8', '4K', '8:1M', '8:1M:x2', '8:64:+8', '1,3,17' or 'netpipe:8M'"
    )]
    NotANumber(String),
    /// A size has a unit of powers of 1000 to some and of 1024 to others.
    #[error(
        "'{0}' has two meanings; write '{1}' or '{1}iB' for powers of 1024, or the bytes as a number"
    )]
    Ambiguous(String, String),
    /// A size is out of bounds.
    #[error("size '{0}' is over 2^40 bytes")]
    TooLarge(String),
    /// A list ends before its first size.
    #[error("'{0}' ends before its first size")]
    TooSmall(String),
    /// A range ends before it starts.
    #[error("range '{0}' goes backwards")]
    Backwards(String),
    /// A range never ends.
    #[error("range '{0}' has a step that goes nowhere; write ':x2' or ':+8'")]
    NoStep(String),
    /// There are too many.
    #[error("'{0}' gives more than {MOST} sizes")]
    TooMany(String),
}

impl Sizes {
    /// The sizes, in bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// The largest of them.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.0.iter().copied().max().unwrap_or(0)
    }
}

impl FromStr for Sizes {
    type Err = SizesError;

    fn from_str(text: &str) -> Result<Self, SizesError> {
        let mut sizes = Vec::new();
        for piece in text.split(',') {
            let room = MOST - sizes.len();
            let more = parse_piece(piece.trim(), room)?;
            if more.len() > room {
                return Err(SizesError::TooMany(text.to_owned()));
            }
            sizes.extend(more);
        }
        Ok(Self(sizes))
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, size) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{size}")?;
        }
        Ok(())
    }
}

fn parse_piece(piece: &str, room: usize) -> Result<Vec<u64>, SizesError> {
    if let Some(last) = piece.strip_prefix("netpipe:") {
        let sizes = netpipe(parse_size(last)?);
        return match sizes.is_empty() {
            true => Err(SizesError::TooSmall(piece.to_owned())),
            false => Ok(sizes),
        };
    }
    let mut parts = piece.split(':');
    let first = parse_size(parts.next().unwrap_or_default())?;
    let Some(last) = parts.next() else {
        return Ok(vec![first]);
    };
    let last = parse_size(last)?;
    if last < first {
        return Err(SizesError::Backwards(piece.to_owned()));
    }
    let step = parts.next().unwrap_or("x2");
    if parts.next().is_some() {
        return Err(SizesError::NotANumber(piece.to_owned()));
    }
    if let Some(factor) = step.strip_prefix(['x', 'X', '*']) {
        let factor = parse_size(factor)?;
        if factor < 2 {
            return Err(SizesError::NoStep(piece.to_owned()));
        }
        Ok(multiply(first, last, factor))
    } else {
        let step = step
            .strip_prefix('+')
            .ok_or_else(|| SizesError::NoStep(piece.to_owned()))?;
        let step = parse_size(step)?;
        if step == 0 {
            return Err(SizesError::NoStep(piece.to_owned()));
        }
        if (last - first) / step >= room as u64 {
            return Err(SizesError::TooMany(piece.to_owned()));
        }
        Ok((0..=(last - first) / step)
            .map(|i| first + i * step)
            .collect())
    }
}

/// The sizes of NetPIPE: 1 to 4, then an increment that doubles with every second size, up to `last`; and, from an increment of 8
/// on, three bytes less and more than each.
fn netpipe(last: u64) -> Vec<u64> {
    let mut sizes = vec![1, 2, 3, 4];
    let increments = std::iter::successors(Some(2_u64), |increment| increment.checked_mul(2));
    for increment in increments.take_while(|increment| 3 * increment <= last) {
        for size in [3 * increment, 4 * increment] {
            match increment > PERTURBATION + 1 {
                true => sizes.extend([size - PERTURBATION, size, size + PERTURBATION]),
                false => sizes.push(size),
            }
        }
    }
    sizes.retain(|size| *size <= last);
    sizes
}

/// `first`, then each `factor` times the one before; 0 is followed by 1.
fn multiply(first: u64, last: u64, factor: u64) -> Vec<u64> {
    std::iter::successors(Some(first), |&size| match size {
        0 => Some(1),
        _ => size.checked_mul(factor),
    })
    .take_while(|&size| size <= last)
    .collect()
}

/// One number with an optional K, M, G or T, powers of 1024.
fn parse_size(text: &str) -> Result<u64, SizesError> {
    if text.is_empty() {
        return Err(SizesError::Missing);
    }
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let shift = match text[digits..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KIB" => 10,
        "M" | "MIB" => 20,
        "G" | "GIB" => 30,
        "T" | "TIB" => 40,
        "KB" | "MB" | "GB" | "TB" if digits > 0 => {
            let plain = text[..=digits].to_owned();
            return Err(SizesError::Ambiguous(text.to_owned(), plain));
        }
        _ => return Err(SizesError::NotANumber(text.to_owned())),
    };
    if digits == 0 {
        return Err(SizesError::NotANumber(text.to_owned()));
    }
    // Digits alone can only fail to parse by being too many.
    let number: u64 = text[..digits]
        .parse()
        .map_err(|_| SizesError::TooLarge(text.to_owned()))?;
    match number.checked_mul(1 << shift) {
        Some(size) if size <= LARGEST => Ok(size),
        _ => Err(SizesError::TooLarge(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Vec<u64>, SizesError> {
        text.parse::<Sizes>().map(|sizes| sizes.0)
    }

    #[test]
    fn the_documented_forms() {
        assert_eq!(parse("8"), Ok(vec![8]));
        assert_eq!(parse("4K"), Ok(vec![4096]));
        assert_eq!(parse("4KiB"), Ok(vec![4096]));
        assert_eq!(parse("1m"), Ok(vec![1 << 20]));
        assert_eq!(parse("8:64"), Ok(vec![8, 16, 32, 64]));
        assert_eq!(parse("8:100:x4"), Ok(vec![8, 32]));
        assert_eq!(parse("8:32:+8"), Ok(vec![8, 16, 24, 32]));
        assert_eq!(parse("1,3,17"), Ok(vec![1, 3, 17]));
        assert_eq!(parse("0:4"), Ok(vec![0, 1, 2, 4]));
        assert_eq!(parse("1T"), Ok(vec![LARGEST]));
        let short = [1, 2, 3, 4, 6, 8, 12, 16, 21, 24, 27, 29, 32, 35];
        assert_eq!(parse("netpipe:40"), Ok(short.to_vec()));
        assert_eq!(parse("0,netpipe:3"), Ok(vec![0, 1, 2, 3]));
        assert_eq!(parse("netpipe:8M").unwrap().last(), Some(&(8 << 20)));
        assert!(parse("netpipe:1T").is_ok());
    }

    #[test]
    fn nonsense_is_named() {
        assert_eq!(parse(""), Err(SizesError::Missing));
        assert_eq!(parse("8,,9"), Err(SizesError::Missing));
        assert_eq!(parse("netpipe:"), Err(SizesError::Missing));
        assert_eq!(
            parse("netpipe:0"),
            Err(SizesError::TooSmall("netpipe:0".into()))
        );
        assert_eq!(parse("K"), Err(SizesError::NotANumber("K".into())));
        assert_eq!(parse("-8"), Err(SizesError::NotANumber("-8".into())));
        assert_eq!(parse("8Q"), Err(SizesError::NotANumber("8Q".into())));
        let ambiguous = parse("8,4KB").unwrap_err();
        assert_eq!(ambiguous, SizesError::Ambiguous("4KB".into(), "4K".into()));
        assert!(
            ambiguous.to_string().contains("'4K' or '4KiB'"),
            "{ambiguous}"
        );
        assert_eq!(parse("KB"), Err(SizesError::NotANumber("KB".into())));
        assert_eq!(
            parse("1099511627777"),
            Err(SizesError::TooLarge("1099511627777".into()))
        );
        assert_eq!(parse("99999999999999999999"), {
            Err(SizesError::TooLarge("99999999999999999999".into()))
        });
        assert_eq!(parse("64:8"), Err(SizesError::Backwards("64:8".into())));
        for no_step in ["8:64:x1", "8:64:x0", "8:64:+0", "8:64:2"] {
            assert_eq!(parse(no_step), Err(SizesError::NoStep(no_step.into())));
        }
        assert_eq!(parse("0:1T:+1"), Err(SizesError::TooMany("0:1T:+1".into())));
        assert!(matches!(
            parse("8:64:x2:x2"),
            Err(SizesError::NotANumber(_))
        ));
    }

    proptest! {
        #[test]
        fn never_panics_and_never_leaves_the_bounds(text in "(netpipe:)?[0-9KMGTx+:,*]{0,24}") {
            if let Ok(sizes) = parse(&text) {
                prop_assert!(!sizes.is_empty() && sizes.len() <= MOST);
                prop_assert!(sizes.iter().all(|&size| size <= LARGEST));
            }
        }

        #[test]
        fn ranges_climb_to_their_end(first in 0_u64..1 << 30, more in 0_u64..1 << 30, factor in 2_u64..9) {
            let last = first + more;
            let sizes = parse(&format!("{first}:{last}:x{factor}")).unwrap();
            prop_assert_eq!(sizes[0], first);
            prop_assert!(sizes.windows(2).all(|pair| pair[0] < pair[1]));
            let end = sizes[sizes.len() - 1];
            prop_assert!(end <= last && end.max(1) * factor > last || end == 0);
        }

        #[test]
        fn a_list_reads_back(sizes in proptest::collection::vec(0..=LARGEST, 1..20)) {
            let list = Sizes(sizes);
            prop_assert_eq!(list.to_string().parse::<Sizes>().unwrap(), list);
        }
    }
}
