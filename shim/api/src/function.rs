//! A line of the table of functions.

use crate::kind::{Kind, Twin};

/// One function of the standard, with or without a twin for large counts.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Function {
    /// Its name without `MPI_`.
    pub name: String,
    /// Its parameters in order, with those that the large twin alone has.
    pub parameters: Vec<Parameter>,
    /// Whether further arguments may follow.
    pub is_variadic: bool,
    /// What it returns where that is not an error code.
    pub result: Option<Kind>,
    /// What does its work.
    pub handler: Handler,
    /// What else the table says of it.
    pub flags: Vec<Flag>,
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
}

/// Who does the work of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// Nobody yet: the call reports an error.
    Missing,
    /// A function of `tagwire_shim::call`, by its path there.
    Path(String),
    /// An expression of the parameters.
    Expression(String),
}

/// A word behind the handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flag {
    /// Allowed before initialization and after finalization.
    Early,
    /// Deprecated by the standard.
    Deprecated,
    /// The handler is told which twin was called.
    Twin,
    /// The handler has a short form, which is tried first.
    Short,
}

impl Function {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// What the line lacks, or an unknown word.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let mut columns = line.split(" | ").map(str::trim);
        let signature = columns.next().unwrap_or_default();
        let handler = columns.next().ok_or("no handler")?;
        let flags = columns.next().unwrap_or_default().split_whitespace();
        let mut function = Self::signature(signature)?;
        function.handler = match (handler, handler.strip_prefix("= ")) {
            ("-", _) => Handler::Missing,
            (_, Some(expression)) => Handler::Expression(expression.to_owned()),
            (path, None) => Handler::Path(path.to_owned()),
        };
        function.flags = flags.map(Flag::parse).collect::<Result<_, _>>()?;
        Ok(function)
    }

    /// Reads a name with parameters and a result; the handler is missing.
    pub(crate) fn signature(text: &str) -> Result<Self, String> {
        let (left, result) = match text.split_once("-> ") {
            Some((left, result)) => (left, Some(Kind::parse(result.trim())?)),
            None => (text, None),
        };
        let mut words = left.split_whitespace().peekable();
        let name = words.next().ok_or("no name")?.to_owned();
        let mut parameters = Vec::new();
        let mut is_variadic = false;
        for word in words {
            if is_variadic {
                return Err(format!("`{word}` after `...`"));
            }
            is_variadic = word == "...";
            if !is_variadic {
                parameters.push(Parameter::parse(word)?);
            }
        }
        Ok(Self {
            name,
            parameters,
            is_variadic,
            result,
            handler: Handler::Missing,
            flags: Vec::new(),
        })
    }

    /// Returns whether there is one with `_c`.
    pub fn has_twin(&self) -> bool {
        let mut kinds = self.parameters.iter().map(|parameter| &parameter.kind);
        kinds.any(Kind::makes_twin)
    }

    /// Returns the twins that there are.
    pub fn twins(&self) -> &'static [Twin] {
        match self.has_twin() {
            true => &[Twin::Int, Twin::Big],
            false => &[Twin::Int],
        }
    }

    /// Returns the name of a twin, without `MPI_`.
    pub fn name_of(&self, twin: Twin) -> String {
        match twin {
            Twin::Int => self.name.clone(),
            Twin::Big => format!("{}_c", self.name),
        }
    }

    /// Returns the parameters of a twin.
    pub fn parameters_of(&self, twin: Twin) -> impl Iterator<Item = &Parameter> {
        let parameters = self.parameters.iter();
        parameters.filter(move |parameter| parameter.kind.is_in(twin))
    }

    /// Returns whether it belongs to the tools' interface, whose errors have no handlers.
    pub fn is_tool(&self) -> bool {
        self.name.starts_with("T_")
    }

    /// Returns whether it has a flag.
    pub fn has(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }

    /// Returns the C prototype of a twin, with `prefix` before its name and no semicolon.
    pub fn prototype(&self, twin: Twin, prefix: &str) -> String {
        let result = match &self.result {
            Some(kind) => kind.c(Twin::Int, ""),
            None => "int".to_owned(),
        };
        let name = self.name_of(twin);
        format!("{result} {prefix}{name}({})", self.c_parameters(twin))
    }

    /// The parameters as C wants them between parentheses.
    pub(crate) fn c_parameters(&self, twin: Twin) -> String {
        let parameters = self.parameters_of(twin);
        let mut words: Vec<_> = parameters
            .map(|parameter| parameter.kind.c(twin, &parameter.name))
            .collect();
        words.extend(self.is_variadic.then(|| "...".to_owned()));
        match words.is_empty() {
            true => "void".to_owned(),
            false => words.join(", "),
        }
    }
}

impl Parameter {
    fn parse(word: &str) -> Result<Self, String> {
        let (name, kind) = word.split_once(':').unwrap_or((word, word));
        let (name, kind) = (name.to_owned(), Kind::parse(kind)?);
        Ok(Self { name, kind })
    }
}

impl Flag {
    fn parse(word: &str) -> Result<Self, String> {
        match word {
            "early" => Ok(Self::Early),
            "deprecated" => Ok(Self::Deprecated),
            "twin" => Ok(Self::Twin),
            "short" => Ok(Self::Short),
            _ => Err(format!("unknown flag `{word}`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read() {
        let line = "Get_count   status type n:size*   | p2p::count | early";
        let function = Function::parse(line).unwrap();
        assert_eq!(function.handler, Handler::Path("p2p::count".to_owned()));
        assert!(function.has(Flag::Early) && function.has_twin());
        assert_eq!(
            function.prototype(Twin::Big, "PMPI_"),
            "int PMPI_Get_count_c(const MPI_Status *status, MPI_Datatype type, MPI_Count *n)"
        );
    }

    #[test]
    fn a_parameter_of_the_large_twin_alone_is_left_out_of_the_other() {
        let function = Function::parse("X n:count more:big*?  | -").unwrap();
        assert_eq!(function.prototype(Twin::Int, ""), "int X(int n)");
        assert_eq!(
            function.prototype(Twin::Big, ""),
            "int X_c(MPI_Count n, MPI_Count *more)"
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (line, why) in [
            ("Send buf:in", "no handler"),
            ("Send buf:inn | -", "unknown kind `inn`"),
            ("Send buf:in | - | soon", "unknown flag `soon`"),
            ("Send ... buf:in | -", "`buf:in` after `...`"),
        ] {
            assert_eq!(Function::parse(line).unwrap_err(), why);
        }
    }
}
