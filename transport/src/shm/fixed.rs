//! Whether this system has what a setting fixes. What is not there is refused with the setting, its value and the reason.

use std::process;

use super::cma::{Attach, Nonce};
use super::config::{CrossAttach, ShmOptions};
use super::ways::CopyWay;
use crate::error::{Error, Result};
use crate::shared_writes::CAN_STREAM;

/// Refuses settings that fix what cannot be used here.
pub(super) fn check(options: &ShmOptions) -> Result<()> {
    check_attach(options)?;
    check_way(options)?;
    check_reuse(options)?;
    check_stream(options)
}

/// Returns whether this process may attach to its own memory, else the reason. Where it may not, it may attach to no other.
///
/// # Errors
/// The system's reason.
pub fn attaches() -> Result<(), String> {
    let value = 0x5bd1_e995_9e37_79b9;
    let nonce = Nonce::new(value);
    match Attach::test(process::id(), nonce.address(), value) {
        Attach::Forbidden(reason) => Err(reason),
        _ => Ok(()),
    }
}

/// Returns the ways of long messages by name, the first one known at first, each with the reason why it cannot be used by such a
/// rank; `attaches` says whether the system lets it copy straight between the memory of two ranks.
#[must_use]
pub fn ways_here(
    options: &ShmOptions,
    attaches: &Result<(), String>,
) -> Vec<(&'static str, Option<String>)> {
    let one = |way: CopyWay| (way.name(), why_not(way, options, || attaches.clone()));
    CopyWay::ALL.into_iter().map(one).collect()
}

/// Returns why a way cannot be used.
fn why_not(
    way: CopyWay,
    options: &ShmOptions,
    attaches: impl FnOnce() -> Result<(), String>,
) -> Option<String> {
    match (way, options.cross_attach) {
        (CopyWay::OneSide | CopyWay::Ring, _) if options.matches => {
            Some("ranks that match for each other (pml=cm) copy by halves".to_owned())
        }
        (CopyWay::Ring, _) => None,
        (_, CrossAttach::Off) => {
            Some("shm-cma is off, and long messages go through the ring".to_owned())
        }
        _ => {
            let forbidden = attaches().err()?;
            Some(format!(
                "this system forbids the kernel's copy ({forbidden})"
            ))
        }
    }
}

/// Where cross-memory attach is asked for, it has to work at least towards oneself.
fn check_attach(options: &ShmOptions) -> Result<()> {
    if options.cross_attach != CrossAttach::On {
        return Ok(());
    }
    attaches().map_err(|reason| {
        let why = format!("this system forbids it ({reason}); auto falls back");
        cannot("shm-cma", "on", why)
    })
}

/// The way that a setting fixes has to be one that can be used here.
fn check_way(options: &ShmOptions) -> Result<()> {
    let Some(way) = options.way else {
        return Ok(());
    };
    match why_not(way, options, attaches) {
        Some(reason) => {
            let why = format!("{reason}; auto takes what there is");
            Err(cannot("shm-way", way.name(), why))
        }
        None => Ok(()),
    }
}

/// Stores past the caches are of some processors.
fn check_stream(options: &ShmOptions) -> Result<()> {
    match options.stream {
        Some(true) if !CAN_STREAM => {
            let why =
                "no stores past the caches are known of this processor; auto takes what there is";
            Err(cannot("shm-stream", "on", why.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Memory goes back and forth in rooms alone.
fn check_reuse(options: &ShmOptions) -> Result<()> {
    let reason = match (options.reuse, options.room) {
        (Some(true), _) if options.matches => "ranks under pml=cm have no rooms",
        (Some(true), Some(0)) => "shm-room is 0, and there are no rooms",
        _ => return Ok(()),
    };
    let why = format!("{reason}; auto takes what there is");
    Err(cannot("shm-reuse", "on", why))
}

/// Returns the error of a setting that cannot be used here.
fn cannot(name: &str, value: &str, expected: String) -> Error {
    Error::Base(tagwire_base::Error::BadSetting {
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reasons(options: &ShmOptions, attaches: Result<(), &str>) -> [Option<String>; 3] {
        let ways = ways_here(options, &attaches.map_err(str::to_owned));
        let names: Vec<_> = ways.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["halves", "one-side", "ring"]);
        let mut reasons = ways.into_iter().map(|(_, reason)| reason);
        std::array::from_fn(|_| reasons.next().flatten())
    }

    #[test]
    fn what_cannot_be_used_has_its_reason() {
        let auto = ShmOptions::default();
        assert_eq!(reasons(&auto, Ok(())), [None, None, None]);
        let [halves, one_side, ring] = reasons(&auto, Err("EPERM"));
        for reason in [halves, one_side] {
            let reason = reason.unwrap();
            assert!(reason.contains("forbids") && reason.contains("EPERM"));
        }
        assert_eq!(ring, None);
        let off = ShmOptions {
            cross_attach: CrossAttach::Off,
            ..auto.clone()
        };
        let [halves, one_side, ring] = reasons(&off, Ok(()));
        for reason in [halves, one_side] {
            assert!(reason.unwrap().contains("shm-cma is off"));
        }
        assert_eq!(ring, None);
        let matches = ShmOptions {
            matches: true,
            ..auto
        };
        let [halves, one_side, ring] = reasons(&matches, Ok(()));
        assert_eq!(halves, None);
        for reason in [one_side, ring] {
            assert!(reason.unwrap().contains("pml=cm"));
        }
    }
}
