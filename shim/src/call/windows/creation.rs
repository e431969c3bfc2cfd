//! Making windows, and their memory (MPI-5.0, section 12.2).

use crate::abi::{Comm, Info, PROC_NULL, Win};
use crate::call::allocations::{MINIMUM_ALIGNMENT, alignment};
use crate::call::on_comm;
use crate::call::windows::{on_kept_win, on_win};
use crate::error::{Class, Error, Result};
use crate::object::info::Entries;
use crate::object::window::elsewhere::Epoch;
use crate::object::window::make::{PAGE, Wanted, make};
use crate::object::window::{Data, Flavor, Window, delegated, hints, served};
use crate::process::Process;
use crate::raw::{CountOut, In, Out, Pointer, Ref};

/// Returns what a call wants of a window: of so many bytes, and units of so many.
///
/// # Errors
/// `MPI_ERR_SIZE`, `MPI_ERR_DISP`, `MPI_ERR_INFO`.
fn wanted(
    process: &Process,
    flavor: Flavor,
    (size, unit): (i64, i64),
    info: Info,
) -> Result<(Wanted, Entries)> {
    let bytes = usize::try_from(size);
    let bytes = bytes.map_err(|_| Error::new(Class::Size, format!("the size is {size}")))?;
    if unit <= 0 {
        let text = format!("the displacement unit is {unit}");
        return Err(Error::new(Class::Disp, text));
    }
    let mut entries = hints::initial();
    if info != Info::NULL {
        process
            .early
            .infos
            .read(info, |given| hints::begin(&mut entries, given))?;
    }
    let alignment = alignment(process, info)?;
    let has_gaps = entries.get(hints::NONCONTIGUOUS) == Some("true");
    let is_aligned = match flavor {
        Flavor::Allocate => true,
        Flavor::Shared => has_gaps,
        Flavor::Create | Flavor::Dynamic => false,
    };
    if is_aligned && alignment > 1 {
        // What is certain, of more too: memory is not aligned to more than a page.
        let value = alignment.min(PAGE).to_string();
        entries.set(MINIMUM_ALIGNMENT, &value)?;
    }
    let wanted = Wanted {
        flavor,
        bytes,
        unit,
        base: None,
        has_gaps,
        alignment,
    };
    Ok((wanted, entries))
}

/// Makes a window with all other members of a communicator.
fn enter(
    process: &Process,
    comm: Comm,
    wanted: Result<(Wanted, Entries)>,
) -> Result<std::sync::Arc<Window>> {
    on_comm(process, comm, |comm| {
        let (wanted, entries) = match wanted {
            Ok((wanted, entries)) => (Ok(wanted), entries),
            Err(error) => (Err(error), Entries::default()),
        };
        let made = make(process, &comm, wanted)?;
        let handle = process.windows.insert_with(made)?;
        let window = process.windows.find(handle)?;
        process.shortcuts.enter(&window);
        served::start(&window);
        delegated::start(&window)?;
        *window.hints() = entries;
        Ok(window)
    })
}

/// `MPI_Win_create`.
pub fn win_create(
    process: &Process,
    base: Out,
    size: i64,
    unit: i64,
    info: Info,
    comm: Comm,
    win: Ref<Win>,
) -> Result {
    win.set(Win::NULL);
    let wanted = wanted(process, Flavor::Create, (size, unit), info);
    let wanted = wanted.and_then(|(wanted, entries)| {
        if wanted.bytes > 0 && base.is_constant() {
            let text = "there is no memory at the address";
            return Err(Error::new(Class::Base, text));
        }
        let base = Some(base);
        Ok((Wanted { base, ..wanted }, entries))
    });
    win.set(enter(process, comm, wanted)?.handle());
    Ok(())
}

/// `MPI_Win_allocate`.
pub fn win_allocate(
    process: &Process,
    size: i64,
    unit: i64,
    info: Info,
    comm: Comm,
    base: Ref<Pointer>,
    win: Ref<Win>,
) -> Result {
    allocate(
        process,
        Flavor::Allocate,
        (size, unit),
        info,
        comm,
        base,
        win,
    )
}

/// `MPI_Win_allocate_shared`.
pub fn win_allocate_shared(
    process: &Process,
    size: i64,
    unit: i64,
    info: Info,
    comm: Comm,
    base: Ref<Pointer>,
    win: Ref<Win>,
) -> Result {
    allocate(process, Flavor::Shared, (size, unit), info, comm, base, win)
}

