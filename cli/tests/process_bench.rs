//! `tagwire bench` as a user calls it: every test, and every wrong way to ask.

use std::fs;
use std::process::{Command, Stdio};

use crate::process::{Line, Outcome, has, results, secret, tagwire, wheel};
use serde_json::Value;

/// As few iterations as make a row.
const TINY: &[&str] = &["-i", "3", "-x", "1", "-c"];

fn bench(arguments: &[&str]) -> Outcome {
    Line::new(["bench"]).args(arguments).finish()
}

/// The rows of a run in JSON, which went well.
fn rows(arguments: &[&str]) -> Vec<Value> {
    let outcome = bench(&[arguments, &["--format", "json"]].concat());
    assert_eq!(outcome.status, 0, "{arguments:?}: {outcome:#?}");
    let text = outcome.stdout.join("\n");
    let document = results(&text);
    assert_eq!(document["schema"], "tagwire.bench/2");
    assert_eq!(document["test"], arguments[0]);
    for part in ["command", "environment"] {
        assert!(!document[part].is_null(), "{part}: {text}");
    }
    document["rows"].as_array().unwrap().clone()
}

#[test]
fn every_test_runs_with_every_byte_checked() {
    for (test, figure, options) in [
        ("latency", "latency_us", &["-m", "1,8,8K,1M"][..]),
        ("bandwidth", "bandwidth_mb_s", &["-m", "8,8K,1M", "-W", "8"]),
        (
            "bibandwidth",
            "bandwidth_mb_s",
            &["-m", "8,8K,1M", "-W", "8"],
        ),
        ("message-rate", "rate_msg_s", &["-m", "8,4K", "-n", "4"]),
        (
            "multi-latency",
            "latency_us",
            &["-m", "8,64K", "-n", "4", "--posted", "3"],
        ),
        ("ring", "latency_us", &["-m", "8,64K", "-n", "3"]),
    ] {
        let rows = rows(&[&[test], TINY, options].concat());
        let sizes = options[1].split(',').count();
        assert_eq!(rows.len(), sizes, "{test}: {rows:?}");
        for row in rows {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{test}: {row}");
        }
    }
    let rows = rows(&["idle", "--seconds", "0.2"]);
    assert!(rows[0]["cpu_pct"].is_number(), "{rows:?}");
}

/// Lent, read by their receivers, or in parts, with every byte checked.
#[test]
fn the_bare_transport_carries_every_size_over_networks() {
    let test = "the_bare_transport_carries_every_size_over_networks";
    for transport in ["ofi:tcp;ofi_rxm", "ofi:udp;ofi_rxd", "ucx:tcp", "ucx:posix"] {
        if !has(test, transport) {
            continue;
        }
        for name in ["latency", "bandwidth"] {
            let options = ["--raw", "-m", "1,4095,4K,64K,300000", "-t", transport];
            let window: &[&str] = if name == "bandwidth" {
                &["-W", "4"]
            } else {
                &[]
            };
            let rows = rows(&[&[name], &options[..], TINY, window].concat());
            assert_eq!(rows.len(), 5, "{transport}: {rows:?}");
        }
    }
}

/// A rank loads the library that its transport names; the report distinguishes them.
#[test]
fn two_versions_of_a_library_are_in_one_report() {
    let test = "two_versions_of_a_library_are_in_one_report";
    for (transport, package, file, detail) in [
        ("ofi", "mpich", "libfabric.so.1", "tcp;ofi_rxm"),
        ("ucx", "libucx-cu12", "libucp.so.0", "tcp"),
    ] {
        let of_system = format!("{transport}:{detail}");
        let Some(newer) = wheel(test, package, file).filter(|_| has(test, &of_system)) else {
            continue;
        };
        let newer = newer.display();
        let both = format!("{of_system},{transport}@{newer}:{detail}");
        let rows = rows(&[&["latency", "-m", "8", "-t", &both], TINY].concat());
        let named = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert!(
            rows.iter()
                .all(|row| row["transport"] == of_system.as_str())
        );
        assert_ne!(named(&rows[0], "library"), named(&rows[1], "library"));
        let outcome = bench(&[&["latency", "-m", "8", "-t", &both], TINY].concat());
        let text = outcome.stdout.join("\n");
        // Launches come in any order; columns in that of the command, the second one with its name.
        let label = |row: &Value| named(row, "library").replace(' ', "-");
        let is_named = |row: &Value| text.contains(&format!("{of_system}({})", label(row)));
        assert!(rows.iter().any(is_named), "{text}");
        assert!(text.contains(&newer.to_string()), "{text}");
    }
}

