//! `tagwire info`: what it prints, and that both of its forms hold together.

use std::sync::OnceLock;

use crate::command::{Outcome, tagwire};
use serde_json::Value;

/// The exit status of `--why-not` where something cannot be used.
const UNUSABLE: i32 = 5;

fn info(arguments: &[&str]) -> Outcome {
    tagwire().arg("info").args(arguments).outcome()
}

fn document(outcome: &Outcome) -> Value {
    assert_eq!(outcome.status, 0, "{outcome:?}");
    serde_json::from_str(&outcome.stdout).unwrap()
}

/// The document without settings. All tests look at one: each opens every provider of each library.
fn plain() -> &'static Value {
    static FOUND: OnceLock<Value> = OnceLock::new();
    FOUND.get_or_init(|| document(&info(&["--json"])))
}

/// The whole as text, once for all tests too.
fn whole() -> &'static str {
    static FOUND: OnceLock<String> = OnceLock::new();
    FOUND.get_or_init(|| info(&["--all"]).stdout)
}

fn setting<'a>(document: &'a Value, name: &str) -> &'a Value {
    let settings = document["settings"].as_array().unwrap();
    settings
        .iter()
        .find(|setting| setting["name"] == name)
        .unwrap()
}

#[test]
fn the_document_says_what_build_this_is() {
    let document = plain();
    assert_eq!(document["schema"], "tagwire.info/1");
    let build = &document["build"];
    assert_eq!(build["version"], env!("CARGO_PKG_VERSION"));
    assert!(build["features"].is_array());
    let commit = build["commit"]
        .as_str()
        .unwrap()
        .trim_end_matches("-modified");
    let hexadecimal = commit.len() == 12 && commit.bytes().all(|b| b.is_ascii_hexdigit());
    assert!(commit == "unknown" || hexadecimal, "{commit}");
    assert!(build["compiler"].as_str().unwrap().starts_with("rustc "));
}

#[test]
fn the_document_describes_this_machine() {
    let document = plain();
    let machine = &document["machine"];
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(machine["kernel"], release.trim());
    assert!(machine["clock_cost_ns"].as_f64().unwrap() > 0.0);
    assert_eq!(document["launcher"]["detected"], "single process");
}

#[test]
fn every_transport_has_a_verdict_capabilities_and_limits() {
    let document = plain();
    let transports = document["transports"].as_array().unwrap();
    assert!(
        transports
            .iter()
            .any(|transport| transport["name"] == "null")
    );
    for transport in transports {
        assert!(transport["verdict"].is_string(), "{transport}");
        assert!(transport["capabilities"].is_array(), "{transport}");
        let usable = transport["verdict"] != "unusable";
        assert_eq!(
            transport["limits"]["max_send"].is_u64(),
            usable,
            "{transport}"
        );
    }
}

