//! Barriers.

use super::call::BoardCall;
use crate::error::Result;

/// Each member shows that it is there, and looks for all others.
#[inline]
pub(crate) fn barrier(call: &mut BoardCall<'_>) -> Result<()> {
    let round = call.begin(1);
    call.show(round, &[])?;
    call.wait_for_all(round)?;
    call.finish(round);
    Ok(())
}
