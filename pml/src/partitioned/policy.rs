//! How many transport partitions a channel has.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use tagwire_transport::Preference;

/// What the last partition of a message costs and what its predecessors hide: PLogGP, the LogGP model
/// for partitioned messages (Temucin et al., CLUSTER 2023).
///
/// All but one user partition are ready `delay` before the last. The early ones then need
/// `n * overhead + gap * m * (n - 1) / n`, which the delay hides; what follows is one more message of `m / n`
/// bytes. More transport partitions make the last one shorter and cost `overhead` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Model {
    /// What the way costs.
    pub costs: Costs,
    /// How much later than the others the last user partition is ready.
    pub delay: Duration,
}

/// What transport partitions cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// Nanoseconds for each (o and g together).
    pub overhead: u64,
    /// Picoseconds per byte (G).
    pub gap: u64,
}

impl Costs {
    /// Shared memory, as `bench partitioned` measured it, rounded: where nothing can be measured.
    pub const SHM: Self = Self {
        overhead: 250,
        gap: 80,
    };
}

/// The delay of a model of which nobody says it.
const DELAY: Duration = Duration::from_micros(100);

impl Model {
    /// Picoseconds from the last ready to the last arrival, with `n` transport partitions.
    #[must_use]
    pub fn cost(&self, bytes: usize, n: u32) -> u128 {
        let (bytes, n) = (bytes as u128, u128::from(n));
        let Costs { overhead, gap } = self.costs;
        let (overhead, gap) = (u128::from(overhead) * 1000, u128::from(gap));
        let early = n * overhead + gap * bytes * (n - 1) / n;
        early.saturating_sub(self.delay.as_nanos() * 1000) + overhead + gap * bytes / n
    }

    /// The count that costs least, among powers of two and `most`; the smallest of equals.
    #[must_use]
    pub fn best(&self, bytes: usize, most: u32) -> u32 {
        let powers = (0..u32::BITS).map(|shift| 1u32 << shift);
        powers
            .take_while(|n| *n < most)
            .chain([most])
            .min_by_key(|n| self.cost(bytes, *n))
            .unwrap_or(1)
    }
}

/// How user partitions are aggregated into transport partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Policy {
    /// Transport partitions of as many bytes as are worth a write of their own on the way to the receiver
    /// ([`Preference::write`]).
    #[default]
    Default,
    /// A transport partition for each user partition.
    Each,
    /// So many transport partitions.
    Fixed(u32),
    /// Transport partitions of about so many bytes.
    Bytes(usize),
    /// As many as the model says.
    Model(Model),
    /// As many as the model says that has this delay, and the costs that the rank measures when it
    /// first needs them, over the way to itself.
    Measured(Duration),
    /// Transport partitions of about so many bytes; of one that is not ready as a whole, what is ready
    /// goes after a while, by a thread of the rank that sleeps until then. To set its clock costs the
    /// first ready call of each group 1 to 2 us. Over networks it can post only at the thread levels
    /// [`Serialized`](crate::ThreadLevel::Serialized) and [`Multiple`](crate::ThreadLevel::Multiple), where
    /// from then on all calls of the rank pay for the lock; else the next progress posts.
    Timer {
        /// The bytes to be sent together.
        bytes: usize,
        /// How long the first of them waits for the rest at most.
        after: Duration,
    },
    /// So many transport partitions, each of them a message of the point-to-point layer: what libraries
    /// above MPI do, for comparison.
    Messages(u32),
}

/// What is worth a write of its own over shared memory.
const DEFAULT_BYTES: usize = Preference::SHARED_MEMORY.write;

impl Policy {
    /// The number of groups that `partitions` partitions of `bytes` bytes in all make. Where the way has not
    /// been [asked](Policy::resolve), it is taken to be shared memory.
    #[must_use]
    pub fn groups(self, partitions: u32, bytes: usize) -> u32 {
        let of_size = |each: usize| u32::try_from(bytes / each.max(1)).unwrap_or(u32::MAX);
        let wanted = match self {
            Self::Each => partitions,
            Self::Fixed(count) | Self::Messages(count) => count,
            Self::Default => of_size(DEFAULT_BYTES),
            Self::Bytes(each) | Self::Timer { bytes: each, .. } => of_size(each),
            Self::Model(model) => model.best(bytes, partitions),
            Self::Measured(delay) => Model {
                costs: Costs::SHM,
                delay,
            }
            .best(bytes, partitions),
        };
        wanted.clamp(1, partitions.max(1))
    }

    /// The same with what the way has to say: `costs` where it goes by measured ones, and how many bytes
    /// are worth a write of their own.
    #[must_use]
    pub fn resolve(self, costs: impl FnOnce() -> Costs, worth: usize) -> Self {
        match self {
            Self::Default => Self::Bytes(worth),
            Self::Measured(delay) => Self::Model(Model {
                costs: costs(),
                delay,
            }),
            other => other,
        }
    }

