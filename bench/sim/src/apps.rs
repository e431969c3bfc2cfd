//! Skeletons of applications: what their ranks compute and send, in the places of the codes. What a rank spends in the library is
//! measured call by call.
//!
//! The codes are those of Graham and others, *Open MPI's matching transport layer on the Cray XT* (EuroPVM/MPI 2007), table 1. Their
//! messages are those of its columns; how they follow each other is assumed. A skeleton is a file and a line of [`APPS`].

mod gtc;
mod pop;
mod s3d;
mod vh1;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tagwire_sim::{SimNetwork, SimOptions};
use tagwire_transport::fault::SplitMix64;

use crate::error::{Error, Result};
use crate::job::{Opener, Pml, check_memory};
use crate::profile::{Metered, Profile};
use crate::programs::{Body, doublings};
use crate::threads::Threads;

/// A skeleton.
#[derive(Clone, Copy)]
pub struct App {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// How many ranks the paper ran it on.
    pub ranks: u32,
    /// How many ranks it takes at least.
    pub least: u32,
    /// With how many others a rank exchanges messages, those of sums apart.
    pub peers: u32,
    /// Bytes of what it sends and receives at once.
    pub buffers: usize,
    /// How many steps it takes for the messages of the paper.
    pub steps: u32,
    /// What each rank computes before an exchange, about: fitted to the share of the library in the run time.
    pub compute: Duration,
    /// By how much ranks differ in that over the whole run, as a standard deviation in percent: fitted to the share of the library on the
    /// rank that has most of it.
    pub imbalance: f64,
    /// By how much exchanges of a rank do: fitted to the share of dropped messages.
    pub jitter: f64,
    pub(crate) body: for<'a> fn(&'a Metered, &'a Case) -> Body<'a>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("App").field(&self.name).finish()
    }
}

/// How a skeleton is run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// Ranks.
    pub ranks: u32,
    /// Steps.
    pub steps: u32,
    /// What each rank computes before an exchange, about.
    pub compute: Duration,
    /// By how much ranks differ in that, in percent.
    pub imbalance: f64,
    /// By how much exchanges of a rank do.
    pub jitter: f64,
    /// Names what is drawn.
    pub seed: u64,
}

/// The skeletons, in the order of the paper's table.
pub const APPS: &[App] = &[vh1::APP, gtc::APP, pop::APP, s3d::APP];

/// Returns the skeleton called `name`.
#[must_use]
pub fn app(name: &str) -> Option<&'static App> {
    APPS.iter().find(|app| app.name == name)
}

/// Runs a skeleton, and returns what its ranks have spent where, without their first contacts.
///
/// # Errors
/// When there are too few ranks, there is not enough memory, a rank cannot be opened, an operation fails, or ranks wait for ever.
pub fn run(options: &SimOptions, pml: Pml, app: &App, case: Case) -> Result<Profile> {
    if case.ranks < app.least {
        return Err(Error::TooFew {
            program: app.name,
            takes: app.least,
        });
    }
    let peers = app.peers + doublings(case.ranks);
    check_memory(case.ranks, peers, app.buffers)?;
    let network = SimNetwork::new(case.ranks, options.clone());
    let mut threads = Threads::of(&network, Opener::hollow(pml, &network));
    let profile = Rc::new(RefCell::new(Profile::default()));
    for rank in threads.open_all(case.ranks)? {
        let (profile, body) = (Rc::clone(&profile), app.body);
        threads.spawn(&rank.actor().clone(), async move {
            let metered = Metered::new(rank);
            body(&metered, &case).await?;
            metered.rank().barrier().await?;
            metered.rank().close()?;
            profile.borrow_mut().ranks.push(metered.into_profile());
            Ok(())
        });
    }
    threads.run()?;
    Ok(Profile {
        counts: network.counts(),
        end: network.now(),
        ..profile.take()
    })
}

impl Case {
    /// Returns what a rank draws, apart from others.
    fn drawn(&self, rank: u32) -> Drawn {
        let mut random = SplitMix64::stream(self.seed, u64::from(rank));
        let factor = 1.0 + self.imbalance / 100.0 * normal(&mut random);
        Drawn {
            random,
            mean: self.compute.mul_f64(factor.max(0.0)),
            jitter: self.jitter / 100.0,
        }
    }
}

/// What a rank draws.
struct Drawn {
    random: SplitMix64,
    mean: Duration,
    jitter: f64,
}

impl Drawn {
    /// Returns how long it computes before an exchange: a normal variable, none of it below 0.
    fn computes(&mut self) -> Duration {
        let factor = 1.0 + self.jitter * normal(&mut self.random);
        self.mean.mul_f64(factor.max(0.0))
    }

    /// Returns a number of bytes from `least` to `most`.
    fn bytes(&mut self, least: usize, most: usize) -> usize {
        least + self.random.below((most - least) as u64 + 1) as usize
    }
}

/// Draws a normal variable (Box and Muller, *A note on the generation of random normal deviates*, 1958).
fn normal(random: &mut SplitMix64) -> f64 {
    // Above 0, as the logarithm takes it.
    let mut uniform = || ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let (one, other) = (uniform(), uniform());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_normal() {
        let mut random = SplitMix64::new(1);
        let all: Vec<f64> = (0..10_000).map(|_| normal(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / 1e4;
        let square = all.iter().map(|one| one * one).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05, "{mean}");
        assert!((square - 1.0).abs() < 0.05, "{square}");
    }

    #[test]
    fn nobody_computes_for_less_than_nothing() {
        let case = Case {
            ranks: 1,
            steps: 1,
            compute: Duration::from_micros(1),
            imbalance: 0.0,
            jitter: 300.0,
            seed: 0,
        };
        let mut drawn = case.drawn(0);
        let all: Vec<_> = (0..100).map(|_| drawn.computes()).collect();
        assert!(all.contains(&Duration::ZERO) && all.iter().any(|one| *one > case.compute));
        let case = Case {
            imbalance: 300.0,
            jitter: 0.0,
            ..case
        };
        let of_ranks: Vec<_> = (0..100).map(|rank| case.drawn(rank).computes()).collect();
        assert!(of_ranks.contains(&Duration::ZERO));
        // Without jitter a rank computes as long each time.
        let mut drawn = case.drawn(7);
        assert_eq!([drawn.computes(), drawn.computes()], [of_ranks[7]; 2]);
    }
}
