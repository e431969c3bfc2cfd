//! All ranks but 0 send to rank 0 more than it has memory for, and it wants another message first.

use std::collections::VecDeque;
use std::time::Duration;

use tagwire::{Context, Error, OwnedSend, Session};
use tagwire_conformance::Chance;

use super::Program;
use crate::contents::fill;
use crate::events::Word;
use crate::job::{self, FLOOD_KIB};
use crate::stage::{Stage, Trouble, whose};

/// Many unexpected messages, with a message at the end that is received first.
#[derive(Debug)]
pub struct Flood;

const FLOOD: i32 = 1;
const LAST: i32 = 2;
const AGAIN: i32 = 3;
const FIRST: i32 = 4;
/// How many messages make a step.
const STEP: u64 = 64;
/// How long a wait lasts before the rank says how far it is.
const NAP: Duration = Duration::from_millis(20);
/// How many sends are looked at after a nap.
const SWEEP: usize = 256;
/// Of what is wrong so many bytes are shown, and the messages of so many floods are looked through for it.
const SHOWN: usize = 24;
const WAVES: u64 = 4;
/// How long the messages of a flood may be, in words, and how many words a rank sends at most.
const WORDS: [usize; 6] = [1, 8, 64, 512, 2048, 8192];
const FEW: u64 = 400_000;
/// The same for messages that are kept for what they contain: a few thousand of them are more than a rank keeps. They are
/// sent eagerly over networks, and up to [`SHORTER`] over shared memory.
const MANY: u64 = 20_000_000;
const SHORTER: usize = 2048;
/// What a rank keeps of unexpected messages, and how often that many bytes are in a flood of so many messages as somebody has asked
/// for: its senders are held back.
const BUDGET: u64 = 64 << 20;
const TIMES: u64 = 4;
/// The longest message of such a flood.
const LONGEST: u64 = 64 << 10;

impl Program for Flood {
    fn name(&self) -> &'static str {
        "flood"
    }

    fn about(&self) -> &'static str {
        "thousands of unexpected messages to one rank, which keeps 64 MiB of them and loses none"
    }

    fn takes(&self, flood: Option<u64>) -> Duration {
        // What does not fit is asked for, message by message, and datagrams bring some megabytes a second beside other load.
        Duration::from_secs(20) + Duration::from_millis(flood.unwrap_or_default() / 2)
    }

    fn hears_of(&self, rank: u32, peer: u32, _ranks: u32) -> bool {
        rank == 0 || peer == 0
    }

    fn run(&self, stage: &Stage) -> Result<(), Trouble> {
        let session = stage.open(Session::builder())?;
        let mut lost = vec![false; session.size() as usize];
        let peers = if stage.me == 0 {
            1..session.size()
        } else {
            0..1
        };
        for peer in peers {
            let met = meet(stage, session.world(), peer);
            lose(stage, &mut lost, peer, met)?;
        }
        for wave in 0.. {
            if stage.me != 0 && lost[0] {
                break;
            }
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
    std::env::var(job::FLOOD).ok()?.parse().ok()
}

/// Returns how many messages a rank sends in a wave, and how long they are, where so many are asked of the first one.
fn size(seed: u64, rank: u32, wave: u64, asked: Option<u64>) -> (u64, usize) {
    let mut chance = Chance::new(seed ^ u64::from(rank) << 8 ^ wave << 32);
    if let Some(count) = asked.filter(|_| wave == 0) {
        // Whoever sends them has all of them in memory.
        let bytes = BUDGET * (TIMES + chance.below(TIMES));
        let len = bytes.div_ceil(count.max(1)).next_multiple_of(8);
        return (count, len.min(LONGEST) as usize);
    }
    let words = chance.one_of(&WORDS);
    let most = if words < SHORTER { FEW } else { MANY };
    let count = 200 + chance.below(most / (words as u64 + 20));
    (count, 8 * words)
}

fn message(seed: u64, rank: u32, wave: u64, number: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    fill(
        seed ^ u64::from(rank) << 50 ^ wave << 40 ^ number,
        &mut bytes,
    );
    bytes
}

/// Exchanges a message with a rank: what libraries take for the first ones, 17 MB for each network, is no part of a flood.
fn meet(stage: &Stage, world: Context<'_>, peer: u32) -> Result<(), Error> {
    let send = world.isend_owned(vec![0_u8], peer, FIRST)?;
    settle_with(stage, peer, VecDeque::from([send]))?;
    patiently(stage, world, (peer, FIRST), || Ok(())).map(drop)
}

/// Sends a wave. Returns whether it was the last.
fn send(stage: &Stage, world: Context<'_>, wave: u64) -> Result<bool, Trouble> {
    let (count, len) = size(stage.seed, stage.me, wave, asked());
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
        if number % STEP == 0 {
            stage.ended(STEP);
            stage.step(0);
        }
    }
    let last = world.isend_owned(vec![wave as u8], 0, LAST);
    let settled = last.and_then(|last| {
        under_way.push_back(last);
        settle_with(stage, 0, under_way)
    });
    match settled.and_then(|()| patiently(stage, world, (0, AGAIN), || Ok(()))) {
        Ok(again) => Ok(again == 0),
        Err(error) if end_of_0(&error) => ended(),
        Err(error) => Err(error.into()),
    }
}

