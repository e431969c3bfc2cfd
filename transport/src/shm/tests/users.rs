//! Other users of the host, who know what a rank publishes: the test program plays them. Only root can become another user.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tagwire_base::JobSecret;

use super::processes::Given;
use super::*;
use crate::shm::cma::{Attach, yama_scope};
use crate::shm::identity::Identity;

const PART: &str = "SHM_USERS_PART";
const PLACE: &str = "SHM_USERS_PLACE";
/// The user whose rank it is.
const OWN: u32 = 65533;
/// Another one. Both have no rights beside their own.
const OTHER: u32 = 65534;

/// What a line of the child begins with that is for its parent.
const SAYS: &str = "says ";

/// Starts this program again as a user who plays a part.
fn play(part: &str, user: u32, place: &str) -> Child {
    Command::new("/proc/self/exe")
        .args([
            "--exact",
            "shm::tests::users::plays_its_part",
            "--nocapture",
        ])
        .env(PART, part)
        .env(PLACE, place)
        .uid(user)
        .gid(user)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns what a child says, up to its first line that is for its parent.
fn said(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let line = lines.find_map(|line| line.split_once(SAYS).map(|(_, said)| said.to_owned()));
    line.expect("the child said nothing")
}

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    match &*part {
        "rank" => be_a_rank(),
        _ => println!(
            "{SAYS}{}",
            intrude(&std::env::var(PLACE).unwrap()).join("; ")
        ),
    }
    // The parent hears no more.
    std::process::exit(0);
}

/// Opens rank 1, says all that its peers know, and stays until the parent hangs up.
fn be_a_rank() {
    let secret = JobSecret::generate().unwrap();
    let given = &mut Given {
        rank: 1,
        secret: secret.clone(),
    };
    let shm = Shm::open(ShmOptions::default(), given).unwrap();
    let address: String = shm
        .address()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("{SAYS}{} {address}", secret.to_hex());
    let _ = io::stdin().read(&mut [0]);
}

/// Tries everything with a rank. Returns what was possible.
fn intrude(place: &str) -> Vec<String> {
    let (secret, address) = place.split_once(' ').unwrap();
    let address = tagwire_base::hex::decode(address).unwrap();
    let identity = Identity::from_bytes(&address).unwrap();
    let Identity {
        pid, descriptor, ..
    } = identity;
    let below = |name: &str| format!("/proc/{pid}/{name}");
    let write = |path: String| File::options().read(true).write(true).open(path).map(drop);
    let attach = || match Attach::test(pid, identity.nonce_address, identity.nonce) {
        Attach::Usable(_) => Ok(()),
        other => Err(io::Error::other(format!("{other:?}"))),
    };
    let contact = || {
        let secret = JobSecret::from_hex(secret).unwrap();
        let mut shm = Shm::open(ShmOptions::default(), &mut Given { rank: 0, secret }).unwrap();
        let contact = shm.connect(Rank::new(1), &address);
        contact
            .map(drop)
            .map_err(|error| io::Error::other(error.to_string()))
    };
    let deeds: [(&str, io::Result<()>); 7] = [
        ("its segment", write(below(&format!("fd/{descriptor}")))),
        ("its descriptors", fs::read_dir(below("fd")).map(drop)),
        ("its memory", write(below("mem"))),
        ("its mappings", fs::read(below("maps")).map(drop)),
        ("its environment", fs::read(below("environ")).map(drop)),
        ("attachment", attach()),
        ("contact", contact()),
    ];
    let done = deeds
        .into_iter()
        .filter_map(|(name, done)| done.ok().map(|()| name.to_owned()));
    done.collect()
}

/// Who is another user can do nothing with a rank, though he knows its process, its address and its secret. Who is the same user can do
/// all of it, which is the reason for the line about him in `docs/security.md`.
#[test]
fn another_user_opens_nothing_of_a_rank() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    let mut rank = play("rank", OWN, "");
    let place = said(&mut rank);
    let intruders = [OTHER, OWN].map(|user| {
        let mut intruder = play("intruder", user, &place);
        let done = said(&mut intruder);
        assert!(intruder.wait().unwrap().success());
        done
    });
    let [other, same] = intruders;
    assert_eq!(other, "", "another user has it");
    // Where Yama asks for more, a rank lets others attach, and nothing else.
    if yama_scope().unwrap_or_default() == 0 {
        assert_eq!(
            same,
            "its segment; its descriptors; its memory; its mappings; its environment; attachment; contact"
        );
    }
    drop(rank.stdin.take());
    assert!(rank.wait().unwrap().success());
}
