//! Synchronization of windows (MPI-5.0, section 12.5).

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use crate::abi::{Group, Win};
use crate::call::windows::on_win;
use crate::error::{Class, Error, Result};
use crate::object::window::block::Word;
use crate::object::window::elsewhere::Epoch;
use crate::object::window::epochs::Locked;
use crate::object::window::waits::count_passing;
use crate::object::window::{Open, Window, meeting};
use crate::process::Process;
use crate::raw::Ref;

/// Assertions (MPI-5.0, section 12.5.5).
const NO_CHECK: i32 = 1024;
const NO_PRECEDE: i32 = 2048;
const NO_PUT: i32 = 4096;
const NO_STORE: i32 = 8192;
const NO_SUCCEED: i32 = 16384;

/// Kinds of locks.
const EXCLUSIVE: i32 = 301;
const SHARED: i32 = 302;

/// Checks that a call may be given an assertion.
///
/// # Errors
/// `MPI_ERR_ASSERT` where it may not.
fn check(assertion: i32, allowed: i32) -> Result {
    match assertion & !allowed {
        0 => Ok(()),
        other => Err(Error::new(
            Class::Assert,
            format!("the assertion {other} is none of this call"),
        )),
    }
}

/// Does something with all of some members, those behind one too where it fails.
///
/// # Errors
/// The first.
fn each(members: impl IntoIterator<Item = usize>, action: impl FnMut(usize) -> Result) -> Result {
    let done = members.into_iter().map(action);
    done.fold(Ok(()), Result::and)
}

/// Ends the exposure of a window where a call on it has failed, so that the window can be freed. Returns how it ended.
fn close_unless(window: &Window, ended: Result) -> Result {
    if ended.is_err() {
        window.epochs().close();
    }
    ended
}

/// `MPI_Win_fence`.
pub fn win_fence(process: &Process, assertion: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        check(assertion, NO_STORE | NO_PUT | NO_PRECEDE | NO_SUCCEED)?;
        window.epochs().check_fence()?;
        let is_empty = NO_PRECEDE | NO_SUCCEED;
        if assertion & is_empty != is_empty {
            window.count_call()?;
            window.flush_all(Epoch::Active)?;
            meeting::meet(window)?;
        }
        let succeeds = assertion & NO_SUCCEED == 0;
        window.epochs().fence(succeeds);
        window.open_all(match succeeds {
            true => Open::Access,
            false => Open::None,
        });
        Ok(())
    })
}

/// Returns the members of a window that a group names.
///
/// # Errors
/// `MPI_ERR_GROUP` where some are none.
fn members(process: &Process, window: &Window, group: Group) -> Result<Arc<[usize]>> {
    let ranks = process.group(group)?;
    let mut last = window.last_group();
    // Programs name the same group each time.
    if let Some((known, members)) = &*last
        && Arc::ptr_eq(known, &ranks)
    {
        return Ok(Arc::clone(members));
    }
    let all = window.team.members();
    let none = usize::MAX;
    let members = ranks.iter().map(|rank| all.member(*rank).unwrap_or(none));
    let members: Arc<[usize]> = members.collect();
    match members.contains(&none) {
        true => {
            let text = "the group is no part of the window's";
            Err(Error::new(Class::Group, text))
        }
        false => {
            *last = Some((ranks, Arc::clone(&members)));
            Ok(members)
        }
    }
}

/// `MPI_Win_start`. It returns once all of the group have exposed their memory.
pub fn win_start(process: &Process, group: Group, assertion: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        check(assertion, NO_CHECK)?;
        let group = members(process, window, group)?;
        window.epochs().start(Arc::clone(&group))?;
        window.open_all(Open::None);
        let me = window.me();
        let own = &window.members()[me].block;
        let started = group.iter().try_for_each(|target| {
            let wanted = window.members()[*target].starts.next();
            if assertion & NO_CHECK == 0 {
                window.wait(me, "an exposure", || {
                    Ok(own.get(window.messenger(), Word::Posts(*target))? >= wanted)
                })?;
            }
            window.open_one(*target, Open::Access);
            Ok(())
        });
        if started.is_err() {
            // So that the window can be freed.
            window.epochs().complete()?;
            for target in &*group {
                window.open_one(*target, Open::None);
            }
        }
        started
    })
}

/// `MPI_Win_complete`.
pub fn win_complete(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        // It is over whatever fails, so that the window can be freed.
        let group = window.epochs().complete()?;
        let done = Word::Dones(window.me());
        each(group.iter().copied(), |target| {
            window.open_one(target, Open::None);
            // The word that is added to orders what was written here before.
            let flushed = window.flush_started(target, Epoch::Active);
            let block = &window.members()[target].block;
            block.add(window.messenger(), done, 1)?;
            window.wake(target)?;
            flushed
        })
    })
}

/// `MPI_Win_post`. It does not wait.
pub fn win_post(process: &Process, group: Group, assertion: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        check(assertion, NO_CHECK | NO_STORE | NO_PUT)?;
        let group = members(process, window, group)?;
        window.epochs().post(Arc::clone(&group))?;
        let posted = Word::Posts(window.me());
        let exposed = each(group.iter().copied(), |origin| {
            window.members()[origin].posts.next();
            let block = &window.members()[origin].block;
            block.add(window.messenger(), posted, 1)?;
            window.wake(origin)
        });
        close_unless(window, exposed)
    })
}

