//! Objects by handle.
//!
//! A handle has 31 bits, so that programs which keep it in an `int` run:
//!
//! ```text
//!     30        29 .. 26   25 .. 20     19 .. 0
//!      0          kind    generation     slot
//! ```
//!
//! One that was freed, or is of another kind, finds nothing.

use std::fmt;
use std::sync::Arc;

use tagwire_base::slab::{Handle, Slab};
use tagwire_pml::{Biased, Entered, Guarded, ThreadLevel};

use crate::abi::{Comm, Datatype, Errhandler, File, Group, Info, Message, Op, Session, Win};
use crate::error::{Class, Error, Result};

const SLOT_BITS: u32 = 20;
const GENERATION_BITS: u32 = 6;
const SLOTS: usize = 1 << SLOT_BITS;
const GENERATIONS: usize = 1 << GENERATION_BITS;

/// What a handle is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Comm = 1,
    Group = 2,
    Datatype = 3,
    Op = 4,
    Win = 5,
    File = 6,
    Message = 7,
    Info = 10,
    Errhandler = 11,
    /// Of attributes.
    Key = 12,
    Session = 13,
}

impl Kind {
    /// Returns what an object is called, the null handle with its name, and the class of errors of handles that find none.
    const fn words(self) -> (&'static str, usize, &'static str, Class) {
        match self {
            Self::Comm => ("communicator", Comm::NULL.0, "MPI_COMM_NULL", Class::Comm),
            Self::Group => ("group", Group::NULL.0, "MPI_GROUP_NULL", Class::Group),
            Self::Datatype => (
                "datatype",
                Datatype::NULL.0,
                "MPI_DATATYPE_NULL",
                Class::Type,
            ),
            Self::Op => ("operation", Op::NULL.0, "MPI_OP_NULL", Class::Op),
            Self::Win => ("window", Win::NULL.0, "MPI_WIN_NULL", Class::Win),
            Self::File => ("file", File::NULL.0, "MPI_FILE_NULL", Class::File),
            Self::Message => (
                "message",
                Message::NULL.0,
                "MPI_MESSAGE_NULL",
                Class::Request,
            ),
            Self::Info => ("info", Info::NULL.0, "MPI_INFO_NULL", Class::Info),
            Self::Errhandler => (
                "error handler",
                Errhandler::NULL.0,
                "MPI_ERRHANDLER_NULL",
                Class::Errhandler,
            ),
            Self::Key => ("attribute key", 0, "MPI_KEYVAL_INVALID", Class::Keyval),
            Self::Session => (
                "session",
                Session::NULL.0,
                "MPI_SESSION_NULL",
                Class::Session,
            ),
        }
    }

    /// Returns the error of a handle that finds no object.
    #[cold]
    pub(crate) fn invalid(self, handle: usize) -> Error {
        let (name, null, null_name, class) = self.words();
        let text = match handle == null {
            true => format!("the {name} is {null_name}"),
            false => format!("{handle:#x} is no {name}"),
        };
        Error::new(class, text)
    }

    /// Returns what the handle of an object in this slot has above the slot.
    #[inline(always)]
    const fn name(self, slot: Handle) -> usize {
        (self as usize) << GENERATION_BITS | slot.generation() as usize & (GENERATIONS - 1)
    }

    #[cold]
    fn too_many(self) -> Error {
        Error::new(Class::Other, format!("too many {}s", self.words().0))
    }
}

/// The objects of one kind.
pub(crate) struct Table<T> {
    kind: Kind,
    slots: Guarded<Slots<T>>,
}

impl<T> fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({:?})", self.kind)
    }
}

/// The objects of a table, until dropped: for a moment, in which nothing else is called that looks at the table.
pub(crate) struct Look<'t, T> {
    kind: Kind,
    slots: Biased<'t, Slots<T>>,
}

impl<T> Look<'_, T> {
    /// Returns an object.
    #[inline(always)]
    pub(crate) fn get(&mut self, handle: usize) -> Option<&Arc<T>> {
        self.slots.value().get(self.kind, handle)
    }
}

struct Slots<T>(Slab<Arc<T>>);

impl<T> Table<T> {
    pub(crate) fn new(kind: Kind) -> Self {
        let slots = Slots(Slab::default());
        Self {
            kind,
            slots: Guarded::new(ThreadLevel::Multiple, slots),
        }
    }

