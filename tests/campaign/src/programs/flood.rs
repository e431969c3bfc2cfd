//! All ranks but 0 send to rank 0 more than it has memory for, and it wants another message first.

use std::collections::VecDeque;
use std::time::Duration;

use tagwire::{Context, Error, Session};
use tagwire_conformance::Chance;

use super::Program;
use crate::contents::fill;
use crate::events::Word;
use crate::job::FLOOD_KIB;
use crate::stage::{Stage, Trouble, whose};

/// Many unexpected messages, with a message at the end that is received first.
#[derive(Debug)]
pub struct Flood;

const FLOOD: i32 = 1;
const LAST: i32 = 2;
const AGAIN: i32 = 3;
/// How long a wait lasts before the rank says that it is not stuck.
const NAP: Duration = Duration::from_millis(20);
/// Sets how many messages the first flood has, instead of a number from the seed.
pub const COUNT: &str = "CAMPAIGN_FLOOD";

impl Program for Flood {
    fn name(&self) -> &'static str {
        "flood"
    }

    fn about(&self) -> &'static str {
        "thousands of unexpected messages to one rank, which keeps 64 MiB of them and loses none"
    }

    fn takes(&self) -> Duration {
        // What does not fit is asked for, message by message.
        Duration::from_millis(asked().unwrap_or_default() / 5)
    }

    fn hears_of(&self, rank: u32, peer: u32, _ranks: u32) -> bool {
        rank == 0 || peer == 0
    }

    fn run(&self, stage: &Stage) -> Result<(), Trouble> {
        let session = stage.open(Session::builder())?;
        let mut lost = vec![false; session.size() as usize];
        for wave in 0.. {
            let ended = match stage.me {
                0 => receive(stage, &session, wave, &mut lost)?,
                _ => send(stage, session.world(), wave)?,
            };
            if ended {
                break;
            }
        }
        stage.close(session)
    }
}

/// Returns how many messages the first flood is to have, where somebody has said so.
fn asked() -> Option<u64> {
    std::env::var(COUNT).ok()?.parse().ok()
}

/// How many messages a rank sends in a wave, and how long they are.
fn size(seed: u64, rank: u32, wave: u64) -> (u64, usize) {
    let mut chance = Chance::new(seed ^ u64::from(rank) << 8 ^ wave << 32);
    let words = chance.one_of(&[1, 8, 64, 512]);
    let count = 200 + chance.below(400_000 / (words as u64 + 20));
    (asked().filter(|_| wave == 0).unwrap_or(count), 8 * words)
}

fn message(seed: u64, rank: u32, wave: u64, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(
        seed ^ u64::from(rank) << 50 ^ wave << 40 ^ number,
        &mut bytes,
    );
    bytes
}

/// Sends a wave. Returns whether it was the last.
fn send(stage: &Stage, world: Context<'_>, wave: u64) -> Result<bool, Trouble> {
    let (count, len) = size(stage.seed, stage.me, wave);
    let mut under_way = VecDeque::new();
    let end_of_0 = |error: &Error| whose(error) == Some(0);
    let ended = || {
        stage.say(&Word::Lost(0));
        Ok(true)
    };
    for number in 0..count {
        match world.isend_owned(message(stage.seed, stage.me, wave, number, len), 0, FLOOD) {
            Ok(send) => under_way.push_back(send),
            Err(error) if end_of_0(&error) => return ended(),
            Err(error) => return Err(error.into()),
        }
        // Nothing is waited for before the last message is sent: past the budget rank 0 takes none before it has that.
        if let Some(oldest) = under_way.pop_front()
            && let Err(open) = oldest.test()
        {
            under_way.push_front(open);
        }
        if number % 64 == 0 {
            stage.step(0);
        }
    }
    under_way.push_back(
        world
            .isend_owned(vec![wave as u8], 0, LAST)
            .map_err(|why| why.to_string())?,
    );
    for send in under_way {
        let mut open = Some(send);
        while let Some(send) = open.take() {
            match send.wait_for(NAP) {
                Err(still) => open = Some(still),
                Ok(Err(error)) if end_of_0(error.error()) => return ended(),
                Ok(Err(error)) => return Err(Error::from(error).into()),
                Ok(Ok(_)) => {}
            }
            stage.step(0);
        }
    }
    match patiently(stage, world, 0, AGAIN) {
        Ok(again) => Ok(again == 0),
        Err(error) if end_of_0(&error) => ended(),
        Err(error) => Err(error.into()),
    }
}

/// Takes a wave of each. Returns whether it was the last.
fn receive(
    stage: &Stage,
    session: &Session,
    wave: u64,
    lost: &mut [bool],
) -> Result<bool, Trouble> {
    let world = session.world();
    let before = kib("VmRSS:")?;
    for from in 1..session.size() {
        lose(
            stage,
            lost,
            from,
            patiently(stage, world, from, LAST).map(drop),
        )?;
    }
    let grown = kib("VmRSS:")?.saturating_sub(before);
    let most = std::env::var(FLOOD_KIB)
        .ok()
        .and_then(|most| most.parse().ok());
    if most.is_some_and(|most: u64| grown > most) {
        return Err(Trouble::Wrong(format!(
            "rank 0 grew by {grown} KiB in a flood"
        )));
    }
    for from in 1..session.size() {
        let (count, len) = size(stage.seed, from, wave);
        let mut room = vec![0; len];
        for number in 0..count {
            let ended = match lost[from as usize] {
                true => break,
                false => world.recv(&mut room, from, FLOOD),
            };
            let is_good = ended.is_ok();
            lose(stage, lost, from, ended.map(drop))?;
            if is_good && room != message(stage.seed, from, wave, number, len) {
                let is = |other: &u64| room == message(stage.seed, from, wave, *other, len);
                let other = (0..count).find(is);
                let text = format!(
                    "message {number} of rank {from} in flood {wave} is wrong: it is {other:?}"
                );
                return Err(Trouble::Wrong(text));
            }
            if number % 64 == 0 {
                stage.step(64.min(count - number));
            }
        }
    }
    let ends = stage.step(0);
    for to in (1..session.size())
        .filter(|to| !lost[*to as usize])
        .collect::<Vec<_>>()
    {
        lose(stage, lost, to, world.send(&[u8::from(!ends)], to, AGAIN))?;
    }
    Ok(ends || lost[1..].iter().all(|lost| *lost))
}

/// Receives a byte, and says meanwhile that the rank is not stuck.
fn patiently(stage: &Stage, world: Context<'_>, from: u32, tag: i32) -> Result<u8, Error> {
    let mut receive = world.irecv_owned(vec![0_u8], from, tag)?;
    loop {
        match receive.wait_for(NAP) {
            Ok(ended) => return ended.map(|(_, data)| data[0]).map_err(Error::from),
            Err(open) => receive = open,
        }
        stage.step(0);
    }
}

/// Takes the end of an operation with a rank: a death is said once.
fn lose(
    stage: &Stage,
    lost: &mut [bool],
    peer: u32,
    ended: Result<(), Error>,
) -> Result<(), Trouble> {
    match ended {
        Ok(()) => Ok(()),
        Err(error) if whose(&error) == Some(peer) => {
            if !std::mem::replace(&mut lost[peer as usize], true) {
                stage.say(&Word::Lost(peer));
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

fn kib(name: &str) -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|why| why.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|rest| rest.split_whitespace().next());
    let figure = figure.and_then(|figure| figure.parse().ok());
    figure.ok_or_else(|| format!("no '{name}' in /proc/self/status"))
}
