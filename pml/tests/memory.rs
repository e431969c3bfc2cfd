//! ob1 over the network in memory, with every engine.
#![cfg(not(loom))]

mod common;

use common::{coalescing, memory, memory_that_wraps, reading, tiny, writing};
use tagwire_conformance::network::MemoryOptions;
use tagwire_conformance::pml_conformance;

pml_conformance!(plain_list, memory("list", MemoryOptions::default(), ""));
pml_conformance!(plain_source, memory("source", MemoryOptions::default(), ""));
pml_conformance!(plain_bins, memory("bins", MemoryOptions::default(), ""));
pml_conformance!(full_list, memory("list", MemoryOptions::full(), ""));
pml_conformance!(full_source, memory("source", MemoryOptions::full(), ""));
pml_conformance!(full_bins, memory("bins", MemoryOptions::full(), ""));
pml_conformance!(tiny_bins, memory("bins", tiny(), ""));
pml_conformance!(in_batches, coalescing(MemoryOptions::default(), ""));
pml_conformance!(tiny_in_batches, coalescing(tiny(), ""));
pml_conformance!(reading_bins, memory("bins", reading(), ""));
pml_conformance!(writing_bins, memory("bins", writing(), ""));
pml_conformance!(wraps, memory_that_wraps(""));
pml_conformance!(
    faults_wraps,
    memory_that_wraps("seed=8,delay=0..6,reorder=4,busy=20%")
);
