//! The conditions of a file, and their mutations.

use anyhow::Context;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, Lit, ReturnType, Signature, Stmt, Type};

use super::Mutant;

/// Methods whose closure is a predicate.
const TAKE_PREDICATES: &str = "all any extract_if filter find is_none_or is_some_and map_while partition position \
    retain rposition skip_while split take_if take_while";

/// Returns the mutants of a file, without those of tests and of what is computed when compiling.
pub(super) fn find(file: &str, source: &str) -> anyhow::Result<Vec<Mutant>> {
    let found = Vec::new();
    let syntax = syn::parse_file(source).context(file.to_owned())?;
    let mut finder = Finder(file, source, found);
    finder.visit_file(&syntax);
    Ok(finder.2)
}

/// The name of a file, its text, and what was found.
struct Finder<'a>(&'a str, &'a str, Vec<Mutant>);

impl Finder<'_> {
    fn replace(&mut self, span: Span, text: impl Into<String>) {
        let at = span.byte_range();
        self.2.push(Mutant {
            file: self.0.to_owned(),
            line: span.start().line,
            original: self.1[at.clone()].to_owned(),
            at,
            text: text.into(),
        });
    }

    /// A limit: one more and one less.
    fn replace_limit(&mut self, span: Span, value: u64, suffix: &str) {
        let beside = [value.checked_add(1), value.checked_sub(1)];
        for value in beside.into_iter().flatten() {
            self.replace(span, format!("{value}{suffix}"));
        }
    }

    /// A value that decides: always true, and never.
    fn decides(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(_) | Expr::Lit(_) | Expr::Block(_) | Expr::If(_) | Expr::Match(_) => {}
            Expr::Binary(both) if has_let(condition) => {
                self.decides(&both.left);
                self.decides(&both.right);
            }
            _ => {
                self.replace(condition.span(), "true");
                self.replace(condition.span(), "false");
            }
        }
    }

    /// Returns true for a function that tests run; its value decides if it is a `bool`.
    fn is_run(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) -> bool {
        let is_run = signature.constness.is_none() && !is_for_tests(attributes);
        if let ReturnType::Type(_, kind) = &signature.output
            && matches!(&**kind, Type::Path(path) if path.path.is_ident("bool"))
            && let Some(Stmt::Expr(value, None)) = block.stmts.last()
            && is_run
        {
            self.decides(value);
        }
        is_run
    }
}

/// True if an operand is `let`, so that the chain is not a value.
fn has_let(condition: &Expr) -> bool {
    match condition {
        Expr::Let(_) => true,
        Expr::Binary(both) => has_let(&both.left) || has_let(&both.right),
        _ => false,
    }
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |words: &syn::MetaList| words.tokens.to_string().contains("test");
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_test)
    })
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.is_run(&item.attrs, &item.sig, &item.block) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if self.is_run(&item.attrs, &item.sig, &item.block) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.decides(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        match expression {
            Expr::If(branch) => self.decides(&branch.cond),
            Expr::While(lap) => self.decides(&lap.cond),
            Expr::MethodCall(call) => {
                let is_predicate = TAKE_PREDICATES.split(' ').any(|name| call.method == name);
                if let (true, Some(Expr::Closure(closure))) = (is_predicate, call.args.last()) {
                    self.decides(&closure.body);
                }
            }
            Expr::Binary(both) => {
                let (left, right) = (
                    both.left.span().byte_range(),
                    both.right.span().byte_range(),
                );
                let (left, right) = (&self.1[left], &self.1[right]);
                let with = |other: &str| Some(format!("{left} {other} {right}"));
                let (neutral, other) = match both.op {
                    BinOp::And(_) => (Some("true"), None),
                    BinOp::Or(_) => (Some("false"), None),
                    BinOp::Lt(_) => (None, with("<=")),
                    BinOp::Le(_) => (None, with("<")),
                    BinOp::Gt(_) => (None, with(">=")),
                    BinOp::Ge(_) => (None, with(">")),
                    BinOp::Eq(_) => (None, with("!=")),
                    BinOp::Ne(_) => (None, with("==")),
                    _ => (None, None),
                };
                for operand in [&both.left, &both.right] {
                    if let Some(neutral) = neutral.filter(|_| !has_let(operand)) {
                        self.replace(operand.span(), neutral);
                    }
                    if let Expr::Lit(literal) = &**operand
                        && let (Lit::Int(limit), Some(_)) = (&literal.lit, &other)
                        && let Ok(value) = limit.base10_parse::<u64>()
                    {
                        self.replace_limit(operand.span(), value, limit.suffix());
                    }
                }
                if let Some(other) = other {
                    self.replace(both.span(), other);
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expression);
    }
}
