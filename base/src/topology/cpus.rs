//! Sets of CPUs, as the kernel writes them.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The numbers of some CPUs. As text, in the kernel's notation: `0-3,8`.
///
/// ```
/// use tagwire_base::topology::CpuList;
///
/// let cpus: CpuList = "0-2,8".parse().unwrap();
/// assert_eq!(cpus.iter().collect::<Vec<_>>(), [0, 1, 2, 8]);
/// assert_eq!(cpus.to_string(), "0-2,8");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CpuList(BTreeSet<u32>);

impl CpuList {
    /// CPU numbers end below this; Linux has at most 8,192.
    pub const LIMIT: u32 = 1 << 16;

    /// How many CPUs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `cpu` is one of them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// The numbers of such a text in the order in which they stand there, also twice.
    ///
    /// # Errors
    /// What is wrong, when it is no list.
    pub fn in_order(text: &str) -> Result<Vec<u32>, String> {
        let bad = || format!("'{text}' is no list of CPUs such as 0-3,8");
        let number = |part: &str| {
            let number = part.parse::<u32>().ok()?;
            (number < Self::LIMIT && !part.starts_with('+')).then_some(number)
        };
        let mut numbers = Vec::new();
        let text = text.trim();
        for part in text.split(',').filter(|_| !text.is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = number(first).ok_or_else(bad)?;
            let last = number(last).ok_or_else(bad)?;
            if first > last {
                return Err(bad());
            }
            numbers.extend(first..=last);
        }
        Ok(numbers)
    }

    /// The numbers, rising.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = u32> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::in_order(text).map(Self::from_iter)
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&ranges(self.iter()))
    }
}

/// Rising numbers as text: `0-3,7`.
///
/// ```
/// use tagwire_base::topology::ranges;
/// assert_eq!(ranges([0, 1, 2, 3, 7]), "0-3,7");
/// ```
#[must_use]
pub fn ranges(numbers: impl IntoIterator<Item = u32>) -> String {
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match spans.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => spans.push((number, number)),
        }
    }
    let text = |&(first, last): &(u32, u32)| match last {
        last if last == first => first.to_string(),
        last => format!("{first}-{last}"),
    };
    spans.iter().map(text).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_kernels_notation() {
        let list = |text: &str| text.parse::<CpuList>();
        assert_eq!(list("\n").unwrap().len(), 0);
        assert_eq!(list("0\n").unwrap().to_string(), "0");
        assert_eq!(list("8,0-1,2").unwrap().to_string(), "0-2,8");
        assert_eq!(CpuList::in_order("8,0-1,8"), Ok(vec![8, 0, 1, 8]));
        for text in [
            "a",
            "1-",
            "-1",
            "2-1",
            "1,,2",
            "0-4294967295",
            "+1",
            "65536",
        ] {
            assert!(list(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(numbers in proptest::collection::btree_set(0u32..300, 0..60)) {
            let list: CpuList = numbers.iter().copied().collect();
            prop_assert_eq!(list.to_string().parse::<CpuList>(), Ok(list));
        }

        #[test]
        fn no_text_breaks_it(text in "[0-9,-]{0,20}") {
            let _ = text.parse::<CpuList>();
        }
    }
}
