//! Engines that are ended at an answer that cannot be, while they are measured.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use tagwire_matching::judged::refusal;

use crate::error::{Error, Result};

/// Does something with engines that are watched: one that is [refused](tagwire_matching::judged::refuse) ends it with an error, and is
/// not told as a panic.
///
/// # Errors
/// [`Error::Refused`], and those of what is done.
pub(crate) fn caught<T>(act: impl FnOnce() -> Result<T>) -> Result<T> {
    let told = Arc::new(panic::take_hook());
    let others = Arc::clone(&told);
    panic::set_hook(Box::new(move |info| {
        if refusal(info.payload()).is_none() {
            others(info);
        }
    }));
    let done = panic::catch_unwind(AssertUnwindSafe(act));
    panic::set_hook(Box::new(move |info| told(info)));
    done.unwrap_or_else(|payload| match refusal(&*payload) {
        Some(said) => Err(Error::Refused(said.to_owned())),
        None => panic::resume_unwind(payload),
    })
}
