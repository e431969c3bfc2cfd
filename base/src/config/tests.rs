use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::named::Named;

const SAMPLE: &[Setting] = &[
    Setting::bytes(
        "pml",
        "eager-limit",
        16 << 10,
        0..=1 << 20,
        "Longest eager message",
    ),
    Setting::bytes_or_auto("pml", "packet", 64..=1 << 20, "Most in one packet"),
    Setting::integer("shm", "spins", 100, 1..=1000, "Looks before it yields"),
    Setting::duration(
        "shm",
        "give-up",
        Duration::from_secs(1),
        Duration::from_micros(1)..=Duration::from_secs(60),
        "How long to wait",
    ),
    Setting::choice(
        "pml",
        "engine",
        "bins",
        &["list", "bins"],
        "Matching engine",
    ),
    Setting::flag("shm", "wake", true, "Sleep | in the kernel"),
    Setting::text("ofi", "library", "", "Path of the library"),
];

const NONE: [(&str, &str); 0] = [];

fn registry() -> Registry {
    Registry::new(&[SETTINGS, SAMPLE]).with_reserved(&["TAGWIRE_RANK"])
}

fn of_environment(pairs: &[(&str, &str)]) -> Result<Config> {
    Config::from_environment(&registry(), pairs.iter().copied(), NONE)
}

#[test]
fn defaults_hold_when_nobody_says_otherwise() {
    let config = of_environment(&[("PATH", "/bin"), ("XTAGWIRE_LOG", "loud")]).unwrap();
    assert_eq!(config.bytes("eager-limit"), 16 << 10);
    assert_eq!(config.integer("spins"), 100);
    assert_eq!(config.duration("give-up"), Duration::from_secs(1));
    assert_eq!(config.choice("engine"), "bins");
    assert!(config.flag("wake"));
    assert_eq!(config.text("library"), "");
    assert!(
        config
            .entries()
            .all(|entry| entry.origin() == Origin::Default)
    );
    assert_eq!(config.to_environment().count(), 0);
}

#[test]
fn explicit_wins_over_environment_wins_over_default() {
    let environment = [("TAGWIRE_SPINS", "7"), ("TAGWIRE_ENGINE", "list")];
    let config = Config::from_environment(&registry(), environment, [("spins", "9")]).unwrap();
    assert_eq!(config.integer("spins"), 9);
    assert_eq!(config.choice("engine"), "list");
    let origin = |name| config.entry(name).unwrap().origin();
    assert_eq!(origin("spins"), Origin::Explicit);
    assert_eq!(origin("engine"), Origin::Environment);
    assert_eq!(origin("wake"), Origin::Default);
}

