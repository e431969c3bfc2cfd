//! Short nonblocking operations: each is one round of a board of their own, a line of each member that gives something.
//!
//! The rounds are numbered in the order of calls, which is the same on all members. A member shows its lines in that order, and
//! has done with rounds in that order: what all have shown of one round they have shown of those before. Persistent operations,
//! which are started in any order, go by messages.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tagwire_base::Tag;
use tagwire_layout::Operation;
use tagwire_transport::Board;
use tagwire_transport::board::{LINE, Lined};

use super::head::Head;
use super::state::{Boards, Stage};
use crate::algorithms::Collective;
use crate::error::{Error, Result};
use crate::reduction::Reduction;
use crate::team::Team;

/// The board of short nonblocking operations, and how far this member is with them.
#[derive(Debug)]
pub(super) struct Lines {
    board: Board<Lined>,
    /// The last round that has begun.
    begun: u64,
    /// The round whose turn it is to be shown.
    to_show: u64,
    /// The round whose turn it is to end.
    to_end: u64,
}

impl Lines {
    pub(super) const fn new(board: Board<Lined>) -> Self {
        Self {
            board,
            begun: 0,
            to_show: 1,
            to_end: 1,
        }
    }

    pub(super) fn give_up(&mut self, member: usize) {
        self.board.give_up(member);
    }

    /// Shows `data` in `round`, or nothing, if it is its turn and there is room.
    fn show(&mut self, round: u64, head: Head, data: Option<&[u8]>) -> Option<()> {
        if self.to_show != round {
            return None;
        }
        // Operations begin in the order of their rounds, whenever they get here.
        if self.begun < round {
            self.begun = self.board.begin(1);
        }
        if let Some(data) = data
            && !self.board.show(round, head.to_bits(), &[data])
        {
            return None;
        }
        self.to_show += 1;
        Some(())
    }

    /// Whether `round` has been shown.
    pub(super) const fn was_shown(&self, round: u64) -> bool {
        round < self.to_show
    }

    /// Whether it is the turn of `round` to end, and these members have shown their lines.
    fn is_there(&self, round: u64, mut from: impl Iterator<Item = usize>) -> bool {
        self.to_end == round && from.all(|member| self.board.is_shown(member, round))
    }

    /// Has done with `round`.
    fn end(&mut self, round: u64) {
        self.board.finish(round);
        self.to_end += 1;
    }
}

/// What an operation of a line finds when it is started. All members find the same, or wait for the same.
pub(crate) enum NextLine<'t> {
    /// It goes by messages.
    None,
    /// It is a round on the board.
    Ready(LineCall<'t>),
    /// It is this round on the board, if there is one: that is known later.
    Expected {
        team: &'t Team,
        round: u64,
        /// The operation makes the board, by messages with these tags.
        meets: Option<[Tag; 2]>,
    },
}

impl<'t> NextLine<'t> {
    /// Takes the next round. All members take the same rounds for the same operations.
    pub(crate) fn of(team: &'t Team) -> Self {
        if !team.may_have_boards() {
            return Self::None;
        }
        let meets = match team.board.board.get() {
            Some(None) => return Self::None,
            Some(Some(_)) => {
                return LineCall::of(team, team.board.next_round()).map_or(Self::None, Self::Ready);
            }
            None => match team.board.count_call() {
                Stage::Early => return Self::None,
                Stage::Meets => Some(Boards::tags(team)),
                Stage::Made => None,
            },
        };
        let round = team.board.next_round();
        Self::Expected { team, round, meets }
    }

    /// Waits until it is known whether there is a board. Returns the operation's round on it.
    pub(crate) async fn line(self) -> Result<Option<LineCall<'t>>> {
        match self {
            Self::None => Ok(None),
            Self::Ready(line) => Ok(Some(line)),
            Self::Expected { team, round, meets } => {
                match meets {
                    // Once for a group: the future of each operation has no room for it.
                    Some(tags) => Box::pin(team.make_boards(tags)).await?,
                    None => team.boards_made().await?,
                }
                Ok(LineCall::of(team, round))
            }
        }
    }
}

/// Bytes as aligned as those of a line.
#[repr(align(16))]
struct Aligned([u8; LINE]);

/// A nonblocking operation on the board, of which each member gives a line at most.
#[derive(Debug, Clone, Copy)]
pub struct LineCall<'t> {
    team: &'t Team,
    lines: &'t Mutex<Lines>,
    round: u64,
}

impl<'t> LineCall<'t> {
    /// Whether an operation on so many bytes fits. The table has to give it a board.
    pub(crate) const fn fits(bytes: usize) -> bool {
        bytes <= LINE
    }

    /// Returns `round` of the board, where the group has one.
    fn of(team: &'t Team, round: u64) -> Option<Self> {
        let lines = team.board.lines()?;
        Some(Self { team, lines, round })
    }

    pub(crate) const fn round(&self) -> u64 {
        self.round
    }

    pub(crate) async fn barrier(self) -> Result<()> {
        self.show(Head::BARRIER, Some(&[])).await?;
        self.take(Head::BARRIER, self.others(), |_| Ok(())).await
    }

    pub(crate) async fn broadcast(self, data: &mut [u8], root: usize) -> Result<()> {
        let head = Head::of(Collective::Broadcast, data.len()).at(root);
        let is_root = self.team.me() == root;
        self.show(head, is_root.then_some(&*data)).await?;
        let from = (!is_root).then_some(root).into_iter();
        self.take(head, from, |lines| match is_root {
            true => Ok(()),
            false => self.read(lines, root, data.len(), |shown| {
                data.copy_from_slice(shown);
                Ok(())
            }),
        })
        .await
    }

