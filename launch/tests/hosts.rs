//! A part of a job whose other parts a test plays.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tagwire_base::JobSecret;
use tagwire_launch::proof::Nonce;
use tagwire_launch::store::wire::{FrameBuffer, Grant, Reply, Request, RequestId};
use tagwire_launch::{Hosts, JobSpec, run};

const SECRET: JobSecret = JobSecret::from_bytes([1; JobSecret::LEN]);

/// Returns what the part says next.
fn next(stream: &mut TcpStream, buffer: &mut FrameBuffer) -> Request {
    loop {
        if let Some(frame) = buffer.next_frame().unwrap() {
            return Request::decode(&frame).unwrap();
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).unwrap();
        assert_ne!(count, 0);
        buffer.extend(&bytes[..count]);
    }
}

/// Plays the host that listens: takes a part in, with what `known` proves of a part that begins with rank 1, says that it begins with
/// `first`, and ends the job with 7 at once. Returns where it is.
fn host_that_ends(known: JobSecret, first: u32) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let host = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = FrameBuffer::default();
        let Request::Hello(hello) = next(&mut stream, &mut buffer) else {
            panic!("no hello");
        };
        let challenge = Nonce::draw().unwrap();
        let reply = Reply::Challenge(challenge).encode(RequestId(1));
        stream.write_all(&reply).unwrap();
        let Request::Proof(proof) = next(&mut stream, &mut buffer) else {
            panic!("no proof");
        };
        assert!(hello.is_proved(&proof, &SECRET, &challenge));
        let proof = hello.answer(&known, &challenge, &Grant::Place { first: 1, size: 2 });
        let place = Reply::Granted(Grant::Place { first, size: 2 }, proof);
        let mut both = place.encode(RequestId(1));
        both.extend(Reply::End { status: 7 }.encode(RequestId::default()));
        stream.write_all(&both).unwrap();
        // Until the other side ends: the loss of the connection would be another event.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    (address, host)
}

/// A part of one rank that takes a minute, where nobody ends it.
fn part(address: String) -> JobSpec {
    let mut spec = JobSpec::new(1, "sleep");
    spec.args = vec!["60".into()];
    spec.quiet = true;
    spec.hosts = Some(Hosts::Connect {
        address,
        secret: SECRET,
    });
    spec
}

/// Whoever listens at the host's address and does not know the secret ends no job, and has none. Who changes the number of a part's first
/// rank on the way has none either.
#[test]
fn a_host_without_the_secret_has_no_parts() {
    for (known, first) in [(JobSecret::from_bytes([2; JobSecret::LEN]), 1), (SECRET, 0)] {
        let (address, host) = host_that_ends(known, first);
        let error = run(part(address.clone())).unwrap_err().to_string();
        assert!(error.contains("does not know the job's secret"), "{error}");
        assert!(error.contains(&address), "{error}");
        host.join().unwrap();
    }
}

#[test]
fn an_end_that_comes_with_the_place_is_heard_at_once() {
    let (address, host) = host_that_ends(SECRET, 1);
    let spec = part(address);
    let start = Instant::now();
    assert_eq!(run(spec).unwrap().exit_status, 7);
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    host.join().unwrap();
}
