//! A rank for the tests: joins its job and does what its first argument says.

use std::io::Read;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use tagwire_base::bootstrap::Attribute;
use tagwire_base::{Bootstrap, MemberEvent, Rank};
use tagwire_launch::detect::detect;

const LONG: Duration = Duration::from_secs(60);

fn main() {
    let detected = detect().unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(3);
    });
    let mut job = detected.bootstrap;
    let deed = std::env::args().nth(1).unwrap_or_default();
    match deed.as_str() {
        "ring" => ring(&mut *job),
        "descriptor" => descriptor(&mut *job),
        "watch" => watch(&mut *job),
        "twice" => {
            ring(&mut *job);
            job.leave();
            job = detect().expect("a second stay is allowed").bootstrap;
            ring(&mut *job);
        }
        "cpus" => cpus(&*job),
        "attributes" => attributes(&mut *job),
        "hang" => hang(&mut *job),
        other => panic!("unknown deed '{other}'"),
    }
    job.leave();
}

/// Every rank reads its neighbour's value.
fn ring(job: &mut dyn Bootstrap) {
    let (rank, size) = (job.rank().as_u32(), job.size());
    job.put("number", &rank.to_le_bytes())
        .expect("the store is there");
    let next = (rank + 1) % size;
    let value = job
        .get(Rank::new(next), "number", LONG)
        .expect("the neighbour puts");
    assert_eq!(value, next.to_le_bytes());
    job.fence(LONG).expect("everybody comes");
    println!("rank {rank} of {size} done");
}

/// Rank 0 gives a pipe's write end away; the others write to it.
fn descriptor(job: &mut dyn Bootstrap) {
    if job.rank() == Rank::new(0) {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        job.put_descriptor(writer.as_fd())
            .expect("the store takes it");
        drop(writer);
        let mut text = vec![0; job.size() as usize - 1];
        reader.read_exact(&mut text).expect("the others write");
        println!("{}", String::from_utf8_lossy(&text));
    } else {
        let writer = job
            .get_descriptor(Rank::new(0), LONG)
            .expect("rank 0 gives it");
        rustix::io::write(&writer, b"x").expect("rank 0 reads");
    }
}

/// Rank 0 waits for the end of all others and prints what it heard.
fn watch(job: &mut dyn Bootstrap) {
    job.fence(LONG).expect("everybody comes");
    match job.rank().as_u32() {
        0 => {
            let until = Instant::now() + LONG;
            let mut heard = Vec::new();
            while heard.len() + 1 < job.size() as usize {
                assert!(Instant::now() < until, "heard only {heard:?}");
                heard.extend(job.poll_events());
                std::thread::sleep(Duration::from_millis(1));
            }
            heard.sort_by_key(|event| match *event {
                MemberEvent::Left(rank) | MemberEvent::Failed(rank) => rank,
                _ => Rank::new(0),
            });
            println!("{heard:?}");
            let gone = job
                .get(Rank::new(1), "nothing", LONG)
                .expect_err("rank 1 is gone");
            println!("{gone}");
        }
        1 => {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("allowed");
        }
        2 => std::process::exit(0),
        _ => {}
    }
}

/// Prints the CPUs that this rank may use.
fn cpus(job: &dyn Bootstrap) {
    let set = rustix::thread::sched_getaffinity(None).expect("allowed");
    let cpus: Vec<usize> = (0..1024).filter(|&cpu| set.is_set(cpu)).collect();
    println!("{} {cpus:?}", job.rank());
}

/// Prints what the launcher knows of the job.
fn attributes(job: &mut dyn Bootstrap) {
    let [universe, number] = [Attribute::UniverseSize, Attribute::ApplicationNumber]
        .map(|attribute| job.attribute(attribute));
    println!("{}: {universe:?} {number:?}", job.rank());
    job.fence(LONG).expect("everybody comes");
}

/// Waits for ever, and says so when asked.
fn hang(job: &mut dyn Bootstrap) {
    let asked = std::sync::Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGUSR1, std::sync::Arc::clone(&asked))
        .expect("allowed");
    job.fence(LONG).expect("everybody comes");
    println!("hanging");
    loop {
        if asked.swap(false, std::sync::atomic::Ordering::Relaxed) {
            // In one write, so that the lines of several ranks do not mix.
            let line = format!("rank {} waits for nothing\n", job.rank());
            let _ = rustix::io::write(std::io::stderr(), line.as_bytes());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
