//! Other users of the host, played by this program: what they can do to a job's store, and in the place of one. Only root can become
//! another user.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use tagwire_base::{Bootstrap, JobSecret, Rank};
use tagwire_launch::{Membership, Store, StoreBootstrap};

const PART: &str = "TAGWIRE_USERS_PART";
const PLACE: &str = "TAGWIRE_USERS_PLACE";
/// A user without rights beside his own.
const OTHER: u32 = 65534;
/// More connections than a store of a few ranks has room for.
const CROWD: usize = 200;

/// Another user, who plays a part with the socket of this name.
struct Other {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl Other {
    /// Starts it; `None` where this test is no root.
    fn plays(part: &str, place: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root can become another user");
            return None;
        }
        let mut child = Command::new("/proc/self/exe")
            .args(["--exact", "plays_its_part", "--nocapture"])
            .env(PART, part)
            .env(PLACE, place)
            .uid(OTHER)
            .gid(OTHER)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut this = Self { child, said };
        this.hear("is ready");
        Some(this)
    }

    /// Returns what follows these words in its next line with them.
    fn hear(&mut self, words: &str) -> String {
        let lines = self.said.by_ref().lines().map(Result::unwrap);
        let mut parts = lines.filter_map(|line| Some(line.split_once(words)?.1.to_owned()));
        parts.next().unwrap()
    }

    /// Lets it go on, and returns what it says then.
    fn ends(mut self) -> String {
        drop(self.child.stdin.take());
        let result = self.hear("result: ");
        assert!(self.child.wait().unwrap().success());
        result
    }
}

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let place = std::env::var(PLACE).unwrap();
    let name = SocketAddr::from_abstract_name(place).unwrap();
    let result = match &*part {
        "listens" => listen(&name),
        _ => crowd(&name),
    };
    println!("result: {result}");
    std::process::exit(0);
}

fn wait() {
    println!("it is ready");
    let _ = std::io::stdin().read(&mut [0]);
}

/// Listens until the parent goes on. Returns how many bytes whoever came has said.
fn listen(name: &SocketAddr) -> String {
    let listener = UnixListener::bind_addr(name).unwrap();
    wait();
    listener.set_nonblocking(true).unwrap();
    let mut bytes = Vec::new();
    let mut count = 0;
    while let Ok((mut stream, _)) = listener.accept() {
        count += 1;
        // All who came have gone by now.
        stream.read_to_end(&mut bytes).unwrap();
    }
    format!("{count} came and said {} bytes", bytes.len())
}

/// Connects, again and again, and keeps what it has. Returns how many of its connections were ended.
fn crowd(name: &SocketAddr) -> String {
    let crowd: Vec<UnixStream> = (0..CROWD)
        .map(|_| UnixStream::connect_addr(name).unwrap())
        .collect();
    wait();
    let is_ended = |mut stream: &UnixStream| {
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        match stream.read(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    };
    let ended = crowd.iter().filter(|stream| is_ended(stream)).count();
    format!("{ended} of {CROWD} were ended")
}

#[test]
fn whoever_listens_as_another_user_is_no_store() {
    // A name that can be foreseen, as that of a step of Slurm.
    let name = format!("tagwire-users-{}", std::process::id());
    let Some(other) = Other::plays("listens", &name) else {
        return;
    };
    let membership = Membership {
        rank: Rank::new(1),
        size: 2,
        local_rank: 1,
        local_size: 2,
        store: name.clone(),
        secret: JobSecret::from_bytes([0; JobSecret::LEN]),
        application: None,
    };
    let error = StoreBootstrap::connect(membership).unwrap_err().to_string();
    assert!(
        error.contains(&name) && error.contains("another user's"),
        "{error}"
    );
    assert_eq!(other.ends(), "1 came and said 0 bytes");
}

/// The name of a step's socket can be foreseen. Its rank 0 finds it taken, and the others who has taken it; both say so at once.
#[test]
fn a_step_whose_name_another_user_has_taken_ends_with_who_has() {
    let (job, step) = (std::process::id(), 7);
    let user = rustix::process::geteuid().as_raw();
    let name = format!("tagwire-slurm-{user}-{job}.{step}");
    let Some(other) = Other::plays("listens", &name) else {
        return;
    };
    for (rank, why) in [("0", "in use"), ("1", "another user's")] {
        let mut member = Command::new(common::example("member"));
        member.arg("ring").envs([
            ("SLURM_PROCID", rank),
            ("SLURM_STEP_NUM_TASKS", "2"),
            ("SLURM_STEP_NUM_NODES", "1"),
            ("SLURM_JOB_ID", &job.to_string()),
            ("SLURM_STEP_ID", &step.to_string()),
        ]);
        let (status, _, err) = common::run(member);
        assert_ne!(status, 0, "rank {rank}");
        assert!(err.contains(&name) && err.contains(why), "{err}");
        assert!(!err.contains("TAGWIRE_LATE_RANKS"), "it has waited: {err}");
    }
    assert_eq!(other.ends(), "1 came and said 0 bytes");
}

#[test]
fn another_users_connections_are_ended_and_crowd_nobody_out() {
    let store = Store::start(2).unwrap();
    let Some(other) = Other::plays("crowds", store.name()) else {
        return;
    };
    let [mut first, mut second] =
        [0, 1].map(|rank| StoreBootstrap::connect(store.membership(Rank::new(rank))).unwrap());
    first.put("key", b"value").unwrap();
    let value = second.get(Rank::new(0), "key", Duration::from_secs(30));
    assert_eq!(value.unwrap(), b"value");
    assert_eq!(other.ends(), format!("{CROWD} of {CROWD} were ended"));
}
