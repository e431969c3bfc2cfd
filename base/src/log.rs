//! Lines on standard error, as much as the setting `log` asks for.
//!
//! The crates tell what happens through `tracing` and install nothing: a program that has a
//! subscriber of its own keeps it. Programs that have none call [`to_stderr`].

use std::fmt::{self, Write as _};
use std::io::Write as _;

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Subscriber, set_global_default};
use tracing::{Event, Level, Metadata};

use crate::config::Config;

/// Writes what happens to standard error from now on, as the setting `log` says; `who` begins
/// each line, such as `rank 3`. Returns `false`, and changes nothing, where this process already
/// has a subscriber.
///
/// Messages below `info` are compiled out of release builds.
pub fn to_stderr(config: &Config, who: impl Into<String>) -> bool {
    let level = level(config.choice("log"));
    if level == LevelFilter::OFF {
        return true;
    }
    set_global_default(StandardError {
        level,
        who: who.into(),
    })
    .is_ok()
}

fn level(name: &str) -> LevelFilter {
    match name {
        "off" => LevelFilter::OFF,
        "error" => LevelFilter::ERROR,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        _ => LevelFilter::WARN,
    }
}

struct StandardError {
    level: LevelFilter,
    who: String,
}

/// Spans are passed over: nothing here opens any.
impl Subscriber for StandardError {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.level && metadata.target().starts_with("tagwire")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let line = line(&self.who, *event.metadata().level(), |visit| {
            event.record(visit)
        });
        // One write, so that lines of several ranks do not mix. A closed pipe changes nothing.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// `rank 3: error: what happened key=value`, with its line end.
fn line(who: &str, level: Level, record: impl FnOnce(&mut dyn Visit)) -> String {
    let mut parts = Parts::default();
    record(&mut parts);
    let level = level.as_str().to_ascii_lowercase();
    format!("{who}: {level}: {}{}\n", parts.message, parts.fields)
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: String,
}

impl Visit for Parts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value}"),
            name => write!(self.fields, " {name}='{value}'"),
        };
    }
}

/// Whether occurrence `number` of a line that others can cause is logged: each of the first `all`, and then those by which their number has
/// doubled. So they fill no log.
#[must_use]
pub const fn is_logged(number: u64, all: u64) -> bool {
    number <= all || number.is_power_of_two()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::config::LOG_LEVELS;

    /// Keeps the lines instead of writing them.
    struct Keeping(StandardError, Arc<Mutex<Vec<String>>>);

    impl Subscriber for Keeping {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            self.0.enabled(metadata)
        }
        fn new_span(&self, attributes: &Attributes<'_>) -> Id {
            self.0.new_span(attributes)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            let level = *event.metadata().level();
            let line = line(&self.0.who, level, |visit| event.record(visit));
            self.1.lock().unwrap().push(line);
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    fn kept(level: LevelFilter) -> Vec<String> {
        let lines = Arc::default();
        let who = "rank 3".to_owned();
        let keeping = Keeping(StandardError { level, who }, Arc::clone(&lines));
        tracing::subscriber::with_default(keeping, || {
            tracing::error!(peer = 7, name = "x y", "lost {}", 5);
            tracing::warn!("careful");
            tracing::info!(target: "others", "not ours");
        });
        let lines = lines.lock().unwrap();
        lines.clone()
    }

    #[test]
    fn lines_tell_who_how_bad_and_what() {
        assert_eq!(
            kept(LevelFilter::DEBUG),
            [
                "rank 3: error: lost 5 peer=7 name='x y'\n",
                "rank 3: warn: careful\n"
            ]
        );
    }

    #[test]
    fn the_level_decides_how_much() {
        assert_eq!(kept(LevelFilter::ERROR).len(), 1);
        assert_eq!(kept(LevelFilter::OFF).len(), 0);
    }

    #[test]
    fn every_choice_is_a_level_of_its_own_and_they_rise() {
        let levels: Vec<LevelFilter> = LOG_LEVELS.iter().map(|name| level(name)).collect();
        assert!(
            levels.windows(2).all(|pair| pair[0] < pair[1]),
            "{levels:?}"
        );
    }

    #[test]
    fn what_others_cause_fills_no_log() {
        assert!((1..=100).all(|number| is_logged(number, 100)));
        let later = (101..1 << 20).filter(|number| is_logged(*number, 100));
        assert_eq!(later.count(), 13);
    }
}
