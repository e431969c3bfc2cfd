//! Collective operations of all kinds and lengths, blocking and started, one after the other in a group that loses members.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tagwire::{Allreduce, Alltoall, Barrier, Broadcast, Context, Error, Max, Session, Sum};
use tagwire_conformance::Chance;

use super::Program;
use crate::events::Word;
use crate::stage::{Stage, Trouble};

/// All members run the operations that the seed draws.
#[derive(Debug)]
pub struct Collectives;

/// How many operations come between two looks at whether the program is to end.
const BETWEEN: u64 = 8;
/// How long members look for each other after a death.
const MEETING: Duration = Duration::from_secs(10);

impl Program for Collectives {
    fn name(&self) -> &'static str {
        "collectives"
    }

    fn about(&self) -> &'static str {
        "broadcasts, reductions, scans, gathers and exchanges of 1 to 40,000 numbers, blocking and nonblocking"
    }

    fn run(&self, stage: &Stage) -> Result<(), Trouble> {
        let session = stage.open(Session::builder())?;
        go_on(stage, &session)?;
        stage.close(session)
    }
}

/// Runs operations until told to end, in a smaller group after each death.
fn go_on(stage: &Stage, session: &Session) -> Result<(), Trouble> {
    let mut group = session.world();
    let mut members: Vec<u32> = (0..session.size()).collect();
    let mut said = BTreeSet::new();
    let mut round = 0;
    loop {
        match rounds(stage, group, &members, &mut round) {
            Ok(()) => return Ok(()),
            Err(Trouble::Wrong(why)) => {
                let mut ends = Ends::default();
                ends.hear(&why, stage.me, &members)?;
                let left = {
                    let met = meet(stage, session, &mut said, &mut round, &mut ends);
                    met.and_then(|left| Ok(ends.check(&members, &left.1).map(|()| left)?))
                };
                (group, members) = left.map_err(|trouble| trouble.after(&why))?;
            }
            Err(other) => return Err(other),
        }
    }
}

/// What errors have said of the ends of members.
#[derive(Debug, Default)]
struct Ends {
    named: BTreeSet<u32>,
}

impl Ends {
    /// Takes an error of a member, which is to tell of another's end.
    fn hear(&mut self, why: &str, me: u32, members: &[u32]) -> Result<(), String> {
        let others = members.iter().filter(|member| **member != me);
        let named: Vec<u32> = others
            .copied()
            .filter(|member| why.contains(&format!("rank {member}")))
            .collect();
        // What begins after another member has told of it is refused, without a name.
        let told = why.contains("the group is broken");
        if (named.is_empty() && !told) || why.contains("is wrong") {
            return Err(why.to_owned());
        }
        self.named.extend(named);
        Ok(())
    }

    /// Compares it with who is left: those whom an error named are not, and somebody is not.
    fn check(&self, before: &[u32], left: &[u32]) -> Result<(), String> {
        if let Some(lives) = left.iter().find(|member| self.named.contains(member)) {
            return Err(format!("the end of rank {lives} was told, and it lives"));
        }
        match left.len() < before.len() {
            true => Ok(()),
            false => Err(format!("the group of {before:?} has ended, and all live")),
        }
    }
}

