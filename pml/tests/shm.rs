//! ob1 over shared memory.
#![cfg(not(loom))]

mod common;

use common::{shm, shm_that_wraps};
use tagwire_conformance::pml_conformance;
use tagwire_transport::shm::CrossAttach;

pml_conformance!(attach_list, shm("list", CrossAttach::Auto, ""));
pml_conformance!(attach_source, shm("source", CrossAttach::Auto, ""));
pml_conformance!(attach_bins, shm("bins", CrossAttach::Auto, ""));
pml_conformance!(copies, shm("bins", CrossAttach::Off, ""));
pml_conformance!(
    faults,
    shm(
        "bins",
        CrossAttach::Auto,
        "seed=5,delay=0..6,reorder=4,busy=20%"
    )
);
pml_conformance!(
    faults_copies,
    shm(
        "source",
        CrossAttach::Off,
        "seed=6,delay=0..4,reorder=3,busy=20%"
    )
);
pml_conformance!(wraps, shm_that_wraps(""));
pml_conformance!(
    faults_wraps,
    shm_that_wraps("seed=7,delay=0..6,reorder=4,busy=20%")
);
