//! The kinds of parameters: what each is in C, in the exported function, and for its handler.

/// Which function of a pair: the first one, or the one of large counts, whose name ends in `_c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twin {
    /// With counts of type `int`.
    Int,
    /// With counts of type `MPI_Count`.
    Big,
}

/// How a parameter is passed, which its kind's ending says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As it is: no ending.
    Value,
    /// Written by the callee: `*`.
    Out,
    /// Read and written by the callee: `&`.
    InOut,
    /// An array to read: `[]`.
    List,
    /// An array that the callee writes too: `[]!`.
    Array,
}

/// The kind of a parameter or of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    base: Base,
    form: Form,
    large_only: bool,
}

impl Kind {
    /// Reads a word as `count[]`.
    ///
    /// # Errors
    ///
    /// An unknown word.
    pub(crate) fn parse(word: &str) -> Result<Self, String> {
        let (rest, large_only) = match word.strip_suffix('?') {
            Some(rest) => (rest, true),
            None => (word, false),
        };
        let endings = [
            ("[]!", Form::Array),
            ("[]", Form::List),
            ("*", Form::Out),
            ("&", Form::InOut),
        ];
        let ending = endings.iter().find_map(|(ending, form)| {
            let base = rest.strip_suffix(ending)?;
            Some((base, *form))
        });
        let (base, form) = ending.unwrap_or((rest, Form::Value));
        let base = Base::parse(base).ok_or_else(|| format!("unknown kind `{word}`"))?;
        Ok(Self {
            base,
            form,
            large_only,
        })
    }

    /// Returns what it is without its ending.
    pub(crate) fn base(&self) -> &Base {
        &self.base
    }