#[test]
fn a_bad_value_in_the_environment_is_refused_even_where_a_flag_overrides_it() {
    let environment = [("TAGWIRE_SPINS", "0")];
    let error = Config::from_environment(&registry(), environment, [("spins", "9")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "setting 'TAGWIRE_SPINS' cannot be '0': expected 1 to 1000"
    );
}

#[test]
fn unknown_variables_are_refused_with_the_nearest() {
    let error = of_environment(&[("TAGWIRE_EAGR_LIMIT", "1")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown setting 'TAGWIRE_EAGR_LIMIT'; did you mean 'TAGWIRE_EAGER_LIMIT'?"
    );
    // The prefix that all share makes no two names alike, and case counts in names.
    let error = of_environment(&[("TAGWIRE_QQQQQQQ", "")]).unwrap_err();
    assert_eq!(error.to_string(), "unknown setting 'TAGWIRE_QQQQQQQ'");
    assert!(of_environment(&[("TAGWIRE_spins", "3")]).is_err());
}

#[test]
fn reserved_variables_pass() {
    assert!(of_environment(&[("TAGWIRE_RANK", "banana")]).is_ok());
}

#[test]
fn an_empty_variable_is_as_good_as_none() {
    let config = of_environment(&[("TAGWIRE_SPINS", "")]).unwrap();
    assert_eq!(config.entry("spins").unwrap().origin(), Origin::Default);
}

#[test]
fn values_out_of_range_say_the_range() {
    for (name, value, said) in [
        ("eager-limit", "2M", "expected 0 to 1M"),
        ("eager-limit", "much", "K is 1024"),
        ("packet", "63", "expected auto, or 64 to 1M"),
        ("packet", "automatic", "K is 1024"),
        ("spins", "1001", "expected 1 to 1000"),
        ("give-up", "61s", "expected 1us to 60s"),
        ("give-up", "5", "10s"),
        (
            "engine",
            "bin",
            "did you mean 'bins'? The choices are list, bins",
        ),
        ("wake", "perhaps", "expected on or off"),
    ] {
        let error = Config::defaults(&registry()).set(name, value).unwrap_err();
        assert_eq!(error.code(), 111);
        let text = error.to_string();
        assert!(text.contains(said) && text.contains(value), "{text}");
    }
}

#[test]
fn a_configuration_travels_through_the_environment() {
    let mut config = Config::defaults(&registry());
    for (name, value) in [
        ("eager-limit", "3000"),
        ("packet", "2K"),
        ("give-up", "1.5ms"),
        ("wake", "no"),
        ("library", "/lib/x y.so"),
    ] {
        config.set(name, value).unwrap();
    }
    let copy = Config::from_environment(&registry(), config.to_environment(), NONE).unwrap();
    for (ours, theirs) in config.entries().zip(copy.entries()) {
        assert_eq!(ours.value(), theirs.value());
    }
    assert_eq!(config.to_environment().count(), 5);
}

#[test]
fn who_read_a_value_is_remembered() {
    let config = Config::defaults(&registry());
    assert!(config.entry("spins").unwrap().read_at().is_none());
    let (_, line) = (config.integer("spins"), line!());
    let _ = config.integer("spins");
    let place = config.entry("spins").unwrap().read_at().unwrap();
    assert!(place.file().ends_with("tests.rs"));
    assert_eq!(place.line(), line);
}

#[test]
#[should_panic(expected = "did you mean 'spins'")]
fn reading_what_is_not_declared_is_a_mistake_of_the_program() {
    let _ = Config::defaults(&registry()).integer("spin");
}

#[test]
#[should_panic(expected = "read as a switch")]
fn reading_another_kind_is_a_mistake_of_the_program() {
    let _ = Config::defaults(&registry()).flag("spins");
}

#[test]
#[should_panic(expected = "declared by pml and by shm")]
fn one_name_is_declared_once() {
    const A: &[Setting] = &[Setting::flag("pml", "same", true, "A")];
    const B: &[Setting] = &[Setting::flag("shm", "same", true, "B")];
    let _ = Registry::new(&[A, B]);
}

#[test]
#[should_panic(expected = "none of its choices")]
fn a_default_is_one_of_the_choices() {
    const A: &[Setting] = &[Setting::choice("pml", "which", "c", &["a", "b"], "A")];
    let _ = Registry::new(&[A]);
}

#[test]
#[should_panic(expected = "no name for a setting")]
fn names_are_plain() {
    const A: &[Setting] = &[Setting::flag("pml", "Not_Plain", true, "A")];
    let _ = Registry::new(&[A]);
}

#[test]
fn the_page_has_one_row_for_each_setting() {
    let page = registry().to_markdown();
    assert_eq!(page.lines().count(), 2 + registry().settings().len());
    assert!(page.contains(
        "| `eager-limit` | `TAGWIRE_EAGER_LIMIT` | bytes | `16K` | 0 to 1M | `pml` | \
         Longest eager message |"
    ));
    assert!(page.contains("Sleep \\| in the kernel"), "{page}");
    assert!(page.contains("| (empty) |"), "{page}");
}

proptest! {
    #[test]
    fn what_a_setting_prints_it_reads(bytes in 0u64..=1 << 20, number in 1u64..=1000) {
        let find = |name| *registry().find(name).unwrap();
        for (setting, value) in [
            (find("eager-limit"), Value::Bytes(bytes)),
            (find("spins"), Value::Integer(number)),
        ] {
            prop_assert_eq!(setting.parse(&value.to_string()), Ok(value));
        }
    }

    #[test]
    fn no_environment_breaks_it(name in "TAGWIRE_[A-Z_]{0,12}|TAGWIRE_SPINS", value in any::<String>()) {
        let outcome = of_environment(&[(&name, &value)]);
        if let Ok(config) = outcome {
            prop_assert!((1..=1000).contains(&config.integer("spins")));
        }
    }
}

mod stacks {
    use super::*;

    const RAILS: Setting = Setting::stack(
        "pml",
        "rails",
        "near",
        &["near", "far", "wide"],
        &["far", "wide"],
        "What carries the bytes",
    );

    #[test]
    fn parts_with_and_without_details() {
        for text in [
            "near",
            "far",
            "far:a;b:c",
            "near+far:x",
            "far:x+far:y+near",
            "far@/lib/one.so:x@y",
            "far@/lib/one.so:x+far@/lib/two.so:x",
        ] {
            assert_eq!(RAILS.parse(text).unwrap().to_string(), text);
        }
        let Value::Stack(parts) = RAILS.parse("far@/lib/one.so:x@y").unwrap() else {
            panic!("it is a stack");
        };
        let (file, detail) = (parts[0].file.as_deref(), parts[0].detail.as_deref());
        assert_eq!((file, detail), (Some("/lib/one.so"), Some("x@y")));
        let config = Config::from_environment(
            &Registry::new(&[&[RAILS]]),
            [("TAGWIRE_RAILS", "far:a,b+near")],
            [("", ""); 0],
        )
        .unwrap();
        let [far, near] = config.stack("rails") else {
            panic!("two parts");
        };
        assert_eq!((far.name, far.detail.as_deref()), ("far", Some("a,b")));
        assert_eq!((near.name, &near.detail), ("near", &None));
        let variables: Vec<_> = config.to_environment().collect();
        assert_eq!(
            variables,
            [("TAGWIRE_RAILS".to_owned(), "far:a,b+near".to_owned())]
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, said) in [
            ("", "the choices are near, far, wide"),
            ("nera", "did you mean 'near'?"),
            ("near+", "the choices are"),
            ("far:", "'far:' lacks what the colon announces"),
            ("far@:x", "'far@' lacks what the at sign announces"),
            ("near:x", "'near' takes nothing after it"),
            ("near@/lib/one.so", "'near' takes nothing after it"),
            ("near+near", "'near' is given twice"),
        ] {
            let error = RAILS.parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
        assert_eq!(RAILS.default_value().to_string(), "near");
        assert_eq!(RAILS.kind().range(), "near, far, far:..., wide, wide:...");
    }
}

#[test]
fn a_size_may_be_left_open() {
    let mut config = Config::defaults(&registry());
    assert_eq!(config.bytes_or_auto("packet"), None);
    config.set("packet", "1K").unwrap();
    assert_eq!(config.bytes_or_auto("packet"), Some(1024));
    config.set("packet", "auto").unwrap();
    assert_eq!(config.bytes_or_auto("packet"), None);
    assert_eq!(config.entry("packet").unwrap().value().to_string(), "auto");
}

#[test]
fn a_program_adds_names_and_keeps_what_stands_behind_them() {
    static LIST: Named = Named {
        name: "list",
        parameters: &[],
    };
    static MINE: Named = Named {
        name: "mine",
        parameters: &[],
    };
    static KNOWN: [&Named; 1] = [&LIST];
    static ALL: [&Named; 2] = [&LIST, &MINE];
    const ENGINE: Setting = Setting::named("pml", "engine", "list", &KNOWN, "What matches");
    let registry = Registry::new(&[&[ENGINE]]);
    assert!(Config::defaults(&registry).set("engine", "mine").is_err());
    assert_eq!(registry.value::<u64>(), None);
    let registry = registry.with_names("engine", &ALL).with_value(7_u64);
    let mut config = Config::defaults(&registry);
    config.set("engine", "mine").unwrap();
    assert_eq!(config.named("engine").name(), "mine");
    assert_eq!(config.registry().value::<u64>(), Some(&7));
    assert_eq!(config.registry().value::<u32>(), None);
}

#[test]
#[should_panic(expected = "no setting is called 'engines'")]
fn names_of_a_setting_that_there_is_not_are_a_mistake() {
    let _ = registry().with_names("engines", &[]);
}