#[test]
fn the_layers_and_the_matching_depth_are_measured() {
    let layers = rows(&[&["latency", "-m", "8", "--layers"], TINY].concat());
    let of = |name: &str| layers.iter().filter(|row| row["layer"] == name).count();
    assert_eq!((of("raw"), of("cm"), of("ob1")), (1, 1, 1), "{layers:?}");
    let few = ["-i", "3", "-x", "1"];
    for depth in [&["--posted", "1000", "-c"][..], &["--unexpected", "1000"]] {
        let rows = rows(&[&["latency"], depth, &few].concat());
        assert_eq!(rows.len(), 1, "{depth:?}: {rows:?}");
    }
}

#[test]
fn large_messages_are_right_without_cross_memory_attach() {
    let options = ["latency", "-m", "8K,1M", "--shm-cma", "off"];
    assert_eq!(rows(&[&options, TINY].concat()).len(), 2);
}

/// Buffers of both kinds of layer in the memory that ranks share.
#[test]
fn large_messages_are_right_by_the_arena() {
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let options = words("-m 8,8K,1M --shm-cma off --memory arena --shm-arena 1G");
    for test in [
        &["latency", "-p", "ob1"][..],
        &["latency", "-p", "cm"],
        &["latency", "--raw"],
        &["bandwidth", "-p", "cm", "-W", "8"],
    ] {
        let rows = rows(&[test, &options, TINY].concat());
        assert_eq!(rows.len(), 3, "{test:?}");
        assert!(rows.iter().all(|row| row["memory"] == "arena"), "{rows:?}");
    }
    let much = words("latency -m 1M --shm-arena 1M --memory arena");
    let outcome = bench(&[&much[..], TINY].concat());
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    let said = outcome.stderr.join("\n");
    assert!(said.contains("'shm-arena'"), "{said}");
}

/// What a user reads and scripts parse: header lines, then size and figure.
#[test]
fn text_has_the_shape_that_scripts_know() {
    let outcome = bench(&[&["latency", "-m", "8,64"], TINY].concat());
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let is_header = |line: &&String| line.starts_with('#');
    let headers = outcome.stdout.iter().take_while(is_header).count();
    assert!(headers > 3, "{outcome:#?}");
    let lines = outcome.stdout[headers..].iter();
    let sizes: Vec<f64> = lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            let size = words.next().unwrap().parse().unwrap();
            assert!(
                words.next().unwrap().parse::<f64>().unwrap() > 0.0,
                "{line}"
            );
            size
        })
        .collect();
    assert_eq!(sizes, [8.0, 64.0]);
}