/// Returns whether all of a group, to which this process has exposed its memory, have completed their accesses.
fn is_complete(window: &Window, group: &[usize]) -> Result<bool> {
    let own = &window.members()[window.me()].block;
    for origin in group {
        let done = own.get(window.messenger(), Word::Dones(*origin))?;
        if done < window.members()[*origin].posts.get() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `MPI_Win_wait`.
pub fn win_wait(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        window.count_call()?;
        let group = window.epochs().posted()?;
        let waited = window.wait(window.me(), "the accesses of others", || {
            is_complete(window, &group)
        });
        // It is over whatever fails, so that the window can be freed.
        window.epochs().close();
        waited
    })
}

/// `MPI_Win_test`.
pub fn win_test(process: &Process, win: Win, flag: Ref<i32>) -> Result {
    on_win(process, win, |window| {
        let group = window.epochs().posted()?;
        let mut is_over = is_complete(window, &group)?;
        if !is_over {
            window.messenger().progress()?;
            is_over = is_complete(window, &group)?;
        }
        match is_over {
            true => window.epochs().close(),
            false => close_unless(window, window.check_members())?,
        }
        flag.set(i32::from(is_over));
        Ok(())
    })
}

/// `MPI_Win_lock`. It returns once the lock is held.
pub fn win_lock(process: &Process, kind: i32, rank: i32, assertion: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        let how = match kind {
            EXCLUSIVE | SHARED if assertion & NO_CHECK != 0 => Locked::Unchecked,
            EXCLUSIVE => Locked::Exclusive,
            SHARED => Locked::Shared,
            _ => {
                let text = format!("{kind} is no kind of lock");
                return Err(Error::new(Class::Locktype, text));
            }
        };
        check(assertion, NO_CHECK)?;
        let Some(target) = window.member(rank)? else {
            return Ok(());
        };
        window.epochs().lock(target, how)?;
        if let Err(error) = window.lock(target, how) {
            window.epochs().unlock(target)?;
            return Err(error);
        }
        window.open_all(Open::None);
        window.open_one(target, Open::Passive);
        Ok(())
    })
}

/// `MPI_Win_unlock`.
pub fn win_unlock(process: &Process, rank: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        let Some(target) = window.member(rank)? else {
            return Ok(());
        };
        // Whatever fails from here on, so that the window can be freed.
        let how = window.epochs().unlock(target)?;
        window.open_one(target, Open::None);
        let counted = count_passing(window);
        let flushed = match how {
            Locked::Unchecked => window.flush(target),
            // The word that is changed orders what was written here before.
            _ => window.flush_started(target, Epoch::Passive),
        };
        let unlocked = window.unlock(target, how);
        counted.and(flushed).and(unlocked)
    })
}

/// `MPI_Win_lock_all`.
pub fn win_lock_all(process: &Process, assertion: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        check(assertion, NO_CHECK)?;
        window.epochs().check_lock_all()?;
        let how = match assertion & NO_CHECK {
            0 => Locked::Shared,
            _ => Locked::Unchecked,
        };
        for target in 0..window.members().len() {
            let locked = window.lock(target, how);
            if locked.is_err() {
                // The error that is returned is why.
                let _ = each(0..target, |before| window.unlock(before, how));
                return locked;
            }
        }
        window.epochs().lock_all(how);
        window.open_all(Open::Passive);
        Ok(())
    })
}

/// `MPI_Win_unlock_all`.
pub fn win_unlock_all(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        let how = window.epochs().locked_all()?;
        let counted = count_passing(window);
        let flushed = window.flush_all(Epoch::Passive);
        window.open_all(Open::None);
        // Whatever fails, so that the window can be freed.
        window.epochs().unlock_all();
        let members = 0..window.members().len();
        let unlocked = each(members, |target| window.unlock(target, how));
        counted.and(flushed).and(unlocked)
    })
}

/// The short form of `MPI_Win_flush`, of accesses to mapped memory, which are over: that of the thread that initialized MPI. `None`,
/// with nothing done, where anything stands in its way, errors too.
#[inline(always)]
pub fn try_win_flush(process: &Process, rank: i32, win: Win) -> Option<()> {
    process.shortcuts.find(win, |window| {
        let member = window.members().get(rank as u32 as usize)?;
        if !member.is_locked_here() {
            return None;
        }
        window.count_unless_due()?;
        fence(SeqCst);
        Some(())
    })
}

/// `MPI_Win_flush`, where its short form does nothing.
pub fn win_flush(process: &Process, rank: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        let Some(target) = window.member(rank)? else {
            return Ok(());
        };
        window.epochs().passive(target)?;
        count_passing(window)?;
        window.flush(target)
    })
}

/// `MPI_Win_flush_all`.
pub fn win_flush_all(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        window.epochs().all_passive()?;
        count_passing(window)?;
        window.flush_all(Epoch::Passive)
    })
}

/// The short form of `MPI_Win_flush_local`.
#[inline(always)]
pub fn try_win_flush_local(process: &Process, rank: i32, win: Win) -> Option<()> {
    try_win_flush(process, rank, win)
}

/// `MPI_Win_flush_local`. What is complete here is complete at the target.
pub fn win_flush_local(process: &Process, rank: i32, win: Win) -> Result {
    win_flush(process, rank, win)
}

/// `MPI_Win_flush_local_all`.
pub fn win_flush_local_all(process: &Process, win: Win) -> Result {
    win_flush_all(process, win)
}

/// `MPI_Win_sync`. The memory model is `MPI_WIN_UNIFIED`: it orders loads and stores.
pub fn win_sync(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        fence(SeqCst);
        count_passing(window)
    })
}
