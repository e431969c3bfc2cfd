//! Error classes and codes that programs add (MPI-5.0, section 9.5).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use crate::error::{Class, Error, Result};
use crate::lock::Lock;

/// `MPI_ERR_LASTCODE`.
const LAST: i32 = 0x3fff;

/// The error codes of a program. Their numbers are those after `MPI_ERR_LASTCODE`, each given once.
#[derive(Debug)]
pub(crate) struct Codes {
    /// `MPI_LASTUSEDCODE`.
    last: AtomicI32,
    known: Lock<BTreeMap<i32, Code>>,
}

#[derive(Debug)]
struct Code {
    /// Its own number where it is a class.
    class: i32,
    text: Option<String>,
}

impl Codes {
    pub(crate) fn new() -> Self {
        Self {
            last: AtomicI32::new(LAST),
            known: Lock::default(),
        }
    }

    /// Returns where the last number is that was given.
    pub(crate) const fn last(&self) -> *const i32 {
        self.last.as_ptr().cast_const()
    }

    /// Adds a class, or a code of one.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where there is no such class.
    pub(crate) fn add(&self, class: Option<i32>) -> Result<i32> {
        let mut known = self.known.lock();
        if let Some(class) = class
            && Class::of(class).is_none()
            && known.get(&class).is_none_or(|code| code.class != class)
        {
            return Err(Error::new(Class::Arg, format!("{class} is no error class")));
        }
        let number = self.last.load(Relaxed).checked_add(1);
        let number = number.ok_or_else(|| Error::new(Class::Other, "too many error codes"))?;
        self.last.store(number, Relaxed);
        let class = class.unwrap_or(number);
        known.insert(number, Code { class, text: None });
        Ok(number)
    }

    /// Removes a class, or a code of one.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where it was not added; `MPI_ERR_OTHER` where it has a string, or codes.
    pub(crate) fn remove(&self, number: i32, is_class: bool) -> Result {
        let mut known = self.known.lock();
        let code = known.get(&number);
        let code = code.filter(|code| (code.class == number) == is_class);
        let code = code.ok_or_else(|| not_added(number))?;
        let others = |(other, code): (&i32, &Code)| *other != number && code.class == number;
        let still = match code.text {
            Some(_) => "a string",
            None if is_class && known.iter().any(others) => "codes",
            None => {
                known.remove(&number);
                return Ok(());
            }
        };
        let text = format!("the error code {number} still has {still}");
        Err(Error::new(Class::Other, text))
    }

    /// Sets what a code says; `None` removes it.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where it was not added, or has no string that could be removed.
    pub(crate) fn set_text(&self, number: i32, text: Option<String>) -> Result {
        let mut known = self.known.lock();
        let code = known.get_mut(&number).ok_or_else(|| not_added(number))?;
        if text.is_none() && code.text.is_none() {
            let text = format!("the error code {number} has no string");
            return Err(Error::new(Class::Arg, text));
        }
        code.text = text;
        Ok(())
    }

    /// Returns what a code says that was added: nothing where that was not set.
    pub(crate) fn text(&self, number: i32) -> Option<String> {
        let known = self.known.lock();
        known
            .get(&number)
            .map(|code| code.text.clone().unwrap_or_default())
    }

    /// Returns the class of a code, which may be one of the standard's.
    pub(crate) fn class(&self, number: i32) -> Option<i32> {
        match Class::of(number) {
            Some(class) => Some(class as i32),
            None => self.known.lock().get(&number).map(|code| code.class),
        }
    }
}

#[cold]
fn not_added(number: i32) -> Error {
    Error::new(
        Class::Arg,
        format!("the error code {number} was not added by the program"),
    )
}
