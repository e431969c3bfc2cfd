//! What layers above have to do whenever a rank makes progress: collectives that are under way.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::dumps::ContextNames;

/// Something that has to be moved on.
pub trait Driver: Send + Sync {
    /// Does what can be done now, without waiting. Returns how many operations ended. Called with nothing locked: it may
    /// call the port. Several threads may call at once.
    fn drive(&self) -> usize;

    /// Describes what is under way, for a dump: a line for each.
    fn describe(&self, names: &ContextNames, out: &mut String) {
        let _ = (names, out);
    }
}

/// The drivers of a rank. A load is all that a rank pays while none of them has anything under way.
#[derive(Default, Clone)]
pub(crate) struct Drivers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Operations under way, of all drivers.
    demand: AtomicUsize,
    /// Replaced as a whole, so that a round of progress takes it without an allocation.
    list: Mutex<Arc<[Arc<dyn Driver>]>>,
}

impl fmt::Debug for Drivers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Drivers({})", self.0.demand.load(Ordering::Relaxed))
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

    /// Whether there is nothing to be moved on.
    #[inline(always)]
    pub(crate) fn are_idle(&self) -> bool {
        self.0.demand.load(Ordering::Relaxed) == 0
    }

    /// Drives all. Returns how many operations ended.
    #[inline]
    pub(crate) fn drive(&self) -> usize {
        match self.are_idle() {
            true => 0,
            false => self.drive_all(),
        }
    }

    #[inline(never)]
    fn drive_all(&self) -> usize {
        // Not under the lock: a driver may start, or end, others.
        self.all().iter().map(|driver| driver.drive()).sum()
    }

    pub(crate) fn describe(&self, names: &ContextNames, out: &mut String) {
        for driver in &*self.all() {
            driver.describe(names, out);
        }
    }

    #[inline]
    fn all(&self) -> Arc<[Arc<dyn Driver>]> {
        let list = self.0.list.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&list)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<dyn Driver>>)) {
        let mut list = self.0.list.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = list.to_vec();
        change(&mut changed);
        let before = std::mem::replace(&mut *list, changed.into());
        drop(list);
        // A driver may be dropped with it.
        drop(before);
    }
}

/// By which a driver says that it has operations under way: it is driven while there are any.
#[derive(Debug, Clone)]
pub struct Demand(Drivers);

impl Demand {
    /// Counts one operation more.
    #[inline]
    pub fn raise(&self) {
        self.0.0.demand.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one operation less.
    #[inline]
    pub fn lower(&self) {
        let before = self.0.0.demand.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "raised before");
    }
}

/// A driver that is driven: until this is dropped.
#[must_use = "dropped, it is driven no more"]
pub struct Driven {
    drivers: Drivers,
    driver: Arc<dyn Driver>,
}

impl Driven {
    /// Returns what its demand is told by.
    #[must_use]
    pub fn demand(&self) -> Demand {
        Demand(self.drivers.clone())
    }
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Driver for Counting {
        fn drive(&self) -> usize {
            self.0.fetch_add(1, Ordering::Relaxed) + 1
        }
    }

    #[test]
    fn a_driver_is_driven_while_it_has_demand() {
        let drivers = Drivers::default();
        let counting = Arc::new(Counting::default());
        let driven = drivers.add(Arc::clone(&counting) as Arc<dyn Driver>);
        let demand = driven.demand();
        assert_eq!(drivers.drive(), 0);
        demand.raise();
        demand.raise();
        demand.lower();
        assert_eq!((drivers.drive(), drivers.drive()), (1, 2));
        demand.lower();
        assert_eq!(drivers.drive(), 0);
        demand.raise();
        drop(driven);
        assert_eq!(drivers.drive(), 0);
        assert_eq!(counting.0.load(Ordering::Relaxed), 2);
        assert_eq!(Arc::strong_count(&counting), 1);
    }
}
