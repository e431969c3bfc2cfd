//! `tagwire bench` between two machines, with a server that stays: over loopback, and between two hosts.
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::process::hosts::Hosts;
use crate::process::{Job, Line, Outcome, has_libfabric, results, secret, tagwire};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

/// A server that stays, and where.
struct Server {
    job: Job,
    place: String,
}

impl Server {
    fn start() -> Self {
        let line = ["bench", "--listen", "127.0.0.1:0", "--forever"];
        let mut job = Line::new(line).args(["--secret", &secret("ours")]).start();
        let said = job.hear("serving at");
        let place = said.split("serving at ").nth(1).unwrap();
        let place = place.split(": start").next().unwrap().to_owned();
        let hint = format!("--connect {place} --secret @FILE'");
        assert!(said.contains(&hint), "{said}");
        Self { job, place }
    }

    /// A command line of the other side.
    fn line(&self, arguments: &[&str]) -> Line {
        let line = ["bench", arguments[0], "--connect", &self.place];
        Line::new(line)
            .args(["--secret", &secret("ours")])
            .args(&arguments[1..])
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.job.launcher(), signal).unwrap();
    }

    /// Ends it as its user does, and returns what it said.
    fn end(self) -> Outcome {
        self.signal(Signal::INT);
        let outcome = self.job.finish();
        assert_eq!(outcome.status, 130, "{outcome:#?}");
        outcome
    }
}

fn document(outcome: &Outcome) -> Value {
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    results(&outcome.stdout.join("\n"))
}

const SHORT: [&str; 4] = ["-i", "5", "-x", "1"];
/// A run that is not over before it is ended.
const LONG: [&str; 5] = ["latency", "-i", "1000000000", "-t", "shm"];

