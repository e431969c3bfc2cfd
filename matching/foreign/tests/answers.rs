//! Libraries that answer what cannot be, and files that are no library of an engine.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::judged::Judged;
use tagwire_matching::storage::Local;
use tagwire_matching::{
    AnyEngine, ArriveOutcome, CancelOutcome, Capacity, Cookie, Engine, Engines, Envelope, Grade,
    Handle, Pattern, PostOutcome,
};

/// Compiles a library from a file beside this one, or from the examples.
fn library(folder: &Path, source: &str, options: &[&str]) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = folder.join(format!("lib{}.so", options.len()));
    let mut command = Command::new("cc");
    command.args([
        "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
    ]);
    command.arg("-I").arg(here.join("../../include"));
    command
        .args(options)
        .arg("-o")
        .arg(&file)
        .arg(here.join(source));
    assert!(command.status().unwrap().success(), "{source} {options:?}");
    file.to_str().unwrap().to_owned()
}

fn lying(folder: &Path) -> String {
    library(folder, "tests/lying.c", &[])
}

fn engines() -> Engines {
    Engines::default().with_loader(tagwire_foreign::load)
}

fn open(name: &str) -> AnyEngine {
    engines().named(name).unwrap().open(Capacity::default())
}

fn message(tag: i32) -> Envelope {
    Envelope {
        source: Rank::new(1),
        tag: Tag::user(tag).unwrap(),
        context: ContextId::WORLD,
    }
}

fn receive(tag: i32) -> Pattern {
    Pattern::exact(message(tag))
}

fn queued(outcome: PostOutcome) -> Handle {
    match outcome {
        PostOutcome::Queued(handle) => handle,
        other => panic!("{other:?}"),
    }
}

/// What the program is ended with.
fn ended(name: &str, call: impl FnOnce(&mut AnyEngine)) -> String {
    let mut engine = open(name);
    let ended = catch_unwind(AssertUnwindSafe(|| call(&mut engine)));
    *ended.unwrap_err().downcast::<String>().unwrap()
}

/// What an engine lies about, the calls that show it, and what is said of it.
type Case<'c> = (&'c str, &'c dyn Fn(&mut AnyEngine), &'c str);

#[test]
fn an_honest_library_matches_as_an_engine_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = library(folder.path(), "../../examples/engine_c/list.c", &[]);
    let name = engines().named(&file).unwrap();
    assert_eq!(
        (name.to_string(), name.grade()),
        (file.clone(), Grade::Exact)
    );
    for guard in ["", ":guard=on", ":guard=off"] {
        let mut engine = open(&format!("{file}{guard}"));
        let any = Pattern {
            source: SourceSelector::ANY,
            tag: TagSelector::ANY,
            context: ContextId::WORLD,
        };
        let first = queued(engine.post(receive(1), Cookie(10)));
        let second = queued(engine.post(any, Cookie(11)));
        assert_eq!(engine.expects(message(2)), Some(Cookie(11)));
        assert_eq!(
            engine.arrive(message(1), Cookie(0)),
            ArriveOutcome::Matched(Cookie(10))
        );
        assert_eq!(engine.cancel(first), CancelOutcome::AlreadyMatched);
        assert_eq!(engine.cancel(second), CancelOutcome::Cancelled(Cookie(11)));
        assert!(matches!(
            engine.arrive(message(4), Cookie(5)),
            ArriveOutcome::Queued(_)
        ));
        assert_eq!(engine.arrive_expected(message(4)), None);
        assert_eq!(engine.probe(any), Some((message(4), Cookie(5))));
        assert_eq!((engine.posted_len(), engine.unexpected_len()), (0, 1));
        let mut seen = Vec::new();
        engine.for_each_unexpected(&mut |envelope, cookie| seen.push((envelope, cookie)));
        assert_eq!(seen, [(message(4), Cookie(5))]);
        assert_eq!(engine.claim(receive(4)), Some((message(4), Cookie(5))));
        let stats = engine.stats();
        assert_eq!(
            (stats.posted.queued, stats.posted.hits, stats.posted.probes),
            (2, 1, 1)
        );
        assert_eq!((stats.unexpected.queued, stats.unexpected.hits), (1, 1));
    }
}

