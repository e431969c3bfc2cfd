//! How often operations are polled, and in which order.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use super::*;

/// A board without members: so many rounds can be shown before the first of them has ended.
#[derive(Debug, Default)]
struct Board {
    shown: AtomicU64,
    /// What the others have ended.
    ended: AtomicU64,
    polls: AtomicU64,
}

const AHEAD: u64 = 50;

#[derive(Debug)]
struct Operation {
    board: Arc<Board>,
    group: u16,
    round: Option<u64>,
    has_ended: AtomicBool,
}

impl Operation {
    fn start(board: &Arc<Board>, group: u16, round: Option<u64>) -> Arc<dyn Pending> {
        let (board, has_ended) = (Arc::clone(board), AtomicBool::new(false));
        Arc::new(Self {
            board,
            group,
            round,
            has_ended,
        })
    }
}

impl Pending for Operation {
    fn poll(&self) -> bool {
        let board = &self.board;
        board.polls.fetch_add(1, SeqCst);
        let Some(round) = self.round else {
            return false;
        };
        let (shown, ended) = (board.shown.load(SeqCst), board.ended.load(SeqCst));
        if shown + 1 == round && round <= ended + AHEAD {
            board.shown.store(round, SeqCst);
        }
        let ends = self.order() == Order::Shown && round <= ended;
        ends && !self.has_ended.swap(true, SeqCst)
    }

    fn is_complete(&self) -> bool {
        self.has_ended.load(SeqCst)
    }

    fn name(&self) -> &'static str {
        "Operation"
    }

    fn take(&self) -> Option<Result<()>> {
        self.is_complete().then_some(Ok(()))
    }

    fn is_taken(&self) -> bool {
        false
    }

    fn place(&self) -> (ContextId, Tag) {
        (ContextId::new(self.group), Tag::internal(0))
    }

    fn turn(&self) -> Option<u64> {
        self.round
    }

    fn order(&self) -> Order {
        let shown = self.board.shown.load(SeqCst);
        match self.round {
            None => Order::Any,
            Some(round) if round <= shown => Order::Shown,
            Some(_) => Order::Waits,
        }
    }

    fn messenger(&self) -> &Messenger {
        unreachable!("the list knows its messenger")
    }

    fn active(&self) -> &Active {
        unreachable!("it is in the list of the test")
    }
}

/// With so many at once, each is polled a few times, not once for each turn of the others.
#[test]
fn polls_grow_with_the_operations_and_not_with_their_square() {
    const COUNT: u64 = 3000;
    let (list, board) = (List::default(), Arc::new(Board::default()));
    for round in 1..=COUNT {
        list.enter(Operation::start(&board, 1, Some(round)));
    }
    let (mut turns, mut ended) = (0, 0);
    while ended < COUNT as usize {
        ended += list.drive();
        // The others are late, and then end what they were shown.
        list.drive();
        board.ended.store(board.shown.load(SeqCst), SeqCst);
        turns += 1;
    }
    assert!(turns <= COUNT / AHEAD + 2, "{turns} turns");
    let polls = board.polls.load(SeqCst);
    assert!(polls <= 4 * COUNT, "{polls} polls");
    assert_eq!(list.count.load(Relaxed), 0);
}

/// What one group waits for holds up neither another group nor what takes no turns.
#[test]
fn groups_do_not_wait_for_each_other() {
    let list = List::default();
    let boards = [Arc::default(), Arc::default(), Arc::default()];
    // The first group waits for its first round, which never comes.
    list.enter(Operation::start(&boards[0], 1, Some(2)));
    list.enter(Operation::start(&boards[0], 1, Some(3)));
    list.enter(Operation::start(&boards[1], 1, None));
    list.enter(Operation::start(&boards[2], 2, Some(1)));
    list.drive();
    let polls = boards.each_ref().map(|board| board.polls.load(SeqCst));
    assert_eq!(polls, [1, 1, 1], "the third was not looked at");
    boards[2].ended.store(1, SeqCst);
    assert_eq!(list.drive(), 1);

    // Its queue is free for another group.
    list.enter(Operation::start(&boards[2], 3, Some(2)));
    assert_eq!(list.lock().queues.len(), 3);
    let found = list.lock().queues[2].group;
    assert_eq!(found, Some(ContextId::new(3)));
}

/// Operations that threads enter the other way round stand in the order of their turns all the same.
#[test]
fn turns_are_in_order_however_they_come() {
    let (list, board) = (List::default(), Arc::new(Board::default()));
    let all = 1..=AHEAD + 1;
    let even = all.clone().filter(|round| round % 2 == 0);
    let odd = all.filter(|round| round % 2 == 1);
    for round in even.chain(odd) {
        list.enter(Operation::start(&board, 1, Some(round)));
    }
    assert_eq!(list.drive(), 0);
    assert_eq!(board.shown.load(SeqCst), AHEAD);
    board.ended.store(AHEAD, SeqCst);
    assert_eq!(list.drive(), AHEAD as usize);
    board.ended.store(AHEAD + 1, SeqCst);
    assert_eq!(list.drive(), 1);
}
