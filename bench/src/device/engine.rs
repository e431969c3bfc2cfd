//! A stand-in for a device: a thread that sleeps while a device would compute, and copies at a pace.
//!
//! ```text
//!     computation   | begin, partition 0 | begin, partition 1 | ...
//!     copies                             | begin, partition 0 | begin, partition 1 | ...
//!                                                              ^ what follows the copy
//! ```
//!
//! The engine has a time of its own. A step ends at the time of its model, or when the copy that it stands for has taken longer.
//! That the thread wakes late is not part of it: the step after it does not begin later for that. Steps of ranks that share an engine
//! take turns.

use std::num::NonZeroU64;
use std::time::Duration;

use super::sharing::Turns;
use crate::args::device::{CopyStream, EnginePlan};
use crate::body::partitioned::now;
use crate::buffer::{Incoming, Outgoing};
use crate::error::Result;

/// What an engine is like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Engine {
    /// Nanoseconds to begin a step, and for each byte of a copy and of computation.
    begin: f64,
    copy: f64,
    compute: f64,
    streams: CopyStream,
}

/// Bytes to copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Copy {
    pub from: Outgoing,
    pub to: Incoming,
}

/// What an engine is to do: it takes the input, computes each part and copies it back.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub input: Option<Copy>,
    /// The number of each, and its bytes.
    pub parts: Vec<(usize, Copy)>,
}

/// How long an engine was at work, in nanoseconds of its own time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Spent {
    pub compute: f64,
    /// Back to the host.
    pub copy: f64,
    /// The part of that in which bytes were moved.
    pub moved: f64,
    /// When the last part had come, by the clock of the host.
    pub ended: u64,
}

impl Order {
    /// The same without bytes.
    pub(super) fn emptied(mut self) -> Self {
        let parts = self.parts.iter_mut().map(|(_, part)| part);
        for copy in parts.chain(&mut self.input) {
            let nothing = copy.to.part(0..0);
            (copy.from, copy.to) = (nothing.outgoing(), nothing);
        }
        self
    }
}

impl Engine {
    pub(super) fn new(plan: &EnginePlan) -> Self {
        let copy = 1e9 / plan.rate.0;
        Self {
            begin: plan.latency.as_nanos() as f64,
            copy,
            compute: f64::from(plan.flops_per_element) * copy,
            streams: plan.copy_stream,
        }
    }

    /// One whose steps take no time but that of moving bytes.
    pub(super) const fn idle() -> Self {
        Self {
            begin: 0.0,
            copy: 0.0,
            compute: 0.0,
            streams: CopyStream::Other,
        }
    }

    /// The same without computation.
    pub(super) const fn copies_only(self) -> Self {
        Self {
            compute: 0.0,
            ..self
        }
    }

    /// Does what is ordered, and has `then` follow the copy of each part, in the thread of the engine: what it takes holds the
    /// copies up.
    pub(super) fn run(
        self,
        order: &Order,
        turns: &Turns,
        mut then: impl FnMut(usize) -> Result<()>,
    ) -> Result<Spent> {
        let mut spent = Spent::default();
        let (mut computed, mut copied) = (now() as f64, 0.0_f64);
        if let Some(input) = order.input {
            computed = self.copy(computed, input, turns)?.end;
        }
        let all = &order.parts;
        for (place, &(number, part)) in all.iter().enumerate() {
            let is_begun = place > 0 && self.streams == CopyStream::Other;
            if !is_begun {
                computed = self.compute(computed, part, turns, &mut spent)?;
            }
            let ready = computed.max(copied);
            // The next computation takes its turn when this one has ended, not when this part's copy has.
            if let (CopyStream::Other, Some(&(_, next))) = (self.streams, all.get(place + 1)) {
                computed = self.compute(computed, next, turns, &mut spent)?;
            }
            let Copied { start, end, moved } = self.copy(ready, part, turns)?;
            spent.copy += end - start;
            spent.moved += moved;
            spent.ended = now();
            then(number)?;
            copied = end + (now() - spent.ended) as f64;
            if self.streams == CopyStream::Same {
                computed = copied;
            }
        }
        Ok(spent)
    }

