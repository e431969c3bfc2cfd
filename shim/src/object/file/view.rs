//! The view of a file as a program has set it (MPI-5.0, section 14.3).

use std::sync::Arc;

use tagwire_files::View;
use tagwire_layout::{Datatype as Tree, Program};

use crate::abi::Datatype;
use crate::error::{Class, Error, Result};
use crate::object::datatype::{Type, Types};

/// How data is represented in a file (MPI-5.0, section 14.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    /// As in memory.
    Native,
    /// As all implementations of MPI read it.
    External32,
}

/// A view with the datatypes that it was made of.
#[derive(Debug)]
pub(crate) struct Viewed {
    pub(crate) view: View,
    pub(crate) etype: Arc<Type>,
    pub(crate) filetype: Arc<Type>,
    pub(crate) representation: Representation,
    /// What the program calls that: `internal` is as `native` here.
    pub(crate) name: String,
}

impl Viewed {
    /// Returns the view of a file that was opened just now: its bytes.
    pub(crate) fn initial(types: &Types) -> Result<Self> {
        let byte = types.get(Datatype::BYTE)?;
        Ok(Self {
            view: View::bytes(),
            etype: Arc::clone(&byte),
            filetype: byte,
            representation: Representation::Native,
            name: "native".to_owned(),
        })
    }

    /// Returns a view.
    ///
    /// # Errors
    /// `MPI_ERR_TYPE` where a datatype is none or not committed, `MPI_ERR_ARG` where they cannot be used so.
    pub(crate) fn new(
        types: &Types,
        displacement: u64,
        (etype, filetype): (Datatype, Datatype),
        (representation, name): (Representation, String),
    ) -> Result<Self> {
        let (etype, filetype) = (types.get(etype)?, types.get(filetype)?);
        let [of_etype, of_filetype] = [etype.program()?, filetype.program()?];
        let view = match representation {
            Representation::Native => View::new(displacement, of_etype, of_filetype)?,
            Representation::External32 => {
                let program = |tree: &Tree| Ok::<_, Error>(Program::of(&tree.external()?));
                View::new(
                    displacement,
                    &program(&etype.tree)?,
                    &program(&filetype.tree)?,
                )?
            }
        };
        Ok(Self {
            view,
            etype,
            filetype,
            representation,
            name,
        })
    }

    /// Returns how many bytes so many elements of a datatype are in the file.
    pub(crate) fn bytes_of(&self, program: &Program, count: u64) -> Result<u64> {
        Ok(match self.representation {
            Representation::Native => program.packed(count)?,
            Representation::External32 => program.external_size(count)?,
        })
    }

    /// Returns how far apart neighbours of a datatype are in the file.
    pub(crate) fn extent_of(&self, tree: &Tree) -> Result<i64> {
        Ok(match self.representation {
            Representation::Native => tree.extent(),
            Representation::External32 => tree.external()?.extent(),
        })
    }

    /// Returns the position of an offset in etypes.
    ///
    /// # Errors
    /// `MPI_ERR_ARG` where it is negative, or beyond what files can have.
    pub(crate) fn position(&self, offset: i64) -> Result<u64> {
        let units = u64::try_from(offset).ok();
        let position = units.and_then(|units| units.checked_mul(self.view.unit()));
        let position = position.filter(|position| i64::try_from(*position).is_ok());
        position.ok_or_else(|| Error::new(Class::Arg, format!("the offset is {offset}")))
    }

    /// Returns the first offset in etypes that has no byte of the file before it or at it, of so many bytes.
    pub(crate) fn end(&self, size: u64) -> Result<i64> {
        let bytes = self.view.position_of(size)?;
        let units = bytes.div_ceil(self.view.unit());
        i64::try_from(units).map_err(|_| Error::new(Class::Arg, "the file is too long"))
    }
}
