//! PMI-1 against servers of our own, which speak as the known ones do, and worse.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use tagwire_base::bootstrap::Attribute;
use tagwire_base::{Bootstrap, Rank};

use super::Client;
use crate::error::Result;
use crate::key_values::KeyValueBootstrap;

type PmiBootstrap = KeyValueBootstrap<Client>;

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(60);

fn over(stream: UnixStream) -> Result<Client> {
    Client::over(stream.into(), LONG)
}

/// Checks that an error says so.
fn says(error: impl ToString, parts: &[&str]) {
    let error = error.to_string();
    for part in parts {
        assert!(error.contains(part), "{part}: {error}");
    }
}

/// How a launcher speaks.
#[derive(Debug, Clone, Copy)]
struct Dialect {
    /// Words that come before the others, and that nobody asked for.
    extra: &'static str,
    value: usize,
    missing: &'static str,
}

/// Hydra of MPICH, and Slurm 22.05.
const DIALECTS: [Dialect; 2] = [
    Dialect {
        extra: "",
        value: 1024,
        missing: "cmd=get_result rc=-1 msg=key_tw_not_found value=unknown",
    },
    Dialect {
        extra: "pmi_version=1 pmi_subversion=1 ",
        value: 128,
        missing: "cmd=get_result rc=1 value=unknown",
    },
];

/// What the ranks of a job share at their launcher.
#[derive(Debug, Default)]
struct Space {
    values: Mutex<HashMap<String, String>>,
    barrier: Mutex<u64>,
    changed: Condvar,
}

fn serve(stream: UnixStream, size: u64, dialect: Dialect, space: &Space) {
    let mut replies = stream.try_clone().unwrap();
    let mut barriers = 0;
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        assert!(line.len() < 1024, "Slurm would read a part of it");
        let word = |key: &str| {
            let words = line.split(' ').filter_map(|word| word.split_once('='));
            words
                .into_iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value)
        };
        let reply = match word("cmd").unwrap() {
            "init" => format!("cmd=response_to_init {}rc=0", dialect.extra),
            "get_maxes" => format!(
                "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max={}",
                dialect.value
            ),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1_0".to_owned(),
            "put" => {
                assert!(word("value").unwrap().len() < dialect.value);
                let mut values = space.values.lock().unwrap();
                values.insert(
                    word("key").unwrap().to_owned(),
                    word("value").unwrap().to_owned(),
                );
                "cmd=put_result rc=0 msg=success".to_owned()
            }
            "get" => match space.values.lock().unwrap().get(word("key").unwrap()) {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => dialect.missing.to_owned(),
            },
            "barrier_in" => {
                barriers += 1;
                let mut arrived = space.barrier.lock().unwrap();
                *arrived += 1;
                space.changed.notify_all();
                while *arrived < barriers * size {
                    arrived = space.changed.wait(arrived).unwrap();
                }
                "cmd=barrier_out rc=0".to_owned()
            }
            "get_universe_size" => "cmd=universe_size rc=0 size=-1".to_owned(),
            "get_appnum" => "cmd=appnum rc=0 appnum=3".to_owned(),
            // No reply, as the job is over.
            "abort" => {
                space
                    .values
                    .lock()
                    .unwrap()
                    .insert("abort".to_owned(), line.clone());
                continue;
            }
            "finalize" => "cmd=finalize_ack rc=0".to_owned(),
            other => panic!("'{other}' is no request"),
        };
        // In two pieces: a reply ends with its line and not with a packet.
        let (front, back) = reply.split_at(reply.len() / 2);
        replies.write_all(front.as_bytes()).unwrap();
        thread::yield_now();
        replies.write_all(format!("{back}\n").as_bytes()).unwrap();
    }
}

fn job(size: u32, dialect: Dialect) -> Vec<PmiBootstrap> {
    let space = Arc::new(Space::default());
    let ranks: Vec<_> = (0..size)
        .map(|rank| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let space = Arc::clone(&space);
            thread::spawn(move || serve(theirs, u64::from(size), dialect, &space));
            thread::spawn(move || {
                PmiBootstrap::join(over(ours).unwrap(), Rank::new(rank), size).unwrap()
            })
        })
        .collect();
    ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
}

#[test]
fn ranks_find_each_other() {
    for dialect in DIALECTS {
        let mut ranks = job(3, dialect);
        let secret = ranks[0].secret().clone();
        for (number, rank) in ranks.iter().enumerate() {
            assert_eq!((rank.rank().index(), rank.size()), (number, 3));
            let locality = rank.locality();
            assert_eq!(
                (locality.local_rank as usize, locality.local_size),
                (number, 3)
            );
            assert_eq!(*rank.secret(), secret);
            assert_eq!(rank.locality().address, None, "all are on one host");
        }
        // Longer than a value may be, of every byte, and empty.
        let long: Vec<u8> = (0..2000).map(|place| place as u8).collect();
        thread::scope(|scope| {
            for rank in &mut ranks {
                scope.spawn(|| {
                    rank.put("long", &long).unwrap();
                    rank.put("empty", &[]).unwrap();
                    rank.fence(Duration::from_secs(10)).unwrap();
                });
            }
        });
        for rank in &mut ranks {
            for other in (0..3).map(Rank::new) {
                assert_eq!(rank.get(other, "long", SHORT).unwrap(), long);
                assert_eq!(rank.get(other, "empty", SHORT).unwrap(), [0; 0]);
            }
            let error = rank.get(Rank::new(1), "nothing", SHORT).unwrap_err();
            assert!(error.to_string().contains("nothing"), "{error}");
            rank.leave();
            rank.leave();
        }
    }
}

