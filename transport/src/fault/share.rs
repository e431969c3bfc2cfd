//! How often something happens.

use std::fmt;

use super::random::SplitMix64;

/// Parts of a whole.
const WHOLE: u32 = 1_000_000;

/// A share of all messages, in steps of a millionth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// No message.
    pub const NONE: Self = Self(0);

    /// Every message.
    pub const ALL: Self = Self(WHOLE);

    /// Returns so many in a million, all at most.
    #[must_use]
    pub const fn per_million(count: u32) -> Self {
        Self(if count < WHOLE { count } else { WHOLE })
    }

    /// Returns the share that `text` says in percent, from `0%` to `100%`, with up to four decimals; the sign may be left out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        const DECIMALS: usize = 4;
        let digits = text.strip_suffix('%').unwrap_or(text);
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let are_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        if !are_digits(whole) || !are_digits(decimals) || decimals.len() > DECIMALS {
            return None;
        }
        let decimals: u32 = format!("{decimals:0<DECIMALS$}").parse().ok()?;
        let count = whole.parse::<u32>().ok()?.checked_mul(WHOLE / 100)?;
        let count = count.checked_add(decimals)?;
        (count <= WHOLE).then_some(Self(count))
    }

    /// Draws whether it happens. Draws nothing where it never does, so that the other faults of a seed stay as they are.
    pub(super) fn happens(self, random: &mut SplitMix64) -> bool {
        self != Self::NONE && random.below(WHOLE.into()) < self.0.into()
    }
}

impl fmt::Display for Share {
    /// In percent, as it can be parsed again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / (WHOLE / 100), self.0 % (WHOLE / 100));
        match decimals {
            0 => write!(f, "{whole}%"),
            _ => {
                let decimals = format!("{decimals:04}");
                write!(f, "{whole}.{}%", decimals.trim_end_matches('0'))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_come_back() {
        for (text, count) in [
            ("0%", 0),
            ("0.1%", 1_000),
            ("1%", 10_000),
            ("12.5%", 125_000),
            ("0.0001%", 1),
            ("100%", WHOLE),
        ] {
            assert_eq!(Share::parse(text), Some(Share(count)));
            assert_eq!(Share(count).to_string(), text);
        }
        assert_eq!(Share::parse("7"), Some(Share(70_000)));
        for bad in [
            "",
            "%",
            "-1%",
            "100.1%",
            "0.00001%",
            ".5%",
            "5.%",
            "99999999999%",
        ] {
            assert_eq!(Share::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_never_happens_is_not_drawn() {
        let mut random = SplitMix64::new(1);
        let count = |share: Share, random: &mut SplitMix64| {
            (0..100_000).filter(|_| share.happens(random)).count()
        };
        assert_eq!(count(Share::NONE, &mut random), 0);
        assert_eq!(random, SplitMix64::new(1));
        assert_eq!(count(Share::ALL, &mut random), 100_000);
        let tenth = count(Share::per_million(100_000), &mut random);
        assert!((9_000..11_000).contains(&tenth), "{tenth}");
    }
}
