//! Networks by libraries, over the loopback of this machine.

use tagwire_conformance::Chance;

use super::{BUDGETS_KIB, Ground, Setting};

/// A network, or several, between ranks of this machine.
#[derive(Debug)]
pub struct Network {
    name: &'static str,
    /// The setting `transport`.
    transport: &'static str,
    pml: &'static str,
    /// Whether ranks say that they are on several hosts, two on each.
    hosts: bool,
    /// The setting `reliability`, where it has messages arrive that the network loses, repeats or changes.
    reliability: Option<&'static str>,
}

/// ob1 over libfabric.
pub const OFI: Network = Network {
    name: "ofi",
    transport: "ofi:tcp;ofi_rxm",
    pml: "ob1",
    hosts: false,
    reliability: None,
};
/// Matching by libfabric.
pub const OFI_CM: Network = Network {
    name: "ofi-cm",
    pml: "cm",
    ..OFI
};
/// ob1 over UCX.
pub const UCX: Network = Network {
    name: "ucx",
    transport: "ucx:tcp,self",
    pml: "ob1",
    hosts: false,
    reliability: None,
};
/// Shared memory between two ranks, libfabric to the others.
pub const MIXED: Network = Network {
    name: "mixed",
    transport: "shm+ofi:tcp;ofi_rxm",
    hosts: true,
    ..OFI
};
/// Each message by one of two networks, long ones by both.
pub const STRIPED: Network = Network {
    name: "striped",
    transport: "ofi:tcp;ofi_rxm+ucx:tcp,self",
    ..OFI
};
/// Data reliability over a network whose messages are lost, repeated and changed.
pub const OFI_DR: Network = Network {
    name: "ofi-dr",
    reliability: Some("dr"),
    ..OFI
};
/// The same over datagrams, around which data reliability is by itself.
pub const DATAGRAMS: Network = Network {
    name: "datagrams",
    transport: "ofi:udp;datagram",
    reliability: Some("auto"),
    ..OFI
};

impl Ground for Network {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self, chance: &mut Chance) -> Vec<Setting> {
        let mut settings = vec![
            ("TAGWIRE_TRANSPORT", self.transport.to_owned()),
            ("TAGWIRE_PML", self.pml.to_owned()),
        ];
        if self.hosts {
            settings.push((HOSTS, "2".to_owned()));
        }
        if let Some(reliability) = self.reliability {
            settings.push(("TAGWIRE_RELIABILITY", reliability.to_owned()));
            // Numbers that wrap soon.
            if chance.below(4) == 0 {
                settings.push(("TAGWIRE_DR_FIRST", (u32::MAX - 50).to_string()));
            }
        } else if self.pml == "ob1" {
            let rendezvous = chance.one_of(&["auto", "get", "put", "push"]);
            settings.push(("TAGWIRE_RENDEZVOUS", rendezvous.to_owned()));
        }
        settings
    }

    fn shares_memory(&self) -> bool {
        self.transport.starts_with("shm")
    }

    fn mends(&self) -> bool {
        self.reliability.is_some()
    }

    fn takes_faults(&self) -> bool {
        self.pml != "cm"
    }

    fn flood_kib(&self) -> u64 {
        // A provider that matches keeps each unexpected message in a buffer of its own, however short: `ofi-unexpected`
        // bounds their payload, and 65,536 their number.
        if self.pml == "cm" {
            512 << 10
        } else {
            BUDGETS_KIB
        }
    }
}

/// How many ranks say that they share a host, where several do: a variable of the campaign's own.
pub const HOSTS: &str = "CAMPAIGN_RANKS_PER_HOST";
