//! Views, and how data is represented (MPI-5.0, sections 14.3 and 14.5).

use super::on_file;
use crate::abi::{self, Datatype, Info};
use crate::callbacks::{Conversion, DatarepExtentFunction};
use crate::error::{Class, Error, On, Result};
use crate::object::file::File;
use crate::object::file::view::{Representation, Viewed};
use crate::process::Process;
use crate::raw::{Pointer, Ref, Text, TextOut};
use tagwire_files::Mode;

/// `MPI_DISPLACEMENT_CURRENT`.
const CURRENT: i64 = -1;

/// `MPI_MAX_DATAREP_STRING`, with the zero byte at the end.
const MAX_NAME: usize = 128;

/// `MPI_File_set_view`.
pub fn file_set_view(
    process: &Process,
    file: abi::File,
    displacement: i64,
    etype: Datatype,
    filetype: Datatype,
    representation: Text,
    info: Info,
) -> Result {
    on_file(process, file, |file| {
        if file.file.mode().contains(Mode::SEQUENTIAL) {
            // No process moves the shared file pointer while another looks where it is.
            file.file.agree(Ok(()), 0, "call")?;
        }
        let given = match info {
            Info::NULL => Ok(None),
            _ => process
                .early
                .infos
                .read(info, |given| Ok(Some(given.clone()))),
        };
        let viewed = given.and_then(|given| {
            file.check_no_split()?;
            let start = start(&file, displacement)?;
            let representation = represented(process, representation)?;
            let types = (etype, filetype);
            let viewed = Viewed::new(&process.types, start, types, representation)?;
            file.file.check_view(&viewed.view)?;
            Ok((viewed, given))
        });
        // The length of etypes and the representation are the same for all; no process reads by the new view where another has none.
        let value = viewed.as_ref().map_or(0, |(viewed, _)| {
            viewed.view.unit() * 2 + u64::from(viewed.representation == Representation::Native)
        });
        let wrong = |error: &Error| tagwire_files::Error::Argument(error.text().to_owned());
        let told = viewed.as_ref().map(drop).map_err(wrong);
        let what = "etype or data representation";
        let agreed = file.file.agree_on_view(told, value, what);
        let (viewed, given) = viewed?;
        agreed?;
        if let Some(given) = given {
            file.set_info(&given)?;
        }
        file.set_viewed(viewed);
        Ok(())
    })
}

/// Returns where a view begins.
///
/// # Errors
/// `MPI_ERR_ARG` where that is nowhere.
fn start(file: &File, displacement: i64) -> Result<u64> {
    let is_sequential = file.file.mode().contains(Mode::SEQUENTIAL);
    match (displacement, is_sequential) {
        (CURRENT, true) => {
            let viewed = file.viewed();
            let position = file.file.shared_position()?;
            let position = viewed.position(i64::try_from(position).unwrap_or(-1))?;
            Ok(viewed.view.offset_of(position)?)
        }
        (_, true) => {
            let text =
                "the view of a sequential file begins where it is: at MPI_DISPLACEMENT_CURRENT";
            Err(Error::new(Class::Arg, text))
        }
        _ => u64::try_from(displacement).map_err(|_| {
            let text = format!("the displacement is {displacement}");
            Error::new(Class::Arg, text)
        }),
    }
}

/// Returns the representation of a name.
///
/// # Errors
/// `MPI_ERR_UNSUPPORTED_DATAREP` where there is none of that name, or a program's.
fn represented(process: &Process, name: Text) -> Result<(Representation, String)> {
    let name = name.get()?;
    let found = match &*name {
        "native" | "internal" => Representation::Native,
        "external32" => Representation::External32,
        _ => {
            let text = match process.files.has_registered(&name) {
                true => format!(
                    "data is not converted to \"{name}\", which the program has registered: native, internal and external32 are there"
                ),
                false => format!("there is no data representation \"{name}\""),
            };
            return Err(Error::new(Class::UnsupportedDatarep, text));
        }
    };
    Ok((found, name))
}

/// `MPI_File_get_view`. The program frees datatypes that it gets, but for predefined ones.
pub fn file_get_view(
    process: &Process,
    file: abi::File,
    displacement: Ref<i64>,
    etype: Ref<Datatype>,
    filetype: Ref<Datatype>,
    representation: TextOut,
) -> Result {
    on_file(process, file, |file| {
        let viewed = file.viewed();
        displacement.set(viewed.view.displacement() as i64);
        etype.set(process.types.show(&viewed.etype)?);
        filetype.set(process.types.show(&viewed.filetype)?);
        representation.set(&viewed.name, MAX_NAME);
        Ok(())
    })
}

/// `MPI_File_get_type_extent`.
pub fn file_get_type_extent(
    process: &Process,
    file: abi::File,
    datatype: Datatype,
    extent: Ref<i64>,
) -> Result {
    on_file(process, file, |file| {
        let one = process.types.get(datatype)?;
        extent.set(file.viewed().extent_of(&one.tree)?);
        Ok(())
    })
}

/// `MPI_Register_datarep`. A view that names the representation is an error: data is not converted by functions of a program.
pub fn register_datarep(
    process: &Process,
    name: Text,
    _read: Conversion,
    _write: Conversion,
    _extent: DatarepExtentFunction,
    _state: Pointer,
) -> Result {
    let name = name.get()?;
    let registered = match name.len() {
        1..MAX_NAME => process.files.register(&name),
        bytes => {
            let text = format!("the name of a data representation has {bytes} bytes");
            Err(Error::new(Class::Arg, text))
        }
    };
    registered.map_err(|error| error.on(On::File(abi::File::NULL)))
}
