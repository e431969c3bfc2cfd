//! A transport that the program has opened itself, as tests do on a simulated network.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tagwire_base::Config;
use tagwire_transport::ByteTransport;

/// The transport of one rank that [`open`](crate::open) returns in place of what the setting `transport` names, kept by a registry.
#[derive(Clone)]
pub struct Given(Arc<Mutex<Option<Box<dyn ByteTransport>>>>);

impl Given {
    /// Returns the value by which a registry keeps `transport`.
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