    /// Computes a part from a time on. Returns when that ends.
    fn compute(self, ready: f64, part: Copy, turns: &Turns, spent: &mut Spent) -> Result<f64> {
        if self.compute == 0.0 {
            return Ok(ready);
        }
        let time = self.begin + part.from.len() as f64 * self.compute;
        spent.compute += time;
        turns.compute.take(ready, |start| start + time)
    }

    /// Copies from a time on, and returns when that has ended.
    fn copy(self, ready: f64, copy: Copy, turns: &Turns) -> Result<Copied> {
        sleep_until(ready);
        let mut copied = Copied::default();
        turns.copy.take(ready, |start| {
            sleep_until(start);
            let begun = now();
            copy.to
                .with_bytes(|to| to.copy_from_slice(copy.from.bytes()));
            let moved = (now() - begun) as f64;
            let model = self.begin + copy.from.len() as f64 * self.copy;
            let end = start + model.max(moved);
            copied = Copied { start, end, moved };
            end
        })?;
        sleep_until(copied.end);
        Ok(copied)
    }
}

/// When a copy was under way, and how long bytes were moved.
#[derive(Debug, Clone, Copy, Default)]
struct Copied {
    start: f64,
    end: f64,
    moved: f64,
}

/// Has this thread wake when it is to, as far as the system can.
pub(super) fn wake_in_time() {
    // Where the system refuses, sleeps are longer by its default of 50 us.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

fn sleep_until(time: f64) {
    let left = time - now() as f64;
    if left >= 1.0 {
        std::thread::sleep(Duration::from_nanos(left as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::device::DataRate;
    use crate::buffer::Memory;

    fn plan(copy_stream: CopyStream) -> EnginePlan {
        EnginePlan {
            rate: DataRate(1e9),
            latency: Duration::from_micros(5),
            sharing: 1,
            flops_per_element: 3,
            copy_stream,
        }
    }

    fn order(host: &Memory, back: &Memory) -> Order {
        let copy = |range: std::ops::Range<usize>| Copy {
            from: host.outgoing(range.clone()),
            to: back.incoming(range),
        };
        Order {
            input: None,
            parts: vec![(0, copy(0..400)), (2, copy(400..1000))],
        }
    }

    #[test]
    fn parts_come_in_order_and_whole() {
        for streams in [CopyStream::Same, CopyStream::Other] {
            let mut host = Memory::new(1000).unwrap();
            let back = Memory::new(1000).unwrap();
            let bytes: Vec<u8> = (0..1000).map(|place| (place % 251) as u8).collect();
            host.write(&bytes);
            let mut seen = Vec::new();
            let spent = Engine::new(&plan(streams))
                .run(&order(&host, &back), &Turns::default(), |part| {
                    seen.push((part, back.bytes(0..400) == bytes[..400]));
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, [(0, true), (2, true)]);
            assert_eq!(back.bytes(0..1000), bytes);
            // Two parts begin, and 1000 bytes are computed at three nanoseconds each.
            assert_eq!(spent.compute, 10_000.0 + 3_000.0);
            assert!(spent.copy >= 10_000.0 + 1_000.0 && spent.moved <= spent.copy);
        }
    }

    #[test]
    fn what_follows_a_part_may_fail() {
        let (host, back) = (Memory::new(1000).unwrap(), Memory::new(1000).unwrap());
        let mut told = 0;
        let ended = Engine::idle().run(&order(&host, &back), &Turns::default(), |_| {
            told += 1;
            Err(crate::error::Error::Peer("gone".to_owned()))
        });
        assert_eq!((ended.unwrap_err().to_string().as_str(), told), ("gone", 1));
    }
}
