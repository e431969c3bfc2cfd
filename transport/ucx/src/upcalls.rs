//! The upcalls of a call of progress, as UCX's callbacks reach them.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use tagwire_transport::Upcalls;

/// The upcalls of a call of progress, for callbacks during it.
pub(crate) struct LentUpcalls(NonNull<dyn Upcalls>);

impl LentUpcalls {
    /// Lends `upcalls` for longer than the borrow checker can see.
    ///
    /// # Safety
    /// It is not used once the borrow of `upcalls` has ended.
    pub(crate) unsafe fn new(upcalls: &mut dyn Upcalls) -> Self {
        // SAFETY: only the lifetime is changed, which the caller has to keep.
        Self(unsafe {
            std::mem::transmute::<NonNull<dyn Upcalls + '_>, NonNull<dyn Upcalls + 'static>>(
                NonNull::from(upcalls),
            )
        })
    }

    pub(crate) fn as_mut(&mut self) -> &mut dyn Upcalls {
        // SAFETY: whoever called `new` lets no use outlast the borrow.
        unsafe { self.0.as_mut() }
    }
}
