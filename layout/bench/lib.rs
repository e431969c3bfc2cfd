//! Nothing but `benches/`: `cargo bench -p tagwire-layout-bench`.
