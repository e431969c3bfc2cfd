//! Reads a struct's definition, as far as the derive macro needs it.

use std::iter::Peekable;

use proc_macro::token_stream::IntoIter;
use proc_macro::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};

/// What is known of a struct.
pub struct Struct {
    pub name: Ident,
    /// The types of its fields.
    pub fields: Vec<TokenStream>,
}

/// Why there is no implementation, and the place to blame.
pub struct Refused {
    pub why: &'static str,
    pub at: Span,
}

impl Refused {
    fn here<T>(why: &'static str) -> Result<T, Self> {
        let at = Span::call_site();
        Err(Self { why, at })
    }
}

const LAYOUT: &str =
    "Plain needs a layout that is the same in every program: put #[repr(C)] on the struct";
const ONLY_STRUCTS: &str =
    "only structs can be Plain: an enum or a union is not valid for any bytes";
const NO_GENERICS: &str =
    "a struct with generic parameters cannot derive Plain: its padding depends on them";

type Tokens = Peekable<IntoIter>;

/// Reads the definition that a derive macro is given: attributes, visibility, `struct`, name, fields.
pub fn structure(input: TokenStream) -> Result<Struct, Refused> {
    let mut tokens = ungrouped(input).into_iter().peekable();
    let mut is_laid_out = false;
    for attribute in attributes(&mut tokens) {
        is_laid_out |= fixes_layout(attribute);
    }
    skip_visibility(&mut tokens);
    match tokens.next() {
        Some(TokenTree::Ident(word)) if word.to_string() == "struct" => {}
        _ => return Refused::here(ONLY_STRUCTS),
    }
    let Some(TokenTree::Ident(name)) = tokens.next() else {
        return Refused::here(ONLY_STRUCTS);
    };
    let refuse = |why| {
        let at = name.span();
        Err(Refused { why, at })
    };
    let fields = match tokens.next() {
        Some(TokenTree::Group(body)) => fields(&body),
        Some(TokenTree::Punct(mark)) if mark.as_char() == ';' => Vec::new(),
        // `<` of parameters, or `where`.
        _ => return refuse(NO_GENERICS),
    };
    if !is_laid_out {
        return refuse(LAYOUT);
    }
    Ok(Struct { name, fields })
}

/// Dissolves the groups without delimiters, which stand around what a macro by example was given: a visibility
/// (which may be empty), a type, an attribute, a whole item.
fn ungrouped(tokens: TokenStream) -> TokenStream {
    tokens
        .into_iter()
        .flat_map(|tree| match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::None => {
                ungrouped(group.stream())
            }
            other => other.into(),
        })
        .collect()
}

/// Takes the attributes that come next: what is in their brackets.
fn attributes(tokens: &mut Tokens) -> Vec<TokenStream> {
    let mut found = Vec::new();
    while tokens
        .next_if(|tree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == '#'))
        .is_some()
    {
        if let Some(TokenTree::Group(group)) = tokens.next() {
            found.push(ungrouped(group.stream()));
        }
    }
    found
}

/// Whether it is `repr(C, ..)` or `repr(transparent)`.
fn fixes_layout(attribute: TokenStream) -> bool {
    let mut words = attribute.into_iter();
    let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(what))) = (words.next(), words.next())
    else {
        return false;
    };
    let is_layout = |tree: TokenTree| matches!(tree.to_string().as_str(), "C" | "transparent");
    name.to_string() == "repr" && what.stream().into_iter().any(is_layout)
}

/// Takes `pub`, and what may stand in parentheses behind it.
fn skip_visibility(tokens: &mut Tokens) {
    let is_pub =
        |tree: &TokenTree| matches!(tree, TokenTree::Ident(word) if word.to_string() == "pub");
    if tokens.next_if(is_pub).is_some() {
        let is_where =
            |tree: &TokenTree| matches!(tree, TokenTree::Group(group) if restricts(group));
        tokens.next_if(is_where);
    }
}

/// Whether a group behind `pub` belongs to it; else it is the type of a tuple's field.
fn restricts(group: &Group) -> bool {
    let first = group.stream().into_iter().next();
    group.delimiter() == Delimiter::Parenthesis
        && first.is_some_and(|word| {
            matches!(word.to_string().as_str(), "crate" | "self" | "super" | "in")
        })
}

/// The types of the fields, in braces or in parentheses.
fn fields(body: &Group) -> Vec<TokenStream> {
    let mut tokens = ungrouped(body.stream()).into_iter().peekable();
    let mut types = Vec::new();
    while tokens.peek().is_some() {
        attributes(&mut tokens);
        skip_visibility(&mut tokens);
        if body.delimiter() == Delimiter::Brace {
            // The name and its colon.
            tokens.next();
            tokens.next();
        }
        types.push(up_to_comma(&mut tokens));
    }
    types
}

/// The tokens before the next comma that is outside of angle brackets, which are no groups.
fn up_to_comma(tokens: &mut Tokens) -> TokenStream {
    let (mut taken, mut depth, mut before) = (Vec::new(), 0_u32, ' ');
    for tree in tokens {
        let mark = match &tree {
            TokenTree::Punct(mark) => mark.as_char(),
            _ => ' ',
        };
        match mark {
            ',' if depth == 0 => break,
            '<' => depth += 1,
            // Not that of an arrow.
            '>' if before != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = mark;
        taken.push(tree);
    }
    taken.into_iter().collect()
}