    /// Returns its C type's name for a twin, where it is a number.
    pub(crate) fn number_in_c(&self, twin: Twin) -> Option<&'static str> {
        match &self.base {
            Base::Number { c, .. } => Some(c[twin as usize]),
            _ => None,
        }
    }

    /// Returns how it is passed.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Returns whether it is the address of one number, handle or pointer that the callee writes. A status may be ignored.
    pub fn is_result(&self) -> bool {
        let is_written = matches!(self.form, Form::Out | Form::InOut);
        is_written
            && matches!(
                self.base,
                Base::Number { .. } | Base::Handle(..) | Base::Pointer
            )
    }

    /// Returns whether parameters of these kinds are the elements of a buffer.
    pub(crate) fn are_elements(buffer: &Self, count: &Self, datatype: &Self) -> bool {
        let is_count = matches!(&count.base, Base::Number { name: "count", .. });
        matches!(buffer.base, Base::In | Base::Out)
            && is_count
            && matches!(datatype.base, Base::Handle("type", _))
            && [count, datatype]
                .iter()
                .all(|kind| kind.form == Form::Value)
    }

    /// Returns whether parameters of these kinds are elements in the window of a target.
    pub(crate) fn are_place(rank: &Self, at: &Self, count: &Self, datatype: &Self) -> bool {
        let is = |kind: &Self, wanted: &str| {
            kind.form == Form::Value
                && matches!(&kind.base, Base::Number { name, .. } if *name == wanted)
        };
        is(rank, "rank")
            && is(at, "aint")
            && is(count, "count")
            && matches!(datatype.base, Base::Handle("type", _))
            && datatype.form == Form::Value
    }

    /// Returns whether it is an array of integers or requests, which has elements where their number says so.
    pub fn is_array(&self) -> bool {
        let is_array = matches!(self.form, Form::List | Form::Array);
        let is_int = matches!(self.base, Base::Number { name: "int", .. });
        is_array && (is_int || matches!(self.base, Base::Handle("request", _)))
    }

    /// Returns the handle's name, as `Comm`, where it is one of MPI's objects.
    pub fn handle(&self) -> Option<&'static str> {
        match self.base {
            Base::Handle(_, name) => Some(name),
            _ => None,
        }
    }

    /// Returns whether its C type differs between the twins, so that there are two.
    pub fn makes_twin(&self) -> bool {
        match &self.base {
            Base::Number { c, .. } => c[0] != c[1],
            Base::Function(name) => CONVERTED.iter().any(|(first, _)| first == name),
            _ => self.large_only,
        }
    }

    /// Returns whether one of the twins has it.
    pub fn is_in(&self, twin: Twin) -> bool {
        !self.large_only || twin == Twin::Big
    }

    /// Returns a C declaration of `name`.
    pub fn c(&self, twin: Twin, name: &str) -> String {
        let of = |before: &str, after: &str| match before.ends_with('*') {
            true => format!("{before}{name}{after}"),
            false => format!("{before} {name}{after}").trim_end().to_owned(),
        };
        let array = |before: &str| match name.ends_with("weights") {
            // `MPI_UNWEIGHTED` is no array: compilers that look into one warn of it.
            true => of(&format!("{before} *"), ""),
            false => of(before, "[]"),
        };
        let formed = |before: &str| match self.form {
            Form::Value => of(before, ""),
            Form::Out | Form::InOut => of(&format!("{before} *"), ""),
            Form::List => array(&format!("const {before}")),
            Form::Array => array(before),
        };
        match (&self.base, self.form) {
            (Base::In, _) => of("const void *", ""),
            (Base::Out | Base::Pointer, _) => of("void *", ""),
            (Base::Text, Form::Value) => of("const char *", ""),
            (Base::Text, _) => of("char *", ""),
            (Base::Arguments, _) => of("char *", "[]"),
            (Base::Lists, Form::InOut) => of("char ***", ""),
            (Base::Lists, _) => of("char **", "[]"),
            (Base::Ranges, _) => of("int", "[][3]"),
            (Base::Status, Form::Value) => of("const MPI_Status *", ""),
            (Base::Status, _) => formed("MPI_Status"),
            (Base::Number { c, .. }, _) => formed(c[twin as usize]),
            (Base::Handle(_, handle), _) => formed(&format!("MPI_{handle}")),
            (Base::Tool(tool), _) => formed(&format!("MPI_{tool}")),
            (Base::Function(_), _) => of(&format!("MPI_{} *", self.function(twin)), ""),
        }
    }

    /// Returns the Rust type of the exported function's parameter.
    pub fn rust(&self, twin: Twin) -> String {
        let formed = |value: &str| match self.form {
            Form::Value => value.to_owned(),
            Form::List => format!("*const {value}"),
            Form::Out | Form::InOut | Form::Array => format!("*mut {value}"),
        };
        match (&self.base, self.form) {
            (Base::In, _) => "*const c_void".to_owned(),
            (Base::Out | Base::Pointer, _) => "*mut c_void".to_owned(),
            (Base::Text, Form::Value) => "*const c_char".to_owned(),
            (Base::Text, _) => "*mut c_char".to_owned(),
            (Base::Arguments | Base::Lists, _) => "*mut c_void".to_owned(),
            (Base::Ranges, _) => "*const [i32; 3]".to_owned(),
            (Base::Status, Form::Value) => "*const abi::Status".to_owned(),
            (Base::Status, _) => formed("abi::Status"),
            (Base::Number { .. }, _) => formed(self.number(twin)),
            (Base::Handle(_, handle), _) => formed(&format!("abi::{handle}")),
            (Base::Tool(_), _) => formed("*mut c_void"),
            (Base::Function(_), _) => format!("callbacks::{}", self.callback(twin)),
        }
    }

    /// Returns the expression that makes the handler's argument of the parameter `name`.
    pub fn argument(&self, twin: Twin, name: &str) -> String {
        if !self.is_in(twin) {
            let absent = match self.form {
                Form::Value => "0",
                Form::Array | Form::List => "raw::Array::null()",
                Form::Out | Form::InOut => "raw::Ref::null()",
            };
            return absent.to_owned();
        }
        let wrapped = |wrapper: &str| format!("raw::{wrapper}::new({name})");
        let cast = |wrapper: &str| format!("raw::{wrapper}::new({name}.cast())");
        let formed = || match self.form {
            Form::Value => name.to_owned(),
            Form::Out | Form::InOut => wrapped("Ref"),
            Form::List => wrapped("List"),
            Form::Array => wrapped("Array"),
        };
        match (&self.base, self.form) {
            (Base::In, _) => wrapped("In"),
            (Base::Out, _) => wrapped("Out"),
            (Base::Pointer | Base::Tool(_), Form::Value) => wrapped("Pointer"),
            (Base::Pointer | Base::Tool(_), _) => cast("Ref"),
            (Base::Text, Form::Value) => wrapped("Text"),
            (Base::Text, _) => wrapped("TextOut"),
            (Base::Arguments | Base::Lists, _) => wrapped("Pointer"),
            (Base::Ranges, _) => wrapped("List"),
            (Base::Status, Form::Value) => format!("raw::StatusRef::new({name}.cast_mut())"),
            (Base::Status, Form::Array | Form::List) => wrapped("Statuses"),
            (Base::Status, _) => wrapped("StatusRef"),
            (Base::Number { .. }, _) if self.counts() => self.count(twin, name),
            (Base::Number { .. } | Base::Handle(..), _) => formed(),
            (Base::Function(_), _) => self.converted(twin, name),
        }
    }

    /// Whether it is a count, or is handed on as one.
    fn counts(&self) -> bool {
        match &self.base {
            Base::Number { c, .. } if self.form == Form::List => c[0] != "int" || c[1] != "int",
            Base::Number { rust, .. } => rust[0] != rust[1],
            _ => false,
        }
    }

    fn count(&self, twin: Twin, name: &str) -> String {
        let is_int = self.number(twin) == "i32";
        let undefined = matches!(&self.base, Base::Number { name, .. } if *name == "size");
        let narrow = if undefined { "Undefined" } else { "Error" };
        match (self.form, is_int) {
            (Form::Value, true) => format!("i64::from({name})"),
            (Form::Value, false) => name.to_owned(),
            (Form::List, true) => format!("raw::Counts::Int({name})"),
            (Form::List, false) => format!("raw::Counts::Big({name})"),
            (_, true) => format!("raw::CountOut::int({name}, raw::Narrow::{narrow})"),
            (_, false) => format!("raw::CountOut::big({name})"),
        }
    }

    fn number(&self, twin: Twin) -> &'static str {
        match &self.base {
            Base::Number { rust, .. } => rust[twin as usize],
            _ => "",
        }
    }

    /// A function that differs between the twins arrives as an enumeration of both.
    fn converted(&self, twin: Twin, name: &str) -> String {
        let Base::Function(function) = &self.base else {
            return name.to_owned();
        };
        let found = CONVERTED.iter().find(|(first, _)| first == function);
        let Some((_, either)) = found else {
            return name.to_owned();
        };
        match twin {
            Twin::Int => format!("callbacks::{either}::Int({name})"),
            Twin::Big => format!("callbacks::{either}::Big({name})"),
        }
    }

    pub(crate) fn function(&self, twin: Twin) -> String {
        let Base::Function(name) = &self.base else {
            return String::new();
        };
        match self.makes_twin() && twin == Twin::Big {
            true => format!("{name}_c"),
            false => name.clone(),
        }
    }

    fn callback(&self, twin: Twin) -> String {
        camel(&self.function(twin))
    }
}

