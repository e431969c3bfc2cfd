//! A token goes round all ranks, and each adds its number.
//!
//! ```text
//! tagwire run -n 4 -- target/release/examples/ring 1000
//! ```

use std::time::Instant;

use tagwire::{Result, Session};

const TOKEN: i32 = 1;

fn main() -> Result<()> {
    let laps: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let session = Session::open()?;
    let world = session.world();
    let (rank, size) = (session.rank(), session.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let start = Instant::now();
    let mut token = [0u64];
    for _ in 0..laps {
        // Rank 0 holds the token at the start of a lap; everyone else waits for it.
        if rank == 0 {
            token[0] += u64::from(rank);
            world.send(&token, right, TOKEN)?;
            world.recv(&mut token, left, TOKEN)?;
        } else {
            world.recv(&mut token, left, TOKEN)?;
            token[0] += u64::from(rank);
            world.send(&token, right, TOKEN)?;
        }
    }
    if rank == 0 {
        let expected = laps * (0..u64::from(size)).sum::<u64>();
        assert_eq!(token[0], expected, "the token lost its way");
        let hops = laps * u64::from(size);
        let per_hop = start.elapsed().as_secs_f64() * 1e6 / hops as f64;
        println!(
            "{size} ranks, {hops} hops, {per_hop:.3} us per hop, token {}",
            token[0]
        );
    }
    session.close()
}
