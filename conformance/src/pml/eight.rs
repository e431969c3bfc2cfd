//! Eight ranks: what collective operations ask for, and a death in the middle of that.

use tagwire_base::Rank;

use super::rig::{Checked, Receiving, World, from, only, pattern, same};
use super::{Factory, Setup};
use tagwire_pml::types::{Failure, RequestId, SendMode};

const RANKS: u32 = 8;

/// The one that dies.
const DEAD: usize = 5;
const FAILED: Option<Failure> = Some(Failure::PeerFailed(Rank::new(DEAD as u32)));

/// A message round the ring, then everyone to everyone.
pub(super) fn eight_exchange_with_each_other(factory: &Factory) -> Checked {
    let mut world = World::open(factory, RANKS, &Setup::default())?;
    for at in 0..world.size() {
        let to = (at + 1) % world.size();
        let receiving = world.recv(to, from(at as u32), only(1), 40)?;
        let sent = world.send(at, to as u32, 1, &pattern(at, 40), SendMode::Standard)?;
        world.got(receiving, at as u32, 1, at, 40)?;
        world.finish_well(at, sent)?;
    }
    for len in factory.protocols() {
        Exchange::start(&mut world, 2, len)?.finish(&mut world)?;
    }
    world.is_idle()
}

/// Who has to do with the dead is told so, once; the others have what they were sent.
pub(super) fn eight_go_on_after_a_death(factory: &Factory) -> Checked {
    let mut world = World::open(factory, RANKS, &Setup::default())?;
    world.acquaint()?;
    for (number, len) in factory.protocols().into_iter().enumerate() {
        let exchange = Exchange::start(&mut world, number as u32 + 3, len)?;
        for _ in 0..number {
            world.turn();
        }
        if number == 1 {
            world.kill(DEAD);
        }
        exchange.finish(&mut world)?;
    }
    world.is_idle()
}

/// Everyone has something under way to everyone else who lives.
struct Exchange {
    len: usize,
    value: u32,
    /// Where, to whom.
    sends: Vec<(usize, usize, RequestId)>,
    /// From whom.
    receives: Vec<(usize, Receiving)>,
}

impl Exchange {
    fn start(world: &mut World, value: u32, len: usize) -> Checked<Self> {
        let size = world.size();
        let mut exchange = Self {
            len,
            value,
            sends: Vec::new(),
            receives: Vec::new(),
        };
        let pairs = (1..size).flat_map(|shift| (0..size).map(move |at| (at, (at + shift) % size)));
        for (at, to) in pairs {
            if !world.is_alive(at) || !world.is_alive(to) {
                continue;
            }
            let receiving = world.recv(to, from(at as u32), only(value), len)?;
            exchange.receives.push((at, receiving));
            let bytes = pattern(at * size + to, len);
            let sent = world.send(at, to as u32, value, &bytes, SendMode::Standard)?;
            exchange.sends.push((at, to, sent));
        }
        Ok(exchange)
    }

    fn finish(self, world: &mut World) -> Checked {
        let Self { len, value, .. } = self;
        let seed = |at: usize, to: usize| at * RANKS as usize + to;
        for (source, receiving) in self.receives {
            let at = receiving.at;
            if !world.is_alive(at) {
                continue;
            }
            if world.is_alive(source) {
                world.got(receiving, source as u32, value, seed(source, at), len)?;
                continue;
            }
            match world.finish(at, receiving.request)?.failure {
                None => same(
                    "the bytes of the dead",
                    world.bytes(receiving) == pattern(seed(source, at), len),
                    true,
                )?,
                failure => same("a receive from the dead", failure, FAILED)?,
            }
        }
        for (at, to, sent) in self.sends {
            if !world.is_alive(at) {
                continue;
            }
            match world.finish(at, sent)?.failure {
                None => {}
                failure if world.is_alive(to) => same("a send to the living", failure, None)?,
                failure => same("a send to the dead", failure, FAILED)?,
            }
        }
        Ok(())
    }
}
