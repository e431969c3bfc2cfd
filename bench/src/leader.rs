//! How the ranks of a job measure together: rank 0 leads, and announces each step before all take it.
//!
//! Only rank 0 knows of clocks and budgets. What a test measures is its [`Script`]; which blocks there are, and how many, its
//! leader decides.

use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::load::{Load, Watch};
use crate::port::{Control, Endpoint};

/// What all ranks do at each step of a test.
pub(crate) trait Script {
    /// What is measured together: a size.
    type Case: Serialize + DeserializeOwned;
    /// A block of iterations.
    type Block: Serialize + DeserializeOwned;
    /// What a rank reports to rank 0 of a block.
    type Told: Serialize + DeserializeOwned;

    /// Sets up for a case.
    fn begin(&mut self, case: &Self::Case) -> Result<()> {
        let _ = case;
        Ok(())
    }

    /// Runs a block. What is timed in it is straight code.
    fn block(&mut self, block: &Self::Block) -> Result<Self::Told>;

    /// Takes back what [`begin`](Self::begin) set up.
    fn end(&mut self, case: &Self::Case) -> Result<()> {
        let _ = case;
        Ok(())
    }
}

/// A block of the same iterations, with messages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Iterations {
    pub size: usize,
    pub count: u64,
}

/// What rank 0 announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Step<C, B> {
    Begin(C),
    /// All ranks run it, and tell rank 0 what it came to.
    Block(B),
    End(C),
    /// What is measured begins: all ranks watch what else runs.
    Watch,
    /// It is over: all ranks report what they saw.
    Report,
    Finish,
}

/// Rank 0 of a test.
///
/// Blocks are straight code behind one dynamic call: whoever leads takes a `dyn Script`, and is compiled once for all ports.
pub(crate) struct Leader<'a, S: ?Sized> {
    port: &'a dyn Endpoint,
    /// Its part in what all ranks do.
    pub script: &'a mut S,
    control: Control,
    watch: Watch,
}

/// Measures: rank 0 runs `lead`, and the others what it announces.
pub(crate) fn run<'a, S: Script + ?Sized>(
    port: &'a dyn Endpoint,
    script: &'a mut S,
    lead: impl FnOnce(&mut Leader<'a, S>) -> Result<()>,
) -> Result<()> {
    let mut leader = Leader {
        port,
        script,
        control: Control::new()?,
        watch: Watch::begin(),
    };
    if port.rank().as_u32() != 0 {
        return leader.follow();
    }
    lead(&mut leader)?;
    leader.announce(Step::Finish)
}

impl<S: Script + ?Sized> Leader<'_, S> {
    /// Begins a case on all ranks.
    pub(crate) fn begin(&mut self, case: &S::Case) -> Result<()> {
        self.announce(Step::Begin(case))?;
        self.script.begin(case)
    }

    /// Ends a case on all ranks.
    pub(crate) fn end(&mut self, case: &S::Case) -> Result<()> {
        self.announce(Step::End(case))?;
        self.script.end(case)
    }

    /// Runs a block on all ranks. Returns what each told of it.
    pub(crate) fn block(&mut self, block: &S::Block) -> Result<Vec<S::Told>> {
        self.announce(Step::Block(block))?;
        self.take_part(block)
    }

    /// Runs blocks of several series by turns, so that whatever disturbs the machine disturbs all of them. `counts` has the
    /// iterations of each series' blocks. Returns what all ranks told of each block, by series.
    pub(crate) fn by_turns(
        &mut self,
        counts: &[Vec<u64>],
        block: impl Fn(usize, u64) -> S::Block,
    ) -> Result<Vec<Vec<Vec<S::Told>>>> {
        let mut told: Vec<_> = counts.iter().map(|_| Vec::new()).collect();
        let repetitions = counts.iter().map(Vec::len).max().unwrap_or(0);
        for repetition in 0..repetitions {
            for (series, (counts, told)) in counts.iter().zip(&mut told).enumerate() {
                if let Some(&count) = counts.get(repetition) {
                    told.push(self.block(&block(series, count))?);
                }
            }
        }
        Ok(told)
    }

    /// Has all ranks watch what else runs, from now on.
    pub(crate) fn watch(&mut self) -> Result<()> {
        self.announce(Step::Watch)?;
        self.watch = Watch::begin();
        Ok(())
    }

    /// Returns what all ranks saw since.
    pub(crate) fn report(&mut self) -> Result<Load> {
        self.announce(Step::Report)?;
        self.load()
    }

    fn announce(&mut self, step: Step<&S::Case, &S::Block>) -> Result<()> {
        self.control.announce(self.port, &step)
    }

    /// Does what rank 0 announces until it announces the end.
    fn follow(&mut self) -> Result<()> {
        loop {
            match self.control.hear(self.port)? {
                Step::Begin(case) => self.script.begin(&case)?,
                Step::Block(block) => drop(self.take_part(&block)?),
                Step::End(case) => self.script.end(&case)?,
                Step::Watch => self.watch = Watch::begin(),
                Step::Report => drop(self.load()?),
                Step::Finish => return Ok(()),
            }
        }
    }

    fn take_part(&mut self, block: &S::Block) -> Result<Vec<S::Told>> {
        let own = self.script.block(block)?;
        self.control.gather(self.port, own)
    }

    fn load(&mut self) -> Result<Load> {
        let all = self.control.gather(self.port, self.watch.activity())?;
        Ok(Load::of(&all))
    }
}