#[test]
fn bad_requests_get_status_1_and_the_reason() {
    for (arguments, reasons) in [
        (
            &["latency", "--iteratons", "3"][..],
            &["'--iterations'"][..],
        ),
        (&["latnecy"], &["'latency'"]),
        (&["latency", "-t", "smh"], &["'shm'"]),
        (&["latency", "-t", "mpj"], &["'mpi'"]),
        (&["latency", "-t", "null"], &["'null'", "another rank"]),
        (&["latency", "-p", "ob2"], &["'ob1'"]),
        (&["latency", "--engine", "bin"], &["'bins'"]),
        (&["latency", "--shm-cma", "atuo"], &["'auto'"]),
        (&["latency", "--format", "jsn"], &["'json'"]),
        (&["latency", "-m", "8Q"], &["8Q"]),
        (&["latency", "-m", ""], &["--sizes"]),
        (&["latency", "-m", "8:4"], &["8:4"]),
        (&["latency", "-m", "2T"], &["2T", "2^40"]),
        (&["latency", "-m", "1025G"], &["1025G", "2^40"]),
        (&["latency", "-m", "1099511627777"], &["2^40"]),
        (&["latency", "-m", "99999999999999999999"], &["2^40"]),
        (&["latency", "-n", "0"], &["--ranks"]),
        (&["latency", "-n", "3"], &["2 ranks"]),
        (&["message-rate", "-n", "3"], &["even"]),
        (&["multi-latency", "-n", "3"], &["even"]),
        (&["multi-latency", "--unexpected", "4"], &["--unexpected"]),
        (&["latency", "-i", "0"], &["--iterations"]),
        (&["latency", "--percentiles", "101"], &["101"]),
        (&["latency", "--raw", "--posted", "5"], &["--posted"]),
        (&["compare", "-m", "8"], &["compare"]),
    ] {
        let outcome = bench(arguments);
        assert_eq!(outcome.status, 1, "{arguments:?}: {outcome:#?}");
        let errors = outcome.errors();
        for reason in reasons {
            assert!(
                errors.contains(reason),
                "{arguments:?} lacks {reason}: {errors}"
            );
        }
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

#[test]
fn a_peer_library_that_is_none_gets_status_2_and_is_named() {
    let missing = "/no/such/libmpi_abi.so";
    let outcome = bench(&["latency", "-t", &format!("mpi:{missing}")]);
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(outcome.errors().contains(missing), "{outcome:#?}");

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("libmpi_abi.so");
    fs::write(&text, "no library at all").unwrap();
    let name = text.to_str().unwrap();
    let outcome = bench(&["latency", "-t", &format!("mpi:{name}")]);
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(outcome.errors().contains(name), "{outcome:#?}");
}

/// The C library, which every process has: a library, and not the one that was meant.
#[test]
fn a_peer_library_without_a_symbol_gets_status_2_and_both_are_named() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let library = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .find(|path| {
            path.contains("/libc.so") || path.contains("/libc-") || path.contains("/ld-musl")
        });
    let Some(library) = library else {
        eprintln!("SKIPPED: this test is linked without a shared C library");
        return;
    };
    let outcome = bench(&["latency", "-t", &format!("mpi:{library}")]);
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    let errors = outcome.errors();
    assert!(
        errors.contains(library) && errors.contains("MPI_"),
        "{errors}"
    );
}

#[test]
fn output_that_cannot_be_written_gets_status_2() {
    // Several rows: rank 0 finds nobody who takes the second.
    let tiny = [&["latency", "-m", "8:512"], TINY].concat();
    for file in ["/dev/full", "/no/such/folder/result.json"] {
        let outcome = bench(&[&tiny[..], &["-o", file]].concat());
        assert_eq!(outcome.status, 2, "{file}: {outcome:#?}");
        assert!(outcome.errors().contains(file), "{outcome:#?}");
    }
    for format in ["text", "json", "csv"] {
        for closed in [false, true] {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let full = fs::OpenOptions::new()
                .write(true)
                .open("/dev/full")
                .unwrap();
            let out = if closed {
                writer.into()
            } else {
                Stdio::from(full)
            };
            let output = Command::new(tagwire())
                .args(["bench"])
                .args(&tiny)
                .args(["--format", format])
                .stdin(Stdio::null())
                .stdout(out)
                .output()
                .unwrap();
            let errors = String::from_utf8(output.stderr).unwrap();
            let case = format!("{format}, closed: {closed}: {errors}");
            if closed {
                // As a program that SIGPIPE ends.
                assert_eq!((output.status.code(), &*errors), (Some(141), ""), "{case}");
                continue;
            }
            assert_eq!(output.status.code(), Some(2), "{case}");
            assert!(
                errors.contains("cannot write to the standard output"),
                "{case}"
            );
            assert_eq!(errors.lines().count(), 1, "one line, the cause: {case}");
        }
    }
}

/// A run that is killed keeps what was saved while its job went on.
#[test]
fn what_was_measured_before_an_interruption_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.json");
    let job = Line::new(["bench", "latency", "-m", "1:4M", "-i", "100000", "-o"])
        .args([&file])
        .start();
    let rows = || -> usize {
        // At every moment the file is a whole document, or not there yet.
        fs::read_to_string(&file).map_or(0, |text| {
            let document = results(&text);
            document["rows"].as_array().unwrap().len()
        })
    };
    crate::process::eventually("two rows", || rows() >= 2);
    rustix::process::kill_process(job.launcher(), rustix::process::Signal::KILL).unwrap();
    let outcome = job.finish();
    assert_eq!(outcome.status, crate::process::KILLED, "{outcome:#?}");
    assert!((2..23).contains(&rows()), "{} rows", rows());
}

mod on_two_machines {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Child;

    use super::*;

    /// The side that listens, and where.
    struct Listener {
        child: Child,
        address: String,
    }

    impl Listener {
        fn start(options: &[&str]) -> Self {
            let mut child = Command::new(tagwire())
                .args(["bench", "latency", "--listen", "127.0.0.1:0"])
                .args(options)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut line = String::new();
            let mut stderr = BufReader::new(child.stderr.take().unwrap());
            stderr.read_line(&mut line).unwrap();
            std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
            let (address, rest) = line
                .strip_prefix("listening at ")
                .and_then(|line| line.split_once(": "))
                .unwrap();
            assert!(rest.contains(&format!("--connect {address} --secret @FILE")));
            Self {
                child,
                address: address.to_owned(),
            }
        }

