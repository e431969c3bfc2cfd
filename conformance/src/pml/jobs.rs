//! Jobs of ob1 and cm inside this process.

use std::sync::{Mutex, PoisonError};

use crate::network::{MemoryNetwork, MemoryOptions};
use tagwire_base::bootstrap::{LocalBootstrap, LocalJob};
use tagwire_base::{Bootstrap, Clock, Rank};
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::{ByteTransport, MatchTransport};

use super::Job;
use tagwire_pml::cm::{Cm, CmOptions};
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::pml::Pml;
use tagwire_pml::wait::WaitPolicy;

/// Opens the rail of one rank.
type OpenRail = Box<dyn Fn(&mut LocalBootstrap) -> Result<Box<dyn ByteTransport>, String> + Send>;

/// Lets a rank's rail die, before its object goes.
type KillRail = Box<dyn Fn(Rank) + Send>;

/// Whether nothing is under way between rails.
type RestOfRails = Box<dyn Fn() -> bool + Send>;

/// The rails of a job.
pub struct Rails {
    open: OpenRail,
    kill: Option<KillRail>,
    faults: Option<FaultOptions>,
}

impl Rails {
    /// Rails that `open` opens, given the rank's bootstrap. A rank that dies is never dropped,
    /// and the others hear of it from the launcher.
    pub fn new(
        open: impl Fn(&mut LocalBootstrap) -> Result<Box<dyn ByteTransport>, String> + Send + 'static,
    ) -> Self {
        Self {
            open: Box::new(open),
            kill: None,
            faults: None,
        }
    }

    /// A rank dies by `kill`, which its peers may find out themselves, and is dropped.
    #[must_use]
    pub fn with_kill(mut self, kill: impl Fn(Rank) + Send + 'static) -> Self {
        self.kill = Some(Box::new(kill));
        self
    }

    /// Puts faults between every rank and its rail.
    #[must_use]
    pub fn with_faults(mut self, faults: Option<FaultOptions>) -> Self {
        self.faults = faults;
        self
    }
}

impl std::fmt::Debug for Rails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rails(faults: {:?})", self.faults)
    }
}

/// A job of ob1 over any transport.
#[derive(Debug)]
pub struct RailJob {
    rails: Mutex<Rails>,
    job: LocalJob,
    options: Ob1Options,
}

impl RailJob {
    /// A job of `size` ranks over `rails`.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn open(size: u32, rails: Rails, options: Ob1Options) -> Result<Self, String> {
        Ok(Self {
            rails: Mutex::new(rails),
            job: LocalJob::new(size).map_err(|error| error.to_string())?,
            options,
        })
    }

    /// Opens a rank, and returns the clock that it reads.
    fn ob1(&self, rank: Rank) -> Result<(Ob1, Clock), String> {
        let mut bootstrap = self.job.member(rank);
        let rail = {
            let rails = self.rails.lock().unwrap_or_else(PoisonError::into_inner);
            let rail = (rails.open)(&mut bootstrap)?;
            match &rails.faults {
                Some(faults) => Box::new(FaultTransport::new(rail, rank, faults.clone())),
                None => rail,
            }
        };
        let clock = bootstrap.clock();
        let bootstrap = Box::new(bootstrap) as Box<dyn Bootstrap>;
        let ob1 = Ob1::open(&self.options, rail, bootstrap).map_err(|error| error.to_string())?;
        Ok((ob1, clock))
    }
}

impl Job for RailJob {
    fn open(&self, rank: Rank) -> Result<Box<dyn Pml>, String> {
        Ok(Box::new(self.ob1(rank)?.0))
    }

    fn port(
        &self,
        rank: Rank,
        level: ThreadLevel,
        policy: WaitPolicy,
    ) -> Result<Messenger, String> {
        let (ob1, clock) = self.ob1(rank)?;
        Ok(Messenger::new(ob1, level, policy).with_clock(clock))
    }

    fn kill(&self, rank: Rank, victim: Box<dyn Send>) -> bool {
        let rails = self.rails.lock().unwrap_or_else(PoisonError::into_inner);
        match &rails.kill {
            Some(kill) => {
                kill(rank);
                drop(victim);
            }
            // An object that is dropped says goodbye. The dead say nothing.
            None => std::mem::forget(victim),
        }
        self.job.declare_failed(rank);
        rails.kill.is_some()
    }
}

/// Jobs of ob1 over the network in memory.
#[derive(Debug)]
pub struct MemoryJob;

