//! Where trials run: transports, their settings, and hosts.

mod hosts;
pub mod network;
mod shm;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tagwire_conformance::Chance;

use crate::site::Site;

/// The longest that anything may take over shared memory, on a machine that does nothing else.
pub const ON_A_HOST: Duration = Duration::from_secs(1);
/// The same over a network.
pub const ON_A_NETWORK: Duration = Duration::from_secs(3);

/// The budgets for payload (64 MiB) and envelopes (16 MiB) of unexpected messages, and what is no message.
pub const BUDGETS_KIB: u64 = (64 + 16 + 24) << 10;

/// A setting of a job: its variable and its value.
pub type Setting = (&'static str, String);

/// Where jobs run. The driver alone calls it.
pub trait Ground: Sync {
    /// Returns its name in plans and reports.
    fn name(&self) -> &'static str;

    /// Returns the settings of all ranks. Drawn ones make jobs differ.
    fn settings(&self, chance: &mut Chance) -> Vec<Setting>;

    /// Returns the longest that a rank may take for anything, once nothing disturbs it.
    fn bound(&self) -> Duration {
        ON_A_NETWORK
    }

    /// Whether the setting `fault` may lose, repeat and change messages: something mends that.
    fn mends(&self) -> bool {
        false
    }

    /// Whether the setting `fault` applies: there are bytes between the layer and the transport.
    fn takes_faults(&self) -> bool {
        true
    }

    /// Whether ranks share memory.
    fn shares_memory(&self) -> bool {
        false
    }

    /// Whether ranks give back all descriptors when they close. Libraries keep some.
    fn gives_descriptors_back(&self) -> bool {
        false
    }

    /// Returns the settings by which a process alone finds out whether its transports work here.
    fn alone(&self) -> Vec<Setting> {
        self.settings(&mut Chance::new(0))
    }

    /// Returns how many cables its hosts have.
    fn cables(&self) -> u8 {
        0
    }

    /// Whether trials can be run on it on every machine: one that cannot is a find.
    fn is_everywhere(&self) -> bool {
        false
    }

    /// Returns what beside its transport is missing here.
    fn why_not(&self) -> Option<String> {
        None
    }

    /// Returns what a rank may grow by in a flood, in KiB.
    fn flood_kib(&self) -> u64 {
        BUDGETS_KIB
    }

    /// Makes the hosts that jobs run on. One host is this machine as it is.
    ///
    /// # Errors
    /// Says why they cannot be made here.
    fn site(&self) -> Result<Site, String> {
        Ok(Site::here())
    }
}

/// Returns why ranks cannot be on a ground here; `None` where they can. A process alone is opened with its settings, once for
/// each ground.
pub fn why_not(ground: &dyn Ground) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<&str, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = known.entry(ground.name()).or_insert_with(|| {
        if let Some(why) = ground.why_not() {
            return Some(why);
        }
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(why) => return Some(format!("this program: {why}")),
        };
        let mut command = Command::new(program);
        without_settings(&mut command);
        let asked = command.arg("alone").envs(ground.alone()).output();
        match asked {
            Ok(said) if said.status.success() => None,
            Ok(said) => Some(String::from_utf8_lossy(&said.stderr).trim().to_owned()),
            Err(why) => Some(why.to_string()),
        }
    });
    answer.clone()
}

/// Keeps the settings of whoever runs the campaign from a command: a trial has its own.
pub fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TAGWIRE_") {
            command.env_remove(name);
        }
    }
}

/// All of them. Plans of seeds change with this list.
pub const ALL: &[&dyn Ground] = &[
    &shm::SHM,
    &shm::CM,
    &shm::DR,
    &network::OFI,
    &network::OFI_CM,
    &network::UCX,
    &network::MIXED,
    &network::STRIPED,
    &hosts::HOSTS,
    &hosts::HOSTS_UCX,
    &hosts::TWO_CABLES,
    &network::OFI_DR,
    &network::DATAGRAMS,
];
