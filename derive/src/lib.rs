//! The derive macro of `tagwire::Plain`.
//!
//! The macro reads just what it needs: the attribute `repr`, the name, and the types of the fields. So it does without a
//! parser of the whole language, which would cost users more to build than the rest of this crate's job.
//! What it generates has the compiler check the types of the fields and the absence of padding.

mod parse;

use proc_macro::{Group, Ident, Literal, Span, TokenStream, TokenTree};

use parse::{Refused, Struct};

/// Makes a struct [plain data](https://docs.rs/tagwire), so that slices of it can be sent and received.
///
/// The struct has `#[repr(C)]` or `#[repr(transparent)]`, no generic parameters and no padding, and every field is
/// `Plain` itself. Each of these is checked when the program is compiled.
#[proc_macro_derive(Plain)]
pub fn plain(input: TokenStream) -> TokenStream {
    match parse::structure(input) {
        Ok(structure) => implementation(&structure),
        Err(refused) => error(refused),
    }
}

/// The implementation, with the checks that make it sound.
fn implementation(structure: &Struct) -> TokenStream {
    let name = &structure.name;
    let fields: Vec<String> = (0..structure.fields.len())
        .map(|number| format!("size::<field{number}>()"))
        .collect();
    let padding = format!(
        "{name} has padding, whose bytes cannot be sent: order the fields by size, or fill the gaps with fields such as `_pad: [u8; 4]`"
    );
    // `name` and `fieldN` stand for tokens of the user's, which keep their places in the source.
    let template = format!(
        "const _: () = {{
            const fn size<T: ::tagwire::Plain>() -> usize {{ ::core::mem::size_of::<T>() }}
            ::core::assert!(::core::mem::size_of::<name>() == {sum}, {message});
            #[automatically_derived]
            unsafe impl ::tagwire::Plain for name {{}}
        }};",
        sum = ["0".to_owned()]
            .into_iter()
            .chain(fields)
            .collect::<Vec<_>>()
            .join(" + "),
        message = Literal::string(&padding),
    );
    let template: TokenStream = template.parse().unwrap_or_default();
    fill(template, structure)
}

/// `template` with the user's tokens in their places, and all others marked as the macro's own: lints of the user's
/// crate, such as one that forbids `unsafe`, are not about them.
fn fill(template: TokenStream, structure: &Struct) -> TokenStream {
    let place = |tree: TokenTree| -> TokenStream {
        let mut tree = match tree {
            TokenTree::Group(group) => {
                let inner = fill(group.stream(), structure);
                TokenTree::Group(Group::new(group.delimiter(), inner))
            }
            TokenTree::Ident(word) => match user_tokens(&word, structure) {
                Some(tokens) => return tokens,
                None => TokenTree::Ident(word),
            },
            other => other,
        };
        tree.set_span(Span::mixed_site());
        tree.into()
    };
    template.into_iter().map(place).collect()
}

/// What a word of the template stands for.
fn user_tokens(word: &Ident, structure: &Struct) -> Option<TokenStream> {
    let word = word.to_string();
    if word == "name" {
        return Some(TokenTree::Ident(structure.name.clone()).into());
    }
    let number: usize = word.strip_prefix("field")?.parse().ok()?;
    structure.fields.get(number).cloned()
}

/// A compiler error at the place that is to blame.
fn error(refused: Refused) -> TokenStream {
    let text = Literal::string(refused.why);
    let tokens: TokenStream = format!("::core::compile_error! {{ {text} }}")
        .parse()
        .unwrap_or_default();
    let at = |mut tree: TokenTree| {
        tree.set_span(refused.at);
        tree
    };
    tokens.into_iter().map(at).collect()
}
