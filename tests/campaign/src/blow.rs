//! One stroke of a disturbance: whom, when, for how long and how hard.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A stroke, as a plan has it. Its text is `NAME:RANK:AT:FOR:AMOUNT`, times in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blow {
    /// Of which disturbance.
    pub name: String,
    /// The rank that it strikes; what strikes the whole job has 0.
    pub rank: u32,
    /// When it begins: after all ranks have joined, or after all processes are there, which the seed decides.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// What the disturbance makes of it.
    pub amount: u64,
}

impl fmt::Display for Blow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts) = (self.at.as_millis(), self.lasts.as_millis());
        write!(
            f,
            "{}:{}:{at}:{lasts}:{}",
            self.name, self.rank, self.amount
        )
    }
}

impl FromStr for Blow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [name, rank, at, lasts, amount] = parts[..] else {
            return Err(format!("'{text}' is not NAME:RANK:AT:FOR:AMOUNT"));
        };
        let number = |part: &str| {
            part.parse::<u64>()
                .map_err(|why| format!("'{text}': {why}"))
        };
        Ok(Self {
            name: name.to_owned(),
            rank: rank.parse().map_err(|why| format!("'{text}': {why}"))?,
            at: Duration::from_millis(number(at)?),
            lasts: Duration::from_millis(number(lasts)?),
            amount: number(amount)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blow_reads_back() {
        let text = "stop:2:120:75:3";
        let blow: Blow = text.parse().unwrap();
        assert_eq!((blow.rank, blow.amount), (2, 3));
        assert_eq!(blow.to_string(), text);
        for wrong in ["stop", "stop:2:120:75", "stop:x:1:2:3"] {
            assert!(wrong.parse::<Blow>().is_err(), "{wrong}");
        }
    }
}
