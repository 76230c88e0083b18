//! The conditions of a file, and their mutations.

use std::ops::Range;

use anyhow::Context;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, BinOp, Block, Expr, ReturnType, Signature, Stmt, Type};

/// Methods whose closure is a predicate.
const TAKE_PREDICATES: [&str; 16] = [
    "all",
    "any",
    "extract_if",
    "filter",
    "find",
    "is_none_or",
    "is_some_and",
    "map_while",
    "partition",
    "position",
    "retain",
    "rposition",
    "skip_while",
    "split",
    "take_if",
    "take_while",
];

/// One change of a file: this text instead of the bytes of `at`.
pub(super) struct Mutation {
    pub at: Range<usize>,
    pub line: usize,
    pub text: String,
}

/// Returns the mutations of a file, without those of tests and of what is computed when compiling.
pub(super) fn find(source: &str) -> anyhow::Result<Vec<Mutation>> {
    let file = syn::parse_file(source).context("not Rust")?;
    let mut finder = Finder {
        source,
        found: Vec::new(),
    };
    finder.visit_file(&file);
    Ok(finder.found)
}

struct Finder<'a> {
    source: &'a str,
    found: Vec<Mutation>,
}

impl Finder<'_> {
    fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.found.push(Mutation {
            at: span.byte_range(),
            line: span.start().line,
            text: text.into(),
        });
    }

    /// Replaces `part` in `whole`.
    fn replace_in(&mut self, whole: Span, part: Span, text: &str) {
        let (whole_at, part_at) = (whole.byte_range(), part.byte_range());
        let before = &self.source[whole_at.start..part_at.start];
        let after = &self.source[part_at.end..whole_at.end];
        self.replace(whole, format!("{before}{text}{after}"));
    }

    /// A value that decides: always true, and never.
    fn decides(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(_) | Expr::Lit(_) => {}
            Expr::Binary(both) if has_let(condition) => {
                self.decides(&both.left);
                self.decides(&both.right);
            }
            Expr::Block(_) | Expr::If(_) | Expr::Match(_) => {}
            _ => {
                self.replace(condition.span(), "true");
                self.replace(condition.span(), "false");
            }
        }
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

/// True for tests.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let is_test = |words: &syn::MetaList| words.tokens.to_string().contains("test");
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(is_test)
    })
}

/// The value of a function whose result is a `bool`.
fn result<'a>(signature: &Signature, block: &'a Block) -> Option<&'a Expr> {
    let ReturnType::Type(_, kind) = &signature.output else {
        return None;
    };
    let is_bool = matches!(&**kind, Type::Path(path) if path.path.is_ident("bool"));
    match block.stmts.last() {
        Some(Stmt::Expr(value, None)) if is_bool => Some(value),
        _ => None,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_some() || is_for_tests(&item.attrs) {
            return;
        }
        if let Some(value) = result(&item.sig, &item.block) {
            self.decides(value);
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_some() {
            return;
        }
        if let Some(value) = result(&item.sig, &item.block) {
            self.decides(value);
        }
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_expr_if(&mut self, item: &'ast syn::ExprIf) {
        self.decides(&item.cond);
        visit::visit_expr_if(self, item);
    }

    fn visit_expr_while(&mut self, item: &'ast syn::ExprWhile) {
        self.decides(&item.cond);
        visit::visit_expr_while(self, item);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            self.decides(guard);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if TAKE_PREDICATES.contains(&call.method.to_string().as_str())
            && let Some(Expr::Closure(closure)) = call.args.last()
        {
            self.decides(&closure.body);
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, both: &'ast syn::ExprBinary) {
        let (whole, operator) = (both.span(), both.op.span());
        let neutral = match both.op {
            BinOp::And(_) => Some("true"),
            BinOp::Or(_) => Some("false"),
            _ => None,
        };
        let other = match both.op {
            BinOp::Lt(_) => Some("<="),
            BinOp::Le(_) => Some("<"),
            BinOp::Gt(_) => Some(">="),
            BinOp::Ge(_) => Some(">"),
            BinOp::Eq(_) => Some("!="),
            BinOp::Ne(_) => Some("=="),
            _ => None,
        };
        for operand in [&both.left, &both.right] {
            if let Some(neutral) = neutral
                && !has_let(operand)
            {
                self.replace(operand.span(), neutral);
            }
            if other.is_some()
                && let Expr::Lit(literal) = &**operand
                && let syn::Lit::Int(limit) = &literal.lit
                && let Ok(value) = limit.base10_parse::<u64>()
            {
                let suffix = limit.suffix();
                self.replace(
                    operand.span(),
                    format!("{}{suffix}", value.saturating_add(1)),
                );
                if let Some(less) = value.checked_sub(1) {
                    self.replace(operand.span(), format!("{less}{suffix}"));
                }
            }
        }
        if let Some(other) = other {
            self.replace_in(whole, operator, other);
        }
        visit::visit_expr_binary(self, both);
    }
}
