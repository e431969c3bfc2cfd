//! The contexts of a rank: which of their ids are in use.

use tagwire_base::{ContextId, Tag, TagSelector};

use crate::error::{Error, Result};
use crate::types::Status;

/// The contexts in use, by id. The world is always there.
#[derive(Debug)]
pub(crate) struct Contexts {
    used: Vec<bool>,
    most: usize,
}

impl Contexts {
    /// The world's context alone, of at most `most`.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            used: vec![true],
            most,
        }
    }

    /// The lowest id that is free.
    pub(crate) fn create(&mut self) -> Result<ContextId> {
        let free = self
            .used
            .iter()
            .position(|used| !used)
            .unwrap_or(self.used.len());
        if free >= self.most {
            return Err(Error::NoContext);
        }
        let id = u16::try_from(free).map_err(|_| Error::NoContext)?;
        if free == self.used.len() {
            self.used.push(true);
        } else {
            self.used[free] = true;
        }
        Ok(ContextId::new(id))
    }

    /// Refuses to free what has something left in it: receives of the users' that are posted (`posted` has all
    /// that are, also in other contexts), and a message that is here.
    pub(crate) fn check_unused(
        context: ContextId,
        posted: impl Iterator<Item = (ContextId, TagSelector)>,
        message: Option<Status>,
    ) -> Result<()> {
        let is_users = |tag: TagSelector| !tag.tag().is_some_and(Tag::is_internal);
        let posted = posted.filter(|(own, tag)| *own == context && is_users(*tag));
        let posted = posted.count();
        let what = match (posted, message) {
            (0, None) => return Ok(()),
            (0, Some(message)) => format!(
                "nobody has received a message of rank {} with {}",
                message.source, message.tag
            ),
            (1, _) => "a receive is posted in it".to_owned(),
            (count, _) => format!("{count} receives are posted in it"),
        };
        let context = context.as_u16();
        Err(Error::ContextInUse { context, what })
    }

    pub(crate) fn free(&mut self, context: ContextId) -> Result<()> {
        if context == ContextId::WORLD || !self.contains(context) {
            return Err(Error::NoSuchContext(context.as_u16()));
        }
        self.used[usize::from(context.as_u16())] = false;
        Ok(())
    }

    #[inline]
    pub(crate) fn contains(&self, context: ContextId) -> bool {
        self.used
            .get(usize::from(context.as_u16()))
            .is_some_and(|used| *used)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::types::TagLimits;

    #[test]
    fn every_number_is_a_context_and_no_more() {
        let mut contexts = Contexts::new(TagLimits::ALL.contexts);
        for number in 1..=u16::MAX {
            assert_eq!(contexts.create().unwrap(), ContextId::new(number));
        }
        assert_eq!(contexts.used.len(), ContextId::COUNT);
        assert!(matches!(contexts.create(), Err(Error::NoContext)));
        let last = ContextId::new(u16::MAX);
        contexts.free(last).unwrap();
        assert_eq!(contexts.create().unwrap(), last);
    }

    #[test]
    fn a_layer_with_fewer_has_the_worlds_and_as_many_as_are_left() {
        let mut contexts = Contexts::new(2);
        assert_eq!(contexts.create().unwrap(), ContextId::new(1));
        assert!(matches!(contexts.create(), Err(Error::NoContext)));
    }
}