/// Who judges the answers is told of one that there is not, and the program goes on.
#[test]
fn an_answer_that_cannot_be_is_told_to_who_judges() {
    let folder = tempfile::tempdir().unwrap();
    let file = lying(folder.path());
    for (lie, told) in [
        (
            "status",
            "answered a post with the status 9, which there is not",
        ),
        ("nothing", "answered a post with nothing at all"),
        (
            "queued",
            "queued a message that is not to be queued, with the handle 0",
        ),
        (
            "wild",
            "found what cannot be: source 4294967295, tag -2147483648, context 1048576, flags 0",
        ),
        (
            "visits",
            "has posted what cannot be: source 4294967295, tag -2147483648, context 4294967295, flags 0",
        ),
    ] {
        let name = engines().named(&format!("{file}:lie={lie}")).unwrap();
        let Judged {
            mut engine,
            impossible,
        } = name.open_judged::<Local>(Capacity::default()).unwrap();
        assert_eq!(impossible.told(), None);
        let _ = engine.arrive_expected(message(2));
        let _ = engine.arrive(message(1), Cookie(3));
        let _ = engine.probe(receive(1));
        let _ = engine.post(receive(7), Cookie(4));
        let mut seen = 0;
        engine.for_each_posted(&mut |_, _| seen += 1);
        assert_eq!(impossible.told(), Some(told), "{lie}");
        assert!(seen <= 1, "{lie}");
    }
}

#[test]
fn an_answer_that_cannot_be_ends_the_program_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = lying(folder.path());
    let post_and_arrive = |engine: &mut AnyEngine| {
        let _ = engine.post(receive(1), Cookie(3));
        let _ = engine.arrive(message(1), Cookie(0));
    };
    let expected = |engine: &mut AnyEngine| {
        let _ = engine.arrive_expected(message(1));
    };
    let probe = |engine: &mut AnyEngine| {
        let _ = engine.arrive(message(1), Cookie(3));
        let _ = engine.probe(receive(1));
    };
    let cases: &[Case<'_>] = &[
        (
            "status",
            &post_and_arrive,
            "answered a post with the status 9, which there is not",
        ),
        (
            "nothing",
            &post_and_arrive,
            "answered a post with nothing at all",
        ),
        (
            "cookie",
            &post_and_arrive,
            "gave the cookie 8 for the receive with the handle 4294967296, whose cookie is 3",
        ),
        (
            "handle",
            &post_and_arrive,
            "gave the receive with the handle 4294967297 and the cookie 3, which is not queued",
        ),
        (
            "again",
            &|engine| {
                let _ = engine.post(receive(1), Cookie(0));
                let _ = engine.post(receive(1), Cookie(1));
            },
            "gave a receive the handle 7, which another one has",
        ),
        (
            "any",
            &|engine| {
                let _ = engine.post(receive(1), Cookie(0));
                let _ = engine.arrive(message(2), Cookie(0));
            },
            "which it does not accept",
        ),
        (
            "queued",
            &expected,
            "queued a message that is not to be queued",
        ),
        ("other", &probe, "and said that it is another one"),
        ("wild", &probe, "and said that it is another one"),
        (
            "keeps",
            &|engine| {
                let handle = queued(engine.post(receive(1), Cookie(0)));
                let _ = engine.cancel(handle);
            },
            "did not give it back",
        ),
    ];
    for (lie, call, told) in cases {
        let said = ended(&format!("{file}:lie={lie}"), call);
        assert!(said.contains(told) && said.contains(&file), "{lie}: {said}");
    }
}