    /// How long a partition that is ready waits for the others of its group; `None` for ever.
    #[must_use]
    pub const fn patience(self) -> Option<Duration> {
        match self {
            Self::Timer { after, .. } => Some(after),
            _ => None,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => write!(f, "default"),
            Self::Each => write!(f, "each"),
            Self::Fixed(count) => write!(f, "fixed:{count}"),
            Self::Bytes(each) => write!(f, "bytes:{each}"),
            Self::Measured(delay) => write!(f, "model:{}", delay.as_micros()),
            Self::Model(Model { costs, delay }) => {
                let (delay, Costs { overhead, gap }) = (delay.as_micros(), costs);
                write!(f, "model:{delay}:{overhead}:{gap}")
            }
            Self::Timer { bytes, after } => write!(f, "timer:{bytes}:{}", after.as_micros()),
            Self::Messages(1) => write!(f, "single"),
            Self::Messages(u32::MAX) => write!(f, "messages"),
            Self::Messages(count) => write!(f, "messages:{count}"),
        }
    }
}

impl FromStr for Policy {
    type Err = String;

    /// `each`, `fixed:COUNT`, `bytes:BYTES`, `model[:DELAY_US[:NS:PS]]`, `timer:BYTES:US`, `messages[:COUNT]`, `single`,
    /// `default`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words
            .map(|word| word.parse().map_err(|_| format!("'{word}' is no number")))
            .collect::<Result<_, _>>()?;
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Ok(match (name, &numbers[..]) {
            ("default", []) => Self::Default,
            ("each" | "none", []) => Self::Each,
            ("fixed", [n]) => Self::Fixed(count(*n)),
            ("bytes", [each]) => Self::Bytes(*each as usize),
            ("model", []) => Self::Measured(DELAY),
            ("model", [delay]) => Self::Measured(Duration::from_micros(*delay)),
            ("model", [delay, overhead, gap]) => Self::Model(Model {
                costs: Costs {
                    overhead: *overhead,
                    gap: *gap,
                },
                delay: Duration::from_micros(*delay),
            }),
            ("timer", [bytes, after]) => Self::Timer {
                bytes: *bytes as usize,
                after: Duration::from_micros(*after),
            },
            ("messages", []) => Self::Messages(u32::MAX),
            ("messages", [n]) => Self::Messages(count(*n)),
            ("single", []) => Self::Messages(1),
            _ => {
                return Err(format!(
                    "'{text}' is no policy; there are default, each, fixed:COUNT, bytes:BYTES, \
                     model[:DELAY_US[:NS_EACH:PS_PER_BYTE]], timer:BYTES:US, messages[:COUNT], single"
                ));
            }
        })
    }
}

#[cfg(all(test, not(loom)))]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn groups_are_within_what_there_is() {
        for (text, partitions, bytes, groups) in [
            ("each", 32, 1 << 20, 32),
            ("default", 32, 16 << 10, 4),
            ("fixed:4", 32, 1 << 20, 4),
            ("fixed:4", 2, 1 << 20, 2),
            ("bytes:4096", 32, 16 << 10, 4),
            ("bytes:4096", 32, 1 << 20, 32),
            ("bytes:4096", 32, 64, 1),
            ("bytes:0", 32, 64, 32),
            ("single", 32, 64, 1),
            ("messages", 32, 64, 32),
            ("timer:65536:50", 32, 1 << 20, 16),
            ("model:100000", 32, 1 << 20, 32),
            ("model:0:1000:1000", 32, 1 << 20, 1),
        ] {
            let policy: Policy = text.parse().unwrap();
            assert_eq!(policy.groups(partitions, bytes), groups, "{text}");
            assert_eq!(policy.to_string().parse(), Ok(policy), "{text}");
        }
        assert!("often".parse::<Policy>().is_err());
        assert!("fixed:many".parse::<Policy>().is_err());
    }

    #[test]
    fn the_default_goes_by_the_way() {
        let resolved = Policy::default().resolve(|| Costs::SHM, 65_536);
        assert_eq!(resolved.groups(32, 1 << 20), 16);
        assert_eq!(Policy::Each.resolve(|| Costs::SHM, 65_536), Policy::Each);
    }

    /// Without a delay nothing is hidden; with a long one the last partition alone counts.
    #[test]
    fn the_model_cuts_long_messages_of_late_threads() {
        let model = |delay| Model {
            costs: Costs::SHM,
            delay,
        };
        assert_eq!(model(Duration::ZERO).best(1 << 20, 32), 1);
        assert_eq!(model(Duration::from_millis(4)).best(1 << 20, 32), 32);
    }
}
