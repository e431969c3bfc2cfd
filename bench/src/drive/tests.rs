use super::start::is_alias;
use super::*;
use crate::environment::Used;
use indicatif::TermLike;
use std::io::Result as Written;
use std::sync::{Arc, Mutex};

#[test]
fn commands_can_be_typed_again() {
    assert_eq!(quoted("8:1M:+8"), "8:1M:+8");
    assert_eq!(quoted("a b"), "'a b'");
    assert_eq!(quoted("it's"), "'it'\\''s'");
    assert_eq!(quoted(""), "''");
}

#[test]
fn two_names_of_one_thing_are_refused() {
    let used = |transport: &str, provider: Option<&str>, file: Option<&str>| Used {
        transport: transport.to_owned(),
        provider: provider.map(str::to_owned),
        file: file.map(str::to_owned),
        ..Used::default()
    };
    let (lib, other) = (Some("/lib/libfabric.so"), Some("/opt/libfabric.so"));
    let plain = used("ofi:tcp", Some("tcp;ofi_rxm"), lib);
    for (second, alias) in [
        (used("ofi:tcp;ofi_rxm", Some("tcp;ofi_rxm"), lib), true),
        (used("ofi:tcp", Some("tcp;ofi_rxm"), lib), true),
        // Versions side by side.
        (used("ofi:tcp", Some("tcp;ofi_rxm"), other), false),
        (used("ofi:tcp", Some("tcp"), lib), false),
        (used("shm+ofi:tcp", Some("shm+ofi:tcp;ofi_rxm"), lib), false),
        (used("shm", None, None), false),
    ] {
        assert_eq!(is_alias(&plain, &second), alias, "{second:?}");
    }
    let shm = used("shm", None, None);
    assert!(!is_alias(&shm, &shm), "the command line refuses it");
    let ucx = |detail: &str| used(detail, None, Some("/lib/libucp.so"));
    assert!(is_alias(&ucx("ucx:tcp"), &ucx("ucx:tcp")));
    assert!(!is_alias(&ucx("ucx:tcp"), &ucx("ucx:posix")));
}

#[test]
fn what_ended_the_ranks_is_the_status() {
    let interrupted = Error::Interrupted { signal: 2 };
    assert_eq!(interrupted.exit_status().code(), 130);
    assert_eq!(interrupted.to_string(), "interrupted by signal 2 (SIGINT)");
    assert!(!interrupted.is_of_a_job());
    let list = vec![("ofi:verbs".to_owned(), "no device".to_owned())];
    let unusable = Error::Unusable { all: 3, list };
    assert_eq!(unusable.exit_status(), ExitStatus::Failed);
    assert!(
        unusable
            .to_string()
            .ends_with("--keep-going measures the others: ofi:verbs: no device")
    );
}

/// A terminal that keeps what is written on it.
#[derive(Debug, Clone, Default)]
struct Paper(Arc<Mutex<String>>);

impl TermLike for Paper {
    fn width(&self) -> u16 {
        120
    }

    fn move_cursor_up(&self, _: usize) -> Written<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _: usize) -> Written<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _: usize) -> Written<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _: usize) -> Written<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> Written<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> Written<()> {
        self.0.lock().unwrap().push_str(text);
        Ok(())
    }

    fn clear_line(&self) -> Written<()> {
        self.0.lock().unwrap().clear();
        Ok(())
    }

    fn flush(&self) -> Written<()> {
        Ok(())
    }
}

/// A run of hours has to say how far it is, what it measures, and what is left.
#[test]
fn the_line_of_progress_says_what_is_measured_and_how_long_it_takes() {
    let paper = Paper::default();
    let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
    let bar = progress_bar(16, target);
    bar.set_message(under_way("ofi:tcp", 1, 4));
    bar.inc(8);
    bar.tick();
    let text = paper.0.lock().unwrap().clone();
    for part in ["8/16 rows, ofi:tcp, launch 2 of 4, ", ", about ", " left"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
