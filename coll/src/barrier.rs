//! Barriers.

use crate::call::Call;
use crate::error::Result;

/// Dissemination (Hensgen, Finkel and Manber, 1988): in step k each member hears of 2^k members more.
pub(crate) async fn barrier(call: Call<'_>) -> Result<()> {
    let mut distance = 1;
    while distance < call.size() {
        let (to, from) = (call.after(distance), call.before(distance));
        call.exchange(&[], to, &mut [], from).await?;
        distance *= 2;
    }
    Ok(())
}