#[test]
fn a_server_serves_one_after_the_other() {
    let server = Server::start();
    let json = ["--format", "json"];
    let several = ["latency", "-m", "8,64K", "-c", "--launches", "2"];
    let transports = match has_libfabric("a_server_serves_one_after_the_other") {
        true => &["-t", "shm,ofi:tcp;ofi_rxm"][..],
        false => &["-t", "shm"],
    };
    let options = [&several[..], transports, &SHORT, &json].concat();
    let run = document(&server.line(&options).finish());
    let count = if transports[1] == "shm" { 4 } else { 8 };
    assert_eq!(run["rows"].as_array().unwrap().len(), count);
    // Both machines, which are one here, and what each used.
    let environment = &run["environment"];
    let other = &environment["other"];
    for key in [
        "host",
        "kernel",
        "cpu_model",
        "version",
        "commit",
        "binding",
    ] {
        assert_eq!(environment[key], other[key], "{key}");
        assert!(other[key].is_string() || key != "kernel", "{other}");
    }
    let of = |it: &Value| {
        let used = it["transports"].as_array().unwrap().clone();
        used.iter()
            .map(|used| (used["transport"].clone(), used["library"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(environment), of(other));
    // Two ranks on each side, and a collective of three.
    for options in [
        &["message-rate", "-n", "4", "-m", "8", "-c", "-t", "shm"][..],
        &["allreduce", "-n", "3", "-m", "8", "-c", "-t", "shm"],
        &[
            "concurrent-latency",
            "--units",
            "threads:2",
            "-m",
            "8",
            "-t",
            "shm",
        ],
    ] {
        let run = document(&server.line(&[options, &SHORT, &json].concat()).finish());
        let ranks = options.iter().position(|word| *word == "-n");
        let ranks = ranks.map_or("2", |place| options[place + 1]);
        assert_eq!(run["rows"][0]["ranks"].to_string(), ranks, "{options:?}");
    }
    let text = server.line(&[&["bandwidth", "-m", "8", "-t", "shm"][..], &SHORT].concat());
    let outcome = text.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    for line in [
        "# Machine: ",
        "# Other machine: ",
        "# Other version: ",
        "# Other library: shm",
    ] {
        outcome.line(line);
    }
    let is_bound = |line: &&String| line.starts_with("# Other ranks: bound: ");
    let bound = outcome.stdout.iter().find(is_bound).unwrap();
    assert!(!bound.trim_end().ends_with(':'), "{bound}");
    // One after the other: who is answered comes behind what it says of the last client.
    say(&server.place, "nobody's");
    let said = server.end().errors();
    assert_eq!(said.matches(", done").count(), 5, "{said}");
    assert!(
        said.contains("latency over shm, 2 ranks, of which 1 are here"),
        "{said}"
    );
    assert!(said.ends_with("ended by signal 2"), "{said}");
}

/// Says a line, and returns what comes back.
fn say(place: &str, line: &str) -> String {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.write_all(line.as_bytes()).unwrap();
    stream.write_all(b"\n").unwrap();
    let mut answer = String::new();
    let _ = BufReader::new(stream).read_line(&mut answer);
    answer
}

#[test]
fn a_server_says_who_does_not_fit_and_goes_on() {
    let mut server = Server::start();
    let wrong = Line::new(["bench", "latency", "--connect", &server.place])
        .args(["--secret", &secret("theirs")])
        .finish();
    assert_eq!(wrong.status, 2, "{wrong:#?}");
    assert!(wrong.errors().contains("secret"), "{wrong:#?}");
    server.job.hear("its secret is another one");
    let nonce = vec!["0"; 32].join(",");
    let hello = format!(
        "{{\"hello\":{{\"language\":\"tagwire.machines/2\",\"version\":\"9.9.9\",\"nonce\":[{nonce}]}}}}"
    );
    let answer = say(&server.place, &hello);
    assert!(
        answer.contains("9.9.9") && answer.contains("same version"),
        "{answer}"
    );
    server.job.hear("it is Tagwire 9.9.9");
    assert_eq!(say(&server.place, "GET / HTTP/1.1"), "");
    server.job.hear("it is no 'tagwire bench'");
    // Whoever comes too early says for what it waits.
    let early = Line::new(["bench", "latency", "--connect", "127.0.0.1:1"])
        .args(["--secret", &secret("ours"), "--timeout", "300ms"])
        .finish();
    assert_eq!(early.status, 2, "{early:#?}");
    for said in [
        "waiting for 127.0.0.1:1, 0.3 s at most (--timeout)",
        "nobody answers at '127.0.0.1:1'",
    ] {
        assert!(early.errors().contains(said), "{early:#?}");
    }
    // What the other side asks for and cannot be had is its failure.
    let unknown = server
        .line(&["latency", "-t", "ofi:nonsense", "-m", "8"])
        .finish();
    assert_eq!(unknown.status, 2, "{unknown:#?}");
    let good = server.line(&[&["latency", "-m", "8", "-t", "shm"][..], &SHORT].concat());
    assert_eq!(good.finish().status, 0);
    server.end();
    for (options, said) in [
        (&["--forever"][..], "--listen"),
        (&["--listen", "--forever", "-m", "8"], "--forever serves"),
        (&["--listen"], "<TEST>"),
        (
            &["concurrent-latency", "--listen", "--units", "processes:2"],
            "neighbouring ranks",
        ),
    ] {
        let refused = Line::new(["bench"]).args(options).finish();
        assert_ne!(refused.status, 0, "{options:?}");
        assert!(refused.errors().contains(said), "{options:?}: {refused:#?}");
    }
}

/// Strangers that take all descriptors of a server, and keep them, keep nobody out: the oldest of them go.
#[test]
fn strangers_that_crowd_a_server_keep_no_client_out() {
    let script = format!(
        "ulimit -n 40; exec '{}' bench --listen 127.0.0.1:0 --forever --secret {}",
        tagwire().display(),
        secret("ours")
    );
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let drain = std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    let place = line.split("serving at ").nth(1).unwrap();
    let place = place.split(": start").next().unwrap();
    let crowd: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut stream = TcpStream::connect(place).unwrap();
            let _ = stream.write_all(b"{");
            stream
        })
        .collect();
    let client = Line::new([
        "bench",
        "latency",
        "--connect",
        place,
        "--secret",
        &secret("theirs"),
    ])
    .finish();
    assert!(
        client.errors().contains("its secret is another one"),
        "{client:#?}"
    );
    drop(crowd);
    child.kill().unwrap();
    child.wait().unwrap();
    drain.join().unwrap().unwrap();
}

#[test]
fn a_client_that_dies_is_named_and_the_next_is_served() {
    let mut server = Server::start();
    let first = server.line(&LONG).start();
    server.job.hear("latency over shm");
    // The next one waits, and says for whom.
    let mut second = server
        .line(&[&["latency", "-m", "8", "-t", "shm"][..], &SHORT].concat())
        .start();
    second.hear("is busy with 127.0.0.1:");
    kill_process(first.launcher(), Signal::KILL).unwrap();
    server.job.hear("it left in the middle");
    let outcome = second.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    drop(first);
    // One that its user ends is no failure of the server's.
    let third = server.line(&LONG).start();
    server.job.hear("latency over shm");
    kill_process(third.launcher(), Signal::INT).unwrap();
    assert_eq!(third.finish().status, 130);
    server.end();
}

#[test]
fn a_server_that_is_ended_in_the_middle_says_so_to_its_client() {
    let mut server = Server::start();
    let client = server.line(&LONG).start();
    server.job.hear("latency over shm");
    let said = server.end().errors();
    assert!(said.contains("while it served 127.0.0.1:"), "{said}");
    let outcome = client.finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    let errors = outcome.errors();
    assert!(errors.contains("the other side at 127.0.0.1:"), "{errors}");
}

#[test]
fn a_server_on_another_host_serves_many_pairs() {
    let test = "a_server_on_another_host_serves_many_pairs";
    let Some(hosts) = Hosts::make(test, 6, 1).filter(|_| has_libfabric(test)) else {
        return;
    };
    let place = format!("{}:7471", hosts.address(0));
    let line = [
        "bench",
        "--listen",
        &place,
        "--forever",
        "--secret",
        &secret("ours"),
    ];
    let mut server = hosts.tagwire(0, &line);
    server.hear("serving at");
    for options in [
        &["latency", "-t", "ofi:tcp;ofi_rxm", "--launches", "2"][..],
        &["message-rate", "-n", "4", "-t", "ofi:tcp;ofi_rxm"],
    ] {
        let line = [
            "bench",
            options[0],
            "--connect",
            &place,
            "--secret",
            &secret("ours"),
        ];
        let more = ["-m", "8,64K", "-c", "--format", "json"];
        let line = [&line[..], &options[1..], &SHORT, &more].concat();
        let run = document(&hosts.tagwire(1, &line).finish());
        let rows = run["rows"].as_array().unwrap().len();
        assert_eq!(rows, if options[0] == "latency" { 4 } else { 2 });
        let used = &run["environment"]["other"]["transports"][0];
        assert!(
            used["library"].as_str().unwrap().starts_with("libfabric"),
            "{used}"
        );
    }
    kill_process(server.launcher(), Signal::TERM).unwrap();
    assert_eq!(server.finish().status, 143);
}
