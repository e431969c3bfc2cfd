//! How ranks find each other's transport: by the bootstrap, on first contact.

use std::time::Duration;

use tagwire_base::{Bootstrap, Rank};

use crate::error::Result;

/// How long a rank's address is waited for. Every rank publishes before any opens fully, so that
/// only a broken launcher makes this pass.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(30);

/// Publishes this rank's address, and waits until every rank of the job has done so.
pub(crate) fn publish(
    bootstrap: &mut dyn Bootstrap,
    transport: &str,
    address: &[u8],
) -> Result<()> {
    bootstrap.put(&key(transport), address)?;
    bootstrap.fence(ADDRESS_TIMEOUT)?;
    Ok(())
}

/// The address that `rank` has published.
pub(crate) fn address(
    bootstrap: &mut dyn Bootstrap,
    transport: &str,
    rank: Rank,
) -> Result<Vec<u8>> {
    Ok(bootstrap.get(rank, &key(transport), ADDRESS_TIMEOUT)?)
}

/// Under which key a transport's address is published.
fn key(transport: &str) -> String {
    format!("transport/{transport}")
}