#[test]
fn numbers_of_the_job_and_its_abort() {
    let space = Arc::new(Space::default());
    let (ours, theirs) = UnixStream::pair().unwrap();
    let served = Arc::clone(&space);
    thread::spawn(move || serve(theirs, 1, DIALECTS[0], &served));
    let client = over(ours).unwrap();
    let mut rank = PmiBootstrap::join(client, Rank::new(0), 1).unwrap();
    // -1 is nobody's number.
    assert_eq!(rank.attribute(Attribute::UniverseSize), None);
    assert_eq!(rank.attribute(Attribute::ApplicationNumber), Some(3));
    rank.abort(7);
    // A reply to what follows says that it has been read.
    rank.put("after", b"it").unwrap();
    assert_eq!(
        space.values.lock().unwrap()["abort"],
        "cmd=abort exitcode=7"
    );
}

/// A launcher that its rank connects to by TCP says who that is.
#[test]
fn a_rank_that_connects_learns_its_number() {
    for (said, part) in [
        (
            "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n",
            "closed",
        ),
        (
            "cmd=initack rc=0\ncmd=set size=2\ncmd=set rank=2\ncmd=set debug=0\n",
            "rank 2 of 2",
        ),
        (
            "cmd=initack rc=0\ncmd=set size=many\n",
            "no size for process 5",
        ),
        ("cmd=initack rc=-1\n", "refused with -1"),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let launcher = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(said.as_bytes()).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line
        });
        let error = Client::connect(&address, 5).unwrap_err().to_string();
        assert!(error.contains(part), "{said:?}: {error}");
        assert_eq!(launcher.join().unwrap(), "cmd=initack pmiid=5\n");
    }
    let error = Client::connect("127.0.0.1:1", 0).unwrap_err().to_string();
    assert!(
        error.contains("127.0.0.1:1") && error.contains("PMI_PORT"),
        "{error}"
    );
}

#[test]
fn a_fence_that_somebody_misses_times_out_and_ends_the_connection() {
    let mut ranks = job(2, DIALECTS[0]);
    let error = ranks[0].fence(SHORT).unwrap_err();
    assert!(
        matches!(error, tagwire_base::Error::FenceTimeout(_)),
        "{error}"
    );
    let error = ranks[0].put("key", b"value").unwrap_err().to_string();
    assert!(error.contains("earlier reply"), "{error}");
}

/// What a launcher says in place of the reply to the first request, and what the error names.
#[test]
fn whatever_a_launcher_says_is_understood_or_refused() {
    for (said, part) in [
        ("", "closed"),
        ("cmd=response_to_init", "closed"),
        ("cmd=maxes rc=0\n", "in place of 'response_to_init'"),
        ("\n", "in place of"),
        (
            "cmd=response_to_init rc=-1 msg=version_mismatch\n",
            "version_mismatch",
        ),
        ("\u{1}\u{2}=\u{3}\n", "in place of"),
        ("cmd=response_to_init rc=0\ncmd=maxes\n", "without a length"),
        (
            "cmd=response_to_init rc=0\ncmd=maxes keylen_max=9 vallen_max=-5\n",
            "without a length",
        ),
        (
            "cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\ncmd=my_kvsname rc=0\n",
            "no name",
        ),
    ] {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(said.as_bytes()).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        let error = over(ours).unwrap_err().to_string();
        assert!(error.contains(part), "{said:?}: {error}");
    }
}

/// What ranks put into the space, the secret of their job among it, is in no error.
#[test]
fn an_error_has_no_value() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let said = "cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\n\
        cmd=my_kvsname kvsname=space\ncmd=get_result rc=0 value=5ec2e7\n";
    theirs.write_all(said.as_bytes()).unwrap();
    let error = over(ours).unwrap().put_part("key", "5ec2e7").unwrap_err();
    says(&error, &["'put'", "cmd=get_result", "in place of"]);
    assert!(!error.to_string().contains("5ec2e7"), "{error}");
}

#[test]
fn a_full_space_and_a_reply_without_an_end_are_errors() {
    let greeting = "cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\ncmd=my_kvsname kvsname=a\n";
    let endless = "x".repeat(200_000);
    for (said, part) in [
        ("cmd=put_result rc=-1 msg=no_room\n", "no_room"),
        (&*endless, "without an end"),
    ] {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let text = format!("{greeting}{said}");
        // It stays open: what is sent to one that is closed is refused before its last words are read.
        let writer = thread::spawn(move || {
            let _ = theirs.write_all(text.as_bytes());
            theirs
        });
        let mut client = over(ours).unwrap();
        let error = client.put_part("key", "value").unwrap_err();
        says(error, &[part, "the launcher's PMI", "'put'", "tagwire run"]);
        drop(client);
        drop(writer.join().unwrap());
    }
}