    /// Combines the data of all, from the first member's to the last's. What this member gives is `input`, or in `data`.
    pub(crate) async fn allreduce(
        self,
        reduction: Reduction<'_>,
        input: Option<&[u8]>,
        data: &mut [u8],
    ) -> Result<()> {
        let (me, len) = (self.team.me(), data.len());
        let head = Head::of(Collective::Allreduce, len).by(&reduction);
        self.show(head, Some(input.unwrap_or(data))).await?;
        if let Operation::User(_) = reduction.operation {
            return self.combine_apart(head, reduction, input, data).await;
        }
        self.take(head, self.others(), |lines| {
            let mut copy = Aligned([0; LINE]);
            let own = &mut copy.0[..len];
            own.copy_from_slice(input.unwrap_or(data));
            if me == 0 {
                data.copy_from_slice(own);
            } else {
                self.read(lines, 0, len, |first| {
                    data.copy_from_slice(first);
                    Ok(())
                })?;
            }
            for member in 1..self.team.size() {
                match member == me {
                    true => reduction.right(data, own)?,
                    false => self.read(lines, member, len, |other| reduction.right(data, other))?,
                }
            }
            Ok(())
        })
        .await
    }

    /// Takes the lines of all, and combines copies of them by an operation of the program: with nothing locked, since it may call
    /// whatever makes progress, which polls other operations of the board.
    async fn combine_apart(
        self,
        head: Head,
        reduction: Reduction<'_>,
        input: Option<&[u8]>,
        data: &mut [u8],
    ) -> Result<()> {
        let (me, size, len) = (self.team.me(), self.team.size(), data.len());
        let mut copies = self.team.scratch(size * LINE);
        let copy_of = |member| member * LINE..member * LINE + len;
        copies[copy_of(me)].copy_from_slice(input.unwrap_or(data));
        self.take(head, self.others(), |lines| {
            self.others().try_for_each(|member| {
                self.read(lines, member, len, |line| {
                    copies[copy_of(member)].copy_from_slice(line);
                    Ok(())
                })
            })
        })
        .await?;
        data.copy_from_slice(&copies[copy_of(0)]);
        let combined = (1..size).try_for_each(|member| {
            let other = &copies[copy_of(member)];
            reduction.right(data, other)
        });
        combined.inspect_err(|error| self.fail(error))
    }

    fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let me = self.team.me();
        (0..self.team.size()).filter(move |member| *member != me)
    }

    fn read(
        &self,
        lines: &Lines,
        member: usize,
        len: usize,
        look: impl FnOnce(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let looked = lines.board.read(member, self.round, len, 0..len, look);
        looked.ok_or(Error::Gone { member })?
    }

    async fn show(&self, head: Head, data: Option<&[u8]>) -> Result<()> {
        let nobody = std::iter::empty();
        poll_fn(|_| {
            self.poll(nobody.clone(), |lines| {
                lines.show(self.round, head, data).map(Ok)
            })
        })
        .await
    }

    /// Waits for the lines of the members `from`, and has `look` take them.
    async fn take(
        &self,
        head: Head,
        from: impl Iterator<Item = usize> + Clone,
        mut look: impl FnMut(&Lines) -> Result<()>,
    ) -> Result<()> {
        poll_fn(|_| {
            self.poll(from.clone(), |lines| {
                if !lines.is_there(self.round, from.clone()) {
                    return None;
                }
                let mut from = from.clone();
                let checked = from.try_for_each(|member| self.check(lines, head, member));
                let taken = checked.and_then(|()| look(lines));
                lines.end(self.round);
                Some(taken)
            })
        })
        .await
    }

    /// Checks that a member has shown its line for the same call.
    fn check(&self, lines: &Lines, head: Head, member: usize) -> Result<()> {
        match lines.board.head(member, self.round) {
            Some(theirs) => head.check(theirs, self.team.members(), member),
            // An earlier operation has failed, since when this member reads nothing.
            None => {
                let member = lines.board.broken().unwrap_or(member);
                Err(self.team.broken_by().unwrap_or(Error::Gone { member }))
            }
        }
    }

    /// Takes a step, if it can be taken. Where it cannot, looks whether it ever will: whether the group has broken, or one of the
    /// members `from` whose line is not there has left.
    fn poll(
        &self,
        mut from: impl Iterator<Item = usize>,
        mut step: impl FnMut(&mut Lines) -> Option<Result<()>>,
    ) -> Poll<Result<()>> {
        let mut lines = self.lock();
        let mut end = step(&mut lines);
        if end.is_none() {
            let gone = |member: &usize| {
                let board = &lines.board;
                board.has_left(*member) && !board.is_shown(*member, self.round)
            };
            let mut left = || match lines.board.has_leavers() {
                true => from.find(gone),
                false => None,
            };
            // Who leaves says before why.
            let broken = || lines.board.broken();
            let broken = broken().or_else(|| left().map(|member| broken().unwrap_or(member)));
            drop(lines);
            // Not under the lock: it may make progress, which polls other operations of the board.
            end = match (self.team.check_members(), broken) {
                (Err(error), _) => Some(Err(error)),
                // What it has shown before counts.
                (Ok(()), Some(member)) => {
                    let last = step(&mut self.lock());
                    Some(last.unwrap_or(Err(Error::Gone { member })))
                }
                (Ok(()), None) => None,
            };
        } else {
            drop(lines);
        }
        if let Some(Err(error)) = &end {
            self.fail(error);
        }
        end.map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes part no more, because of `error`.
    #[cold]
    fn fail(&self, error: &Error) {
        self.lock().give_up(self.team.failed_member(error));
        self.team.break_off(error);
    }

    fn lock(&self) -> MutexGuard<'t, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
