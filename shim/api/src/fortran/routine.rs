//! A line of the Fortran columns beside its function.

use crate::function::{Function, Parameter};
use crate::kind::{Base, Form, Kind, Twin};

/// A function with what Fortran needs to know of it.
#[derive(Debug)]
pub(crate) struct Routine<'a> {
    pub(crate) function: &'a Function,
    words: Vec<Word>,
    /// Not in the module `mpi_f08`.
    pub(crate) is_mpi_only: bool,
    /// In the module `mpi_f08` alone.
    pub(crate) is_2008_only: bool,
    /// The function of large counts has its C name, and no common one.
    pub(crate) has_c_name: bool,
}

/// What a line says of one parameter.
#[derive(Debug)]
struct Word {
    name: String,
    of: Option<Of>,
    bounds: String,
    is_asynchronous: bool,
    /// Another intent than the kind's; the inner option is none for no intent.
    intent: Option<Option<Intent>>,
}

/// What a parameter is where C's kind does not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Logical,
    Address,
    Integer,
    Buffer,
    Pointer,
    Detached,
}

/// Who reads and who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intent {
    In,
    Out,
    InOut,
}

/// A parameter of a routine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: &'a Kind,
    pub(crate) of: Option<Of>,
    pub(crate) bounds: &'a str,
    pub(crate) is_asynchronous: bool,
    pub(crate) intent: Option<Intent>,
    /// C alone has it.
    pub(crate) is_c_only: bool,
}

impl<'a> Routine<'a> {
    /// Reads a line about a function.
    ///
    /// # Errors
    ///
    /// Unknown marks, or another number of words than the function has parameters.
    pub(crate) fn parse(function: &'a Function, line: &str) -> Result<Self, String> {
        let (left, flags) = line.split_once('|').unwrap_or((line, ""));
        let words: Vec<_> = left
            .split_whitespace()
            .skip(1)
            .map(Word::parse)
            .collect::<Result<_, _>>()?;
        let (is, wanted) = (words.len(), function.parameters.len());
        if is != wanted {
            return Err(format!("{is} words for {wanted} parameters"));
        }
        let mut routine = Self {
            function,
            words,
            is_mpi_only: false,
            is_2008_only: false,
            has_c_name: false,
        };
        for flag in flags.split_whitespace() {
            match flag {
                "mpi" => routine.is_mpi_only = true,
                "f08" => routine.is_2008_only = true,
                "_c" => routine.has_c_name = true,
                _ => return Err(format!("unknown flag `{flag}`")),
            }
        }
        Ok(routine)
    }

    /// Returns the parameters of a twin, with those that only C has.
    pub(crate) fn arguments(&self, twin: Twin) -> Vec<Argument<'_>> {
        let pairs = self.function.parameters.iter().zip(&self.words);
        pairs
            .filter(|(parameter, _)| parameter.kind.is_in(twin))
            .map(|(parameter, word)| word.argument(parameter))
            .collect()
    }

    /// Returns whether it has a choice buffer, which the module `mpi_f08` passes by a descriptor.
    pub(crate) fn has_buffers(&self) -> bool {
        self.arguments(Twin::Int).iter().any(Argument::is_buffer)
    }

    /// Returns the forms that `mpi_f08` has. Where both would have equal kinds there is one.
    pub(crate) fn twins_2008(&self) -> &'static [Twin] {
        let differs = self.function.parameters.iter().any(|parameter| {
            let kind = &parameter.kind;
            let c = |twin| kind.number_in_c(twin);
            let is_int = |twin| c(twin) == Some("int");
            !kind.is_in(Twin::Int)
                || (kind.makes_twin() && c(Twin::Int).is_none())
                || is_int(Twin::Int) != is_int(Twin::Big)
        });
        match (self.function.has_twin(), differs) {
            (true, true) => &[Twin::Int, Twin::Big],
            _ => &[Twin::Int],
        }
    }
}

impl Word {
    fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text;
        let mut word = Self {
            name: String::new(),
            of: None,
            bounds: String::new(),
            is_asynchronous: false,
            intent: None,
        };
        while let Some(last) = rest.chars().last() {
            match last {
                '~' => word.is_asynchronous = true,
                '<' => word.intent = Some(Some(Intent::In)),
                '>' => word.intent = Some(Some(Intent::Out)),
                '&' => word.intent = Some(Some(Intent::InOut)),
                '!' => word.intent = Some(None),
                _ => break,
            }
            rest = &rest[..rest.len() - 1];
        }
        if let Some((left, bounds)) = rest.split_once('(') {
            word.bounds = format!("({bounds}");
            rest = left;
        }
        let (name, of) = rest.split_once(':').unwrap_or((rest, ""));
        word.of = match of {
            "" => None,
            "logical" => Some(Of::Logical),
            "address" => Some(Of::Address),
            "integer" => Some(Of::Integer),
            "buffer" => Some(Of::Buffer),
            "pointer" => Some(Of::Pointer),
            "detached" => Some(Of::Detached),
            _ => return Err(format!("unknown type `{of}`")),
        };
        word.name = name.to_owned();
        Ok(word)
    }

    fn argument<'a>(&'a self, parameter: &'a Parameter) -> Argument<'a> {
        let kind = &parameter.kind;
        let is_c_only = self.name == "-";
        Argument {
            name: if is_c_only {
                &parameter.name
            } else {
                &self.name
            },
            kind,
            of: self.of,
            bounds: &self.bounds,
            is_asynchronous: self.is_asynchronous,
            intent: self.intent.unwrap_or_else(|| intent(kind)),
            is_c_only,
        }
    }
}

impl Argument<'_> {
    /// Returns whether it is a choice buffer.
    pub(crate) fn is_buffer(&self) -> bool {
        match self.of {
            Some(of) => of == Of::Buffer,
            None => matches!(self.kind.base(), Base::In | Base::Out),
        }
    }

    /// Returns whether it is a text, whose length is passed behind all parameters.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.kind.base(), Base::Text | Base::Arguments | Base::Lists)
    }
}

/// The intent of a parameter by its kind. What may be a constant that stands for an address has none.
fn intent(kind: &Kind) -> Option<Intent> {
    match (kind.base(), kind.form()) {
        (Base::Out | Base::Function(_), _) => None,
        (Base::Status, Form::Out | Form::Array) => None,
        (_, Form::Value | Form::List) => Some(Intent::In),
        (_, Form::Out | Form::Array) => Some(Intent::Out),
        (_, Form::InOut) => Some(Intent::InOut),
    }
}
