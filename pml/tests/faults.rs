//! ob1 over a network that holds messages back, lets them overtake each other, and is busy.
#![cfg(not(loom))]

mod common;

use common::{memory, reading, tiny, writing};
use tagwire_conformance::network::MemoryOptions;
use tagwire_conformance::pml_conformance;

pml_conformance!(
    delay,
    memory("list", MemoryOptions::full(), "seed=1,delay=0..8,busy=10%")
);
pml_conformance!(
    reorder,
    memory(
        "bins",
        MemoryOptions::default(),
        "seed=2,delay=0..6,reorder=5"
    )
);
pml_conformance!(
    reorder_busy,
    memory(
        "source",
        MemoryOptions::full(),
        "seed=3,delay=0..4,reorder=8,busy=30%"
    )
);
pml_conformance!(
    tiny_busy,
    memory("bins", tiny(), "seed=4,delay=0..3,reorder=2,busy=60%")
);
pml_conformance!(
    reading_busy,
    memory("bins", reading(), "seed=5,delay=0..4,reorder=4,busy=40%")
);
pml_conformance!(
    writing_busy,
    memory("bins", writing(), "seed=6,delay=0..4,reorder=4,busy=40%")
);
