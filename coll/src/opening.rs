//! What comes before an operation's own steps: its place among the operations of its group.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use crate::active::Pending;
use crate::call::Call;
use crate::check::Called;
use crate::error::Result;

/// What a member does before the steps of an operation.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Has the same tag: as many operations have begun since as there are tags. It ends first, so that messages of both
    /// stay in order.
    pub(crate) older: Option<Arc<dyn Pending>>,
    /// What the members tell each other.
    pub(crate) called: Option<Called>,
}

impl Opening {
    /// Returns this if there is anything to do.
    pub(crate) fn if_any(self) -> Option<Self> {
        (self.older.is_some() || self.called.is_some()).then_some(self)
    }

    pub(crate) async fn run(self, call: Call<'_>) -> Result<()> {
        if let Some(older) = self.older {
            poll_fn(|_| match older.is_complete() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
        match self.called {
            Some(called) => called.agree(call).await,
            None => Ok(()),
        }
    }
}
