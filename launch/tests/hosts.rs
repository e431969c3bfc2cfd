//! A part of a job whose other parts a test plays.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use tagwire_base::JobSecret;
use tagwire_launch::store::wire::{Reply, RequestId};
use tagwire_launch::{Hosts, JobSpec, run};

#[test]
fn an_end_that_comes_with_the_place_is_heard_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let host = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 4096];
        assert_ne!(stream.read(&mut hello).unwrap(), 0);
        let mut both = Reply::Place { first: 1, size: 2 }.encode(RequestId(1));
        both.extend(Reply::End { status: 7 }.encode(RequestId::default()));
        stream.write_all(&both).unwrap();
        // Until the other side ends: the loss of the connection would be another event.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut spec = JobSpec::new(1, "sleep");
    spec.args = vec!["60".into()];
    spec.quiet = true;
    spec.hosts = Some(Hosts::Connect {
        address,
        secret: JobSecret::from_bytes([1; JobSecret::LEN]),
    });
    let start = Instant::now();
    assert_eq!(run(spec).unwrap().exit_status, 7);
    assert!(
        start.elapsed() < Duration::from_secs(30),
        "{:?}",
        start.elapsed()
    );
    host.join().unwrap();
}
