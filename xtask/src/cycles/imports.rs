//! The names in one file: its modules, its items, and the paths to other files.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Macro, Path, UseTree, Visibility};

use super::modules::Names;

/// A name that a module imports.
pub(super) struct Import {
    /// The name; `None` for a glob import.
    pub(super) name: Option<String>,
    /// The path as written.
    pub(super) path: Names,
}

/// The names in one module.
#[derive(Default)]
pub(super) struct Imports {
    pub(super) module: Names,
    /// Names of its modules in separate files.
    pub(super) files: Vec<String>,
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    pub(super) paths: BTreeSet<Names>,
    /// Inline modules.
    inside: Vec<Imports>,
}

impl Imports {
    /// Returns the modules of a file, except test modules.
    pub(super) fn of(items: &[Item], module: &Names) -> Vec<Imports> {
        let mut imports = Imports {
            module: module.clone(),
            ..Imports::default()
        };
        for item in items {
            imports.items.extend(name_of(item));
            imports.visit_item(item);
        }
        let inside = std::mem::take(&mut imports.inside);
        [imports].into_iter().chain(inside).collect()
    }

    fn add_tree(&mut self, tree: &UseTree, mut path: Names, is_re_export: bool) {
        let (name, last) = match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                return self.add_tree(&tree.tree, path, is_re_export);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(tree, path.clone(), is_re_export);
                }
                return;
            }
            UseTree::Glob(_) => (None, None),
            UseTree::Name(tree) => (Some(tree.ident.to_string()), Some(tree.ident.to_string())),
            UseTree::Rename(tree) => (Some(tree.rename.to_string()), Some(tree.ident.to_string())),
        };
        // `a::{self}` is `a` itself.
        let is_self = last.as_deref() == Some("self") && !path.is_empty();
        let name = if is_self { path.last().cloned() } else { name };
        path.extend(last.filter(|_| !is_self));
        if !is_re_export {
            self.paths.insert(path.clone());
        }
        self.imports.push(Import { name, path });
    }

    /// Collects the paths in unparsed tokens: names with `::` between them.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Names::new();
        let mut colons = 0;
        for token in tokens {
            if matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':') {
                colons += 1;
                continue;
            }
            if colons != 2 || !matches!(token, TokenTree::Ident(_)) {
                self.add_path(std::mem::take(&mut path));
            }
            colons = 0;
            match token {
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.add_path(path);
    }

    /// Collects a path of at least two names: a single name may be a variable or a field.
    fn add_path(&mut self, path: Names) {
        if path.len() > 1 {
            self.paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_of_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        let name = module.ident.to_string();
        match &module.content {
            Some((_, items)) => {
                let names = [self.module.as_slice(), &[name]].concat();
                self.inside.extend(Imports::of(items, &names));
            }
            None => self.files.push(name),
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_re_export = !matches!(item.vis, Visibility::Inherited);
        self.add_tree(&item.tree, Names::new(), is_re_export);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.paths.insert(names.collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.add_tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {
        // Attributes name macros of other crates.
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {
        // `pub(super)` is not a dependency.
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|ident| ident == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
