//! What reductions combine numbers by.

use std::sync::Arc;

use tagwire_coll::Operator;
use tagwire_layout::{Basic, Element, Layout, Operation, UserOperation};

use crate::plain::{Plain, bytes, bytes_mut, zeroed};

/// Numbers that reductions combine: integers of up to 128 bits and floats.
pub trait Number: Plain + Element {}

impl<T: Plain + Element> Number for T {}

/// A reduction of one's own: any [`Plain`] values, combined by a function.
///
/// ```
/// use tagwire::{Combine, Session};
///
/// // Maps x -> a x + b, one after the other: the order counts.
/// let compose = Combine::ordered(|[a, b]: [f64; 2], [c, d]: [f64; 2]| [a * c, a * d + b]);
/// let session = Session::open()?;
/// let mut maps = [[2.0, 1.0]];
/// session.world().allreduce(&mut maps, &compose)?;
/// # session.close()?;
/// # Ok::<(), tagwire::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Combine<T: Plain> {
    operation: Operation,
    layout: Layout,
    values: std::marker::PhantomData<fn(T)>,
}

impl<T: Plain + Copy> Combine<T> {
    /// Returns a reduction whose result does not depend on the order of operands.
    ///
    /// `function` may not panic: that ends the process where a message is under way.
    pub fn commutative(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        Self::new(true, function)
    }

    /// Returns a reduction that gets its operands in the order of ranks, the lower one first.
    ///
    /// `function` may not panic, as above.
    pub fn ordered(function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        Self::new(false, function)
    }

    fn new(commutes: bool, function: impl Fn(T, T) -> T + Send + Sync + 'static) -> Self {
        let combine = move |_: &Layout, left: &[u8], into: &mut [u8]| {
            let size = size_of::<T>().max(1);
            let (mut lower, mut higher) = ([zeroed::<T>()], [zeroed::<T>()]);
            for (left, into) in left.chunks_exact(size).zip(into.chunks_exact_mut(size)) {
                bytes_mut(&mut lower).copy_from_slice(left);
                bytes_mut(&mut higher).copy_from_slice(into);
                higher = [function(lower[0], higher[0])];
                into.copy_from_slice(bytes(&higher));
            }
        };
        let name = std::any::type_name::<T>();
        let bytes = Layout::of(Basic::Byte).contiguous(size_of::<T>().max(1));
        Self {
            operation: Operation::User(Arc::new(UserOperation::new(name, commutes, combine))),
            layout: bytes.unwrap_or(Layout::of(Basic::Byte)),
            values: std::marker::PhantomData,
        }
    }
}

/// What reductions combine elements by: an [`Operation`] of MPI's for [`Number`]s, or a [`Combine`] for any elements.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine elements of type `{T}`",
    note = "operations such as `Sum` are for numbers; other elements take a `&Combine` of their type"
)]
pub trait Reducer<T: Plain>: sealed::Reducer<T> {}

impl<T: Plain, R: sealed::Reducer<T>> Reducer<T> for R {}

mod sealed {
    use super::Operator;

    pub trait Reducer<T> {
        /// Returns what a reduction does.
        fn operator(self) -> Operator<'static>;
    }
}

pub(crate) use sealed::Reducer as Reduces;

impl<T: Number> Reduces<T> for Operation {
    #[inline]
    fn operator(self) -> Operator<'static> {
        Operator::owned(self, Layout::of(T::BASIC))
    }
}

impl<T: Plain> Reduces<T> for &Combine<T> {
    #[inline]
    fn operator(self) -> Operator<'static> {
        Operator::owned(self.operation.clone(), self.layout.clone())
    }
}