/// Runs blocks of `first` iterations, of twice as many, and so on, until those done so far and the time of the last block are
/// enough, or `limit` is over. Returns the time of one iteration in the last block. Times are in nanoseconds.
pub(crate) fn warm_up(
    first: u64,
    limit: Duration,
    is_enough: impl Fn(u64, f64) -> bool,
    mut block: impl FnMut(u64) -> Result<f64>,
) -> Result<f64> {
    let start = Instant::now();
    let (mut next, mut done) = (first, 0);
    loop {
        let time = block(next)?;
        done += next;
        if is_enough(done, time) || start.elapsed() >= limit {
            return Ok(time / next as f64);
        }
        next *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::port::channel::job;

    /// Tells its rank beside what it was asked to do.
    struct Echo<'a>(u32, &'a mut Vec<String>);

    impl Script for Echo<'_> {
        type Case = usize;
        type Block = (usize, u64);
        type Told = (u32, u64);

        fn begin(&mut self, case: &usize) -> Result<()> {
            self.1.push(format!("begin {case}"));
            Ok(())
        }

        fn block(&mut self, &(series, count): &(usize, u64)) -> Result<(u32, u64)> {
            self.1.push(format!("{count} of {series}"));
            Ok((self.0, count))
        }

        fn end(&mut self, case: &usize) -> Result<()> {
            self.1.push(format!("end {case}"));
            Ok(())
        }
    }

    #[test]
    fn all_ranks_take_the_steps_that_rank_0_announces() {
        let done = job(3, None, |port| {
            let mut done = Vec::new();
            let mut echo = Echo(port.rank().as_u32(), &mut done);
            run(port, &mut echo, |leader| {
                leader.begin(&8)?;
                leader.watch()?;
                let told =
                    leader.by_turns(&[vec![2, 1], vec![5]], |series, count| (series, count))?;
                assert_eq!(told[0][1], [(0, 1), (1, 1), (2, 1)]);
                assert_eq!(told[1], [[(0, 5), (1, 5), (2, 5)]]);
                assert_eq!(leader.report()?.ranks.len(), 3);
                leader.end(&8)
            })?;
            Ok::<_, Error>(done)
        });
        for done in done {
            let steps = ["begin 8", "2 of 0", "5 of 1", "1 of 0", "end 8"];
            assert_eq!(done.unwrap(), steps);
        }
    }

    #[test]
    fn warm_up_ends_with_enough_iterations_and_time() {
        let mut blocks = Vec::new();
        let mut block = |count: u64| {
            blocks.push(count);
            Ok(10.0 * count as f64)
        };
        let minute = Duration::from_secs(60);
        let enough = |done, time| done >= 5 && time >= 80.0;
        assert_eq!(warm_up(1, minute, enough, &mut block).unwrap(), 10.0);
        warm_up(3, Duration::ZERO, |_, _| false, &mut block).unwrap();
        assert_eq!(blocks, [1, 2, 4, 8, 3]);
    }
}
