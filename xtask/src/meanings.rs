//! The table of meanings that `vmdisk lsp` shows, from the documentation of the model.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Context as _;
use proc_macro2::{TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Expr, ExprLit, Fields, Ident, Item, Lit, LitStr, Meta, Token, Visibility, braced,
};

use crate::repository;

/// Fields that are not a member of one struct, and the type of their words.
const TYPES: [(&str, &str); 2] = [
    ("ImageField::Format", "Format"),
    ("DiskField::Bus", "TargetBus"),
];

/// The path of the table.
pub(crate) const PATH: &str = "crates/vmdisk-lsp/src/meanings.txt";

/// What the sources of the model say.
#[derive(Default)]
struct Model {
    /// Text of fields, by `DiskField::Cache`.
    fields: BTreeMap<String, String>,
    /// Text and type of members, by struct and name.
    members: BTreeMap<(String, String), (String, String)>,
    /// Words with their texts, by type.
    words: BTreeMap<String, Vec<(String, String)>>,
    /// The struct and member of a field.
    homes: BTreeMap<String, (String, String)>,
}

/// Returns the table.
pub(crate) fn table() -> anyhow::Result<String> {
    let mut model = Model::default();
    for entry in std::fs::read_dir(repository().join("crates/vmdisk-model/src"))? {
        let path = entry?.path();
        let text = std::fs::read_to_string(&path)?;
        let file = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        for item in file.items {
            model
                .add(item)
                .with_context(|| path.display().to_string())?;
        }
    }
    let mut out =
        "# Made by `cargo xtask codegen` from the documentation of vmdisk-model: do not edit.\n"
            .to_owned();
    for (field, text) in &model.fields {
        let member = model
            .homes
            .get(field)
            .and_then(|home| model.members.get(home));
        let (text, kind) = match member {
            Some((text, kind)) => (text, kind.as_str()),
            None => (text, ""),
        };
        let special = TYPES.iter().find(|(name, _)| name == field);
        let kind = special.map_or(kind, |(_, kind)| kind);
        let _ = writeln!(out, "{field}: {text}");
        for (word, text) in model.words.get(kind).into_iter().flatten() {
            let _ = writeln!(out, "  {word}: {text}");
        }
    }
    Ok(out)
}

impl Model {
    fn add(&mut self, item: Item) -> syn::Result<()> {
        match item {
            Item::Struct(it) => {
                let Fields::Named(fields) = it.fields else {
                    return Ok(());
                };
                for field in fields.named {
                    if let Some(name) = field.ident {
                        let kind = last_name(&field.ty);
                        let key = (it.ident.to_string(), name.to_string());
                        self.members.insert(key, (text(&field.attrs), kind));
                    }
                }
            }
            Item::Macro(it)
                if it
                    .mac
                    .path
                    .segments
                    .last()
                    .is_some_and(|last| last.ident == "words") =>
            {
                let it: WordEnum = it.mac.parse_body()?;
                self.words.insert(it.name, it.words);
            }
            Item::Macro(it) if it.mac.path.is_ident("field_enum") => {
                let it: FieldEnum = it.mac.parse_body()?;
                for (name, text) in it.fields {
                    self.fields.insert(format!("{}::{name}", it.name), text);
                }
            }
            Item::Macro(it) if it.mac.path.is_ident("fields") => {
                let it: Homes = it.mac.parse_body()?;
                for (member, text, kind) in it.texts {
                    self.members
                        .insert((it.owner.clone(), member), (text, kind));
                }
                for (owner, member, field) in it.members {
                    self.homes
                        .insert(format!("{}::{field}", it.names), (owner, member));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The documentation of an item as one line.
fn text(attributes: &[Attribute]) -> String {
    let lines = attributes
        .iter()
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value().trim().to_owned()),
                _ => None,
            },
            _ => None,
        });
    lines.collect::<Vec<String>>().join(" ").trim().to_owned()
}

/// The last name in a type: of `Option<CacheMode>`, `CacheMode`.
fn last_name(kind: &syn::Type) -> String {
    let syn::Type::Path(path) = kind else {
        return String::new();
    };
    let Some(segment) = path.path.segments.last() else {
        return String::new();
    };
    match &segment.arguments {
        syn::PathArguments::AngleBracketed(inner) => match inner.args.first() {
            Some(syn::GenericArgument::Type(inner)) => last_name(inner),
            _ => String::new(),
        },
        _ => segment.ident.to_string(),
    }
}

/// The body of `words!`.
struct WordEnum {
    name: String,
    words: Vec<(String, String)>,
}

impl Parse for WordEnum {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (name, body) = head(input)?;
        let variants = |input: ParseStream<'_>| {
            let mut words = Vec::new();
            while !input.is_empty() {
                let attributes = input.call(Attribute::parse_outer)?;
                input.parse::<Ident>()?;
                input.parse::<Token![=]>()?;
                let word: LitStr = input.parse()?;
                input.parse::<Option<Token![,]>>()?;
                words.push((word.value(), text(&attributes)));
            }
            Ok(words)
        };
        let words = syn::parse::Parser::parse2(variants, body)?;
        Ok(WordEnum { name, words })
    }
}

