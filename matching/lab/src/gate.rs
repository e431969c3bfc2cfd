//! The gate: an engine is checked on random programs, and what it does wrong is shown by the shortest program.

use std::fmt;

use tagwire_matching::judged::Judged;
use tagwire_matching::storage::Local;
use tagwire_matching::{Capacity, Engine, EngineName, Grade};

use crate::follow::Follower;
use crate::program::{Operation, Program};
use crate::queued::Answer;
use crate::random::Random;
use crate::shrink::shrink;

/// How an engine is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// What it is held to.
    pub grade: Grade,
    /// What the random programs follow from.
    pub seed: u64,
    /// How many operations it does at least, over all programs.
    pub operations: u64,
}

/// Makes the engine of a program.
type Open<'a> = dyn Fn(Capacity) -> tagwire_matching::Result<Judged> + 'a;

/// What an engine has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// How many programs were run.
    pub programs: u64,
    /// How many operations they had.
    pub operations: u64,
}

/// What an engine has done wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// How many random programs were run, that which failed among them.
    pub programs: u64,
    /// The shortest program that was found to fail.
    pub program: Program,
    /// What is wrong with its last operation.
    pub complaint: String,
    /// A line for each operation, with what the engine answered.
    lines: Vec<String>,
}

impl Gate {
    /// Checks the engines that `open` makes, each for a program of its own.
    ///
    /// # Errors
    /// [`Failed`] with the shortest program, for the first that fails.
    pub fn check(
        &self,
        open: &dyn Fn(Capacity) -> Box<dyn Engine + Send>,
    ) -> Result<Passed, Box<Failed>> {
        self.check_bounded(&|_| {}, &|capacity| Ok(Judged::of(open(capacity))))
    }

    /// Checks the engine of a name, within the bounds that its parameters set.
    ///
    /// # Errors
    /// [`Failed`] with the shortest program, for the first that fails.
    pub fn check_named(&self, engine: &EngineName) -> Result<Passed, Box<Failed>> {
        let bound = |program: &mut Program| {
            program.capacity = engine.bounded(program.capacity);
            program.is_bounded_by_bytes = engine.is_bounded_by_bytes();
        };
        self.check_bounded(&bound, &|capacity| engine.open_judged::<Local>(capacity))
    }

    /// Checks engines that hold no more than `bound` says of a program.
    fn check_bounded(
        &self,
        bound: &dyn Fn(&mut Program),
        open: &Open<'_>,
    ) -> Result<Passed, Box<Failed>> {
        let mut random = Random::new(self.seed);
        let mut passed = Passed {
            programs: 0,
            operations: 0,
        };
        while passed.operations < self.operations {
            let mut program = Program::random(&mut random);
            bound(&mut program);
            // The last program has no more than what is left.
            let left = self.operations - passed.operations;
            program
                .operations
                .truncate(usize::try_from(left).unwrap_or(usize::MAX));
            passed.programs += 1;
            passed.operations += program.operations.len() as u64;
            if run(open, self.grade, &program).is_some() {
                return Err(Box::new(self.explain(open, program, passed.programs)));
            }
        }
        Ok(passed)
    }

    fn explain(&self, open: &Open<'_>, program: Program, programs: u64) -> Failed {
        let fails = |program: &Program| run(open, self.grade, program);
        let program = shrink(program, &fails);
        let mut lines = Vec::new();
        let mut note = |operation: Operation, answer: Option<Answer>| {
            let line = format!("{:>3}  {operation}", lines.len() + 1);
            lines.push(match answer {
                Some(answer) => format!("{line:<62} -> {answer}"),
                None => line,
            });
        };
        let trouble = attempt(open, self.grade, &program, &mut note);
        Failed {
            programs,
            program,
            complaint: trouble.map_or_else(String::new, |trouble| trouble.complaint),
            lines,
        }
    }
}

/// Where a program fails.
#[derive(Debug)]
pub(crate) struct Trouble {
    /// How many of its operations it takes.
    pub(crate) operations: usize,
    complaint: String,
}

fn run(open: &Open<'_>, grade: Grade, program: &Program) -> Option<Trouble> {
    attempt(open, grade, program, &mut |_, _| {})
}

/// Runs a program on an engine of its own: all operations, a comparison of all that is queued, and a drain by handles.
fn attempt(
    open: &Open<'_>,
    grade: Grade,
    program: &Program,
    note: &mut dyn FnMut(Operation, Option<Answer>),
) -> Option<Trouble> {
    let Judged {
        mut engine,
        impossible,
    } = match open(program.capacity) {
        Ok(judged) => judged,
        Err(error) => {
            return Some(Trouble {
                operations: 0,
                complaint: error.to_string(),
            });
        }
    };
    let follower = Follower::new(&mut *engine, grade, program.capacity).told_by(impossible);
    let mut follower = follower.bounded_by_bytes(program.is_bounded_by_bytes);
    for (index, &operation) in program.operations.iter().enumerate() {
        let answered = follower.apply(operation);
        note(operation, answered.as_ref().ok().copied());
        let compared = answered.and_then(|_| match index % COMPARED {
            0 => follower.compare_all(),
            _ => Ok(()),
        });
        if let Err(complaint) = compared {
            return Some(Trouble {
                operations: index + 1,
                complaint,
            });
        }
    }
    let ended = follower.compare_all().and_then(|()| follower.drain());
    let ended = ended.and_then(|()| follower.compare_all());
    ended.err().map(|complaint| Trouble {
        operations: program.operations.len(),
        complaint,
    })
}

/// The program with what the engine returned, and what is wrong.
impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Capacity { posted, unexpected } = self.program.capacity;
        if self.program.capacity != Capacity::default() {
            writeln!(f, "  capacity: {posted} receives, {unexpected} messages")?;
        }
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        write!(f, "  wrong: {}", self.complaint)
    }
}

/// All that is queued is compared once in so many operations.
const COMPARED: usize = 16;
