//! Pictures as SVG: without scripts and without fonts of their own, in bright and dark surroundings, legible at the width of
//! a telephone and in print.

mod strips;

use maud::{Markup, PreEscaped, html};

use crate::sanitize::line;

pub(crate) use strips::{Axis, Mark, Row, Strips};

/// The width of a picture in its own units.
pub(crate) const WIDTH: usize = 420;

/// The most letters in a line of a heading.
const MAX_LETTERS: usize = 54;

/// The colours and letters of all pictures.
pub(crate) const STYLE: &str = include_str!("picture.css");

/// A picture with its height.
pub(crate) struct Picture {
    pub(crate) title: String,
    pub(crate) height: usize,
    pub(crate) content: Markup,
}

impl Picture {
    /// Words above other pictures, in lines that fit.
    pub(crate) fn heading(text: &str) -> Self {
        let mut lines = vec![String::new()];
        for word in line(text).split(' ') {
            let last = lines.len() - 1;
            if lines[last].chars().count() + word.chars().count() > MAX_LETTERS {
                lines.push(String::new());
            }
            let last = lines.len() - 1;
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last].push_str(&format!("{space}{word}"));
        }
        Picture {
            title: text.to_owned(),
            height: 14 + 17 * lines.len(),
            content: html! {
                @for (nth, text) in lines.iter().enumerate() {
                    text class="heading" x="12" y=(24 + 17 * nth) { (text) }
                }
            },
        }
    }

    /// The picture in a page that has [`STYLE`].
    pub(crate) fn in_page(&self) -> Markup {
        html! {
            svg viewBox=(format!("0 0 {WIDTH} {}", self.height)) class="picture" role="img" {
                title { (line(&self.title)) }
                (self.content)
            }
        }
    }
}

/// Pictures as one file: beside each other, or one below the other.
pub(crate) fn file(title: &str, pictures: &[Picture], is_beside: bool) -> String {
    let heights = pictures.iter().map(|it| it.height);
    let (columns, height) = match is_beside {
        true => (pictures.len().max(1), heights.max().unwrap_or(16)),
        false => (1, heights.sum::<usize>().max(16)),
    };
    let width = WIDTH * columns;
    let place = |nth: usize| match is_beside {
        true => (nth * WIDTH, 0),
        false => (0, pictures[..nth].iter().map(|it| it.height).sum()),
    };
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width} {height}")) width=(width) height=(height) class="picture" role="img" {
            title { (line(title)) }
            style { (PreEscaped(STYLE)) }
            rect class="paper" width=(width) height=(height) {}
            @for (nth, picture) in pictures.iter().enumerate() {
                @let (x, y) = place(nth);
                g transform=(format!("translate({x} {y})")) { (picture.content) }
            }
        }
    };
    format!("{}\n", markup.into_string())
}