/// The table of a file, and a file that is none.
#[test]
fn collectives_are_reported_by_the_table_in_use() {
    let report = |path: &str| {
        let document = document(&info(&["--json", "--coll-table", path]));
        document["collectives"].clone()
    };
    let taken = |report: &Value, ranks: u64, place: &str| {
        let mut all = report["operations"].as_array().unwrap().iter();
        let one = all.find(|one| {
            let at = one["place"].as_str().unwrap_or(place);
            one["operation"] == "reduce" && one["ranks"] == ranks && at == place
        });
        one.unwrap()["algorithms"].clone()
    };
    let plain = report("");
    assert_eq!(plain["table"], "the table in the tree");
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let row = "rows = [{operation='reduce', algorithm='scatter-gather', ranks=4, place='host'}]";
    std::fs::write(path, row).unwrap();
    let with_file = report(path);
    assert_eq!(with_file["table"], path);
    assert_ne!(with_file["digest"], plain["digest"]);
    let whole = serde_json::json!([{"from_bytes": 0, "name": "scatter-gather"}]);
    assert_eq!(taken(&with_file, 4, "host"), whole);
    for (ranks, place) in [(2, "host"), (2, "hosts"), (4, "hosts")] {
        assert_eq!(taken(&with_file, ranks, place), taken(&plain, ranks, place));
    }
    let text = info(&["collectives", "--coll-table", path]).stdout;
    for line in [path, "reduce, 4 ranks, one host: scatter-gather\n"] {
        assert!(text.contains(line), "{text}");
    }

    std::fs::write(path, "\nrow = []").unwrap();
    let text = info(&["collectives", "--coll-table", path]).stdout;
    for part in ["refused", path, "line 2", "the key rows"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Which way the partitions of a channel take, and why, by layer.
#[test]
fn every_transport_says_how_partitions_travel() {
    let document = plain();
    let of = |name: &str| {
        let transports = document["transports"].as_array().unwrap();
        let found = transports.iter().find(|one| one["name"] == name).unwrap();
        let text = |layer: &str| found["partitions"][layer].as_str().unwrap().to_owned();
        (text("ob1"), text("cm"))
    };
    let (ob1, cm) = of("shm");
    assert!(
        ob1.contains("channels of the transport's own") && ob1 == cm,
        "{ob1}; {cm}"
    );
    let (ob1, cm) = of("null");
    assert!(
        ob1.contains("notice") && cm.contains("message for each"),
        "{ob1}; {cm}"
    );
    let text = info(&["shm"]).stdout;
    assert!(
        text.contains("partitions: by channels of the transport's own"),
        "{text}"
    );
}

/// Protocols by length, without gaps, for the ranks that a transport reaches.
#[test]
fn what_carries_messages_is_told_by_peer_and_length() {
    let messages = |arguments: &[&str]| {
        let document = document(&info(&[&["--json"], arguments].concat()));
        document["messages"].as_array().unwrap().clone()
    };
    let ends = |protocols: &Value| {
        let protocols = protocols.as_array().unwrap();
        let end = |protocol: &Value| (protocol["from"].as_u64().unwrap(), protocol["to"].as_u64());
        protocols.iter().map(end).collect::<Vec<_>>()
    };
    let [here, elsewhere] = &messages(&[])[..] else {
        panic!("two kinds of peers");
    };
    assert_eq!(
        (here["transport"].as_str(), here["pml"].as_str()),
        (Some("shm"), Some("ob1"))
    );
    let ends_here = ends(&here["protocols"]);
    assert!(ends_here.len() > 2 && ends_here[0].0 == 0, "{ends_here:?}");
    assert_eq!(ends_here.last().unwrap().1, None);
    for pair in ends_here.windows(2) {
        assert_eq!(pair[0].1.unwrap() + 1, pair[1].0, "{ends_here:?}");
    }
    // What the default comes to depends on the machine's networks.
    let network = elsewhere["transport"].as_str();
    let found = network.is_none_or(|name| name.starts_with("ofi") || name.starts_with("ucx"));
    assert!(found, "{elsewhere}");
    let elsewhere = &messages(&["--transport", "shm"])[1];
    assert_eq!(elsewhere["transport"], Value::Null);
    assert!(
        elsewhere["why_not"]
            .as_str()
            .unwrap()
            .contains("reaches none")
    );

    // The settings that decide, decide here too.
    let shorter = &messages(&["--eager-limit", "1K"])[0];
    let rendezvous = ends(&shorter["protocols"]).last().unwrap().0;
    assert_eq!(rendezvous, 1025);
    let cm = &messages(&["--pml", "cm"])[0];
    assert_eq!(cm["pml"], "cm");
    assert!(
        cm["protocols"][0]["how"]
            .as_str()
            .unwrap()
            .starts_with("eager")
    );

    let [here, elsewhere] = &messages(&["--transport", "shm+ofi:tcp;ofi_rxm"])[..] else {
        panic!("two kinds of peers");
    };
    match elsewhere["why_not"].as_str() {
        Some(why) => eprintln!("SKIPPED: no tcp;ofi_rxm: {why}"),
        None => {
            assert_eq!(here["transport"], "shm");
            assert_eq!(elsewhere["transport"], "ofi:tcp;ofi_rxm");
            assert_ne!(here["protocols"], elsewhere["protocols"]);
        }
    }
}

/// The ways of long messages over shared memory, which settings fix.
#[test]
fn ways_of_long_messages_are_told_with_what_fixes_them() {
    let plain = &plain()["messages"][0]["long"];
    let names: Vec<&str> = (plain["ways"].as_array().unwrap().iter())
        .map(|way| way["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["halves", "one-side", "ring"]);
    assert_eq!(plain["fixed"], Value::Null);
    let off = document(&info(&["--json", "--shm-cma", "off"]));
    let off = &off["messages"][0]["long"];
    for way in off["ways"].as_array().unwrap() {
        let why_not = way["why_not"].as_str().unwrap_or_default();
        let is_ring = way["name"] == "ring";
        assert_eq!(why_not.contains("shm-cma is off"), !is_ring, "{way}");
    }
    // One that is fixed and cannot be used is the reason why nothing is sent.
    let refused = info(&["messages", "--shm-way", "halves", "--shm-cma", "off"]).stdout;
    let parts = [
        "to ranks of this host: not by ob1",
        "shm-way",
        "'halves'",
        "shm-cma is off",
    ];
    assert!(parts.iter().all(|part| refused.contains(part)), "{refused}");
    let dr = info(&["messages", "--pml", "dr"]).stdout;
    assert!(!dr.contains("of long messages"), "{dr}");

    for topic in ["messages", "shm"] {
        let text = info(&[topic, "--shm-cma", "off"]).stdout;
        for part in [
            "way of long messages: ring alone",
            "not by halves or one-side",
        ] {
            assert!(text.contains(part), "{topic}: {text}");
        }
        let text = info(&[topic, "--shm-way", "ring"]).stdout;
        assert!(
            text.contains("way of long messages: ring (shm-way)"),
            "{topic}: {text}"
        );
    }
    let text = info(&["shm", "--shm-reuse", "off", "--shm-room", "96M"]).stdout;
    // As one line.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["within 96M", "never (shm-reuse)"] {
        assert!(text.contains(part), "{text}");
    }
}

/// The algorithms of collectives that are tried, and those that a setting names, with what stands against them.
#[test]
fn collectives_say_what_is_tried_and_what_is_named() {
    let report = |options: &[&str]| {
        let document = document(&info(&[&["--json"], options].concat()));
        document["collectives"].clone()
    };
    let operations = |report: &Value| {
        let tried = report["tried"].as_array().unwrap().iter();
        let names = tried.map(|one| one["operation"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert!(operations(&plain()["collectives"]).contains(&"allreduce".to_owned()));
    let forced = report(&["--coll-algorithm", "allreduce:board,reduce:two-level"]);
    assert!(
        !operations(&forced).contains(&"allreduce".to_owned()),
        "{forced}"
    );
    let [board, levels] = &forced["named"].as_array().unwrap()[..] else {
        panic!("{forced}");
    };
    assert_eq!(
        (&board["operation"], &board["algorithm"]),
        (&"allreduce".into(), &"board".into())
    );
    assert_eq!(board["why_not_on_one_host"], Value::Null);
    assert_eq!(levels["why_not_on_several"], Value::Null);
    let why_not = levels["why_not_on_one_host"].as_str().unwrap();
    assert!(why_not.contains("several hosts"), "{why_not}");

    let text = info(&["collectives", "--shm-cma", "off"]).stdout;
    for part in [
        "found by trial on one host, from 8K on: ",
        "allreduce (board, board-parts)",
        "not by single-copy: members read each other's memory, and shm-cma is off",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line = [
        "collectives",
        "--coll-algorithm",
        "allreduce:board",
        "--transport",
        "null",
    ];
    let text = info(&line).stdout;
    for part in [
        "allreduce: board (coll-algorithm)\n",
        "refused by jobs on one host: ",
        "over null",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Providers and transports of a library that can be used say what they offer, and name no reason.
#[test]
fn what_libraries_offer_has_capabilities_limits_and_protocols() {
    let document = plain();
    for transport in document["transports"].as_array().unwrap() {
        let ways = transport["ways"].as_array().unwrap();
        let is_loaded = ways.iter().any(|way| way["why_not"].is_null());
        assert_eq!(is_loaded, transport["library"].is_object(), "{transport}");
        for way in ways {
            let usable = way["why_not"].is_null();
            let matches = usable && way["why_not_matching"].is_null();
            assert_eq!(way["limits"]["max_send"].is_u64(), usable, "{way}");
            assert_eq!(
                way["capabilities"] != serde_json::json!([]),
                usable,
                "{way}"
            );
            assert_eq!(way["protocols"]["ob1"][0]["from"] == 0, usable, "{way}");
            assert_eq!(way["protocols"]["cm"][0]["from"] == 0, matches, "{way}");
        }
    }
}

/// What follows the colon is opened, not the library's own choice.
#[test]
fn the_provider_that_is_asked_for_is_looked_at() {
    let of = |transport: &str| {
        let outcome = tagwire()
            .args(["info", "--json"])
            .env("TAGWIRE_TRANSPORT", transport)
            .outcome();
        let document = document(&outcome);
        let transports = document["transports"].as_array().unwrap();
        let found = transports.iter().find(|one| one["name"] == "ofi").unwrap();
        found["partitions"]["ob1"].as_str().map(str::to_owned)
    };
    let (Some(with), Some(without)) = (of("shm+ofi:tcp;ofi_rxm"), of("ofi:udp;ofi_rxd")) else {
        return eprintln!("SKIPPED: no libfabric with tcp;ofi_rxm and udp;ofi_rxd");
    };
    assert!(with.contains("a flag behind it"), "{with}");
    assert!(without.contains("a message for each"), "{without}");
}

#[test]
fn one_engine_is_the_default_and_one_is_used() {
    let engines = |arguments| document(&info(arguments))["engines"].clone();
    let which = |engines: &Value, key: &str| -> Vec<String> {
        let chosen = engines
            .as_array()
            .unwrap()
            .iter()
            .filter(|e| e[key] == true);
        chosen
            .map(|e| e["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let plain = engines(&["--json"]);
    assert_eq!(which(&plain, "default").len(), 1);
    assert_eq!(which(&plain, "default"), which(&plain, "used"));
    let other = engines(&["--json", "--engine", "list"]);
    assert_eq!(which(&other, "used"), ["list"]);
    assert_eq!(which(&other, "default"), which(&plain, "default"));
}

#[test]
fn values_and_their_origin_are_told() {
    let plain = plain();
    assert_eq!(setting(plain, "log")["origin"], "default");
    let environment = tagwire()
        .args(["info", "--json"])
        .env("TAGWIRE_LOG", "error")
        .outcome();
    let environment = document(&environment);
    assert_eq!(setting(&environment, "log")["value"], "error");
    assert_eq!(setting(&environment, "log")["origin"], "environment");
    let flag = tagwire()
        .args(["info", "--json", "--log", "info"])
        .env("TAGWIRE_LOG", "error")
        .outcome();
    let flag = document(&flag);
    assert_eq!(setting(&flag, "log")["value"], "info");
    assert_eq!(setting(&flag, "log")["origin"], "explicit");
}

#[test]
fn the_text_names_all_that_the_document_names() {
    let document = plain();
    let text = whole();
    for list in ["transports", "engines", "pmls", "settings"] {
        for item in document[list].as_array().unwrap() {
            let name = item["name"].as_str().unwrap();
            assert!(text.contains(name), "{name} of {list} is not in the text");
        }
    }
    assert!(text.contains(document["build"]["commit"].as_str().unwrap()));
}

/// A line for each transport and provider, with what it works with, on one screen.
#[test]
fn the_first_page_is_one_screen() {
    let page = info(&[]);
    assert_eq!(page.status, 0, "{page:?}");
    let lines: Vec<&str> = page.stdout.lines().collect();
    let too_wide = lines.iter().filter(|line| line.chars().count() > 100);
    assert_eq!(too_wide.count(), 0, "{}", page.stdout);

    let document = plain();
    let transports = document["transports"].as_array().unwrap();
    let ways = transports.iter().map(|one| one["ways"].as_array().unwrap());
    let ways: Vec<&Value> = ways.flatten().collect();
    // What libraries offer is theirs to decide; all else has a bound.
    assert!(lines.len() <= ways.len() + 36, "{}", page.stdout);
    let row = |name: &str| {
        let is_row = |line: &&&str| line.split_whitespace().next() == Some(name);
        *lines
            .iter()
            .find(is_row)
            .unwrap_or_else(|| panic!("no row for {name}"))
    };
    let word = |works: bool| if works { "yes" } else { "no" };
    for way in ways {
        let usable = way["why_not"].is_null();
        let matches = usable && way["why_not_matching"].is_null();
        let line = row(way["name"].as_str().unwrap());
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[1..3], [word(usable), word(matches)], "{line}");
        assert_eq!(
            words.len() > 3,
            !matches,
            "a reason where it is needed: {line}"
        );
    }
    assert!(row("shm").contains(" yes  yes  used; "), "{}", row("shm"));
    assert!(row("null").contains(" yes  no "), "{}", row("null"));
    assert!(page.stdout.contains("at their defaults"), "{}", page.stdout);
    let changed = info(&["--log", "error"]).stdout;
    assert!(
        changed.contains("changed: log=error (explicit)"),
        "{changed}"
    );
}

/// The whole is as wide as a screen, but for words that are wider.
#[test]
fn the_whole_is_broken_into_lines() {
    let text = whole();
    for line in text.lines().filter(|line| line.chars().count() > 100) {
        assert_eq!(line.split_whitespace().count(), 1, "{line}");
    }
    for section in ["Machine", "Transports", "Messages", "Pmls", "Settings"] {
        assert!(text.lines().any(|line| line == section), "no {section}");
    }
}

#[test]
fn a_topic_is_a_part_of_the_whole() {
    let whole = whole();
    let help = info(&["--help"]).stdout;
    for (topic, part) in [
        ("build", "compiler"),
        ("launcher", "single process"),
        ("machine", "CPUs allowed"),
        ("transports", "capabilities:"),
        ("messages", "to ranks of this host: ob1 over shm"),
        ("engines", "bins (used, the default)"),
        ("pmls", "posted receives"),
        ("conformance", "conformance over shm: core"),
        ("collectives", "found by trial on one host, from 8K on"),
        ("settings", "TAGWIRE_EAGER_LIMIT"),
        ("shm", "shared memory between the ranks of one machine"),
        ("cm", "conformance over shm: core"),
        ("dr", "checksums: CRC-32C by"),
        ("bins", "would be used"),
        ("engines", "bins=2 to 1048576: bins of each queue"),
        ("flajslik", "source: Flajslik, Dinan and Underwood"),
        ("eager-limit", "read by pml"),
    ] {
        let outcome = info(&[topic]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        assert!(outcome.stdout.contains(part), "{topic}: {outcome:?}");
        assert!(outcome.stdout.len() < whole.len(), "{topic}");
    }
    for topic in [
        "build",
        "launcher",
        "machine",
        "conformance",
        "collectives",
        "settings",
    ] {
        assert!(help.contains(topic), "{topic} is not in the help");
    }
    // What the settings say is in a topic as well.
    let cm = info(&["messages", "--pml", "cm"]).stdout;
    assert!(cm.contains("cm over shm"), "{cm}");
    let dr = info(&["messages", "--pml", "dr"]).stdout;
    assert!(dr.contains("dr over shm") && !dr.contains("offer"), "{dr}");

    let unknown = info(&["machin"]);
    assert_eq!(unknown.status, 1);
    assert!(
        unknown.stderr.contains("did you mean 'machine'?"),
        "{unknown:?}"
    );
}

#[test]
fn a_topic_may_be_a_provider() {
    let document = plain();
    let transports = document["transports"].as_array().unwrap();
    // One of each library that works, and one that does not: each opens the library once more.
    let some = transports.iter().flat_map(|one| {
        let ways = one["ways"].as_array().unwrap();
        let first = |usable: bool| {
            let is_so = |way: &&Value| way["why_not"].is_null() == usable;
            ways.iter().find(is_so)
        };
        [first(true), first(false)].into_iter().flatten()
    });
    for way in some {
        let name = way["name"].as_str().unwrap();
        let outcome = info(&[name]);
        assert_eq!(outcome.status, 0, "{outcome:?}");
        let usable = way["why_not"].is_null();
        assert_eq!(outcome.stdout.contains("limits: "), usable, "{outcome:?}");
    }
    let outcome = info(&["ofi:no_such_provider"]);
    assert!(
        outcome.stdout.contains("cannot be used here"),
        "{outcome:?}"
    );
}

#[test]
fn every_pml_says_what_it_has_room_for_and_what_it_passes() {
    let document = plain();
    for pml in document["pmls"].as_array().unwrap() {
        assert!(pml["largest_tag"].as_i64().unwrap() >= 32_767, "{pml}");
        assert!(pml["contexts"].as_u64().unwrap() > 1, "{pml}");
        let receives = pml["receives"].as_u64().unwrap();
        match pml["name"].as_str().unwrap() {
            "cm" => assert_eq!(receives, 128 * 1024),
            _ => assert_eq!(receives, 1 << 26),
        }
        assert_eq!(pml["conformance"][0]["transport"], "shm");
        assert_eq!(pml["conformance"][0]["tiers"][0], "core");
    }
    let shm = &document["transports"][0];
    assert_eq!(shm["conformance"][0], "core");
    for (transport, fabric) in [("ofi", "ofi:tcp;ofi_rxm"), ("ucx", "ucx:tcp,self")] {
        let mut transports = document["transports"].as_array().unwrap().iter();
        let found = transports.find(|one| one["name"] == transport).unwrap();
        let mut fabrics = found["fabrics"].as_array().unwrap().iter();
        let found = fabrics.find(|one| one["name"] == fabric).unwrap();
        assert_eq!(found["conformance"][0], "core", "{found}");
    }
    let text = info(&["conformance"]).stdout;
    assert!(
        text.contains("conformance over ofi:net of libfabric 1.17: core"),
        "{text}"
    );
}

#[test]
fn why_not_answers_for_every_transport_and_engine() {
    let document = plain();
    for list in ["transports", "engines", "pmls"] {
        for item in document[list].as_array().unwrap() {
            let name = item["name"].as_str().unwrap();
            if (list, name) == ("engines", "ucx") {
                // A transport has the name too, and is the one that can lack something.
                continue;
            }
            let outcome = info(&["--why-not", name]);
            let usable = item["verdict"] != "unusable";
            assert_eq!(
                outcome.status,
                if usable { 0 } else { UNUSABLE },
                "{outcome:?}"
            );
            assert!(outcome.stdout.contains(name), "{outcome:?}");
        }
    }
}

#[test]
fn why_not_of_the_choice_tells_what_is_taken_and_why_not_the_others() {
    let told = info(&["--why-not", "auto"]);
    assert_eq!(told.status, 0, "{told:?}");
    assert!(
        told.stdout.starts_with("transport auto: would be used\n"),
        "{told:?}"
    );
    assert!(told.stdout.contains("one host takes shm;"), "{told:?}");
    for name in ["ofi:verbs;ofi_rxm", "ofi:tcp;ofi_rxm", "ofi:tcp", "ucx"] {
        // What it says of each is what each says of itself.
        let works = info(&["--why-not", name]).status == 0;
        let line = format!("\n  - {name}: {}", if works { "works" } else { "cannot" });
        assert!(told.stdout.contains(&line), "{line}: {told:?}");
    }
    let unused = info(&["--why-not", "auto", "--transport", "null"]);
    assert!(
        unused
            .stdout
            .contains("would be used with --transport auto"),
        "{unused:?}"
    );
}

#[test]
fn the_setting_decides_which_transport_is_used() {
    let document = document(&info(&["--json", "--transport", "null"]));
    for transport in document["transports"].as_array().unwrap() {
        let used = transport["verdict"] == "used";
        assert_eq!(used, transport["name"] == "null", "{transport}");
    }
    let outcome = info(&["--why-not", "null"]);
    assert!(
        outcome.stdout.contains("--transport null would choose it"),
        "{outcome:?}"
    );
    let faults = info(&[
        "--transport",
        "null",
        "--fault",
        "seed=4",
        "--why-not",
        "null",
    ]);
    assert!(
        faults.stdout.contains("faults around it: seed=4"),
        "{faults:?}"
    );
}

#[test]
fn what_stands_against_copying_once_is_told_with_its_remedy() {
    let off = info(&["--why-not", "shm", "--shm-cma", "off"]);
    assert_eq!(off.status, 0, "{off:?}");
    assert!(off.stdout.contains("--shm-cma auto"), "{off:?}");
}

#[test]
fn why_not_of_a_provider_gives_its_own_reason() {
    let missing = tagwire()
        .args(["info", "--why-not", "ofi"])
        .env("TAGWIRE_LIBFABRIC", "/nowhere/libfabric.so.1")
        .outcome();
    for part in [
        "cannot be used here",
        "/nowhere/libfabric.so.1",
        "TAGWIRE_LIBFABRIC",
    ] {
        assert!(missing.stdout.contains(part), "{missing:?}");
    }
    let provider = info(&["--why-not", "ofi:no_such_provider"]);
    assert_eq!(provider.status, UNUSABLE, "{provider:?}");
    assert!(
        provider.stdout.contains("cannot be used here"),
        "{provider:?}"
    );
}

/// Also a layer may be of no use with the transport that is chosen.
#[test]
fn why_not_of_a_layer_looks_at_the_transport() {
    let without = info(&["--why-not", "cm", "--transport", "null"]);
    assert_eq!(without.status, UNUSABLE, "{without:?}");
    assert!(
        without.stdout.contains("cannot be used here"),
        "{without:?}"
    );
    assert_eq!(info(&["--why-not", "cm"]).status, 0);
}

#[test]
fn why_not_knows_mpi_libraries() {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("mpi:{}", folder.path().display());
    let outcome = info(&["--why-not", &path]);
    assert_eq!(outcome.status, UNUSABLE, "{outcome:?}");
    assert!(
        outcome.stdout.contains("no libmpi_abi.so in this folder"),
        "{outcome:?}"
    );
    assert_eq!(info(&["--why-not", "mpi:"]).status, 1);

    // The same result as that of a run.
    let outcome = info(&["--why-not", "mpi"]);
    let run = tagwire()
        .args(["bench", "latency", "-m", "8", "-i", "10", "-t", "mpi"])
        .outcome();
    assert_eq!(outcome.status == 0, run.status == 0, "{outcome:?}{run:?}");
}

/// The result is what opening comes to, whether the library lists the name or not.
#[test]
fn why_not_of_a_provider_is_what_opening_comes_to() {
    if !info(&["--why-not", "ofi:tcp;ofi_rxm"])
        .stdout
        .contains("works")
    {
        return eprintln!("SKIPPED: no libfabric with tcp;ofi_rxm");
    }
    // Without datagrams of their own in 1.17: ofi_rxm or ofi_rxd is put on top.
    for provider in [
        "ofi:tcp",
        "ofi:udp",
        "ofi:tcp@lo",
        "ofi:ofi_rxm",
        "ofi:nothing",
    ] {
        let opens = tagwire()
            .args(["bench", "latency", "-m", "8", "-i", "10", "-t", provider])
            .outcome();
        let told = info(&["--why-not", provider]);
        let works = told
            .stdout
            .starts_with(&format!("transport {provider}: works"));
        assert_eq!(works, opens.status == 0, "{told:?}{opens:?}");
        assert_eq!(told.status, if works { 0 } else { UNUSABLE }, "{told:?}");
    }
}

#[test]
fn why_not_of_a_provider_names_the_device_that_it_needs() {
    const DEVICES: &str = "/sys/class/infiniband";
    if std::fs::read_dir(DEVICES).is_ok_and(|mut devices| devices.next().is_some()) {
        return eprintln!("SKIPPED: this machine has an RDMA device");
    }
    if info(&["--why-not", "ofi"])
        .stdout
        .contains("cannot be used here")
    {
        return eprintln!("SKIPPED: no libfabric");
    }
    for provider in ["ofi:verbs", "ofi:verbs;ofi_rxm", "ofi:efa", "ofi:psm3"] {
        let told = info(&["--why-not", provider]).stdout;
        assert!(
            told.contains("cannot be used here") && told.contains(DEVICES),
            "{told}"
        );
        let opened = tagwire()
            .args(["bench", "latency", "-m", "8", "-t", provider])
            .outcome();
        assert_eq!(opened.status, 2, "{opened:?}");
        assert!(opened.stderr.contains(DEVICES), "{opened:?}");
    }
}

#[test]
fn why_not_of_an_unknown_name_gives_the_nearest() {
    let outcome = info(&["--why-not", "nulll"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stderr.contains("did you mean 'null'?"),
        "{outcome:?}"
    );
    // With nothing near, it lists what there is.
    let outcome = info(&["--why-not", "?"]);
    assert_eq!(outcome.status, 1);
    assert!(outcome.stderr.contains("null"), "{outcome:?}");
}

#[test]
fn half_a_launcher_is_told_not_fatal() {
    let outcome = tagwire()
        .args(["info", "--json"])
        .env("TAGWIRE_RANK", "1")
        .outcome();
    let document = document(&outcome);
    assert_eq!(document["launcher"]["detected"], Value::Null);
    let finding = document["launcher"]["findings"][0].as_str().unwrap();
    assert!(finding.contains("TAGWIRE_SIZE"), "{finding}");
}

#[test]
fn the_page_of_settings_is_the_one_that_is_checked_in() {
    let page = info(&["--settings-markdown"]).stdout;
    let checked_in = include_str!("../../docs/settings.md");
    assert!(
        page == checked_in,
        "docs/settings.md is old; write it anew with\n    \
         cargo run -- info --settings-markdown > docs/settings.md"
    );
}
