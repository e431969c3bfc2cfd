//! What can go wrong when something is opened, in the words of the ground below.

use std::io;

use tagwire_base::Error as BaseError;

/// A call of the library that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    reason: String,
}

impl Failure {
    pub(crate) fn new(provider: &str, what: &str, reason: &str) -> Self {
        Self {
            what: format!("ofi:{provider}: {what}"),
            reason: reason.to_owned(),
        }
    }
}

impl From<Failure> for BaseError {
    fn from(failure: Failure) -> Self {
        Self::System {
            what: failure.what,
            source: io::Error::other(failure.reason),
        }
    }
}

/// A setting that names what is not there.
pub(crate) fn bad_setting(name: &str, value: &str, expected: &str) -> BaseError {
    BaseError::BadSetting {
        name: name.to_owned(),
        value: value.to_owned(),
        expected: format!("expected {expected}"),
    }
}