        fn end(mut self) -> (i32, String) {
            let mut text = String::new();
            self.child
                .stdout
                .take()
                .unwrap()
                .read_to_string(&mut text)
                .unwrap();
            (self.child.wait().unwrap().code().unwrap(), text)
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    #[test]
    fn one_listens_and_one_connects() {
        let folder = tempfile::tempdir().unwrap();
        let drawn = format!("@{}", folder.path().join("drawn").display());
        let options = ["-m", "8,64K", "-i", "3", "-c", "--format", "json"];
        let listener = Listener::start(&[&options[..], &["--secret", &drawn]].concat());
        // Whoever only reaches the address is not the other side.
        let address = listener.address.clone();
        let stranger = [
            "latency",
            "--connect",
            &address,
            "--secret",
            &secret("guess"),
        ];
        let stranger = bench(&stranger);
        assert_eq!(stranger.status, 2, "{stranger:#?}");
        let other = bench(&["latency", "--connect", &address, "--secret", &drawn]);
        assert_eq!(other.status, 0, "{other:#?}");
        assert!(other.stdout.is_empty(), "rank 0 prints: {other:#?}");
        let (status, text) = listener.end();
        assert_eq!(status, 0);
        let document = results(&text);
        assert_eq!(document["rows"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn who_does_not_fit_is_told() {
        let listener = Listener::start(&["--secret", &secret("ours"), "-i", "3", "-m", "8"]);
        let address = listener.address.clone();
        for (options, status, said) in [
            (&["latency", "--secret", &secret("theirs")][..], 2, "secret"),
            (&["latency"], 1, "--secret"),
            (
                &["latency", "--secret", &secret("ours"), "-m", "8"],
                1,
                "takes over",
            ),
            (&["latency", "--secret", &secret(&"x".repeat(33))], 1, "32"),
        ] {
            let outcome = bench(&[options, &["--connect", &address]].concat());
            assert_eq!(outcome.status, status, "{options:?}: {outcome:#?}");
            let text = outcome.stderr.join("\n");
            assert!(text.contains(said), "{options:?}: {text}");
        }
        let taken = bench(&["latency", "--listen", &address]);
        assert_eq!(taken.status, 2, "{taken:#?}");
        assert!(taken.stderr.join("\n").contains(&address), "{taken:#?}");
        // Whoever goes away again leaves it to others.
        let other = bench(&[
            "bandwidth",
            "--secret",
            &secret("ours"),
            "--connect",
            &address,
        ]);
        assert_eq!(other.status, 1, "{other:#?}");
        assert!(
            other.stderr.join("\n").contains("runs 'latency'"),
            "{other:#?}"
        );
        let other = bench(&[
            "latency",
            "--secret",
            &secret("ours"),
            "--connect",
            &address,
        ]);
        assert_eq!(other.status, 0, "{other:#?}");
        assert_eq!(listener.end().0, 0);
        for (options, said) in [
            (&["--listen", "here"][..], "HOST:PORT"),
            (&["--connect", "::1", "--secret", "@x"], "HOST:PORT"),
            (&["--listen", "-n", "4"], "exactly 2 ranks"),
            (&["--secret", "@x"], "--secret is for"),
            (&["--listen", "-t", "mpi"], "own transports"),
        ] {
            let outcome = bench(&[&["latency"][..], options].concat());
            assert_eq!(outcome.status, 1, "{options:?}: {outcome:#?}");
            assert!(outcome.stderr.join("\n").contains(said), "{outcome:#?}");
        }
    }
}

#[test]
fn a_provider_that_is_none_gets_status_2_and_the_nearest() {
    if !crate::process::has_libfabric("names of providers") {
        return;
    }
    for (given, nearest) in [("ofi:tpc", "'ofi:tcp'"), ("ofi:sokets", "'ofi:sockets'")] {
        let outcome = bench(&["latency", "-m", "8", "-t", given]);
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert_eq!(outcome.stderr.len(), 1, "the cause alone: {outcome:#?}");
        let errors = outcome.errors();
        for part in [given, nearest, "TAGWIRE_LIBFABRIC"] {
            assert!(errors.contains(part), "{errors}");
        }
    }
}

#[test]
fn every_setting_that_ucx_is_given_reaches_it() {
    // UCX says nothing of names that it does not know, unless it is asked to talk.
    for transports in ["ucx:tcp", "ucx:posix", "ucx:posix,cma,tcp"] {
        if !crate::process::has("settings of UCX", transports) {
            continue;
        }
        let outcome = Line::new(["bench", "latency", "-m", "8", "-t", transports])
            .args(TINY)
            .env("UCX_LOG_LEVEL", "info")
            .finish();
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let said = |what: &str| outcome.stdout.iter().any(|line| line.contains(what));
        assert!(said("UCX  INFO  Version"), "{outcome:#?}");
        assert!(!said("invalid configurations"), "{outcome:#?}");
    }
}