/// Without the guard what is answered is passed on, as far as it means anything, and nothing else happens.
#[test]
fn answers_that_nobody_watches_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let file = lying(folder.path());
    for lie in [
        "status", "nothing", "cookie", "handle", "again", "any", "queued", "other", "wild",
        "keeps", "visits",
    ] {
        let mut engine = open(&format!("{file}:guard=off,lie={lie}"));
        let outcome = engine.post(receive(1), Cookie(3));
        let _ = engine.arrive(message(1), Cookie(0));
        let _ = engine.arrive_expected(message(1));
        let _ = engine.arrive(message(2), Cookie(9));
        let _ = (engine.probe(receive(2)), engine.claim(receive(2)));
        if let PostOutcome::Queued(handle) = outcome {
            let _ = (engine.cancel(handle), engine.discard(handle));
        }
        engine.for_each_posted(&mut |_, _| {});
        engine.for_each_unexpected(&mut |_, _| {});
        assert!(engine.stats().posted.queued >= 1);
    }
}

#[test]
fn what_is_no_library_of_an_engine_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let told = |name: &str| engines().named(name).unwrap_err().to_string();
    let missing = told(path("missing.so").to_str().unwrap());
    assert!(
        missing.contains("missing.so") && missing.contains("No such file"),
        "{missing}"
    );
    std::fs::write(path("text.so"), "text").unwrap();
    assert!(!told(path("text.so").to_str().unwrap()).is_empty());
    std::fs::write(path("other.c"), "int other;").unwrap();
    let other = library(folder.path(), path("other.c").to_str().unwrap(), &["-O0"]);
    assert!(told(&other).contains("it has no function 'tagwire_engine_v1'"));
    let tables: &[(&[&str], &str)] = &[
        (
            &["-O0", "-DTABLE=sizeof table,2,\"lying\",\"exact\""],
            "its table is of version 2, and this program reads version 1",
        ),
        (
            &["-O0", "-g", "-DTABLE=16,TW_ENGINE_ABI,\"lying\",\"exact\""],
            "its table has 16 bytes, fewer than version 1 has",
        ),
        (
            &[
                "-O0",
                "-g",
                "-g",
                "-DTABLE=sizeof table,TW_ENGINE_ABI,\"lying\",\"exactly\"",
            ],
            "its grade is 'exactly', and there are exact, mpi, free",
        ),
        (
            &["-O0", "-g", "-g", "-g", "-DVISIT=NULL"],
            "its table has no 'visit'",
        ),
    ];
    for (options, reason) in tables {
        let file = library(folder.path(), "tests/lying.c", options);
        let said = told(&file);
        assert!(said.contains(reason), "{said}");
    }
    let file = lying(folder.path());
    for (parameters, reason) in [
        ("bins=64", "it takes no parameters, and is given 'bins=64'"),
        ("lie=silent", "it makes no engine, and says not why"),
        ("lie=endless", "it makes no engine, and says not why"),
    ] {
        let said = told(&format!("{file}:{parameters}"));
        assert!(said.contains(reason), "{said}");
    }
    // Its parameters are right, and it cannot be made as large as a rank needs it.
    let name = engines().named(&format!("{file}:lie=small")).unwrap();
    let open = || name.open(Capacity::new(5, 6)).name().to_owned();
    let opened = catch_unwind(AssertUnwindSafe(open));
    let said = opened.unwrap_err().downcast::<String>().unwrap();
    assert!(
        said.contains("cannot be made for 5 receives and 6 messages (setting 'match-capacity'): it holds 4 receives"),
        "{said}"
    );
    let said = name.open_judged::<Local>(Capacity::new(5, 6));
    assert_eq!(
        said.unwrap_err().to_string(),
        format!(
            "matching engine '{name}': cannot be made for 5 receives and 6 messages: it holds 4 receives"
        )
    );
    // Who loads no libraries knows no such name.
    let said = Engines::default().named(&file).unwrap_err().to_string();
    assert!(said.contains("unknown matching engine"), "{said}");
}
