//! Writes the exported functions in Rust.
//!
//! Each name is one call of the macro `export!`, which the including crate defines: the two exported names, the function that
//! does their work, its parameters and its body, which calls a handler in `LIBRARY`, a static of that crate.

use std::fmt::Write as _;

use crate::function::{Flag, Function, Handler, Parameter};
use crate::kind::{Form, Kind, Twin, camel};
use crate::{Api, Constant};

/// Writes all of them, and the checks that the shim's types are those of the tables.
pub(crate) fn write(api: &Api) -> String {
    let mut out = String::new();
    for function in api.functions() {
        for twin in function.twins() {
            export(&mut out, api, function, *twin);
        }
    }
    checks(&mut out, api);
    out
}

fn export(out: &mut String, api: &Api, function: &Function, twin: Twin) {
    let name = function.name_of(twin);
    let work = name.to_lowercase();
    let parameters: Vec<_> = function
        .parameters_of(twin)
        .map(|parameter| {
            let (name, of) = (identifier(&parameter.name), parameter.kind.rust(twin));
            format!("{name}: {of}")
        })
        .collect();
    let parameters = parameters.join(", ");
    let result = match &function.result {
        Some(kind) => kind.rust(Twin::Int),
        None => "i32".to_owned(),
    };
    let _ = writeln!(
        out,
        "export! {{\n    MPI_{name} PMPI_{name} {work}({parameters}) -> {result} {{"
    );
    body(out, api, function, twin);
    let _ = writeln!(out, "    }}\n}}");
}

fn body(out: &mut String, api: &Api, function: &Function, twin: Twin) {
    match &function.handler {
        Handler::Expression(expression) => line(out, expression),
        Handler::Path(path) => {
            let name = function.name_of(twin);
            check(out, function, twin, &name);
            line(out, &handled(function, twin, path, &name));
        }
        Handler::Missing if function.is_tool() => {
            line(out, &value(api, "T_ERR_NOT_SUPPORTED").to_string());
        }
        Handler::Missing => missing(out, function, twin),
    }
}

/// What keeps a call from dropping its results: an address that is null is an error.
fn check(out: &mut String, function: &Function, twin: Twin, name: &str) {
    if function.is_tool() || function.result.is_some() {
        return;
    }
    let is_result = |parameter: &&Parameter| {
        parameter.kind.is_result() && !MAY_BE_NULL.contains(&&*parameter.name)
    };
    let results = function.parameters_of(twin).filter(is_result);
    let mut nulls: Vec<_> = results
        .map(|parameter| format!("{}.is_null()", identifier(&parameter.name)))
        .collect();
    // Where the table calls it so, it is the number of elements of all arrays.
    let mut parameters = function.parameters_of(twin);
    if parameters.any(|parameter| parameter.name == "n" && parameter.kind.form() == Form::Value) {
        let arrays = function
            .parameters_of(twin)
            .filter(|parameter| parameter.kind.is_array());
        nulls.extend(
            arrays.map(|parameter| format!("n > 0 && {}.is_null()", identifier(&parameter.name))),
        );
    }
    if nulls.is_empty() {
        return;
    }
    let (nulls, on) = (nulls.join(" || "), object(function));
    let entry = match function.has(Flag::Early) {
        true => "no_result_early",
        false => "no_result",
    };
    line(out, &format!("if {nulls} {{"));
    line(
        out,
        &format!("    return LIBRARY.{entry}(\"MPI_{name}\", {on});"),
    );
    line(out, "}");
}

/// The call of a handler: in a process, or bare where the result is none of an error code.
fn handled(function: &Function, twin: Twin, path: &str, name: &str) -> String {
    let arguments = arguments(&function.parameters, twin);
    let (entry, first) = match function {
        _ if function.result.is_some() => {
            return format!("tagwire_shim::call::{path}({})", arguments.join(", "));
        }
        _ if function.is_tool() => ("tool", "library"),
        _ if function.has(Flag::Early) => ("early", "library"),
        _ => ("call", "process"),
    };
    let mut words = vec![first.to_owned()];
    if function.has(Flag::Short) {
        return short(path, name, &arguments);
    }
    if function.has(Flag::Twin) {
        words.push(format!("raw::Twin::{twin:?}"));
    }
    words.extend(arguments);
    let words = words.join(", ");
    format!("LIBRARY.{entry}(\"MPI_{name}\", |{first}| tagwire_shim::call::{path}({words}))")
}

/// The call of a handler whose short form, the function with `try_` before its name, is tried first.
fn short(path: &str, name: &str, arguments: &[String]) -> String {
    let (module, function) = path.rsplit_once("::").unwrap_or(("", path));
    let call = |function: &str| {
        let arguments = arguments.join(", ");
        format!("move |process| tagwire_shim::call::{module}::{function}(process, {arguments})")
    };
    let (first, then) = (call(&format!("try_{function}")), call(function));
    format!("LIBRARY.short(\"MPI_{name}\", {first}, {then})")
}

