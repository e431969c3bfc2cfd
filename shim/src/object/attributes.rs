//! Attributes that programs keep with objects (MPI-5.0, section 7.7).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::error::{Class, Error, Result};
use crate::functions::{Attached, Functions};
use crate::lock::Lock;
use crate::object::table::{Kind, Table};
use crate::raw::Pointer;

/// Keys of attributes that `MPI_COMM_WORLD` has (MPI-5.0, section 9.1.2).
pub(crate) mod key {
    /// No key.
    pub(crate) const INVALID: i32 = 0;
    pub(crate) const TAG_UB: i32 = 501;
    pub(crate) const IO: i32 = 502;
    pub(crate) const HOST: i32 = 503;
    pub(crate) const WTIME_IS_GLOBAL: i32 = 504;
    pub(crate) const APPNUM: i32 = 505;
    pub(crate) const LASTUSEDCODE: i32 = 506;
    pub(crate) const UNIVERSE_SIZE: i32 = 507;
}

/// A key that a program has made.
#[derive(Debug)]
pub(crate) struct Key {
    number: i32,
    /// Whether the program has freed it. It stays as long as attributes have it.
    is_freed: AtomicBool,
    functions: Functions,
    extra: Pointer,
}

impl Key {
    fn attached(&self, object: usize, value: Pointer) -> Attached {
        Attached {
            object,
            key: self.number,
            extra: self.extra,
            value,
        }
    }
}

/// The keys of a process.
#[derive(Debug)]
pub(crate) struct Keys {
    all: Table<Key>,
    /// Those that were freed while attributes had them.
    freed: Lock<Vec<usize>>,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Self {
            all: Table::new(Kind::Key),
            freed: Lock::default(),
        }
    }

    pub(crate) fn enter(&self, functions: Functions, extra: Pointer) -> Result<i32> {
        self.forget();
        let entered = self.all.insert_with(|number| Key {
            number: number as i32,
            is_freed: AtomicBool::new(false),
            functions,
            extra,
        });
        entered.map(|number| number as i32)
    }

    /// Forgets keys that were freed, and that no attribute has any more.
    fn forget(&self) {
        let mut freed = self.freed.lock();
        freed.retain(|number| {
            let is_used = self.all.get(*number).is_some_and(|key| is_used(&key));
            if !is_used {
                self.all.remove(*number);
            }
            is_used
        });
    }

    /// Returns a key for objects of the kind that `like` is for. One that was freed is there as long as attributes have it: a copy
    /// of it can delete them.
    ///
    /// # Errors
    /// `MPI_ERR_KEYVAL` where there is none.
    pub(crate) fn get(&self, number: i32, like: &Functions) -> Result<Arc<Key>> {
        let found = usize::try_from(number)
            .ok()
            .and_then(|number| self.all.get(number));
        found
            .filter(|key| key.functions.are_like(like))
            .filter(|key| !key.is_freed.load(Acquire) || is_used(key))
            .ok_or_else(|| invalid(number))
    }

    /// Returns a key to set an attribute with: one that was not freed.
    ///
    /// # Errors
    /// `MPI_ERR_KEYVAL` where there is none.
    pub(crate) fn to_set(&self, number: i32, like: &Functions) -> Result<Arc<Key>> {
        let key = self.get(number, like)?;
        match key.is_freed.load(Acquire) {
            true => Err(invalid(number)),
            false => Ok(key),
        }
    }

    /// Frees a key. Attributes that have it keep it until they are deleted (MPI-5.0, section 7.7.2).
    pub(crate) fn free(&self, number: i32, like: &Functions) -> Result {
        let key = self.get(number, like)?;
        if !key.is_freed.swap(true, Release) {
            let mut freed = self.freed.lock();
            freed.push(number as usize);
        }
        drop(key);
        self.forget();
        Ok(())
    }
}

/// Whether attributes have a key, beside the table and the caller.
fn is_used(key: &Arc<Key>) -> bool {
    Arc::strong_count(key) > 2
}

#[cold]
pub(crate) fn invalid(number: i32) -> Error {
    let text = match number {
        key::INVALID => "the key is MPI_KEYVAL_INVALID".to_owned(),
        key::TAG_UB..=key::UNIVERSE_SIZE => format!("the attribute {number} is predefined"),
        _ => format!("{number} is no key of attributes of such objects"),
    };
    Error::new(Class::Keyval, text)
}

/// The attributes of an object, in the order in which they were set.
///
/// No function of the program is called while they are locked. An attribute that is being deleted is none already.
#[derive(Debug, Default)]
pub(crate) struct Attributes(Lock<Vec<Attribute>>);

#[derive(Debug, Clone)]
struct Attribute {
    key: Arc<Key>,
    value: Pointer,
}

impl Attributes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Takes all, for the object that another becomes.
    pub(crate) fn take(&self) -> Self {
        Self(Lock::new(std::mem::take(&mut *self.0.lock())))
    }

    pub(crate) fn get(&self, key: &Arc<Key>) -> Option<Pointer> {
        let all = self.0.lock();
        let found = all.iter().find(|one| Arc::ptr_eq(&one.key, key));
        found.map(|one| one.value)
    }

    /// Sets the attribute of the object with a handle. A former value is deleted before.
    ///
    /// # Errors
    /// Those of the function that deletes: then the former value stays.
    pub(crate) fn set(&self, object: usize, key: Arc<Key>, value: Pointer) -> Result {
        // More than once only where the function that deletes, or another thread, sets it again.
        while self.delete(object, &key)? {}
        self.0.lock().push(Attribute { key, value });
        Ok(())
    }

    /// Deletes an attribute. Returns whether there was one.
    ///
    /// # Errors
    /// Those of the function that deletes: then it stays.
    pub(crate) fn delete(&self, object: usize, key: &Arc<Key>) -> Result<bool> {
        let mut all = self.0.lock();
        let place = all.iter().position(|one| Arc::ptr_eq(&one.key, key));
        let Some(place) = place else {
            return Ok(false);
        };
        let taken = all.remove(place);
        drop(all);
        self.delete_taken(object, taken, place)?;
        Ok(true)
    }

    /// Deletes all, the last that was set first.
    ///
    /// # Errors
    /// Those of the function that deletes, at the first: it and those before it stay.
    pub(crate) fn delete_all(&self, object: usize) -> Result {
        loop {
            let mut all = self.0.lock();
            let Some(taken) = all.pop() else {
                return Ok(());
            };
            let place = all.len();
            drop(all);
            self.delete_taken(object, taken, place)?;
        }
    }

    fn delete_taken(&self, object: usize, taken: Attribute, place: usize) -> Result {
        let attached = taken.key.attached(object, taken.value);
        let deleted = taken.key.functions.delete(attached);
        if deleted.is_err() {
            let mut all = self.0.lock();
            let is_set_again = all.iter().any(|one| Arc::ptr_eq(&one.key, &taken.key));
            if !is_set_again {
                let place = place.min(all.len());
                all.insert(place, taken);
            }
        }
        deleted
    }

    /// Gives the duplicate of an object the attributes that its functions copy.
    ///
    /// # Errors
    /// Those of a function that copies: then what was copied is deleted.
    pub(crate) fn copy_to(&self, object: usize, duplicate: usize, copies: &Self) -> Result {
        let all = self.0.lock().clone();
        for Attribute { key, value } in all {
            match key.functions.copy(key.attached(object, value)) {
                Ok(None) => {}
                Ok(Some(value)) => copies.0.lock().push(Attribute { key, value }),
                Err(error) => {
                    let _ = copies.delete_all(duplicate);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
