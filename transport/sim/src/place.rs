//! Where the network keeps a rank.

/// The place of a rank in the network's table, in the order in which ranks were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}