/// The body of `field_enum!`.
struct FieldEnum {
    name: String,
    fields: Vec<(String, String)>,
}

impl Parse for FieldEnum {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let (name, body) = head(input)?;
        let variants = |input: ParseStream<'_>| {
            let mut fields = Vec::new();
            while !input.is_empty() {
                let attributes = input.call(Attribute::parse_outer)?;
                let name: Ident = input.parse()?;
                if input.parse::<Option<Token![in]>>()?.is_some() {
                    input.parse::<Ident>()?;
                }
                input.parse::<Option<Token![,]>>()?;
                fields.push((name.to_string(), text(&attributes)));
            }
            Ok(fields)
        };
        let fields = syn::parse::Parser::parse2(variants, body)?;
        Ok(FieldEnum { name, fields })
    }
}

/// `pub enum Name { … }` or `pub enum Name as as_str { … }`, with its attributes.
fn head(input: ParseStream<'_>) -> syn::Result<(String, TokenStream)> {
    input.call(Attribute::parse_outer)?;
    input.parse::<Visibility>()?;
    input.parse::<Token![enum]>()?;
    let name: Ident = input.parse()?;
    if input.parse::<Option<Token![as]>>()?.is_some() {
        input.parse::<Ident>()?;
    }
    let body;
    braced!(body in input);
    Ok((name.to_string(), body.parse()?))
}

/// The body of `fields!`: the members of a struct, and the struct and member of each field.
struct Homes {
    names: String,
    members: Vec<(String, String, String)>,
    /// Name, text and type of each member.
    texts: Vec<(String, String, String)>,
    owner: String,
}

impl Parse for Homes {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Token![struct]>()?;
        let owner = input.parse::<Ident>()?.to_string();
        // `of`
        input.parse::<Ident>()?;
        let names = input.parse::<Ident>()?.to_string();
        let body;
        braced!(body in input);
        let (mut members, mut texts) = (Vec::new(), Vec::new());
        while !body.is_empty() {
            let attributes = body.call(Attribute::parse_outer)?;
            body.parse::<Visibility>()?;
            let member = body.parse::<Ident>()?.to_string();
            body.parse::<Token![:]>()?;
            let kind = last_name(&body.parse()?);
            texts.push((member.clone(), text(&attributes), kind));
            if body.parse::<Option<Token![=]>>()?.is_some() {
                let field = body.parse::<Ident>()?.to_string();
                members.push((owner.clone(), member, field));
            }
            body.parse::<Option<Token![,]>>()?;
        }
        // `inside member: Struct { … }`
        pairs(input.parse()?, &mut members);
        Ok(Homes {
            names,
            members,
            texts,
            owner,
        })
    }
}

/// Collects the `member: Field` pairs of inner structs.
fn pairs(tokens: TokenStream, found: &mut Vec<(String, String, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for window in tokens.windows(2) {
        if let [TokenTree::Ident(owner), TokenTree::Group(group)] = window {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            for window in inner.windows(3) {
                if let [
                    TokenTree::Ident(member),
                    TokenTree::Punct(colon),
                    TokenTree::Ident(field),
                ] = window
                    && colon.as_char() == ':'
                {
                    found.push((owner.to_string(), member.to_string(), field.to_string()));
                }
            }
        }
    }
}
