//! The setting `coll-check`: before each operation the members tell each other what they call.

use crate::call::Call;
use crate::error::{Error, Result};
use crate::operations::counts::{Counts, NOTHING};
use crate::{allgather, alltoall};

/// The longest description, in bytes; the rest of one is not compared.
const LONGEST: usize = 80;

/// What a member calls.
#[derive(Debug, Clone)]
pub(crate) struct Called {
    described: String,
    counts: Option<Counts>,
}

/// What a member gives to another that expects something else: both, what is given, what is expected.
type Mismatch = [u64; 4];

impl Called {
    pub(crate) const fn new(described: String, counts: Option<Counts>) -> Self {
        Self { described, counts }
    }

    /// Returns once all members have described their call alike, with lengths that fit.
    pub(crate) async fn agree(&self, call: Call<'_>) -> Result<()> {
        self.agree_on_call(call).await?;
        match &self.counts {
            Some(counts) => self.agree_on_counts(call, counts).await,
            None => Ok(()),
        }
    }

    async fn agree_on_call(&self, call: Call<'_>) -> Result<()> {
        let own = &self.described;
        let mut described = [0; LONGEST];
        let len = own.len().min(LONGEST);
        described[..len].copy_from_slice(&own.as_bytes()[..len]);
        let mut all = vec![0; LONGEST * call.size()];
        allgather::bruck(call, &described, &mut all).await?;
        let others = all.as_chunks::<LONGEST>().0.iter().enumerate();
        let mut others = others.filter(|(_, other)| **other != described);
        let Some((member, theirs)) = others.next() else {
            return Ok(());
        };
        let theirs = String::from_utf8_lossy(theirs);
        Err(Error::Different {
            own: own.clone(),
            member,
            theirs: theirs.trim_end_matches('\0').to_owned(),
        })
    }

    /// Each member hears what it is given, and all hear of the first one that expects something else.
    async fn agree_on_counts(&self, call: Call<'_>, counts: &Counts) -> Result<()> {
        let mut given = vec![0; 8 * call.size()];
        alltoall::equal_pairwise(call, &bytes(&counts.gives), &mut given).await?;
        let given = given
            .as_chunks()
            .0
            .iter()
            .map(|one| u64::from_ne_bytes(*one));
        let mut both = given.zip(&counts.expects).enumerate();
        let differs = both.find(|(_, (given, expected))| given != *expected);
        let found: Mismatch = match differs {
            Some((from, (given, expected))) => [from as u64, call.me() as u64, given, *expected],
            None => [NOTHING; 4],
        };
        let mut all = vec![0; size_of::<Mismatch>() * call.size()];
        allgather::bruck(call, &bytes(&found), &mut all).await?;
        let all = all.as_chunks::<{ size_of::<Mismatch>() }>().0;
        let mut all = all.iter().map(numbers);
        match all.find(|[from, ..]| *from != NOTHING) {
            Some(found) => Err(self.mismatch(call.me() as u64, found)),
            None => Ok(()),
        }
    }

    #[cold]
    fn mismatch(&self, me: u64, [from, to, given, expected]: Mismatch) -> Error {
        let what = &self.described;
        let gives = match given {
            NOTHING => format!("{what} that gives rank {to} nothing"),
            _ => format!("{what} that gives rank {to} {given} bytes"),
        };
        let expects = match expected {
            NOTHING => format!("{what} that expects nothing of rank {from}"),
            _ => format!("{what} that expects {expected} bytes of rank {from}"),
        };
        let (own, member, theirs) = match me {
            _ if me == to => (expects, from, gives),
            _ if me == from => (gives, to, expects),
            _ => (
                what.clone(),
                from,
                format!("{gives}, which calls {expects}"),
            ),
        };
        Error::Different {
            own,
            member: member as usize,
            theirs,
        }
    }
}

fn bytes(numbers: &[u64]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

fn numbers(bytes: &[u8; size_of::<Mismatch>()]) -> Mismatch {
    let words = bytes.as_chunks().0;
    std::array::from_fn(|place| u64::from_ne_bytes(words[place]))
}