#[test]
fn a_descriptor_that_is_no_socket_is_named() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&file);
    for number in [number, 1 << 20] {
        let error = Client::open(number).unwrap_err().to_string();
        assert!(error.contains(&format!("PMI_FD is {number}")), "{error}");
    }
}

/// Passes requests to `launcher` and replies back, but for reply `cut`, of which half is passed before both connections end.
/// Returns the name of the request that it was for; `None` where there were fewer.
fn pass_until(cut: usize, client: UnixStream, launcher: UnixStream) -> Option<String> {
    let (mut to_client, mut to_launcher) = (&client, &launcher);
    let mut replies = BufReader::new(&launcher).lines();
    for (number, request) in BufReader::new(&client).lines().enumerate() {
        let request = request.unwrap();
        writeln!(to_launcher, "{request}").unwrap();
        let reply = replies.next().unwrap().unwrap();
        if number == cut {
            to_client
                .write_all(&reply.as_bytes()[..reply.len() / 2])
                .unwrap();
            return request["cmd=".len()..].split(' ').next().map(str::to_owned);
        }
        writeln!(to_client, "{reply}").unwrap();
    }
    None
}

#[test]
fn a_launcher_that_breaks_off_anywhere_is_named_with_what_it_was_asked_for() {
    for cut in 0.. {
        let ((ours, front), (back, theirs)) =
            (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let space = Arc::new(Space::default());
        thread::spawn(move || serve(theirs, 1, DIALECTS[0], &space));
        let between = thread::spawn(move || pass_until(cut, front, back));
        let whole_job = || -> Result<()> {
            let mut rank = PmiBootstrap::join(over(ours)?, Rank::new(0), 1)?;
            rank.put("key", b"value")?;
            rank.fence(LONG)?;
            rank.get(Rank::new(0), "key", LONG)?;
            rank.leave();
            Ok(())
        };
        let ended = whole_job();
        match (between.join().unwrap(), ended) {
            (None, ended) => {
                ended.unwrap();
                assert!(cut > 8, "a job has more requests than {cut}");
                return;
            }
            // Who leaves has no use for the reply any more.
            (Some(request), Ok(())) => assert_eq!(request, "finalize"),
            (Some(request), Err(error)) => says(
                error,
                &[
                    "the launcher's PMI",
                    &format!("'{request}'"),
                    "closed the connection",
                    "TAGWIRE_LAUNCHER",
                ],
            ),
        }
    }
}

#[test]
fn a_launcher_that_falls_silent_is_waited_for_as_long_as_is_said() {
    let greeting = "cmd=response_to_init rc=0\ncmd=maxes keylen_max=64 vallen_max=1024\ncmd=my_kvsname kvsname=a\n";
    let silent = |said: &str| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(said.as_bytes()).unwrap();
        (Client::over(ours.into(), SHORT), theirs)
    };
    let late = ["no reply within 0.05 s", "TAGWIRE_LATE_RANKS", "PMI_PORT"];
    let (client, _launcher) = silent("");
    says(client.unwrap_err(), &[&late[..], &["'init'"]].concat());
    let (client, _launcher) = silent(greeting);
    let error = client.unwrap().get_part("key").unwrap_err();
    says(error, &[&late[..], &["'get'"]].concat());
}

#[test]
fn what_is_too_long_for_the_space_is_refused_before_anything_is_put() {
    let small = Dialect {
        value: 40,
        ..DIALECTS[0]
    };
    let mut rank = job(1, small).pop().unwrap();
    let most: usize = (1 << 16) * (40 - 1 - 4) / 2;
    for (key, len) in [("long", most), (&*"k".repeat(60), 1)] {
        let error = rank.put(key, &vec![7; len]).unwrap_err();
        let bounds = "keys of 64, values of 40";
        says(
            error,
            &[key, &format!("{len} bytes"), bounds, "tagwire run"],
        );
        rank.fence(LONG).unwrap();
        let error = rank.get(Rank::new(0), key, Duration::ZERO).unwrap_err();
        says(error, &[key]);
    }
}

/// A program that a rank starts is not that rank.
#[test]
fn the_launchers_socket_is_not_for_children() {
    use std::os::fd::AsRawFd;
    let (ours, theirs) = UnixStream::pair().unwrap();
    rustix::io::fcntl_setfd(&ours, rustix::io::FdFlags::empty()).unwrap();
    thread::spawn(move || serve(theirs, 1, DIALECTS[0], &Space::default()));
    let _client = Client::open(ours.as_raw_fd()).unwrap();
    let flags = rustix::io::fcntl_getfd(&ours).unwrap();
    assert_eq!(flags, rustix::io::FdFlags::CLOEXEC);
}
