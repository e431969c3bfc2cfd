//! Which library file is used, and what is wrong with it where it cannot be.

use std::path::Path;

use tagwire_base::Error as BaseError;
use tagwire_transport::Result;
use tagwire_ucx_sys::{OpenError, Ucp};

/// Where the loader looks when nobody names a file.
pub(crate) const DEFAULT: &str = "libucp.so.0";

/// A library that was loaded.
#[derive(Clone, Copy)]
pub(crate) struct Library {
    pub(crate) ucp: &'static Ucp,
}

impl Library {
    /// Loads the library called `named`.
    #[allow(unsafe_code, reason = "a library is loaded that a setting names")]
    pub(crate) fn open(named: &str) -> Result<Self> {
        // SAFETY: whoever names another file than the system's in the setting names a UCP.
        match unsafe { tagwire_ucx_sys::open(Path::new(named)) } {
            Ok(ucp) => Ok(Self { ucp }),
            Err(error) => Err(BaseError::BadSetting {
                name: "ucx".to_owned(),
                value: named.to_owned(),
                expected: expected(&error),
            }
            .into()),
        }
    }
}

/// What a file has to be, and why this one is not.
fn expected(error: &OpenError) -> String {
    match error {
        OpenError::Load(reason) => {
            format!(
                "the UCX library cannot be loaded ({reason}); name its libucp.so by TAGWIRE_UCX"
            )
        }
        OpenError::Symbol(reason) => {
            format!("it is not UCX 1.13 or later ({reason}); name another libucp.so by TAGWIRE_UCX")
        }
    }
}
