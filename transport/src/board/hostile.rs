//! A member that keeps to nothing: whatever lies on a board, the others read bytes within their places, or nothing, and never stop.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use memmap2::MmapOptions;
use rustix::fs::{MemfdFlags, memfd_create};

use super::memory::PAGE;
use super::ring::OWN;
use super::*;
use crate::fault::SplitMix64;

/// Nobody sleeps.
struct Nobody;

impl BoardWaker for Nobody {
    fn wake(&self) {}
}

/// Returns member 0 of a board of so many members, and the file that the board is.
fn board<S: Shape>(members: usize) -> (Board<S>, File) {
    let file = File::from(memfd_create("test-board", MemfdFlags::CLOEXEC).unwrap());
    let len = Board::<S>::bytes(members);
    file.set_len(len as u64).unwrap();
    let map = MmapOptions::new().len(len).map_raw(&file).unwrap();
    let memory = BoardMemory::new(map, Some(file.try_clone().unwrap())).unwrap();
    let wakers = (1..members).map(|_| Arc::new(Nobody) as Arc<dyn BoardWaker>);
    (Board::new(memory, 0, wakers.collect()).unwrap(), file)
}

/// Writes a word somewhere among those by which members know what is shown.
fn scribble<S: Shape>(file: &File, members: usize, numbers: &mut SplitMix64, round: u64) {
    let stride = Board::<S>::bytes(2) - Board::<S>::bytes(1);
    let words = stride.min(16 << 10) as u64 / 8;
    let start = match numbers.below(members as u64 + 1) {
        0 => 0,
        member => PAGE + (member as usize - 1) * stride,
    };
    let near = (round + numbers.below(5)).saturating_sub(2);
    let words_of_a_round = [near << 1, near << 1 | 1, near, 0, u64::MAX, u64::MAX - 1];
    let value = match numbers.below(8) {
        choice @ 0..=5 => words_of_a_round[choice as usize],
        _ => numbers.next_u64(),
    };
    let at = start as u64 + 8 * numbers.below(words);
    file.write_all_at(&value.to_ne_bytes(), at).unwrap();
}

fn play<S: Shape>(members: usize, seed: u64) {
    let (mut board, file) = board::<S>(members);
    let mut numbers = SplitMix64::new(seed);
    let data = vec![7; SLOT];
    let mut round = 0;
    for _ in 0..20_000 {
        scribble::<S>(&file, members, &mut numbers, round);
        let member = numbers.below(members as u64 + 1) as usize;
        let near = (round + numbers.below(4)).saturating_sub(2);
        let len = [
            0,
            1,
            LINE,
            LINE + 1,
            OWN + 1,
            RESULTS_AT,
            RESULTS_AT + 1,
            SLOT,
            SLOT + 1,
        ][numbers.below(9) as usize];
        let range = numbers.below(len as u64 + 1) as usize..len;
        let wanted = range.len();
        let looked = |read: Option<usize>| assert!(read.is_none_or(|read| read == wanted));
        match numbers.below(12) {
            0 => round = board.begin(1),
            1 => {
                let shown = &data[..len.min(SLOT)];
                board.show(near, numbers.next_u64(), &[shown]);
            }
            2 => board.finish(near),
            3 => looked(board.read(member, near, len, range, <[u8]>::len)),
            4 => {
                board.show_result(near, &data[..len.min(SLOT)]);
            }
            5 => {
                let read = board.read_result(member, near, len, <[u8]>::len);
                assert!(read.is_none_or(|read| read == len));
            }
            6 => assert!(board.broken().is_none_or(|member| member < members)),
            7 => {
                let _ = board.head(member, near);
            }
            8 => {
                let _ = board.all_shown(near);
            }
            9 => {
                let _ = board.has_room(near, len);
            }
            10 => {
                let _ = board.give_back();
            }
            _ => {
                let _ = (board.has_left(member), board.has_leavers());
                let _ = board.is_shown(member, near);
            }
        }
    }
}

#[test]
fn nonsense_on_a_board_is_read_or_refused() {
    for seed in 0..10 {
        for members in [2, 3] {
            play::<Slotted>(members, seed);
            play::<Lined>(members, seed);
        }
    }
}
