//! The operations that combine data.

use std::borrow::Cow;

use tagwire_coll::operations as below;
use tagwire_coll::{Operator, Team};

use super::buffers::{LentBuffers, Readable, Writable};
use super::combine::Reducer;
use super::operations::{Within, operations};
use super::value::{Below, Collective};
use crate::plain::{Plain, bytes, bytes_mut};

operations! {
    Allreduce: |Self(operator), _, input, data| Team,
        Allreduce: below::Allreduce { operator, input: Some(input), data };
    Within<Allreduce>: |Within(Allreduce(operator)), _, _, data| Team,
        Allreduce: below::Allreduce { operator, input: None, data };
    ReduceScatter: |Self(operator), team, input, out| Team,
        ReduceScatter: below::ReduceScatter {
            operator, input: Some(input), lengths: Cow::Owned(vec![out.len(); team.size()]), out
        };
    Within<Scan>: |Within(Scan(operator)), _, _, data| Team, Scan: below::Scan { operator, data };
    Within<Exscan>: |Within(Exscan(operator)), _, _, data| Team, Exscan: below::Exscan { operator, data };
    Within<Reduce>: |Within(Reduce(operator, root)), team, _, data| Team,
        Reduce: below::Reduce::in_place(team, operator, data, root);
}

macro_rules! in_place {
    ($($(#[$doc:meta])* $operation:ident: $blocking:literal)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone)]
        pub struct $operation(Operator<'static>);

        impl $operation {
            #[doc = $blocking]
            pub fn in_place<D: Writable>(
                data: D,
                by: impl Reducer<D::Element>,
            ) -> Collective<Within<Self>, D::Buffers> {
                Collective::within(Within(Self(by.operator())), data)
            }
        }
    )*};
}

in_place! {
    /// Combines the data of all ranks, place by place, for all (MPI-5.0, section 6.9.6).
    ///
    /// ```
    /// use tagwire::{Session, Sum};
    ///
    /// let session = Session::open()?;
    /// let mut numbers = [1.5, f64::from(session.rank())];
    /// session.world().allreduce(&mut numbers, Sum)?;
    /// assert_eq!(numbers[0], 1.5 * f64::from(session.size()));
    /// # session.close()?;
    /// # Ok::<(), tagwire::Error>(())
    /// ```
    Allreduce: "Returns [`Context::allreduce`](crate::Context::allreduce) as a value."

    /// Combines the data of all ranks up to each one (MPI-5.0, section 6.11.1).
    Scan: "Returns [`Context::scan`](crate::Context::scan) as a value."

    /// Combines the data of all ranks before each one (MPI-5.0, section 6.11.2).
    Exscan: "Returns [`Context::exscan`](crate::Context::exscan) as a value."
}

impl Allreduce {
    /// Returns [`Context::allreduce_into`](crate::Context::allreduce_into) as a value.
    pub fn new<D: Writable>(
        input: impl Readable<Lent = D::Input>,
        out: D,
        by: impl Reducer<D::Element>,
    ) -> Collective<Self, D::Buffers> {
        Collective::on(Self(by.operator()), input, out)
    }
}

/// Combines the data of all ranks for a root (MPI-5.0, section 6.9.1).
#[derive(Debug, Clone)]
pub struct Reduce(Operator<'static>, usize);

impl Reduce {
    /// Returns [`Context::reduce`](crate::Context::reduce) as a value.
    pub fn in_place<D: Writable>(
        data: D,
        by: impl Reducer<D::Element>,
        root: u32,
    ) -> Collective<Within<Self>, D::Buffers> {
        Collective::within(Within(Self(by.operator(), root as usize)), data)
    }
}

/// Combines the data of all ranks, and gives each rank one of as many equal parts (MPI-5.0, section 6.10).
#[derive(Debug, Clone)]
pub struct ReduceScatter(Operator<'static>);

impl ReduceScatter {
    /// Returns [`Context::reduce_scatter`](crate::Context::reduce_scatter) as a value.
    pub fn new<D: Writable>(
        data: impl Readable<Lent = D::Input>,
        own: D,
        by: impl Reducer<D::Element>,
    ) -> Collective<Self, D::Buffers> {
        Collective::on(Self(by.operator()), data, own)
    }
}