/// Makes a group of those who are left. Says who is not.
fn meet<'s>(
    stage: &Stage,
    session: &'s Session,
    said: &mut BTreeSet<u32>,
    round: &mut u64,
    ends: &mut Ends,
) -> Result<(Context<'s>, Vec<u32>), Trouble> {
    let began = Instant::now();
    loop {
        let dead: BTreeSet<u32> = session.failed()?.into_iter().collect();
        for rank in dead.difference(said) {
            stage.say(&Word::Lost(*rank));
        }
        *said = dead;
        let members: Vec<u32> = (0..session.size())
            .filter(|rank| !said.contains(rank))
            .collect();
        let others = members.iter().copied();
        let _waiting = stage.waits_for(others.filter(|member| *member != stage.me));
        if said.is_empty() || members.len() < 2 {
            // Another member has found it out before this one's launcher has said so.
            session.progress()?;
            std::thread::sleep(Duration::from_millis(1));
        } else {
            let made = session.world().subset(&members).and_then(|group| {
                let mut furthest = [*round];
                group.allreduce(&mut furthest, Max)?;
                Ok((group, furthest[0]))
            });
            match made {
                Ok((group, furthest)) => {
                    *round = furthest + 1;
                    stage.ended(1);
                    return Ok((group, members));
                }
                Err(error) if began.elapsed() > MEETING => return Err(error.into()),
                Err(error) => ends.hear(&error.to_string(), stage.me, &members)?,
            }
        }
        stage.step(0);
        if members.len() < 2 {
            return Ok((session.world().subset(&members)?, members));
        }
        if began.elapsed() > MEETING {
            let text = format!("no group of ranks {members:?} after {MEETING:?}");
            return Err(Trouble::Wrong(text));
        }
    }
}

/// Runs operations until one fails, or all members know that it is to end.
fn rounds(
    stage: &Stage,
    group: Context<'_>,
    members: &[u32],
    round: &mut u64,
) -> Result<(), Trouble> {
    loop {
        Operation::of(stage.seed, *round, group.rank()?, members.len()).run(group)?;
        *round += 1;
        let ends = stage.step(1);
        if round.is_multiple_of(BETWEEN) {
            let mut all = [u64::from(ends)];
            group.allreduce(&mut all, Sum)?;
            if all[0] > 0 {
                return Ok(());
            }
        }
    }
}

/// One operation, as all members draw it.
struct Operation {
    round: u64,
    me: u64,
    size: u64,
    kind: u64,
    len: usize,
    root: u32,
    nonblocking: bool,
}