impl MemoryJob {
    /// A job of `size` ranks over a network with `network` options.
    ///
    /// # Errors
    /// As [`RailJob::open`].
    pub fn open(size: u32, network: MemoryOptions, options: Ob1Options) -> Result<RailJob, String> {
        Self::open_with_faults(size, network, None, options)
    }

    /// The same, with faults.
    ///
    /// # Errors
    /// As [`RailJob::open`].
    pub fn open_with_faults(
        size: u32,
        network: MemoryOptions,
        faults: Option<FaultOptions>,
        options: Ob1Options,
    ) -> Result<RailJob, String> {
        let network = MemoryNetwork::new(size, network);
        let mortal = network.clone();
        let rails = Rails::new(move |bootstrap| {
            let (rail, clock) = network.open(bootstrap.rank());
            bootstrap.set_clock(clock);
            Ok(Box::new(rail) as Box<dyn ByteTransport>)
        })
        .with_kill(move |rank| mortal.fail(rank))
        .with_faults(faults);
        RailJob::open(size, rails, options)
    }
}

/// Opens the matching rail of one rank.
type OpenMatchRail =
    Box<dyn Fn(&mut LocalBootstrap) -> Result<Box<dyn MatchTransport>, String> + Send>;

/// The rails of a job that match themselves.
pub struct MatchRails {
    open: OpenMatchRail,
    kill: Option<KillRail>,
    rest: Option<RestOfRails>,
}

impl MatchRails {
    /// Rails that `open` opens, given the rank's bootstrap. A rank that dies is never dropped,
    /// and the others hear of it from the launcher.
    pub fn new(
        open: impl Fn(&mut LocalBootstrap) -> Result<Box<dyn MatchTransport>, String> + Send + 'static,
    ) -> Self {
        Self {
            open: Box::new(open),
            kill: None,
            rest: None,
        }
    }

    /// `rest` returns whether nothing is under way. Without it that is so whenever no rank has anything to do.
    #[must_use]
    pub fn with_rest(mut self, rest: impl Fn() -> bool + Send + 'static) -> Self {
        self.rest = Some(Box::new(rest));
        self
    }

    /// A rank dies by `kill`, which its peers may find out themselves, and is dropped.
    #[must_use]
    pub fn with_kill(mut self, kill: impl Fn(Rank) + Send + 'static) -> Self {
        self.kill = Some(Box::new(kill));
        self
    }
}

impl std::fmt::Debug for MatchRails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MatchRails")
    }
}

/// A job of cm over any transport that matches.
#[derive(Debug)]
pub struct MatchJob {
    rails: Mutex<MatchRails>,
    job: LocalJob,
    options: CmOptions,
}

impl MatchJob {
    /// A job of `size` ranks over `rails`.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn open(size: u32, rails: MatchRails, options: CmOptions) -> Result<Self, String> {
        Ok(Self {
            rails: Mutex::new(rails),
            job: LocalJob::new(size).map_err(|error| error.to_string())?,
            options,
        })
    }

    /// Opens a rank, and returns the clock that it reads.
    fn cm(&self, rank: Rank) -> Result<(Cm, Clock), String> {
        let mut bootstrap = self.job.member(rank);
        let rail = {
            let rails = self.rails.lock().unwrap_or_else(PoisonError::into_inner);
            (rails.open)(&mut bootstrap)?
        };
        let clock = bootstrap.clock();
        let bootstrap = Box::new(bootstrap) as Box<dyn Bootstrap>;
        let cm = Cm::open(&self.options, rail, bootstrap).map_err(|error| error.to_string())?;
        Ok((cm, clock))
    }
}

impl Job for MatchJob {
    fn open(&self, rank: Rank) -> Result<Box<dyn Pml>, String> {
        Ok(Box::new(self.cm(rank)?.0))
    }

    fn port(
        &self,
        rank: Rank,
        level: ThreadLevel,
        policy: WaitPolicy,
    ) -> Result<Messenger, String> {
        let (cm, clock) = self.cm(rank)?;
        Ok(Messenger::new(cm, level, policy).with_clock(clock))
    }

    fn kill(&self, rank: Rank, victim: Box<dyn Send>) -> bool {
        let rails = self.rails.lock().unwrap_or_else(PoisonError::into_inner);
        match &rails.kill {
            Some(kill) => {
                kill(rank);
                drop(victim);
            }
            // An object that is dropped says goodbye. The dead say nothing.
            None => std::mem::forget(victim),
        }
        self.job.declare_failed(rank);
        rails.kill.is_some()
    }

    fn is_at_rest(&self) -> bool {
        let rails = self.rails.lock().unwrap_or_else(PoisonError::into_inner);
        rails.rest.as_ref().is_none_or(|rest| rest())
    }
}
