//! Synchronization of windows (MPI-5.0, section 12.5).

use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::fence;

use crate::abi::{Group, Win};
use crate::call::windows::on_win;
use crate::error::{Class, Error, Result};
use crate::object::window::block::Word;
use crate::object::window::epochs::Locked;
use crate::object::window::{Data, Open, Window};
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
            window.flush_all()?;
            window.barrier()?;
        }
        let succeeds = assertion & NO_SUCCEED == 0;
        let mut epochs = window.epochs();
        epochs.fence(succeeds);
        // Until an access says that there are some.
        window.open_all(Open::None);
        Ok(())
    })
}

/// Returns the members of a window that a group names.
///
/// # Errors
/// `MPI_ERR_GROUP` where some are none.
fn members(process: &Process, window: &Window, group: Group) -> Result<Vec<usize>> {
    let ranks = process.group(group)?;
    let members = ranks.iter().map(|rank| window.team.members().member(*rank));
    let members: Option<Vec<usize>> = members.collect();
    members.ok_or_else(|| Error::new(Class::Group, "the group is no part of the window's"))
}

/// `MPI_Win_start`. It returns once all of the group have exposed their memory.
pub fn win_start(process: &Process, group: Group, assertion: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        check(assertion, NO_CHECK)?;
        let group = members(process, &window, group)?;
        window.epochs().start(group.clone())?;
        window.open_all(Open::None);
        let me = window.me();
        let own = &window.members()[me].block;
        let started = group.iter().try_for_each(|target| {
            let mut counts = window.counts.lock();
            counts.starts[*target] += 1;
            let wanted = counts.starts[*target];
            drop(counts);
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
            window.epochs().complete();
            for target in group {
                window.open_one(target, Open::None);
            }
        }
        started
    })
}

/// `MPI_Win_complete`.
pub fn win_complete(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        let group = window.epochs().started()?;
        let done = Word::Dones(window.me());
        // It is over whatever fails, so that the window can be freed.
        window.epochs().complete();
        each(group, |target| {
            window.open_one(target, Open::None);
            let flushed = window.flush(target);
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
        let group = members(process, &window, group)?;
        window.epochs().post(group.clone())?;
        let posted = Word::Posts(window.me());
        let exposed = each(group, |origin| {
            window.counts.lock().posts[origin] += 1;
            let block = &window.members()[origin].block;
            block.add(window.messenger(), posted, 1)?;
            window.wake(origin)
        });
        close_unless(&window, exposed)
    })
}

/// Returns whether all to whom this process has exposed its memory have completed their accesses.
fn is_complete(window: &Window) -> Result<bool> {
    let own = &window.members()[window.me()].block;
    let epochs = window.epochs();
    let group = epochs.posted()?;
    let counts = window.counts.lock();
    for origin in group {
        let done = own.get(window.messenger(), Word::Dones(*origin))?;
        if done < counts.posts[*origin] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `MPI_Win_wait`.
pub fn win_wait(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        window.count_call()?;
        window.epochs().posted()?;
        let waited = window.wait(window.me(), "the accesses of others", || {
            is_complete(&window)
        });
        // It is over whatever fails, so that the window can be freed.
        window.epochs().close();
        waited
    })
}

/// `MPI_Win_test`.
pub fn win_test(process: &Process, win: Win, flag: Ref<i32>) -> Result {
    on_win(process, win, |window| {
        let mut is_over = is_complete(&window)?;
        if !is_over {
            window.messenger().progress()?;
            is_over = is_complete(&window)?;
        }
        match is_over {
            true => window.epochs().close(),
            false => close_unless(&window, window.check_members())?,
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
        window.epochs().check_lock(target)?;
        window.lock(target, how)?;
        window.epochs().lock(target, how);
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
        let how = window.epochs().locked(target)?;
        window.count_call()?;
        let flushed = window.flush(target);
        window.open_one(target, Open::None);
        // Whatever fails, so that the window can be freed.
        window.epochs().unlock(target);
        let unlocked = window.unlock(target, how);
        flushed.and(unlocked)
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
        window.count_call()?;
        let flushed = window.flush_all();
        window.open_all(Open::None);
        // Whatever fails, so that the window can be freed.
        window.epochs().unlock_all();
        let members = 0..window.members().len();
        let unlocked = each(members, |target| window.unlock(target, how));
        flushed.and(unlocked)
    })
}

/// Completes accesses to mapped memory, which are over: the fast path of the thread that initialized MPI. `None`, with nothing done,
/// where anything stands in its way, errors too.
#[inline(always)]
fn try_flush(process: &Process, rank: i32, win: Win) -> Option<()> {
    let mut look = process.windows.look()?;
    let window = look.get(win.0)?;
    let target = rank as u32 as usize;
    let member = window.members().get(target)?;
    let is_over = matches!(member.data, Data::Mapped(_)) && window.is_locked(target);
    if !is_over || !window.count_unless_due() {
        return None;
    }
    fence(SeqCst);
    Some(())
}

/// `MPI_Win_flush`.
#[inline(always)]
pub fn win_flush(process: &Process, rank: i32, win: Win) -> Result {
    match try_flush(process, rank, win) {
        Some(()) => Ok(()),
        None => flush_at_length(process, rank, win),
    }
}

#[inline(never)]
fn flush_at_length(process: &Process, rank: i32, win: Win) -> Result {
    on_win(process, win, |window| {
        let Some(target) = window.member(rank)? else {
            return Ok(());
        };
        window.epochs().passive(target)?;
        window.count_call()?;
        window.flush(target)
    })
}

/// `MPI_Win_flush_all`.
pub fn win_flush_all(process: &Process, win: Win) -> Result {
    on_win(process, win, |window| {
        window.epochs().all_passive()?;
        window.count_call()?;
        window.flush_all()
    })
}

/// `MPI_Win_flush_local`. What is complete here is complete at the target.
#[inline(always)]
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
        window.count_call()
    })
}
