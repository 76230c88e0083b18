//! Quick fixes, and all safe fixes at once.

use std::collections::HashMap;

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionParams, CodeActionTriggerKind, TextEdit, Uri,
    WorkspaceEdit,
};
use vmdisk::{Applicability, ResolvedFix};
use vmdisk_source::{Edit, Span};

use crate::check::Found;
use crate::documents::Open;
use crate::file_settings::FileSettings;
use crate::text::Text;

/// The kind of the action that applies all safe fixes.
pub(crate) const FIX_ALL: &str = "source.fixAll.vmdisk";

/// The actions for a range of an open document.
pub(crate) fn actions(
    open: &Open,
    params: &CodeActionParams,
    settings: &mut dyn FileSettings,
) -> Vec<CodeAction> {
    let only = params.context.only.as_ref();
    let names = |kind: &str| {
        only.into_iter().flatten().any(|wanted| {
            let wanted = String::from(wanted.clone());
            // `source` asks for `source.fixAll` too, and an empty kind for everything.
            wanted.is_empty()
                || kind
                    .strip_prefix(&wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let mut actions = Vec::new();
    if only.is_none() || names("quickfix") {
        actions = quick_fixes(open, open.text.span(params.range));
    }
    // It lints the text once more, which is too much for each move of a cursor.
    let is_automatic = params.context.trigger_kind == Some(CodeActionTriggerKind::Automatic);
    if names(FIX_ALL) || (only.is_none() && !is_automatic) {
        actions.extend(fix_all(open, settings));
    }
    actions
}

fn quick_fixes(open: &Open, range: Span) -> Vec<CodeAction> {
    let found = open.checked.iter().flat_map(|checked| &checked.findings);
    let touched = found.filter(|found| {
        let span = open.text.span(found.diagnostic.range);
        span.start <= range.end && range.start <= span.end
    });
    let of = |found| [quick_fix(open, found), allow(open, found)];
    let mut fixes: Vec<CodeAction> = touched.flat_map(of).flatten().collect();
    // Safe ones first, and what changes nothing last.
    fixes.sort_by_key(|fix| fix.is_preferred.map_or(2, |is_safe| i32::from(!is_safe)));
    fixes
}

/// The comment that allows a finding.
fn allow(open: &Open, found: &Found) -> Option<CodeAction> {
    let finding = found.finding.as_ref()?;
    let document = open.checked.as_ref()?.document.as_ref()?;
    let rule = finding.rule.name;
    let edit =
        vmdisk::allowance_of(document, finding).filter(|_| !rule.starts_with("allowance-"))?;
    Some(CodeAction {
        title: format!("Allow {rule} here"),
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![found.diagnostic.clone()]),
        edit: Some(workspace_edit(open, &[edit])),
        ..CodeAction::default()
    })
}

fn quick_fix(open: &Open, found: &Found) -> Option<CodeAction> {
    let finding = found.finding.as_ref()?;
    let ResolvedFix {
        edits,
        applicability,
        ..
    } = finding.fix.as_ref()?;
    let own = open.text.as_str().len();
    if edits.is_empty() || edits.iter().any(|edit| edit.span.end > own) {
        return None;
    }
    let (trade, is_preferred) = match applicability {
        Applicability::Safe => ("", true),
        Applicability::Unsafe => (" (changes behaviour)", false),
    };
    let title = match finding.help.as_deref() {
        Some(help) => help.to_owned(),
        None => format!("Fix {}", finding.rule.name),
    };
    Some(CodeAction {
        title: format!("{title}{trade}"),
        kind: Some(CodeActionKind::QuickFix),
        diagnostics: Some(vec![found.diagnostic.clone()]),
        is_preferred: Some(is_preferred),
        edit: Some(workspace_edit(open, edits)),
        ..CodeAction::default()
    })
}

fn fix_all(open: &Open, settings: &mut dyn FileSettings) -> Option<CodeAction> {
    let mut found = open.checked.iter().flat_map(|checked| &checked.findings);
    let is_safe = |found: &Found| {
        let fix = found
            .finding
            .as_ref()
            .and_then(|finding| finding.fix.as_ref());
        fix.is_some_and(|fix| fix.applicability == Applicability::Safe)
    };
    if !found.any(is_safe) {
        return None;
    }
    let before = open.text.as_str();
    let after = settings.fix(&open.path, before)?;
    let edit = difference(before, &after)?;
    Some(CodeAction {
        title: "Apply all safe fixes of vmdisk".to_owned(),
        kind: Some(CodeActionKind::new(FIX_ALL)),
        edit: Some(workspace_edit(open, &[edit])),
        ..CodeAction::default()
    })
}

/// The edit between two texts, without the parts at both ends that are equal.
fn difference(before: &str, after: &str) -> Option<Edit> {
    if before == after {
        return None;
    }
    let same = before.bytes().zip(after.bytes());
    let start = same.take_while(|(old, new)| old == new).count();
    let start = crate::text::floor(before, start).min(crate::text::floor(after, start));
    let (old, new) = (&before[start..], &after[start..]);
    let characters = old.chars().rev().zip(new.chars().rev());
    let tail: usize = characters
        .take_while(|(old, new)| old == new)
        .map(|(character, _)| character.len_utf8())
        .sum();
    let span = Span::new(start, before.len() - tail);
    Some(Edit::replace(span, &new[..new.len() - tail]))
}

fn workspace_edit(open: &Open, edits: &[Edit]) -> WorkspaceEdit {
    let edits = edits
        .iter()
        .map(|edit| text_edit(&open.text, edit))
        .collect();
    WorkspaceEdit {
        changes: Some(HashMap::from([(Uri(open.uri.clone()), edits)])),
        ..WorkspaceEdit::default()
    }
}

fn text_edit(text: &Text, edit: &Edit) -> TextEdit {
    TextEdit {
        range: text.range(edit.span),
        new_text: edit.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_leaves_what_is_equal_at_both_ends() {
        for (before, after) in [
            ("abc", "axc"),
            ("aa", "aaa"),
            ("aaa", "aa"),
            ("", "x"),
            ("x", ""),
            ("\u{e9}x", "\u{e8}x"),
            ("x\u{e9}", "x\u{129}"),
            ("a\u{1f4be}b", "a\u{1f4bf}b"),
        ] {
            let edit = difference(before, after).unwrap();
            let edited = vmdisk_source::apply_edits(before, &[edit]).unwrap();
            assert_eq!(edited, after);
        }
        assert_eq!(difference("a", "a"), None);
    }
}
