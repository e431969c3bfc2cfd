//! What layers above have to do whenever a rank makes progress: collectives that are under way.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Something that has to be moved on.
pub trait Driver: Send + Sync {
    /// Does what can be done now, without waiting. Returns how many things happened. Called with nothing locked: it may
    /// call the port. Several threads may call at once.
    fn drive(&self) -> usize;
}

/// The drivers of a rank. A load is all that a rank without any pays.
#[derive(Default, Clone)]
pub(crate) struct Drivers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    count: AtomicUsize,
    list: Mutex<Vec<Arc<dyn Driver>>>,
}

impl fmt::Debug for Drivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drivers({})", self.0.count.load(Ordering::Relaxed))
    }
}

impl Drivers {
    pub(crate) fn add(&self, driver: Arc<dyn Driver>) -> Driven {
        self.change(|list| list.push(Arc::clone(&driver)));
        Driven {
            drivers: self.clone(),
            driver,
        }
    }

    /// Drives all. Returns how many things happened.
    #[inline]
    pub(crate) fn drive(&self) -> usize {
        match self.0.count.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.drive_all(),
        }
    }

    #[cold]
    fn drive_all(&self) -> usize {
        // Not under the lock: a driver may start, or end, others.
        let list = self.0.list.lock().unwrap_or_else(PoisonError::into_inner);
        let list = list.clone();
        list.iter().map(|driver| driver.drive()).sum()
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<dyn Driver>>)) {
        let mut list = self.0.list.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut list);
        self.0.count.store(list.len(), Ordering::Relaxed);
    }
}

/// A driver that is driven: until this is dropped.
#[must_use = "dropped, it is driven no more"]
pub struct Driven {
    drivers: Drivers,
    driver: Arc<dyn Driver>,
}

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driven")
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        let is_this = |driver: &Arc<dyn Driver>| Arc::ptr_eq(driver, &self.driver);
        self.drivers.change(|list| {
            if let Some(place) = list.iter().position(is_this) {
                list.remove(place);
            }
        });
    }
}