    /// Returns the objects to the thread that made the table. `None` for others, and where another has come.
    #[inline(always)]
    pub(crate) fn look(&self) -> Option<Look<'_, T>> {
        let (kind, slots) = (self.kind, self.slots.enter_by_bias()?);
        Some(Look { kind, slots })
    }

    fn slots(&self) -> Option<Entered<'_, Slots<T>>> {
        self.slots.enter().ok()
    }

    /// Takes an object in, which `make` makes for its handle.
    ///
    /// # Errors
    /// `MPI_ERR_OTHER` where there are too many.
    pub(crate) fn insert_with(&self, make: impl FnOnce(usize) -> T) -> Result<usize> {
        let slots = self.slots();
        let slots = slots.filter(|slots| (slots.0.next_slot() as usize) < SLOTS);
        let mut slots = slots.ok_or_else(|| self.kind.too_many())?;
        let mut number = 0;
        slots.0.insert_with(|handle| {
            number = self.kind.name(handle) << SLOT_BITS | handle.slot() as usize;
            Arc::new(make(number))
        });
        Ok(number)
    }

    /// Returns an object.
    pub(crate) fn get(&self, handle: usize) -> Option<Arc<T>> {
        self.slots()?.get(self.kind, handle).cloned()
    }

    /// The same for a call that needs one.
    ///
    /// # Errors
    /// One of the object's class where there is none.
    pub(crate) fn find(&self, handle: usize) -> Result<Arc<T>> {
        self.get(handle).ok_or_else(|| self.kind.invalid(handle))
    }

    /// Puts another object in the place of one.
    pub(crate) fn replace(&self, handle: usize, with: impl FnOnce(&T) -> T) {
        let Some(old) = self.get(handle) else {
            return;
        };
        let new = Arc::new(with(&old));
        if let Some(mut slots) = self.slots()
            && let Some(own) = slots.find(self.kind, handle)
            && let Some(place) = slots.0.get_mut(own)
        {
            *place = new;
        }
    }

    /// Takes an object out.
    pub(crate) fn remove(&self, handle: usize) -> Option<Arc<T>> {
        let mut slots = self.slots()?;
        let own = slots.find(self.kind, handle)?;
        slots.0.remove(own)
    }

    /// Returns all objects.
    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let slots = self.slots();
        let all = slots.iter().flat_map(|slots| slots.0.iter());
        all.map(|(_, value)| Arc::clone(value)).collect()
    }
}

impl<T> Slots<T> {
    #[inline(always)]
    fn get(&self, kind: Kind, handle: usize) -> Option<&Arc<T>> {
        let (own, value) = self.0.at((handle & (SLOTS - 1)) as u32)?;
        // All else that a handle has.
        (handle >> SLOT_BITS == kind.name(own)).then_some(value)
    }

    fn find(&self, kind: Kind, handle: usize) -> Option<Handle> {
        self.get(kind, handle)?;
        Some(self.0.at((handle & (SLOTS - 1)) as u32)?.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_replaced_under_its_handle() {
        let table = Table::new(Kind::Comm);
        let one = table.insert_with(|_| 7).unwrap();
        table.replace(one, |old| old + 1);
        assert_eq!(table.get(one).as_deref(), Some(&8));
        assert_eq!(table.remove(one).as_deref(), Some(&8));
        table.replace(one, |old| old + 1);
        assert!(table.get(one).is_none());
    }

    #[test]
    fn handles_that_were_freed_find_nothing() {
        let table = Table::new(Kind::Comm);
        let first = table.insert_with(|handle| handle).unwrap();
        assert!((4096..1 << 30).contains(&first));
        assert_eq!(table.get(first).as_deref(), Some(&first));
        assert_eq!(table.remove(first).as_deref(), Some(&first));
        let second = table.insert_with(|handle| handle).unwrap();
        assert_ne!(first, second);
        assert!(table.get(first).is_none() && table.remove(first).is_none());
        assert!(Table::<usize>::new(Kind::Group).get(second).is_none());
        for foreign in [0, 1, 0x101, usize::MAX, second | 1 << 40, second + 1] {
            assert!(table.get(foreign).is_none(), "{foreign:#x}");
        }
    }
}
