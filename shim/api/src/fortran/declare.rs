//! Declarations of parameters in Fortran.

use super::routine::{Argument, Intent, Of, Routine};
use crate::kind::{Base, Form, Twin};

/// A binding of Fortran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interface {
    /// The module `mpi`.
    Mpi,
    /// The module `mpi_f08`.
    Mpi2008,
}

impl Routine<'_> {
    /// Writes the interface body of a specific procedure with the name `name`.
    pub(crate) fn body(&self, name: &str, twin: Twin, interface: Interface) -> String {
        let arguments = self.arguments(twin);
        let arguments: Vec<_> = arguments
            .iter()
            .filter(|argument| !argument.is_c_only)
            .collect();
        let mut names: Vec<_> = arguments.iter().map(|argument| argument.name).collect();
        let (word, result) = match &self.function.result {
            Some(kind) => ("function", Some(number(kind.number_in_c(twin)))),
            None => ("subroutine", None),
        };
        let has_code = result.is_none() && self.has_code();
        names.extend(has_code.then_some("ierror"));
        let mut out = wrapped(&format!("{word} {name}({})", names.join(", ")), 2);
        out += "    import\n";
        for argument in arguments {
            out += &wrapped(&argument.declaration(twin, interface), 4);
            if interface == Interface::Mpi && argument.is_buffer_of_mpi() {
                out += &format!("    !GCC$ ATTRIBUTES NO_ARG_CHECK :: {}\n", argument.name);
                out += &format!("    !DIR$ IGNORE_TKR {}\n", argument.name);
            }
        }
        if let Some(result) = result {
            out += &format!("    {result} :: {name}\n");
        }
        if has_code {
            out += match interface {
                Interface::Mpi => "    INTEGER :: ierror\n",
                Interface::Mpi2008 => "    INTEGER, OPTIONAL, INTENT(OUT) :: ierror\n",
            };
        }
        out + &format!("  end {word} {name}\n")
    }

    /// Whether the last parameter is the code of an error.
    pub(crate) fn has_code(&self) -> bool {
        !self.function.is_variadic
    }
}

impl Argument<'_> {
    fn is_buffer_of_mpi(&self) -> bool {
        self.is_buffer() || self.of == Some(Of::Detached)
    }

    /// The declaration of the parameter.
    fn declaration(&self, twin: Twin, interface: Interface) -> String {
        let mut words = vec![self.type_of(twin, interface)];
        let mut bounds = self.bounds.to_owned();
        match interface {
            Interface::Mpi2008 => {
                if let Some(intent) = self.intent {
                    let intent = match intent {
                        Intent::In => "IN",
                        Intent::Out => "OUT",
                        Intent::InOut => "INOUT",
                    };
                    words.push(format!("INTENT({intent})"));
                }
                if self.is_asynchronous {
                    words.push("ASYNCHRONOUS".to_owned());
                }
            }
            Interface::Mpi => {
                bounds = self.bounds_of_mpi().to_owned();
                if self.is_buffer_of_mpi() {
                    bounds = "(*)".to_owned();
                }
                if matches!(self.kind.base(), Base::Function(_)) {
                    return format!("EXTERNAL :: {}", self.name);
                }
            }
        }
        format!("{} :: {}{bounds}", words.join(", "), self.name)
    }

    /// The bounds of an array in the module `mpi`, whose arrays have assumed size.
    fn bounds_of_mpi(&self) -> &str {
        let is_array = matches!(self.kind.form(), Form::List | Form::Array);
        match self.kind.base() {
            Base::Status if is_array => "(MPI_STATUS_SIZE,*)",
            Base::Status => "(MPI_STATUS_SIZE)",
            Base::Ranges => "(3,*)",
            Base::Arguments => "(*)",
            Base::Lists => "(count,*)",
            _ if is_array => "(*)",
            _ => "",
        }
    }

    fn type_of(&self, twin: Twin, interface: Interface) -> String {
        let is_2008 = interface == Interface::Mpi2008;
        let address = "INTEGER(KIND=MPI_ADDRESS_KIND)";
        if self.is_buffer() {
            return match is_2008 {
                true => "TYPE(*), DIMENSION(..)".to_owned(),
                false => "TYPE(*)".to_owned(),
            };
        }
        let fixed = match (self.of, self.kind.base()) {
            (Some(Of::Logical), _) => "LOGICAL",
            (Some(Of::Pointer | Of::Detached), _) if is_2008 => "TYPE(C_PTR)",
            (Some(Of::Detached), _) => "TYPE(*)",
            (Some(Of::Pointer | Of::Address), _) | (_, Base::Pointer)
                if self.of != Some(Of::Integer) =>
            {
                address
            }
            (Some(Of::Integer), _) | (_, Base::Ranges) => "INTEGER",
            (_, Base::Text | Base::Arguments | Base::Lists) => "CHARACTER(LEN=*)",
            (_, Base::Status) if is_2008 => "TYPE(MPI_Status)",
            (_, Base::Status) => "INTEGER",
            (_, Base::Handle(..) | Base::Tool(_)) if !is_2008 => "INTEGER",
            _ => "",
        };
        match self.kind.base() {
            _ if !fixed.is_empty() => fixed.to_owned(),
            Base::Handle(_, name) => format!("TYPE(MPI_{name})"),
            Base::Function(_) => format!("PROCEDURE(MPI_{})", self.kind.function(twin)),
            _ => number(self.kind.number_in_c(twin)).to_owned(),
        }
    }
}

/// The Fortran type of a number by its C type.
fn number(c: Option<&str>) -> &'static str {
    match c {
        Some("MPI_Aint") => "INTEGER(KIND=MPI_ADDRESS_KIND)",
        Some("MPI_Count") => "INTEGER(KIND=MPI_COUNT_KIND)",
        Some("MPI_Offset") => "INTEGER(KIND=MPI_OFFSET_KIND)",
        Some("double") => "DOUBLE PRECISION",
        _ => "INTEGER",
    }
}

/// Breaks a statement behind commas into continued lines of at most 120 columns.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let mut out = " ".repeat(indent);
    let mut column = indent;
    for word in text.split_inclusive(", ") {
        if column > indent && column + word.len() > COLUMNS {
            out.push_str("&\n");
            out.push_str(&" ".repeat(indent + 4));
            column = indent + 4;
        }
        out.push_str(word);
        column += word.len();
    }
    out + "\n"
}

const COLUMNS: usize = 116;
