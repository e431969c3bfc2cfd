//! cm over shared memory that matches.
#![cfg(not(loom))]

mod common;

use common::{shm_matching, wrapping_shm};
use tagwire_conformance::pml_conformance;
use tagwire_transport::shm::{CrossAttach, ShmOptions};

pml_conformance!(attach, shm_matching(ShmOptions::default()));
pml_conformance!(
    copies,
    shm_matching(ShmOptions {
        cross_attach: CrossAttach::Off,
        ..ShmOptions::default()
    })
);
pml_conformance!(wraps, shm_matching(wrapping_shm()));
