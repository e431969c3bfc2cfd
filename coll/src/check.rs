//! The setting `coll-check`: before each operation the members tell each other what they call.

use crate::algorithms::BRUCK;
use crate::allgather;
use crate::call::Call;
use crate::error::{Error, Result};

/// The longest description, in bytes; the rest of one is not compared.
const LONGEST: usize = 80;

/// Returns once all members have described their call alike.
pub(crate) async fn agree(call: Call<'_>, own: &str) -> Result<()> {
    let mut described = [0; LONGEST];
    let len = own.len().min(LONGEST);
    described[..len].copy_from_slice(&own.as_bytes()[..len]);
    let mut all = vec![0; LONGEST * call.size()];
    allgather::allgather(call, BRUCK, &described, &mut all).await?;
    let others = all.as_chunks::<LONGEST>().0.iter().enumerate();
    let mut others = others.filter(|(_, other)| **other != described);
    let Some((member, theirs)) = others.next() else {
        return Ok(());
    };
    let theirs = String::from_utf8_lossy(theirs);
    Err(Error::Different {
        own: own.to_owned(),
        member,
        theirs: theirs.trim_end_matches('\0').to_owned(),
    })
}