/// Returns the Rust name of a C type, as `CopyFunction` of `Copy_function`.
pub(crate) fn camel(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    words.map(capital).collect()
}

/// What a kind is without its ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Base {
    In,
    Out,
    Pointer,
    Text,
    Arguments,
    Lists,
    Ranges,
    Status,
    /// Its name, and its types for each twin.
    Number {
        name: &'static str,
        c: [&'static str; 2],
        rust: [&'static str; 2],
    },
    /// An object's handle: the word of the table, and its name in the ABI.
    Handle(&'static str, &'static str),
    /// A handle of the tools' interface.
    Tool(&'static str),
    /// A pointer to a caller's function.
    Function(String),
}

impl Base {
    fn parse(word: &str) -> Option<Self> {
        let address = match word {
            "in" => Some(Self::In),
            "out" | "inout" => Some(Self::Out),
            "pointer" => Some(Self::Pointer),
            "text" => Some(Self::Text),
            "argv" => Some(Self::Arguments),
            "argvs" => Some(Self::Lists),
            "ranges" => Some(Self::Ranges),
            "status" => Some(Self::Status),
            _ => None,
        };
        let number = || {
            let (name, c, rust) = NUMBERS.iter().find(|(name, ..)| *name == word)?;
            let (name, c, rust) = (*name, *c, *rust);
            Some(Self::Number { name, c, rust })
        };
        let handle = || {
            let (short, name) = HANDLES.iter().find(|(short, _)| *short == word)?;
            Some(Self::Handle(short, name))
        };
        let tool = || TOOLS.iter().find(|tool| **tool == word);
        let function = || {
            let is_function = word.ends_with("_function");
            is_function.then(|| Self::Function(word.to_owned()))
        };
        address
            .or_else(number)
            .or_else(handle)
            .or_else(|| tool().map(|tool| Self::Tool(tool)))
            .or_else(function)
    }
}

/// Words, C types and Rust types of numbers, for each twin.
const NUMBERS: &[(&str, [&str; 2], [&str; 2])] = &[
    ("count", ["int", "MPI_Count"], ["i32", "i64"]),
    ("size", ["int", "MPI_Count"], ["i32", "i64"]),
    ("disp", ["int", "MPI_Aint"], ["i32", "i64"]),
    ("unit", ["int", "MPI_Aint"], ["i32", "i64"]),
    ("extent", ["MPI_Aint", "MPI_Count"], ["i64", "i64"]),
    ("aint", ["MPI_Aint", "MPI_Aint"], ["i64", "i64"]),
    ("big", ["MPI_Count", "MPI_Count"], ["i64", "i64"]),
    ("offset", ["MPI_Offset", "MPI_Offset"], ["i64", "i64"]),
    ("int", ["int", "int"], ["i32", "i32"]),
    ("rank", ["int", "int"], ["i32", "i32"]),
    ("tag", ["int", "int"], ["i32", "i32"]),
    ("double", ["double", "double"], ["f64", "f64"]),
    ("T_cb_safety", ["MPI_T_cb_safety"; 2], ["i32", "i32"]),
    ("T_source_order", ["MPI_T_source_order"; 2], ["i32", "i32"]),
];

/// Words of the handles, and their names.
const HANDLES: &[(&str, &str)] = &[
    ("comm", "Comm"),
    ("group", "Group"),
    ("type", "Datatype"),
    ("request", "Request"),
    ("op", "Op"),
    ("win", "Win"),
    ("file", "File"),
    ("info", "Info"),
    ("session", "Session"),
    ("message", "Message"),
    ("errhandler", "Errhandler"),
];

const TOOLS: &[&str] = &[
    "T_enum",
    "T_cvar_handle",
    "T_pvar_handle",
    "T_pvar_session",
    "T_event_registration",
    "T_event_instance",
];

/// Functions of the caller that differ between twins, with the enumeration that a handler gets.
const CONVERTED: &[(&str, &str)] = &[
    ("User_function", "Reduction"),
    ("Datarep_conversion_function", "Conversion"),
];
