//! Writes the entry points that compiled Fortran calls, in Rust.
//!
//! Each work is one call of the macro `entries!`, which the including crate defines: the names that lead to it, its parameters
//! and its body, which calls `PMPI_X` of the C interface. Parameters are addresses, and lengths of texts stand behind them.

use std::fmt::Write as _;

use super::routine::{Argument, Intent, Of, Routine};
use crate::kind::{Base, Form, Kind, Twin};

/// A form of a routine: one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// Of `mpif.h` and the module `mpi`: buffers are addresses. Where there are no buffers, `mpi_f08` has it too.
    Plain,
    /// Of `mpi_f08`: buffers are descriptors.
    Described(Twin),
}

/// Writes the declarations of the C interface.
pub(crate) fn declarations(routines: &[Routine<'_>]) -> String {
    // Exceptions of C++ may leave functions of the program.
    let mut out = "unsafe extern \"C-unwind\" {\n".to_owned();
    for routine in routines {
        for twin in routine.function.twins() {
            declaration(&mut out, routine, *twin);
        }
    }
    out + "}\n"
}

/// Writes all entry points.
pub(crate) fn write(routines: &[Routine<'_>]) -> String {
    let mut out = String::new();
    for routine in routines {
        for variant in variants(routine) {
            entry(&mut out, routine, variant);
        }
    }
    out
}

/// Returns the names of all entry points.
pub(crate) fn symbols(routines: &[Routine<'_>]) -> Vec<String> {
    let of = |routine| {
        let variants = variants(routine);
        variants
            .into_iter()
            .flat_map(|variant| names(routine, variant))
            .collect::<Vec<_>>()
    };
    routines.iter().flat_map(of).collect()
}

/// The bodies that a routine needs.
fn variants(routine: &Routine<'_>) -> Vec<Variant> {
    let mut variants = Vec::new();
    if !routine.is_2008_only {
        variants.push(Variant::Plain);
    }
    if routine.is_mpi_only {
        return variants;
    }
    for twin in routine.twins_2008() {
        if *twin == Twin::Big || !is_shared(routine) {
            variants.push(Variant::Described(*twin));
        }
    }
    variants
}

/// Whether both bindings have one body.
fn is_shared(routine: &Routine<'_>) -> bool {
    let arguments = routine.arguments(Twin::Int);
    let is_detached = |argument: &Argument<'_>| argument.of == Some(Of::Detached);
    !routine.is_2008_only && !routine.has_buffers() && !arguments.iter().any(is_detached)
}

/// The names that lead to a body, as gfortran and others write them: small letters and an underscore.
fn names(routine: &Routine<'_>, variant: Variant) -> Vec<String> {
    let mut names = Vec::new();
    match variant {
        Variant::Described(twin) => names.push(routine.name_2008(twin)),
        Variant::Plain => {
            names.push(routine.function.name.clone());
            let arguments = routine.arguments(Twin::Int);
            if arguments
                .iter()
                .any(|argument| argument.of == Some(Of::Pointer))
            {
                names.push(format!("{}_cptr", routine.function.name));
            }
            if is_shared(routine) && !routine.is_mpi_only {
                names.push(routine.name_2008(Twin::Int));
            }
        }
    }
    let both = names.iter().flat_map(|name| {
        let name = name.to_lowercase();
        ["mpi_", "pmpi_"].map(|prefix| format!("{prefix}{name}_"))
    });
    both.collect()
}

fn declaration(out: &mut String, routine: &Routine<'_>, twin: Twin) {
    let parameters = routine
        .function
        .parameters_of(twin)
        .map(|parameter| format!("_: {}", in_c(&parameter.kind, twin)));
    let mut parameters: Vec<_> = parameters.collect();
    parameters.extend(routine.function.is_variadic.then(|| "...".to_owned()));
    let result = result(routine);
    let _ = writeln!(
        out,
        "    pub(crate) fn PMPI_{}({}) -> {result};",
        routine.function.name_of(twin),
        parameters.join(", ")
    );
}

/// The type of a parameter of the C interface.
fn in_c(kind: &Kind, twin: Twin) -> String {
    match kind.base() {
        Base::Function(_) => "*mut c_void".to_owned(),
        Base::Ranges => "*const i32".to_owned(),
        _ => kind.rust(twin),
    }
}

fn result(routine: &Routine<'_>) -> String {
    match &routine.function.result {
        Some(kind) => kind.rust(Twin::Int),
        None => "i32".to_owned(),
    }
}

fn entry(out: &mut String, routine: &Routine<'_>, variant: Variant) {
    let twin = match variant {
        Variant::Plain => Twin::Int,
        Variant::Described(twin) => twin,
    };
    let arguments = routine.arguments(twin);
    let visible: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.is_c_only)
        .collect();
    let mut parameters: Vec<_> = visible
        .iter()
        .map(|argument| {
            let of = in_fortran(argument, twin, variant);
            (argument.name.to_owned(), of)
        })
        .collect();
    let returns_code = routine.function.result.is_none();
    if returns_code && routine.has_code() {
        parameters.push(("ierror".to_owned(), "*mut i32".to_owned()));
    }
    let texts = visible.iter().filter(|argument| argument.is_text());
    parameters.extend(texts.map(|argument| (format!("{}_length", argument.name), "usize".into())));
    let result = match &routine.function.result {
        Some(kind) => kind.rust(Twin::Int),
        None => "()".to_owned(),
    };
    let names = names(routine, variant);
    let work = names[0].trim_start_matches("mpi_").trim_end_matches('_');
    let declared: Vec<_> = parameters
        .iter()
        .map(|(name, of)| format!("{name}: {of}"))
        .collect();
    let _ = writeln!(
        out,
        "entries! {{\n    ({}) work_{work}({}) -> {result} {{",
        names.join(" "),
        declared.join(", ")
    );
    if SPECIAL.contains(&&*routine.function.name) {
        let names: Vec<_> = parameters.iter().map(|(name, _)| name.as_str()).collect();
        let _ = writeln!(out, "        special::{work}({})", names.join(", "));
    } else if matches!(variant, Variant::Described(_)) && routine.has_buffers() {
        described(out, routine, twin);
    } else {
        Body::of(routine, twin, Buffers::Addresses).write(out, routine, twin);
    }
    let _ = writeln!(out, "    }}\n}}");
}

/// The type of a parameter as compiled Fortran passes it.
fn in_fortran(argument: &Argument<'_>, twin: Twin, variant: Variant) -> String {
    let is_described = matches!(variant, Variant::Described(_));
    let fixed = match (argument.of, argument.kind.base()) {
        _ if argument.is_buffer() && is_described => "*const Descriptor",
        _ if argument.is_buffer() => "*mut c_void",
        (Some(Of::Logical | Of::Integer), _) => "*mut i32",
        (Some(Of::Address), _) => "*mut i64",
        (Some(Of::Pointer | Of::Detached), _) => "*mut *mut c_void",
        (_, Base::Text | Base::Arguments | Base::Lists) => "*mut u8",
        (_, Base::Status) => "*mut abi::Status",
        (_, Base::Function(_)) => "*mut c_void",
        (_, Base::Handle(..) | Base::Ranges) => "*mut i32",
        _ => "",
    };
    if fixed.is_empty() {
        format!(
            "*mut {}",
            argument
                .kind
                .rust(twin)
                .trim_start_matches("*mut ")
                .trim_start_matches("*const ")
        )
    } else {
        fixed.to_owned()
    }
}

/// A body whose buffers are descriptors: the call at once where all are contiguous, or sections.
fn described(out: &mut String, routine: &Routine<'_>, twin: Twin) {
    let arguments = routine.arguments(twin);
    let buffers = arguments.iter().filter(|argument| argument.is_buffer());
    let names: Vec<_> = buffers.map(|argument| argument.name).collect();
    let direct = Body::of(routine, twin, Buffers::Contiguous);
    let name = &routine.function.name;
    if PLACES.contains(&&**name) || name.ends_with("_end") {
        direct.write(out, routine, twin);
        return;
    }
    let contiguous: Vec<_> = names
        .iter()
        .map(|name| format!("Descriptor::is_contiguous({name})"))
        .collect();
    let _ = writeln!(out, "        if {} {{", contiguous.join(" && "));
    direct.write(out, routine, twin);
    let _ = writeln!(out, "        return;\n        }}");
    for name in &names {
        let _ = writeln!(out, "        let {name}_a = Descriptor::read({name});");
    }
    Body::of(routine, twin, Buffers::Sections).write(out, routine, twin);
}

/// How buffers come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Buffers {
    /// As addresses.
    Addresses,
    /// As descriptors of contiguous arrays.
    Contiguous,
    /// As descriptors that have been read, of any arrays.
    Sections,
}

/// The statements before the call, its arguments, and the statements behind it.
#[derive(Default)]
struct Body {
    before: Vec<String>,
    call: Vec<String>,
    after: Vec<String>,
}

impl Body {
    fn of(routine: &Routine<'_>, twin: Twin, buffers: Buffers) -> Self {
        let arguments = routine.arguments(twin);
        let mut body = Self::default();
        let mut rest = &arguments[..];
        while let [first, after @ ..] = rest {
            rest = after;
            if !first.is_buffer() {
                body.argument(routine, first);
                continue;
            }
            match buffers {
                Buffers::Addresses => {
                    body.call.push(format!("address::buffer({})", first.name));
                    continue;
                }
                Buffers::Contiguous => {
                    body.call
                        .push(format!("address::buffer({}.base())", first.name));
                    continue;
                }
                Buffers::Sections => {}
            }
            match after {
                [count, datatype, after @ ..]
                    if takes_sections(routine, first, count, datatype) =>
                {
                    body.elements(routine, first, count, datatype);
                    rest = after;
                }
                _ if is_over(routine) => body.copied(routine, first),
                _ => body.whole(routine, first),
            }
        }
        body
    }

    /// A buffer of a call that is over when it returns: where it is not contiguous, a copy.
    fn copied(&mut self, routine: &Routine<'_>, buffer: &Argument<'_>) {
        let (name, fails) = (buffer.name, fails(routine));
        let copy = if is_of_root(routine, buffer) {
            format!("at_root({name}_a, *root, *comm)")
        } else {
            format!("new({name}_a)")
        };
        self.before.push(format!(
            "let mut {name}_c = match Copied::{copy} {{\n            \
             Ok(copied) => copied,\n            Err(code) => return {fails},\n        }};"
        ));
        self.call.push(format!("{name}_c.address()"));
        if buffer.intent != Some(Intent::In) {
            self.after.push(format!("{name}_c.put_back();"));
        }
    }

    /// Elements of a section: where it is not contiguous they are one element of a datatype of the section.
    fn elements(
        &mut self,
        routine: &Routine<'_>,
        buffer: &Argument<'_>,
        count: &Argument<'_>,
        datatype: &Argument<'_>,
    ) {
        let (name, count, datatype) = (buffer.name, count.name, datatype.name);
        let fails = fails(routine);
        self.before.push(format!(
            "let {name}_c = match Section::elements(&{name}_a, *{count}, *{datatype}) {{\n            \
             Ok(section) => section,\n            Err(code) => return {fails},\n        }};"
        ));
        self.call.push(format!("{name}_c.address()"));
        self.call.push(format!("{name}_c.count(*{count})"));
        self.call.push(format!("{name}_c.datatype()"));
    }

    /// A buffer that has to be contiguous.
    fn whole(&mut self, routine: &Routine<'_>, buffer: &Argument<'_>) {
        let (name, fails) = (buffer.name, fails(routine));
        let find = if is_of_root(routine, buffer) {
            format!("contiguous_at_root(&{name}_a, *root, *comm)")
        } else {
            format!("contiguous(&{name}_a)")
        };
        self.before.push(format!(
            "let {name}_c = match section::{find} {{\n            \
             Ok(address) => address,\n            Err(code) => return {fails},\n        }};"
        ));
        self.call.push(format!("{name}_c"));
    }

    fn argument(&mut self, routine: &Routine<'_>, argument: &Argument<'_>) {
        let (name, kind) = (argument.name, argument.kind);
        match (kind.base(), kind.form()) {
            (Base::Handle(_, handle), form) => self.handle(routine, argument, handle, form),
            (Base::Status, Form::Array) => self.call.push(format!("address::statuses({name})")),
            (Base::Status, _) => self.call.push(format!("address::status({name})")),
            (Base::Number { .. }, Form::Value) => self.call.push(format!("*{name}")),
            (Base::Number { .. }, Form::List | Form::Array) if name.ends_with("weights") => {
                self.call.push(format!("address::weights({name})"));
            }
            (Base::Number { .. }, _) => self.number(routine, argument),
            (Base::Text, Form::Value) => {
                // Keys and values of info have no blanks on either side.
                let is_info = routine.function.name.starts_with("Info_");
                let make = if is_info { "trimmed" } else { "new" };
                self.before.push(format!(
                    "let {name}_c = text::In::{make}({name}, {name}_length);"
                ));
                self.call.push(format!("{name}_c.pointer()"));
            }
            (Base::Text, _) => {
                self.before
                    .push(format!("let mut {name}_c = text::Out::new();"));
                self.call.push(format!("{name}_c.pointer()"));
                self.after.push(format!(
                    "if code == 0 {{ {name}_c.write({name}, {name}_length); }}"
                ));
            }
            (Base::Out | Base::Pointer, _) => self.call.push(format!("{name}.cast()")),
            _ => self.call.push(name.to_owned()),
        }
    }

    fn handle(&mut self, routine: &Routine<'_>, argument: &Argument<'_>, handle: &str, form: Form) {
        let name = argument.name;
        let of = format!("abi::{handle}");
        match form {
            Form::Value => self.call.push(format!("{of}::of_fortran(*{name})")),
            Form::Out | Form::InOut => {
                let start = match form {
                    Form::InOut => format!("{of}::of_fortran(*{name})"),
                    _ => format!("{of}::UNSET"),
                };
                self.before.push(format!("let mut {name}_c = {start};"));
                self.call.push(format!("&raw mut {name}_c"));
                self.after.push(format!("{name}_c.write({name});"));
            }
            Form::List | Form::Array => {
                let length = length(routine, argument);
                let is_read = argument.intent != Some(Intent::Out);
                let make = if is_read { "read" } else { "room" };
                self.before.push(format!(
                    "let mut {name}_c = Handles::<{of}>::{make}({name}, {length});"
                ));
                self.call.push(format!("{name}_c.pointer()"));
                if form == Form::Array {
                    self.after.push(format!("{name}_c.write({name});"));
                }
            }
        }
    }

    /// A number or numbers that the library writes. Places in arrays begin at one; a call that fails may leave them unwritten.
    fn number(&mut self, routine: &Routine<'_>, argument: &Argument<'_>) {
        let name = argument.name;
        let is_indexed = INDEXED.contains(&&*routine.function.name);
        if !is_indexed || !matches!(name, "index" | "outcount") {
            self.call.push(name.to_owned());
            if is_indexed && name == "array_of_indices" {
                self.after
                    .push(format!("address::from_one({name}, *outcount);"));
            }
            return;
        }
        self.before
            .push(format!("let mut {name}_c = abi::UNDEFINED;"));
        self.call.push(format!("&raw mut {name}_c"));
        if name == "index" {
            self.after
                .push(format!("address::from_one(&raw mut {name}_c, 1);"));
        }
        self.after.push(format!("*{name} = {name}_c;"));
    }

    fn write(&self, out: &mut String, routine: &Routine<'_>, twin: Twin) {
        let function = routine.function.name_of(twin);
        for line in &self.before {
            let _ = writeln!(out, "        {line}");
        }
        let call = format!("PMPI_{function}({})", self.call.join(", "));
        if routine.function.result.is_some() {
            let _ = writeln!(out, "        {call}");
            return;
        }
        let _ = writeln!(out, "        let code = {call};");
        for line in &self.after {
            let _ = writeln!(out, "        {line}");
        }
        let finish = if routine.has_code() {
            "finish(ierror, code);"
        } else {
            "let _ = code;"
        };
        let _ = writeln!(out, "        {finish}");
    }
}

/// Whether a datatype of the section may stand for the elements: an operation combines elements of basic types.
fn takes_sections(
    routine: &Routine<'_>,
    buffer: &Argument<'_>,
    count: &Argument<'_>,
    datatype: &Argument<'_>,
) -> bool {
    let has = |wanted| {
        let arguments = routine.arguments(Twin::Int);
        arguments
            .iter()
            .any(|argument| argument.kind.handle() == Some(wanted))
    };
    Kind::are_elements(buffer.kind, count.kind, datatype.kind)
        && (!has("Op") || has("Win"))
        && !has_blocks(routine, buffer)
}

/// Whether nobody uses the buffers of a call after it has returned.
fn is_over(routine: &Routine<'_>) -> bool {
    let name = &routine.function.name;
    let arguments = routine.arguments(Twin::Int);
    let goes_on =
        |argument: &Argument<'_>| matches!(argument.kind.handle(), Some("Request" | "Win"));
    !name.contains("ttach") && !arguments.iter().any(goes_on)
}

/// Whether the buffer has a block for each rank. Blocks lie by the extent of the datatype, which that of a section has not.
fn has_blocks(routine: &Routine<'_>, buffer: &Argument<'_>) -> bool {
    let name = routine.function.name.to_lowercase();
    let name = name.trim_end_matches("_init");
    name.contains("alltoall")
        || name.ends_with("gather") && buffer.name == "recvbuf"
        || name.ends_with("scatter") && buffer.name == "sendbuf"
}

/// Whether the buffer has a meaning at the root alone.
fn is_of_root(routine: &Routine<'_>, buffer: &Argument<'_>) -> bool {
    let has_root = routine
        .arguments(Twin::Int)
        .iter()
        .any(|argument| argument.name == "root");
    let of_root = match routine.function.name.to_lowercase().contains("scatter") {
        true => "sendbuf",
        false => "recvbuf",
    };
    has_root && buffer.name == of_root
}

/// The call that raises an error which the binding has found.
fn fails(routine: &Routine<'_>) -> String {
    let arguments = routine.arguments(Twin::Int);
    let object = arguments.iter().find_map(|argument| {
        let handle = argument.kind.handle()?;
        let raises = matches!(handle, "Comm" | "Win" | "File");
        (raises && argument.kind.form() == Form::Value)
            .then(|| format!("On::{handle}(*{})", argument.name))
    });
    let object = object.unwrap_or_else(|| "On::None".to_owned());
    format!("fail({object}, code, ierror)")
}

/// The number of handles in an array.
fn length(routine: &Routine<'_>, argument: &Argument<'_>) -> String {
    let inner = argument.bounds.trim_matches(['(', ')']);
    if inner != "*" {
        return format!("*{inner}");
    }
    let is_neighbour = routine.function.name.to_lowercase().contains("neighbor");
    match (is_neighbour, argument.name) {
        (true, "sendtypes") => "peers::destinations(*comm)".to_owned(),
        (true, _) => "peers::sources(*comm)".to_owned(),
        (false, "sendtypes") => "peers::unless_in_place(sendbuf, *comm)".to_owned(),
        (false, _) => "peers::all(*comm)".to_owned(),
    }
}

/// Routines whose places in arrays are results.
const INDEXED: &[&str] = &[
    "Waitany",
    "Testany",
    "Waitsome",
    "Testsome",
    "Request_get_status_any",
    "Request_get_status_some",
];

/// Routines that take the address of a buffer, and touch no element; so do the ends of split accesses to files.
const PLACES: &[&str] = &["Get_address", "Free_mem", "Win_detach"];

/// Routines whose work is written by hand.
const SPECIAL: &[&str] = &[
    "Init",
    "Init_thread",
    "Info_create_env",
    "Buffer_detach",
    "Comm_detach_buffer",
    "Session_detach_buffer",
    "Info_get",
    "Info_get_string",
    "Session_get_nth_pset",
    "Comm_spawn",
    "Comm_spawn_multiple",
    "Op_create",
    "Comm_create_errhandler",
    "Win_create_errhandler",
    "File_create_errhandler",
    "Session_create_errhandler",
    "Comm_create_keyval",
    "Win_create_keyval",
    "Type_create_keyval",
    "Keyval_create",
    "Comm_set_attr",
    "Win_set_attr",
    "Type_set_attr",
    "Attr_put",
    "Comm_get_attr",
    "Win_get_attr",
    "Type_get_attr",
    "Attr_get",
    "Grequest_start",
    "Register_datarep",
];
