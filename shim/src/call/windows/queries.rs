//! What is asked of windows, and what programs add to them.

use crate::abi::{Errhandler, Group, Info, MAX_OBJECT_NAME, Win};
use crate::call::windows::on_win;
use crate::error::{Error, On, Result};
use crate::object::errhandler::Raiser;
use crate::object::group::Ranks;
use crate::object::window::hints;
use crate::process::Process;
use crate::raw::{Ref, Text, TextOut};

/// `MPI_Win_get_group`.
pub fn win_get_group(process: &Process, win: Win, group: Ref<Group>) -> Result {
    group.set(Group::NULL);
    on_win(process, win, |window| {
        let ranks = window.members().iter().map(|member| member.rank);
        let ranks = Ranks::new(ranks.collect(), window.session());
        group.set(process.enter_group(ranks)?);
        Ok(())
    })
}

/// `MPI_Win_set_info`.
pub fn win_set_info(process: &Process, win: Win, info: Info) -> Result {
    on_win(process, win, |window| {
        let infos = &process.early.infos;
        infos.read(info, |given| hints::set(&mut window.hints(), given))
    })
}

/// `MPI_Win_get_info`.
pub fn win_get_info(process: &Process, win: Win, info: Ref<Info>) -> Result {
    info.set(Info::NULL);
    on_win(process, win, |window| {
        let hints = window.hints().clone();
        info.set(process.early.infos.enter(hints)?);
        Ok(())
    })
}

/// `MPI_Win_set_name`.
pub fn win_set_name(process: &Process, win: Win, name: Text) -> Result {
    on_win(process, win, |window| {
        let mut name = name.get()?;
        while name.len() >= MAX_OBJECT_NAME {
            name.pop();
        }
        *window.name() = name;
        Ok(())
    })
}

/// `MPI_Win_get_name`.
pub fn win_get_name(process: &Process, win: Win, name: TextOut, length: Ref<i32>) -> Result {
    if win == Win::NULL {
        length.set(name.set("MPI_WIN_NULL", MAX_OBJECT_NAME));
        return Ok(());
    }
    on_win(process, win, |window| {
        length.set(name.set(&window.name(), MAX_OBJECT_NAME));
        Ok(())
    })
}

/// `MPI_Win_set_errhandler`.
pub fn win_set_errhandler(process: &Process, win: Win, handler: Errhandler) -> Result {
    on_win(process, win, |window| {
        window.set_errhandler(process.early.handlers.get_for(handler, Raiser::Win)?);
        Ok(())
    })
}

/// `MPI_Win_get_errhandler`. The program frees what it gets.
pub fn win_get_errhandler(process: &Process, win: Win, handler: Ref<Errhandler>) -> Result {
    on_win(process, win, |window| {
        handler.set(process.early.handlers.show(&window.errhandler())?);
        Ok(())
    })
}

/// `MPI_Win_call_errhandler`.
pub fn win_call_errhandler(process: &Process, win: Win, code: i32) -> Result {
    on_win(process, win, |_| Ok(()))?;
    let text = process.text_of(code);
    let text = text.unwrap_or_else(|| format!("the error code {code}"));
    let error = Error::of_code(code, text).on(On::Win(win));
    process.raise(&error, "MPI_Win_call_errhandler");
    Ok(())
}