/// The arguments of a handler: one for each parameter, but one for a buffer with the number and the datatype of its elements, and
/// one for elements in the window of a target.
fn arguments(parameters: &[Parameter], twin: Twin) -> Vec<String> {
    let argument = |parameter: &Parameter| {
        let name = identifier(&parameter.name);
        parameter.kind.argument(twin, &name)
    };
    let mut arguments = Vec::new();
    let mut rest = parameters;
    while let [first, after @ ..] = rest {
        if let [at, count, datatype, after @ ..] = after
            && Kind::are_place(&first.kind, &at.kind, &count.kind, &datatype.kind)
        {
            let fields = ["rank", "displacement", "count", "datatype"];
            let words = fields.iter().zip([first, at, count, datatype]);
            let words = words.map(|(field, parameter)| format!("{field}: {}", argument(parameter)));
            let words = words.collect::<Vec<_>>().join(", ");
            arguments.push(format!("raw::Place {{ {words} }}"));
            rest = after;
            continue;
        }
        let mut words = argument(first);
        rest = after;
        if let [count, datatype, after @ ..] = after
            && Kind::are_elements(&first.kind, &count.kind, &datatype.kind)
        {
            words += &format!(".of({}, {})", argument(count), argument(datatype));
            rest = after;
        }
        arguments.push(words);
    }
    arguments
}

/// No handler: handles that it would make are null, and the error is raised on the object among the arguments.
fn missing(out: &mut String, function: &Function, twin: Twin) {
    for parameter in function.parameters_of(twin) {
        if let (Some(handle), Form::Out) = (parameter.kind.handle(), parameter.kind.form()) {
            let name = identifier(&parameter.name);
            let text = format!("raw::Ref::new({name}).set(abi::{handle}::NULL);");
            line(out, &text);
        }
    }
    let (name, on) = (function.name_of(twin), object(function));
    let entry = match function.has(Flag::Early) {
        true => "unsupported_early",
        false => "unsupported",
    };
    line(out, &format!("LIBRARY.{entry}(\"MPI_{name}\", {on})"));
}

/// The object on whose error handler an error of the call is raised. Errors of files that are not open yet belong to the null
/// file.
fn object(function: &Function) -> String {
    let is_value = |parameter: &&Parameter| parameter.kind.form() == Form::Value;
    let named = function
        .parameters
        .iter()
        .filter(is_value)
        .find_map(|parameter| {
            let handle = parameter.kind.handle()?;
            let raises = matches!(handle, "Comm" | "Win" | "File" | "Session");
            raises.then(|| (handle, identifier(&parameter.name)))
        });
    match named {
        Some((handle, name)) if handle == "File" || !function.name.starts_with("File_") => {
            format!("On::{handle}({name})")
        }
        _ if function.name.starts_with("File_") => "On::File(abi::File::NULL)".to_owned(),
        _ => "On::None".to_owned(),
    }
}

/// Sentences that do not compile where a type or a constant of the shim differs from the tables.
fn checks(out: &mut String, api: &Api) {
    let _ = writeln!(out, "const _: () = assert!(size_of::<usize>() == 8);");
    let _ = writeln!(
        out,
        "const _: () = assert!(size_of::<abi::Status>() == 32);"
    );
    for entry in api.sections().iter().flat_map(|section| &section.entries) {
        match entry {
            Constant::Typed(of, name, value)
                if name.ends_with("_NULL") && !of.contains(['*', '_']) =>
            {
                let _ = writeln!(
                    out,
                    "const _: () = assert!(abi::{of}::NULL.0 == {value:#x});"
                );
            }
            Constant::Function(function) => {
                let (name, signature) = (camel(&function.name), pointer(function));
                let _ = writeln!(
                    out,
                    "const _: fn(callbacks::{name}) -> {signature} = |same| same;"
                );
            }
            _ => {}
        }
    }
}

/// The type of a pointer to a caller's function.
fn pointer(function: &Function) -> String {
    let parameters = function.parameters.iter();
    let mut words: Vec<_> = parameters
        .map(|parameter| parameter.kind.rust(Twin::Int))
        .collect();
    words.extend(function.is_variadic.then(|| "...".to_owned()));
    let words = words.join(", ");
    let result = match &function.result {
        Some(kind) => format!(" -> {}", kind.rust(Twin::Int)),
        None => String::new(),
    };
    format!("Option<unsafe extern \"C-unwind\" fn({words}){result}>")
}

/// The value of an integer constant.
fn value(api: &Api, wanted: &str) -> i64 {
    let mut entries = api.sections().iter().flat_map(|section| &section.entries);
    let found = entries.find_map(|entry| match entry {
        Constant::Int(name, value) if name == wanted => Some(*value),
        _ => None,
    });
    found.expect("the table of constants has every class of errors")
}

fn identifier(name: &str) -> String {
    match KEYWORDS.contains(&name) {
        true => format!("r#{name}"),
        false => name.to_owned(),
    }
}

fn line(out: &mut String, text: &str) {
    let _ = writeln!(out, "        {text}");
}

/// The arguments of `main`, which `MPI_Init` takes or does without.
const MAY_BE_NULL: &[&str] = &["argc", "argv"];

/// Words of Rust that are names in the table.
const KEYWORDS: &[&str] = &["type", "ref", "match", "use", "in", "where", "loop", "move"];