/// What a member has at a place of its data.
fn number(round: u64, member: u64, at: usize) -> u64 {
    (round << 20 ^ member << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24 ^ at as u64
}

impl Operation {
    fn of(seed: u64, round: u64, me: u32, size: usize) -> Self {
        let mut chance = Chance::new(seed ^ round << 24);
        let most = chance.one_of(&[1, 8, 100, 5_000, 40_000]);
        Self {
            round,
            me: me.into(),
            size: size as u64,
            kind: chance.below(10),
            len: 1 + chance.below(most) as usize,
            root: chance.below(size as u64) as u32,
            nonblocking: chance.below(3) == 0,
        }
    }

    fn of_member(&self, member: u64, len: usize) -> Vec<u64> {
        (0..len).map(|at| number(self.round, member, at)).collect()
    }

    fn sums(&self, members: u64) -> Vec<u64> {
        let sum = |at| {
            (0..members).fold(0, |sum: u64, member| {
                sum.wrapping_add(number(self.round, member, at))
            })
        };
        (0..self.len).map(sum).collect()
    }

    /// Runs it, and checks what it has brought.
    fn run(&self, group: Context<'_>) -> Result<(), Trouble> {
        let mine = self.of_member(self.me, self.len);
        let all: Vec<u64> = (0..self.size)
            .flat_map(|member| self.of_member(member, self.len))
            .collect();
        let mut data = mine.clone();
        let mut room = vec![0; all.len()];
        match self.kind {
            0 => self.barrier(group)?,
            1 => {
                self.broadcast(group, &mut data)?;
                self.check(
                    "broadcast",
                    &data,
                    &self.of_member(self.root.into(), self.len),
                )?;
            }
            2 => {
                group.reduce(&mut data, Sum, self.root)?;
                if self.me == u64::from(self.root) {
                    self.check("reduce", &data, &self.sums(self.size))?;
                }
            }
            3 | 4 => {
                self.allreduce(group, &mut data)?;
                self.check("allreduce", &data, &self.sums(self.size))?;
            }
            5 => {
                group.scan(&mut data, Sum)?;
                self.check("scan", &data, &self.sums(self.me + 1))?;
            }
            6 => {
                group.gather(&mine, &mut room, self.root)?;
                if self.me == u64::from(self.root) {
                    self.check("gather", &room, &all)?;
                }
            }
            7 => {
                group.scatter(&all, &mut data, self.root)?;
                self.check("scatter", &data, &mine)?;
            }
            8 => {
                group.allgather(&mine, &mut room)?;
                self.check("allgather", &room, &all)?;
            }
            _ => {
                // Block `to` of member `from` is its numbers further on.
                let block = |from: u64, to: u64| {
                    let begin = to as usize * self.len;
                    (begin..begin + self.len).map(move |at| number(self.round, from, at))
                };
                let mut blocks: Vec<u64> =
                    (0..self.size).flat_map(|to| block(self.me, to)).collect();
                self.alltoall(group, &mut blocks)?;
                let expected: Vec<u64> = (0..self.size)
                    .flat_map(|from| block(from, self.me))
                    .collect();
                self.check("alltoall", &blocks, &expected)?;
            }
        }
        Ok(())
    }

    fn barrier(&self, group: Context<'_>) -> Result<(), Error> {
        match self.nonblocking {
            true => group
                .session()
                .try_scope(|scope| scope.start(&group, Barrier::new()).map(drop)),
            false => group.barrier(),
        }
    }

    fn broadcast(&self, group: Context<'_>, data: &mut [u64]) -> Result<(), Error> {
        match self.nonblocking {
            true => group.session().try_scope(|scope| {
                scope
                    .start(&group, Broadcast::new(data, self.root))
                    .map(drop)
            }),
            false => group.broadcast(data, self.root),
        }
    }

    fn allreduce(&self, group: Context<'_>, data: &mut [u64]) -> Result<(), Error> {
        match self.nonblocking {
            true => group.session().try_scope(|scope| {
                scope
                    .start(&group, Allreduce::in_place(data, Sum))
                    .map(drop)
            }),
            false => group.allreduce(data, Sum),
        }
    }

    fn alltoall(&self, group: Context<'_>, blocks: &mut [u64]) -> Result<(), Error> {
        match self.nonblocking {
            true => group
                .session()
                .try_scope(|scope| scope.start(&group, Alltoall::in_place(blocks)).map(drop)),
            false => group.run(Alltoall::in_place(blocks)),
        }
    }

    fn check(&self, what: &str, is: &[u64], must: &[u64]) -> Result<(), String> {
        let at = (0..must.len()).find(|at| is.get(*at) != must.get(*at));
        match at {
            None if is.len() == must.len() => Ok(()),
            at => Err(format!(
                "{what} {} of {} numbers, root {}: number {at:?} is wrong",
                self.round, self.len, self.root
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_of_those_who_are_gone() {
        let after = |why: &str, before: &[u32], left: &[u32]| {
            let mut ends = Ends::default();
            ends.hear(why, 0, before)?;
            ends.check(before, left)
        };
        assert_eq!(after("rank 2 has failed", &[0, 1, 2], &[0, 1]), Ok(()));
        assert_eq!(after("the group is broken", &[0, 1, 2], &[0, 2]), Ok(()));
        for (why, left, found) in [
            (
                "rank 1 has failed",
                &[0, 1][..],
                "the end of rank 1 was told, and it lives",
            ),
            (
                "the group is broken",
                &[0, 1, 2],
                "the group of [0, 1, 2] has ended, and all live",
            ),
            ("no memory is left", &[0, 1], "no memory is left"),
            (
                "scan 3 is wrong, of rank 2",
                &[0, 1],
                "scan 3 is wrong, of rank 2",
            ),
        ] {
            assert_eq!(after(why, &[0, 1, 2], left), Err(found.to_owned()));
        }
    }
}
