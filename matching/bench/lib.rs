//! Nothing but `benches/`: `cargo bench -p tagwire-matching-bench`.
