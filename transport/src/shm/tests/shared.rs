//! Memory of any length that the ranks of a host share.

use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::board::{Boards, SharedMemory};

const LEN: usize = 3 * 4096;

fn board() -> usize {
    SharedMemory::board_bytes(LEN).unwrap()
}

#[test]
fn ranks_see_the_same_words_and_bytes() {
    let (mut a, mut b, _, to_a) = pair(&ShmOptions::default());
    let opened = a.shm.open_board(board()).unwrap();
    let made = SharedMemory::new(opened.memory);
    made.reserve().unwrap();
    let joined = b.shm.join_board(to_a, board(), &opened.key).unwrap();
    let joined = SharedMemory::new(joined);
    assert_eq!((made.len(), joined.len()), (LEN, LEN));
    assert_ne!(made.start(), joined.start(), "a mapping of each");
    for at in [0, 8, 4096, LEN - 8] {
        assert_eq!(joined.word(at).load(Relaxed), 0, "new memory is zero");
        made.word(at).store(at as u64 + 1, Relaxed);
        assert_eq!(joined.word(at).fetch_add(1, Relaxed), at as u64 + 1);
        assert_eq!(made.word(at).load(Relaxed), at as u64 + 2);
    }
    // SAFETY: within the memory, which nobody else uses.
    unsafe { made.start().add(77).write(5) };
    // SAFETY: as above.
    assert_eq!(unsafe { joined.start().add(77).read() }, 5);
    drop(made);
    assert_eq!(
        joined.word(0).load(Relaxed),
        2,
        "it is there for who has it"
    );
    a.leave();
    b.leave();
}

#[test]
fn words_outside_are_refused() {
    let (mut a, b, _, _) = pair(&ShmOptions::default());
    let opened = a.shm.open_board(board()).unwrap();
    let memory = SharedMemory::new(opened.memory);
    for at in [LEN, LEN - 4, 4, usize::MAX - 7] {
        let word = std::panic::AssertUnwindSafe(|| memory.word(at).load(Relaxed));
        assert!(std::panic::catch_unwind(word).is_err(), "{at}");
    }
    a.leave();
    b.leave();
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let (mut a, mut b, _, to_a) = pair(&ShmOptions::default());
    for len in [usize::MAX, usize::MAX - 4096, isize::MAX as usize] {
        assert_eq!(SharedMemory::board_bytes(len), None);
    }
    assert!(a.shm.open_board(1 << 62).is_none());
    // So much there may be of addresses, and of memory nowhere.
    if let Some(opened) = a.shm.open_board(1 << 45) {
        let refused = SharedMemory::new(opened.memory).reserve().unwrap_err();
        assert!(refused.to_string().contains("available"), "{refused}");
    }
    let opened = a.shm.open_board(board()).unwrap();
    // Others know how long it is.
    let longer = SharedMemory::board_bytes(LEN + 4096).unwrap();
    assert!(b.shm.join_board(to_a, longer, &opened.key).is_err());
    let mut memory = SharedMemory::new(opened.memory);
    memory.forget_descriptor();
    assert!(
        memory.reserve().is_err(),
        "its maker has to, before others join"
    );
    assert!(b.shm.join_board(to_a, board(), &opened.key).is_err());
    a.leave();
    b.leave();
}