fn allocate(
    process: &Process,
    flavor: Flavor,
    sizes: (i64, i64),
    info: Info,
    comm: Comm,
    base: Ref<Pointer>,
    win: Ref<Win>,
) -> Result {
    win.set(Win::NULL);
    let wanted = wanted(process, flavor, sizes, info);
    let window = enter(process, comm, wanted)?;
    base.set(window.base());
    win.set(window.handle());
    Ok(())
}

/// `MPI_Win_create_dynamic`.
pub fn win_create_dynamic(process: &Process, info: Info, comm: Comm, win: Ref<Win>) -> Result {
    win.set(Win::NULL);
    let wanted = wanted(process, Flavor::Dynamic, (0, 1), info);
    win.set(enter(process, comm, wanted)?.handle());
    Ok(())
}

/// Refuses windows that memory is not attached to.
fn check_dynamic(window: &Window) -> Result {
    match window.flavor() {
        Flavor::Dynamic => Ok(()),
        _ => {
            let text = "the window was not made by MPI_Win_create_dynamic";
            Err(Error::new(Class::RmaFlavor, text))
        }
    }
}

/// `MPI_Win_attach`.
pub fn win_attach(process: &Process, win: Win, base: Out, size: i64) -> Result {
    on_win(process, win, |window| {
        check_dynamic(window)?;
        let bytes = usize::try_from(size);
        let bytes = bytes.map_err(|_| Error::new(Class::Size, format!("the size is {size}")))?;
        if bytes > 0 && base.is_constant() {
            let text = "there is no memory at the address";
            return Err(Error::new(Class::Base, text));
        }
        window.attach(base, bytes)
    })
}

/// `MPI_Win_detach`.
pub fn win_detach(process: &Process, win: Win, base: In) -> Result {
    on_win(process, win, |window| {
        check_dynamic(window)?;
        window.detach(base.address().addr() as u64)
    })
}

/// `MPI_Win_free`. It returns once all members have called it: then nobody accesses the memory of this process.
pub fn win_free(process: &Process, win: Ref<Win>) -> Result {
    let handle = win.get()?;
    on_kept_win(process, handle, |window| {
        window.epochs().check_free()?;
        window.attributes().delete_all(handle.0)?;
        // What has failed has ended too; after a failure of a member nobody is waited for.
        let flushed = window.flush_all(Epoch::Active);
        let met = window.barrier();
        if let Some(memory) = window.withdraw()? {
            process.memory.free(memory)?;
        }
        process.windows.remove(handle.0);
        process.shortcuts.remove(handle);
        win.set(Win::NULL);
        let freed = flushed.and(met);
        if freed.is_err() {
            process.memory.keep(window.base().0.addr());
            process.freed.enter_window(handle, window.errhandler());
        }
        freed
    })
}

/// `MPI_Win_shared_query`. Of memory that is not shared the size is 0.
pub fn win_shared_query(
    process: &Process,
    win: Win,
    rank: i32,
    size: Ref<i64>,
    unit: CountOut,
    base: Ref<Pointer>,
) -> Result {
    on_win(process, win, |window| {
        if window.flavor() == Flavor::Dynamic {
            let text = "the window was made by MPI_Win_create_dynamic";
            return Err(Error::new(Class::RmaFlavor, text));
        }
        let is_shared = matches!(window.flavor(), Flavor::Allocate | Flavor::Shared);
        let found = match rank {
            // The first that has memory.
            PROC_NULL => {
                let has_memory =
                    |member: &usize| matches!(window.members()[*member].data, Data::Mapped(_));
                (0..window.members().len()).find(has_memory)
            }
            _ => window.member(rank)?,
        };
        let found = found.filter(|_| is_shared);
        let member = found.map(|member| &window.members()[member]);
        let (bytes, units, start) = match member {
            Some(member) => match &member.data {
                Data::Mapped(start) => (
                    member.size as i64,
                    member.unit,
                    Pointer(start.read().address().cast_mut()),
                ),
                _ => (0, member.unit, Pointer(std::ptr::null_mut())),
            },
            None => (0, 1, Pointer(std::ptr::null_mut())),
        };
        unit.set(units)?;
        size.set(bytes);
        base.set(start);
        Ok(())
    })
}
