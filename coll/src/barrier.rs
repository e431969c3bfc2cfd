//! Barriers.

use crate::call::Call;
use crate::error::Result;
use crate::{broadcast, gather};

/// Members of a host meet in its memory, and their leaders beyond, where the group has levels.
pub(crate) async fn barrier(call: Call<'_>) -> Result<()> {
    let Some(levels) = call.levels() else {
        return dissemination(call).await;
    };
    let host = call.among(levels.host());
    gather::binomial(host, &[], Some(&mut []), 0).await?;
    if let Some(leaders) = levels.leaders() {
        dissemination(call.among(leaders)).await?;
    }
    broadcast::binomial(host, &mut [], 0).await
}

/// Hensgen, Finkel and Manber, 1988: in step k each member hears of 2^k members more.
async fn dissemination(call: Call<'_>) -> Result<()> {
    let mut distance = 1;
    while distance < call.size() {
        let (to, from) = (call.after(distance), call.before(distance));
        call.exchange(&[], to, &mut [], from).await?;
        distance *= 2;
    }
    Ok(())
}
