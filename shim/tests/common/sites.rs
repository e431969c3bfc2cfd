//! Where the ranks of a test are, and what moves their bytes.

use std::sync::Arc;

use tagwire_base::Rank;
use tagwire_base::bootstrap::{LocalJob, Locality};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Errhandler};
use tagwire_shim::call::communicators::comm_set_errhandler;

use super::WORLD;
use super::windows::{ALL, Made};

/// Ranks by turns on so many hosts, with settings.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    hosts: u32,
    settings: &'static [(&'static str, &'static str)],
}

/// One host, whose ranks share memory.
pub const NEAR: Site = Site {
    hosts: 1,
    settings: &[("wait", "yield")],
};

/// The same, where waits sleep.
pub const ASLEEP: Site = Site {
    hosts: 1,
    settings: &[],
};

/// One host, where memory that is not mapped is accessed by its owner alone.
pub const SERVED: Site = Site {
    hosts: 1,
    settings: &[("wait", "yield"), ("shm-cma", "off")],
};

/// Two hosts, with a network between them.
pub const FAR: [Site; 4] = [
    Site {
        hosts: 2,
        settings: &[("wait", "yield"), ("transport", "ofi:tcp;ofi_rxm")],
    },
    Site {
        hosts: 2,
        settings: &[("wait", "yield"), ("transport", "ucx:tcp,self")],
    },
    Site {
        hosts: 2,
        settings: &[("wait", "yield"), ("transport", "shm+ofi:tcp;ofi_rxm")],
    },
    Site {
        hosts: 2,
        settings: &[("wait", "yield"), ("transport", "shm+ucx:tcp,self")],
    },
];

impl Site {
    /// Returns the kinds of windows that its ranks make.
    pub const fn kinds(&self) -> &'static [Made] {
        match self.hosts {
            1 => &ALL,
            // A shared window is of one host.
            _ => &[Made::Created, Made::Allocated, Made::Dynamic],
        }
    }

    /// Opens a rank of a job, whose communicators return errors.
    pub fn open(&self, job: &LocalJob, size: u32, number: u32) -> Result<Arc<Process>, String> {
        let host = number % self.hosts;
        let locality = Locality {
            local_rank: number / self.hosts,
            local_size: (size - host).div_ceil(self.hosts),
            first_local: Rank::new(host),
            address: None,
        };
        let member = job.member(Rank::new(number)).with_locality(locality);
        let name = ["north", "south"][host as usize];
        let settings = [self.settings, &[("host", name)]].concat();
        let process = Arc::new(Process::open(Box::new(member), &settings)?);
        for comm in [WORLD, Comm::SELF] {
            comm_set_errhandler(&process, comm, Errhandler::RETURN).unwrap();
        }
        Ok(process)
    }

    /// Returns whether its network is there; where it is not, says so.
    pub fn is_there(&self, test: &str) -> bool {
        let job = LocalJob::new(1).unwrap();
        match self.open(&job, 1, 0) {
            Ok(process) => process.finalize().is_ok(),
            Err(error) if error.contains("cannot be loaded") || error.contains("cannot open") => {
                eprintln!("SKIPPED: {test}: {error}");
                false
            }
            Err(error) => panic!("{test}: {error}"),
        }
    }
}
