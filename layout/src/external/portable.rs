//! Datatypes as their data lie in files of external32.

use super::value::Form;
use crate::{Basic, Constructor, Datatype, Member, Result};

impl Datatype {
    /// Returns the datatype of which the data lies in a file of external32 as that of this one in memory: made by the same
    /// constructors, of bytes as many as the basic types have there (MPI-5.0, section 14.5.2). Displacements and extents that a program
    /// has given in bytes stay as they are.
    ///
    /// ```
    /// use tagwire_layout::{Basic, Datatype};
    ///
    /// let every_second = Datatype::of(Basic::Long).vector(3, 1, 2)?;
    /// assert_eq!((every_second.extent(), every_second.external()?.extent()), (40, 20));
    /// # Ok::<(), tagwire_layout::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotExternal`](crate::Error::NotExternal) if there is a pair among the basic types. Those of the constructors.
    pub fn external(&self) -> Result<Self> {
        match self.constructor() {
            Constructor::Named(basic) => {
                let bytes = Form::of(*basic)?.external();
                match bytes == basic.extent() {
                    true => Ok(self.clone()),
                    false => Self::of(Basic::Byte).contiguous(bytes as u64),
                }
            }
            Constructor::Duplicate(of) => of.external(),
            Constructor::Contiguous { count, of } => of.external()?.contiguous(*count),
            Constructor::Vector { shape, of } => {
                let of = of.external()?;
                of.vector(shape.count, shape.length, shape.stride)
            }
            Constructor::Hvector { shape, of } => {
                let of = of.external()?;
                of.hvector(shape.count, shape.length, shape.stride)
            }
            Constructor::Indexed {
                lengths,
                displacements,
                of,
            } => of.external()?.indexed(lengths, displacements),
            Constructor::Hindexed {
                lengths,
                displacements,
                of,
            } => of.external()?.hindexed(lengths, displacements),
            Constructor::IndexedBlock {
                length,
                displacements,
                of,
            } => of.external()?.indexed_block(*length, displacements),
            Constructor::HindexedBlock {
                length,
                displacements,
                of,
            } => of.external()?.hindexed_block(*length, displacements),
            Constructor::Struct(members) => {
                let members = members.iter().map(|member| {
                    Ok(Member {
                        of: member.of.external()?,
                        ..member.clone()
                    })
                });
                Self::structure(members.collect::<Result<Box<[Member]>>>()?)
            }
            Constructor::Resized { lower, extent, of } => of.external()?.resized(*lower, *extent),
            Constructor::Subarray {
                dimensions,
                order,
                of,
            } => of.external()?.subarray(dimensions, *order),
            Constructor::Darray {
                processes,
                rank,
                dimensions,
                order,
                of,
            } => of.external()?.darray(*processes, *rank, dimensions, *order),
        }
    }
}
