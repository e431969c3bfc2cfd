//! A transport that the program has opened itself, as tests do on a simulated network.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tagwire_base::Config;
use tagwire_transport::ByteTransport;

/// Stands in a registry, and is what [`open`](crate::open) takes whatever the setting `transport` says. It is there for one rank.
#[derive(Clone)]
pub struct Given(Arc<Mutex<Option<Box<dyn ByteTransport>>>>);

impl Given {
    /// Returns the value that stands for `transport` in a registry.
    #[must_use]
    pub fn new(transport: Box<dyn ByteTransport>) -> Self {
        Self(Arc::new(Mutex::new(Some(transport))))
    }

    /// Returns the transport that was given, once.
    pub(crate) fn taken(config: &Config) -> Option<Box<dyn ByteTransport>> {
        let given: &Self = config.registry().value()?;
        let mut given = given.0.lock().unwrap_or_else(PoisonError::into_inner);
        given.take()
    }

    /// Whether one was given.
    pub(crate) fn is_in(config: &Config) -> bool {
        config.registry().value::<Self>().is_some()
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}
