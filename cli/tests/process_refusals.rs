//! Fabrics and addresses that are not there: each ends with status 2, and names what was tried and the
//! knob to turn.
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::process::hosts::Hosts;
use crate::process::{Line, Outcome, has, has_libfabric, secret};

/// The run failed.
const FAILED: i32 = 2;

/// What a bounded wait of a few seconds ends within, on machines that do ten other things.
const BOUNDED: Duration = Duration::from_secs(30);

/// Both libraries: transport, environment variable of its file.
const LIBRARIES: [(&str, &str); 2] = [("ofi", "TAGWIRE_LIBFABRIC"), ("ucx", "TAGWIRE_UCX")];

const LATENCY: &[&str] = &["bench", "latency", "-m", "8", "-i", "3", "-x", "1"];

fn latency(options: &[&str]) -> Line {
    Line::new(LATENCY).args(options)
}

fn expect(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status, FAILED, "{outcome:#?}");
    for word in words {
        assert!(outcome.errors().contains(word), "{word}: {outcome:#?}");
    }
}

/// No file, a file that is no library, a library that is another one, and a script of the linker.
#[test]
fn what_is_no_such_library_is_named_with_its_knob() {
    let place = std::env::temp_dir().join(format!("tagwire-no-library-{}", std::process::id()));
    fs::write(&place, "this is no library\n").unwrap();
    let no_library = place.to_str().unwrap();
    for (transport, knob) in LIBRARIES {
        for file in [
            "/nonexistent/library.so",
            no_library,
            "libm.so.6",
            "libc.so.6",
        ] {
            let by_variable = latency(&["-t", transport]).env(knob, file).finish();
            expect(&by_variable, &[file, knob]);
        }
        let option = format!("--{}", knob["TAGWIRE_".len()..].to_lowercase());
        let by_option = latency(&["-t", transport, &option, no_library]).finish();
        expect(&by_option, &[no_library, knob]);
    }
    fs::remove_file(place).unwrap();
}

#[test]
fn a_provider_that_is_not_there_is_named_with_those_that_are() {
    if has_libfabric("a_provider_that_is_not_there_is_named_with_those_that_are") {
        let outcome = latency(&["-t", "ofi:tpc;ofi_rxm"]).finish();
        expect(
            &outcome,
            &[
                "ofi:tpc;ofi_rxm",
                "did you mean 'ofi:tcp;ofi_rxm'",
                "TAGWIRE_LIBFABRIC",
            ],
        );
        let outcome = latency(&["-t", "ofi:nothing-like-it"]).finish();
        expect(
            &outcome,
            &["ofi:nothing-like-it", "it has", "tcp", "ofi_rxm"],
        );
    }
    if has(
        "a_provider_that_is_not_there_is_named_with_those_that_are",
        "ucx:tcp",
    ) {
        let outcome = latency(&["-t", "ucx:nothing"]).finish();
        expect(&outcome, &["'nothing'", "--why-not ucx", "TAGWIRE_UCX"]);
    }
}

/// It has messages, but its matching cannot be used.
#[test]
fn a_provider_that_lacks_what_is_needed_is_named_with_what_helps() {
    let test = "a_provider_that_lacks_what_is_needed_is_named_with_what_helps";
    if has(test, "ofi:udp;ofi_rxd") {
        let outcome = latency(&["-p", "cm", "-t", "ofi:udp;ofi_rxd"]).finish();
        expect(&outcome, &["ofi:udp;ofi_rxd", "overtake", "pml=ob1"]);
    }
}

/// A side that connects, and knows what the other does.
fn connect(address: &str) -> Line {
    Line::new(["bench", "latency", "--connect", address])
        .args(["--secret", &secret("ours")])
        .args(["--timeout", "2"])
}

/// An address at which nobody listens, and one where somebody does who says nothing: how long both are
/// tried is said.
#[test]
fn an_address_that_nobody_answers_is_named_with_how_long_it_was_tried() {
    let [nobody, mute] = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = [&nobody, &mute].map(|one| one.local_addr().unwrap().to_string());
    drop(nobody);
    for address in &addresses {
        let start = Instant::now();
        let outcome = connect(address).finish();
        expect(&outcome, &[address, "--timeout"]);
        assert!(start.elapsed() < BOUNDED, "{:?}", start.elapsed());
    }
}

/// The address of no machine of a network that there is.
#[test]
fn an_address_to_which_there_is_no_way_is_named_as_well() {
    let Some(hosts) = Hosts::make("an_address_to_which_there_is_no_way_is_named_as_well", 9, 1)
    else {
        return;
    };
    let own = hosts.address(0);
    let (network, _) = own.rsplit_once('.').unwrap();
    let address = format!("{network}.77:7471");
    let start = Instant::now();
    let outcome = hosts.connects(&address, &["--timeout", "2"]).finish();
    expect(&outcome, &[&address, "--timeout"]);
    assert!(start.elapsed() < BOUNDED, "{:?}", start.elapsed());
}

/// What replies is something else.
#[test]
fn an_address_at_which_another_program_answers_is_named_with_the_option() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        // Whoever closes with something unread takes back what was said.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let outcome = connect(&address).finish();
    expect(&outcome, &[&address, "--connect"]);
    answer.join().unwrap();
}

#[test]
fn an_address_that_cannot_be_listened_at_is_named_with_the_option() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let in_use = taken.local_addr().unwrap().to_string();
    for address in [in_use.as_str(), "203.0.113.1:7471", "nowhere.invalid:7471"] {
        let outcome = latency(&["-t", "shm", "--listen", address]).finish();
        expect(&outcome, &[address, "--listen"]);
    }
    // It was left alone.
    TcpStream::connect(taken.local_addr().unwrap()).unwrap();
}

/// Both sides by hand, over all kinds of transports.
#[test]
fn two_sides_without_a_launcher_use_any_transport() {
    let test = "two_sides_without_a_launcher_use_any_transport";
    let (ofi, ucx) = ("ofi:tcp;ofi_rxm", "ucx:tcp,self");
    for (transport, needed) in [
        ("shm", None),
        (ofi, Some(ofi)),
        (ucx, Some(ucx)),
        ("shm+ucx:tcp,self", Some(ucx)),
    ] {
        if needed.is_some_and(|needed| !has(test, needed)) {
            continue;
        }
        let options = ["-c", "-t", transport, "--listen", "127.0.0.1:0"];
        let mut listener = latency(&options)
            .args(["--secret", &secret("ours")])
            .start();
        let said = listener.hear("listening at");
        let place = said.split("listening at ").nth(1).unwrap();
        let place = place.split(": start").next().unwrap();
        let connector = Line::new(["bench", "latency", "--connect", place])
            .args(["--secret", &secret("ours")])
            .finish();
        assert_eq!(connector.status, 0, "{transport}: {connector:#?}");
        let outcome = listener.finish();
        assert_eq!(outcome.status, 0, "{transport}: {outcome:#?}");
        let rows = outcome.stdout.iter().filter(|line| !line.starts_with('#'));
        assert_eq!(rows.count(), 1, "{transport}: {outcome:#?}");
    }
}
