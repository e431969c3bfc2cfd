//! Shared memory of one host.

use std::time::Duration;

use tagwire_conformance::Chance;

use super::{Ground, ON_A_HOST, Setting};

/// Shared memory under a layer.
#[derive(Debug)]
pub struct Shm {
    name: &'static str,
    pml: &'static str,
}

/// ob1 over shared memory, with each way of long messages.
pub const SHM: Shm = Shm {
    name: "shm",
    pml: "ob1",
};
/// Matching in shared memory.
pub const CM: Shm = Shm {
    name: "shm-cm",
    pml: "cm",
};
/// Data reliability over shared memory that loses, repeats and changes messages.
pub const DR: Shm = Shm {
    name: "shm-dr",
    pml: "dr",
};

impl Ground for Shm {
    fn name(&self) -> &'static str {
        self.name
    }

    fn settings(&self, chance: &mut Chance) -> Vec<Setting> {
        let mut settings = vec![
            ("TAGWIRE_TRANSPORT", "shm".to_owned()),
            ("TAGWIRE_PML", self.pml.to_owned()),
            (
                "TAGWIRE_SHM_CMA",
                chance.one_of(&["auto", "off"]).to_owned(),
            ),
        ];
        if self.pml == "ob1" {
            let rendezvous = chance.one_of(&["auto", "offer", "get", "put", "push"]);
            settings.push(("TAGWIRE_RENDEZVOUS", rendezvous.to_owned()));
            // Numbers that wrap soon.
            if chance.below(4) == 0 {
                settings.push(("TAGWIRE_FIRST_SEQUENCE", (u32::MAX - 50).to_string()));
                settings.push(("TAGWIRE_SHM_FIRST_SLOT", (u32::MAX - 50).to_string()));
            }
        }
        settings
    }

    fn bound(&self) -> Duration {
        ON_A_HOST
    }

    fn mends(&self) -> bool {
        self.pml == "dr"
    }

    fn takes_faults(&self) -> bool {
        self.pml != "cm"
    }

    fn shares_memory(&self) -> bool {
        true
    }

    fn gives_descriptors_back(&self) -> bool {
        true
    }

    fn is_everywhere(&self) -> bool {
        true
    }
}