/// Waits for sends to a rank.
fn settle_with(stage: &Stage, peer: u32, sends: VecDeque<OwnedSend<'_, u8>>) -> Result<(), Error> {
    let _waiting = stage.waits_for([peer]);
    settle(sends, |ended| {
        stage.ended(ended);
        stage.step(0);
    })
}

/// Waits for sends, with a step of the program after each nap and each [`STEP`] of them, which is told how many have ended since the last: a
/// slow rank pays for steps, and tens of thousands of sends may have ended already.
fn settle(mut sends: VecDeque<OwnedSend<'_, u8>>, mut step: impl FnMut(u64)) -> Result<(), Error> {
    let (mut ended, mut at) = (0, 0);
    while let Some(send) = sends.pop_front() {
        match send.wait_for(NAP) {
            Ok(end) => drop(end?),
            Err(still) => {
                sends.push_front(still);
                ended += take_ended(&mut sends, &mut at)?;
                step(std::mem::take(&mut ended));
                continue;
            }
        }
        ended += 1;
        if ended >= STEP {
            step(std::mem::take(&mut ended));
        }
    }
    step(ended);
    Ok(())
}

/// Takes the ends of some sends, from a place on that goes round. Returns how many have ended. The first of all may be kept by its sender
/// while the bytes of later ones travel, for which there was credit then.
fn take_ended(sends: &mut VecDeque<OwnedSend<'_, u8>>, at: &mut usize) -> Result<u64, Error> {
    let mut ended = 0;
    for _ in 0..SWEEP.min(sends.len()) {
        *at += 1;
        let place = *at % sends.len().max(1);
        let Some(send) = sends.swap_remove_back(place) else {
            break;
        };
        match send.test() {
            Ok(end) => {
                end?;
                ended += 1;
            }
            Err(still) => {
                sends.push_back(still);
                let last = sends.len() - 1;
                sends.swap(place, last);
            }
        }
    }
    Ok(ended)
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
        let last = patiently(stage, world, (from, LAST), || notice(stage, session, lost));
        lose(stage, lost, from, last.map(drop))?;
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
        let (count, len) = size(stage.seed, from, wave, asked());
        let mut room = vec![0; len];
        for number in 0..count {
            let ended = match lost[from as usize] {
                true => break,
                false => world.recv(&mut room, from, FLOOD),
            };
            let is_good = ended.is_ok();
            lose(stage, lost, from, ended.map(drop))?;
            let sent = message(stage.seed, from, wave, number, len);
            if is_good && room != sent {
                let what = different(stage.seed, session.size(), &room, &sent);
                let text =
                    format!("message {number} of rank {from} in flood {wave} is wrong: {what}");
                return Err(Trouble::Wrong(text));
            }
            if number % STEP == 0 {
                stage.step(STEP.min(count - number));
                notice(stage, session, lost)?;
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

/// Says how what has arrived differs from what was sent: which other message it is, or which of its bytes differ.
fn different(seed: u64, ranks: u32, arrived: &[u8], sent: &[u8]) -> String {
    for (rank, wave) in (1..ranks).flat_map(|rank| (0..WAVES).map(move |wave| (rank, wave))) {
        let (count, len) = size(seed, rank, wave, asked().filter(|_| wave == 0));
        let is = |number: &u64| {
            len == arrived.len() && arrived == message(seed, rank, wave, *number, len)
        };
        if let Some(number) = (0..count).find(is) {
            return format!("it is message {number} of rank {rank} in flood {wave}");
        }
    }
    let differ = |at: &usize| arrived[*at] != sent[*at];
    let first = (0..sent.len()).find(differ).unwrap_or_default();
    let last = (0..sent.len()).rfind(differ).unwrap_or_default();
    let there = &arrived[first..=last];
    let what = match there.iter().all(|byte| *byte == 0) {
        true => "are zero".to_owned(),
        false => format!("begin with {:02x?}", &there[..there.len().min(SHOWN)]),
    };
    format!("of {} bytes {first} to {last} {what}", sent.len())
}

/// Receives a byte, and says meanwhile how far the rank is.
fn patiently(
    stage: &Stage,
    world: Context<'_>,
    (from, tag): (u32, i32),
    mut look: impl FnMut() -> Result<(), Error>,
) -> Result<u8, Error> {
    let mut receive = world.irecv_owned(vec![0_u8], from, tag)?;
    let _waiting = stage.waits_for([from]);
    loop {
        match receive.wait_for(NAP) {
            Ok(ended) => {
                stage.ended(1);
                return ended.map(|(_, data)| data[0]).map_err(Error::from);
            }
            Err(open) => receive = open,
        }
        stage.step(0);
        look()?;
    }
}

/// Says who has died while another is waited for: what that one floods with may take longer than the news.
fn notice(stage: &Stage, session: &Session, lost: &mut [bool]) -> Result<(), Error> {
    for rank in session.failed()? {
        if !std::mem::replace(&mut lost[rank as usize], true) {
            stage.say(&Word::Lost(rank));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_more_than_a_rank_keeps() {
        // What three ranks send: over networks all of it is sent before it is received, over shared memory up to 16 KiB.
        let sent = |seed, most: usize| {
            let sizes = (1..4).map(|rank| size(seed, rank, 0, None));
            let eager = sizes.filter(|(_, len)| *len <= most);
            eager.map(|(count, len)| count * len as u64).sum::<u64>()
        };
        for most in [16 << 10, 64 << 10] {
            let past = (0..100).filter(|seed| sent(*seed, most) > BUDGET);
            assert!(past.count() > 20, "of {most} bytes");
        }
        for seed in 0..100 {
            for asked in [5_000, 50_000, 1_000_000] {
                let (count, len) = size(seed, 1, 0, Some(asked));
                assert_eq!(count, asked);
                let bytes = count * len as u64;
                assert!((TIMES * BUDGET..9 * BUDGET).contains(&bytes), "{bytes}");
            }
        }
    }

    #[test]
    fn sends_that_have_ended_are_few_steps() {
        const MANY: u64 = 10 * STEP;
        let session = Session::open().unwrap();
        let world = session.world();
        let sends = (0..MANY).map(|_| world.isend_owned(vec![7_u8; 8], 0, FLOOD).unwrap());
        let sends: VecDeque<_> = sends.collect();
        for _ in 0..MANY {
            world.recv(&mut [0_u8; 8], 0, FLOOD).unwrap();
        }
        let mut steps = 0;
        settle(sends, |_| steps += 1).unwrap();
        assert_eq!(steps, MANY / STEP + 1);
        session.close().unwrap();
    }
}
