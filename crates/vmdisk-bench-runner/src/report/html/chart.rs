//! Charts as rows: a name, a picture, and its values as text.

use maud::{Markup, PreEscaped, html};

use crate::report::svg::Axis;

/// Returns one row of a chart.
pub(crate) fn row(name: &str, picture: &str, value: &Markup) -> Markup {
    html! {
        div class="row" {
            span class="name" { (name) }
            span class="picture" { (PreEscaped(picture)) }
            span class="value" { (value) }
        }
    }
}

/// Returns the labels below the pictures.
pub(crate) fn axis(axis: Axis, label: impl Fn(f64) -> String) -> Markup {
    html! {
        div class="row axis" aria-hidden="true" {
            span class="name" {}
            span class="picture" {
                @for (value, place) in axis.labels() {
                    span style={ "left:" (format!("{place:.1}")) "%" } { (label(value)) }
                }
            }
            span class="value" {}
        }
    }
}
