//! Two hosts: network namespaces of this machine, with cables that can be pulled.

use tagwire_conformance::Chance;

use super::{Ground, Setting};
use crate::site::Site;

/// Two hosts with half of the ranks each.
#[derive(Debug)]
pub struct Hosts {
    name: &'static str,
    transport: &'static str,
    cables: u8,
}

/// Shared memory within a host, libfabric by one cable between them.
pub const HOSTS: Hosts = Hosts {
    name: "hosts",
    transport: "shm+ofi:tcp;ofi_rxm",
    cables: 1,
};
/// UCX by one cable.
pub const HOSTS_UCX: Hosts = Hosts {
    name: "hosts-ucx",
    transport: "ucx:tcp,self",
    cables: 1,
};
/// Messages by two cables at once. The job's store is reached by the first.
pub const TWO_CABLES: Hosts = Hosts {
    name: "two-cables",
    transport: "ofi:tcp;ofi_rxm@eth1+ofi:tcp;ofi_rxm@eth0",
    cables: 2,
};

impl Ground for Hosts {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self, chance: &mut Chance) -> Vec<Setting> {
        let rendezvous = chance.one_of(&["auto", "get", "put", "push"]);
        vec![
            ("TAGWIRE_TRANSPORT", self.transport.to_owned()),
            ("TAGWIRE_PML", "ob1".to_owned()),
            ("TAGWIRE_RENDEZVOUS", rendezvous.to_owned()),
            ("TAGWIRE_RAIL_PATIENCE", "500ms".to_owned()),
        ]
    }

    fn alone(&self) -> Vec<Setting> {
        // The names of cables are those of the hosts.
        let last = self.transport.rsplit('+').next().unwrap_or_default();
        let provider = last.split('@').next().unwrap_or_default();
        vec![("TAGWIRE_TRANSPORT", provider.to_owned())]
    }

    fn cables(&self) -> u8 {
        self.cables
    }

    fn why_not(&self) -> Option<String> {
        Site::of_two_hosts(self.cables).err()
    }

    fn site(&self) -> Result<Site, String> {
        Site::of_two_hosts(self.cables)
    }
}
