//! How the members of a group come by their boards.

use std::sync::Arc;

use tagwire_base::Tag;
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_transport::board::{Lined, Shape, Slotted};
use tagwire_transport::{Board, BoardMemory, BoardWaker, OpenBoard};

use super::memories::Memories;
use super::state::Boards;
use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;
use crate::team::Team;
use crate::{allreduce as by_messages, broadcast as from_root};

/// Most bytes of a board's key.
const KEY: usize = 31;

/// A key, after its length.
type Told = [u8; 1 + KEY];

impl Boards {
    /// Returns the tags of the messages by which members meet, in the order of calls.
    pub(super) fn tags(team: &Team) -> [Tag; 2] {
        [team.tags.next(), team.tags.next()]
    }

    /// The first member makes the boards, and all join them, or none does.
    pub(super) async fn meet(team: &Team, [to_all, of_all]: [Tag; 2]) -> Result<Option<Self>> {
        let size = team.size();
        let mut told = [[0; 1 + KEY]; 2];
        let mut memory: [Option<BoardMemory>; 2] = [None, None];
        let bytes: [usize; 2] = [Board::<Slotted>::bytes(size), Board::<Lined>::bytes(size)];
        if team.me() == 0 {
            for ((memory, told), bytes) in memory.iter_mut().zip(&mut told).zip(bytes) {
                *memory = open(team, bytes).and_then(|open| tell(open, told));
            }
        }
        let all = told.as_flattened_mut();
        from_root::binomial(Call::new(team, to_all), all, 0).await?;
        if team.me() != 0 {
            for ((memory, told), bytes) in memory.iter_mut().zip(&told).zip(bytes) {
                *memory = join(team, told, bytes);
            }
        }
        // Should the rest fail here alone, they are dropped: others find that this member has left.
        let [blocking, lines] = memory;
        let blocking = blocking.and_then(|memory| end(team, memory));
        let lines = lines.and_then(|memory| end(team, memory));
        let memories = memories(team);
        let has_boards = blocking.is_some() && lines.is_some();
        let mut have_all = [has_boards, memories.is_some()].map(u8::from);
        let least = Reduction {
            operation: &Operation::Min,
            layout: &Layout::of(Basic::U8),
        };
        let call = Call::new(team, of_all);
        by_messages::recursive_doubling(call, least, &mut have_all).await?;
        let [have_boards, read_memory] = have_all.map(|it| it == 1);
        let both = blocking.zip(lines).filter(|_| have_boards);
        Ok(both.map(|(mut blocking, mut lines)| {
            blocking.forget_descriptor();
            lines.forget_descriptor();
            Self {
                blocking,
                lines,
                memories: memories.filter(|_| read_memory),
            }
        }))
    }
}

fn open(team: &Team, bytes: usize) -> Option<OpenBoard> {
    let with = team.members().rank(1)?;
    let messenger = team.messenger();
    let opened = messenger.with_boards(with, |boards, _| boards.open_board(bytes));
    opened.ok().flatten().flatten()
}

/// Writes the key of a board. Returns its memory.
fn tell(open: OpenBoard, told: &mut Told) -> Option<BoardMemory> {
    let len = open.key.len();
    let room = told[1..].get_mut(..len)?;
    room.copy_from_slice(&open.key);
    told[0] = len as u8;
    Some(open.memory)
}

fn join(team: &Team, told: &Told, bytes: usize) -> Option<BoardMemory> {
    let len = usize::from(told[0]).min(KEY);
    let key = Some(&told[1..=len]).filter(|key| !key.is_empty())?;
    let from = team.members().rank(0)?;
    let messenger = team.messenger();
    let joined = messenger.with_boards(from, |boards, from| boards.join_board(from, bytes, key));
    match joined {
        Ok(Some(Ok(memory))) => Some(memory),
        Ok(Some(Err(error))) => {
            tracing::debug!(%error, "no board: the group goes by messages");
            None
        }
        _ => None,
    }
}

/// Returns this member's end of a board.
fn end<S: Shape>(team: &Team, memory: BoardMemory) -> Option<Board<S>> {
    let others = (0..team.size()).filter(|member| *member != team.me());
    let wakers: Option<Vec<_>> = others.map(|member| waker(team, member)).collect();
    Board::new(memory, team.me(), wakers?)
}

/// Returns the memory of all other members. `None` where this one may not read that of one.
fn memories(team: &Team) -> Option<Memories> {
    let memory = |member| {
        let of = team.members().rank(member)?;
        let messenger = team.messenger();
        let lent = messenger.with_boards(of, |boards, of| boards.memory(of));
        lent.ok().flatten().flatten()
    };
    let all = (0..team.size()).map(|member| match member == team.me() {
        true => Some(None),
        false => memory(member).map(Some),
    });
    all.collect::<Option<_>>().map(Memories::new)
}

fn waker(team: &Team, member: usize) -> Option<Arc<dyn BoardWaker>> {
    let to = team.members().rank(member)?;
    let messenger = team.messenger();
    let lent = messenger.with_boards(to, |boards, to| boards.waker(to));
    lent.ok().flatten().flatten()
}
